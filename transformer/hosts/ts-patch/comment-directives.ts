import type * as TS from "typescript";
import { isOfTag } from "../../weave/weave";
import { internals, type CommentDirective, type WovenFile, type WovenFiles } from "./woven-files";

// `@ts-ignore` and `@ts-expect-error` apply to a line of the file on disk, and never to a tag. The compiler would apply them to the line of
// the woven text, where the key of a tag is in the line of its function.

/** TypeScript's type for a directive `@ts-expect-error`. */
const EXPECT_ERROR = 0;

/** TypeScript's code for an expected error that did not occur. */
const UNUSED = 2578;

/**
 * Replaces the directives by one expectation at the end of the file, which no error can meet. If the compiler reports it as unused,
 * directives are in effect.
 */
export function replaceDirectives(compiled: TS.SourceFile): void {
  if (directivesOf(compiled).length === 0) return;
  const { end } = compiled;
  internals(compiled).commentDirectives = [{ range: { pos: end, end }, type: EXPECT_ERROR }];
}

/**
 * Maps the compiler's diagnostics of woven files to the disk. Removes those that a directive on disk silences, and reports expectations
 * that no error met.
 */
export function applyDirectives(
  diagnostics: readonly TS.Diagnostic[],
  files: WovenFiles,
  mapToDisk: (diagnostic: TS.Diagnostic) => TS.Diagnostic,
): TS.Diagnostic[] {
  const fileOf = ({ file }: TS.Diagnostic): WovenFile | undefined => file && files.get(internals(file).path);
  const markers = diagnostics.filter((diagnostic) => isMarker(diagnostic, fileOf(diagnostic)));
  let remaining = diagnostics.filter((diagnostic) => !markers.includes(diagnostic)).map(mapToDisk);
  for (const marker of markers) {
    const file = fileOf(marker);
    if (file !== undefined) remaining = applyDirectivesIn(file, remaining, marker);
  }
  return remaining;
}

/** Does the same for diagnostics about the program's structure. Unmet expectations are not reported here. */
export function applyDirectivesInProgram(
  diagnostics: readonly TS.Diagnostic[],
  files: WovenFiles,
  mapToDisk: (diagnostic: TS.Diagnostic) => TS.Diagnostic,
): TS.Diagnostic[] {
  const onDisk = diagnostics.map(mapToDisk);
  return onDisk.filter(({ file, start }) => {
    const woven = file && files.get(internals(file).path);
    return woven === undefined || start === undefined || directiveFor(woven, start) === undefined;
  });
}

function isMarker({ code, file, start }: TS.Diagnostic, woven: WovenFile | undefined): boolean {
  return code === UNUSED && file !== undefined && file === woven?.compiled && start === file.end;
}

function applyDirectivesIn(
  file: WovenFile,
  diagnostics: readonly TS.Diagnostic[],
  unused: TS.Diagnostic,
): TS.Diagnostic[] {
  const { onDisk } = file;
  const met = new Set<CommentDirective>();
  const remaining = diagnostics.filter((diagnostic) => {
    const { start } = diagnostic;
    if (diagnostic.file !== onDisk || start === undefined) return true;
    const directive = directiveFor(file, start);
    if (directive !== undefined) met.add(directive);
    return directive === undefined;
  });
  const unmet = [...directivesByLine(onDisk).values()].filter(
    (one) => one.type === EXPECT_ERROR && !met.has(one),
  );
  const diagnosticOf = ({ range: { pos, end } }: CommentDirective): TS.Diagnostic => {
    return { ...unused, file: onDisk, start: pos, length: end - pos };
  };
  return [...remaining, ...unmet.map(diagnosticOf)];
}

/**
 * Returns the directive that silences an offset on disk. It is in the line above, or above the comments and blank lines directly above it.
 */
function directiveFor(file: WovenFile, offset: number): CommentDirective | undefined {
  const { onDisk } = file;
  const directives = directivesByLine(onDisk);
  if (directives.size === 0 || isOfTag(file.woven.sites, onDisk.text, offset)) return undefined;
  const starts = onDisk.getLineStarts();
  for (let above = lineOf(onDisk, offset) - 1; above >= 0; above -= 1) {
    const directive = directives.get(above);
    const text = onDisk.text.slice(starts[above], starts[above + 1]).trim();
    if (directive !== undefined || (text !== "" && !text.startsWith("//"))) return directive;
  }
  return undefined;
}

/** Returns one directive for each line. The parser reads some text twice, such as `(` before an arrow function, and then records two. */
function directivesByLine(file: TS.SourceFile): Map<number, CommentDirective> {
  return new Map(directivesOf(file).map((one) => [lineOf(file, one.range.end), one]));
}

function directivesOf(file: TS.SourceFile): readonly CommentDirective[] {
  return internals(file).commentDirectives ?? [];
}

function lineOf(file: TS.SourceFile, offset: number): number {
  return file.getLineAndCharacterOfPosition(offset).line;
}
