import type * as TS from "typescript";
import { RUNTIME } from "../../read/imports";
import { isOwnImport, type WovenFile } from "./woven-files";

// A compiler takes over the make-up of an older program only while every file imports what it did. With the import that
// a woven file gained, all that all files import would be gone through once more in each build, and twice in each rebuild
// of a watch. So that import is left out of the compiler's list where the program has the runtime already, as every
// application has that says where its locks live; what it leads to is told where types are looked up.

/** TypeScript's own, which its declarations leave out. */
interface ProgramInternals {
  getResolvedModule?(
    file: TS.SourceFile,
    name: string,
    mode: TS.ResolutionMode,
  ): TS.ResolvedModuleWithFailedLookupLocations | undefined;
}

interface LeftOut {
  readonly mode: TS.ResolutionMode;
  readonly resolution: TS.ResolvedModuleWithFailedLookupLocations;
}

/** By the file that is compiled. */
const leftOutOf = new WeakMap<TS.SourceFile, LeftOut>();

/** Leaves out the imports of files that are to be compiled, as soon as the compiler lists them. */
export function leavingOut(
  ts: typeof TS,
  program: TS.Program,
  host: TS.CompilerHost,
): (compiled: TS.SourceFile, file: WovenFile) => void {
  if ((program as ProgramInternals).getResolvedModule === undefined) return () => undefined;
  const options = program.getCompilerOptions();
  const canonical = (name: string): string => host.getCanonicalFileName(name);
  const cache = ts.createModuleResolutionCache(program.getCurrentDirectory(), canonical, options);
  const lookUp = (compiled: TS.SourceFile, specifier: TS.StringLiteralLike): LeftOut | undefined => {
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
      const leftOut = lookUp(compiled, specifier);
      if (leftOut !== undefined) leftOutOf.set(compiled, leftOut);
      const value = leftOut === undefined ? imports : imports.filter((node) => node !== specifier);
      Object.defineProperty(compiled, "imports", { value, writable: true, enumerable: true });
    };
    Object.defineProperty(compiled, "imports", { get: () => undefined, set, configurable: true });
  };
}

/** Whether the file can be compiled in the program: one that was made for another may have left out too much. */
export function isCompleteIn(program: TS.Program, compiled: TS.SourceFile): boolean {
  const leftOut = leftOutOf.get(compiled);
  return leftOut === undefined || isIn(program, leftOut.resolution);
}

/** Tells the program what the imports lead to that were left out of its files. */
export function tellLeftOut(program: TS.Program): void {
  const internals = program as ProgramInternals;
  const { getResolvedModule } = internals;
  if (getResolvedModule === undefined) return;
  internals.getResolvedModule = (file, name, mode) => {
    const leftOut = name === RUNTIME ? leftOutOf.get(file) : undefined;
    const told = leftOut?.mode === mode ? leftOut?.resolution : undefined;
    return getResolvedModule(file, name, mode) ?? told;
  };
}

function isIn(program: TS.Program, { resolvedModule }: LeftOut["resolution"]): boolean {
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
