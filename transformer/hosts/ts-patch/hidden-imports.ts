import type * as TS from "typescript";
import { RUNTIME } from "../../read/module-syntax";
import { isOwnImport, type WovenFile } from "./woven-files";

// A compiler reuses the structure of an older program only while every file has the same imports. With the import that the weave adds, the
// compiler would resolve all imports of all files once more in each build, and twice in each rebuild of a watch. So this import is hidden
// from the compiler's list if the program already contains the runtime, as in every application that calls `configure()`. When types are
// looked up, the program still resolves the import.

/** An internal method of TypeScript that its declarations omit. */
interface ProgramInternals {
  getResolvedModule?(
    file: TS.SourceFile,
    name: string,
    mode: TS.ResolutionMode,
  ): TS.ResolvedModuleWithFailedLookupLocations | undefined;
}

interface HiddenImport {
  readonly mode: TS.ResolutionMode;
  readonly resolution: TS.ResolvedModuleWithFailedLookupLocations;
}

/** The hidden import of each compiled file. */
const hiddenImports = new WeakMap<TS.SourceFile, HiddenImport>();

/** Returns a function that hides the import in a compiled file, as soon as the compiler lists its imports. */
export function importHider(
  ts: typeof TS,
  program: TS.Program,
  host: TS.CompilerHost,
): (compiled: TS.SourceFile, file: WovenFile) => void {
  if ((program as ProgramInternals).getResolvedModule === undefined) return () => undefined;
  const options = program.getCompilerOptions();
  const canonical = (name: string): string => host.getCanonicalFileName(name);
  const cache = ts.createModuleResolutionCache(program.getCurrentDirectory(), canonical, options);
  const lookUp = (compiled: TS.SourceFile, specifier: TS.StringLiteralLike): HiddenImport | undefined => {
    const mode = program.getModeForUsageLocation(compiled, specifier);
    const { fileName } = compiled;
    const resolution = ts.resolveModuleName(RUNTIME, fileName, options, host, cache, undefined, mode);
    return isIn(program, resolution) ? { mode, resolution } : undefined;
  };
  return (compiled, file) => {
    const own = compiled.statements.find((statement) => isOwnImport(ts, statement, file));
    const specifier = own && specifierOf(ts, own);
    if (specifier === undefined) return;
    const set = (imports: readonly TS.Node[]): void => {
      const hidden = lookUp(compiled, specifier);
      if (hidden !== undefined) hiddenImports.set(compiled, hidden);
      const value = hidden === undefined ? imports : imports.filter((node) => node !== specifier);
      Object.defineProperty(compiled, "imports", { value, writable: true, enumerable: true });
    };
    Object.defineProperty(compiled, "imports", { get: () => undefined, set, configurable: true });
  };
}

/** Whether the file is complete in this program. A file that was compiled for another program may hide an import that this one needs. */
export function isCompleteIn(program: TS.Program, compiled: TS.SourceFile): boolean {
  const hidden = hiddenImports.get(compiled);
  return hidden === undefined || isIn(program, hidden.resolution);
}

/** Makes the program resolve the hidden imports. */
export function resolveHiddenImports(program: TS.Program): void {
  const internals = program as ProgramInternals;
  const { getResolvedModule } = internals;
  if (getResolvedModule === undefined) return;
  internals.getResolvedModule = (file, name, mode) => {
    const hidden = name === RUNTIME ? hiddenImports.get(file) : undefined;
    const resolution = hidden?.mode === mode ? hidden?.resolution : undefined;
    return getResolvedModule(file, name, mode) ?? resolution;
  };
}

function isIn(program: TS.Program, { resolvedModule }: HiddenImport["resolution"]): boolean {
  return resolvedModule !== undefined && program.getSourceFile(resolvedModule.resolvedFileName) !== undefined;
}

function specifierOf(ts: typeof TS, statement: TS.Statement): TS.StringLiteralLike | undefined {
  const specifier = ts.isImportDeclaration(statement)
    ? statement.moduleSpecifier
    : ts.isImportEqualsDeclaration(statement) && ts.isExternalModuleReference(statement.moduleReference)
      ? statement.moduleReference.expression
      : undefined;
  return specifier !== undefined && ts.isStringLiteralLike(specifier) ? specifier : undefined;
}
