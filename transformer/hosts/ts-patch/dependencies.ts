import { basename } from "node:path";
import type * as TS from "typescript";
import { problem } from "../../text/problems";
import { unlockedIn, type Unlocked } from "../../verify/declared";
import type { PlacedProblem } from "../../verify/project";
import { internals } from "./woven-files";

/**
 * What is compiled apart from this program, and taken in by its declarations, was woven by its own build or not at
 * all: an error at the import that takes in what is not.
 */
export function unlockedDependencies(
  ts: typeof TS,
  program: TS.Program,
  isMeant: (declarations: TS.SourceFile) => boolean = () => true,
): PlacedProblem[] {
  const found = unlockedDeclarations(ts, program).filter(({ declarations }) => isMeant(declarations));
  return found.map(({ declarations, unlocked }) => {
    const { file, at } = importOf(program, declarations);
    const names = unlocked.tags.map(({ name, flag }) => `\`${name ?? flag}\``).join(", ");
    return { file, problem: problem("unlockedDependency", at, names, basename(unlocked.javaScript)) };
  });
}

function unlockedDeclarations(
  ts: typeof TS,
  program: TS.Program,
): { declarations: TS.SourceFile; unlocked: Unlocked }[] {
  return program.getSourceFiles().flatMap((declarations) => {
    if (!declarations.isDeclarationFile || program.isSourceFileDefaultLibrary(declarations)) return [];
    const unlocked = unlockedIn(ts, declarations, (fileName) => outputOf(ts, program, fileName));
    return unlocked === undefined ? [] : [{ declarations, unlocked }];
  });
}

/** Whether a referenced project makes the declarations. */
export function isOfReference(ts: typeof TS, program: TS.Program, { fileName }: TS.SourceFile): boolean {
  return outputOf(ts, program, fileName) !== undefined;
}

/** TypeScript's own, which its declarations leave out. */
interface ProgramInternals {
  getFileIncludeReasons(): ReadonlyMap<
    string,
    readonly { readonly file?: string; readonly index?: number }[]
  >;
  getSourceFileByPath(path: string): (TS.SourceFile & { readonly imports?: readonly TS.Node[] }) | undefined;
}

/** The import in a source file by which the declarations came in, maybe through other declarations. */
function importOf(
  program: TS.Program,
  declarations: TS.SourceFile,
): { file: TS.SourceFile | undefined; at: { start: number; end: number } } {
  const { getFileIncludeReasons, getSourceFileByPath } = program as unknown as ProgramInternals;
  const reasons = getFileIncludeReasons();
  const seen = new Set<string>();
  const waiting = [internals(declarations).path];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    if (seen.has(path)) continue;
    seen.add(path);
    for (const { file: importer, index } of reasons.get(path) ?? []) {
      const file = importer === undefined ? undefined : getSourceFileByPath(importer);
      if (importer === undefined || file === undefined || index === undefined) continue;
      if (file.isDeclarationFile) waiting.push(importer);
      const specifier = file.imports?.[index];
      if (!file.isDeclarationFile && specifier !== undefined) {
        return { file, at: { start: specifier.getStart(file), end: specifier.end } };
      }
    }
  }
  return { file: undefined, at: { start: 0, end: 0 } };
}

/** Where a referenced project puts the JavaScript of these declarations. */
function outputOf(ts: typeof TS, program: TS.Program, declarations: string): string | undefined {
  const seen = new Set<TS.ResolvedProjectReference>();
  const find = (
    references: readonly (TS.ResolvedProjectReference | undefined)[] = [],
  ): string | undefined => {
    for (const reference of references) {
      if (reference === undefined || seen.has(reference)) continue;
      seen.add(reference);
      const { commandLine } = reference;
      for (const input of commandLine.fileNames.filter((name) => !/\.d\.[cm]?ts$/.test(name))) {
        const outputs = ts.getOutputFileNames(commandLine, input, !ts.sys.useCaseSensitiveFileNames);
        if (outputs.includes(declarations)) return outputs.find((output) => /\.[cm]?jsx?$/.test(output));
      }
      const found = find(reference.references);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return find(program.getResolvedProjectReferences());
}
