import type * as TS from "typescript";
import { isOfTag } from "../../weave/weave";
import { internals, type CommentDirective, type WovenFile, type WovenFiles } from "./woven-files";

// `@ts-ignore` and `@ts-expect-error` speak of a line of the file on disk, and never of a tag. The compiler would
// go by the line of the woven text, where a tag's key stands in the line of its function.

/** `@ts-expect-error`, among the types of directives. */
const EXPECT_ERROR = 0;

/** That an error was expected, and there was none. */
const UNUSED = 2578;

/** Leaves the compiler an expectation that no line can meet: what it says of it tells that directives count. */
export function takeDirectives(compiled: TS.SourceFile): void {
  if (directivesOf(compiled).length === 0) return;
  const { end } = compiled;
  internals(compiled).commentDirectives = [{ range: { pos: end, end }, type: EXPECT_ERROR }];
}

/**
 * What the compiler says of woven files, led back to the disk: without what directives silence there, and with the
 * expectations that nothing met.
 */
export function obeyDirectives(
  diagnostics: readonly TS.Diagnostic[],
  files: WovenFiles,
  lead: (diagnostic: TS.Diagnostic) => TS.Diagnostic,
): TS.Diagnostic[] {
  const fileOf = ({ file }: TS.Diagnostic): WovenFile | undefined => file && files.get(internals(file).path);
  const taken = diagnostics.filter((diagnostic) => isOfTaken(diagnostic, fileOf(diagnostic)));
  let left = diagnostics.filter((diagnostic) => !taken.includes(diagnostic)).map(lead);
  for (const ofTaken of taken) {
    const file = fileOf(ofTaken);
    if (file !== undefined) left = obeyIn(file, left, ofTaken);
  }
  return left;
}

/** The same of what is wrong with the program's make-up, of which no expectation is told. */
export function obeyInProgram(
  diagnostics: readonly TS.Diagnostic[],
  files: WovenFiles,
  lead: (diagnostic: TS.Diagnostic) => TS.Diagnostic,
): TS.Diagnostic[] {
  const onDisk = diagnostics.map(lead);
  return onDisk.filter(({ file, start }) => {
    const woven = file && files.get(internals(file).path);
    return woven === undefined || start === undefined || directiveFor(woven, start) === undefined;
  });
}

function isOfTaken({ code, file, start }: TS.Diagnostic, woven: WovenFile | undefined): boolean {
  return code === UNUSED && file !== undefined && file === woven?.compiled && start === file.end;
}

function obeyIn(
  file: WovenFile,
  diagnostics: readonly TS.Diagnostic[],
  unused: TS.Diagnostic,
): TS.Diagnostic[] {
  const { onDisk } = file;
  const met = new Set<CommentDirective>();
  const left = diagnostics.filter((diagnostic) => {
    const { start } = diagnostic;
    if (diagnostic.file !== onDisk || start === undefined) return true;
    const directive = directiveFor(file, start);
    if (directive !== undefined) met.add(directive);
    return directive === undefined;
  });
  const unmet = [...directivesByLine(onDisk).values()].filter(
    (one) => one.type === EXPECT_ERROR && !met.has(one),
  );
  const said = ({ range: { pos, end } }: CommentDirective): TS.Diagnostic => {
    return { ...unused, file: onDisk, start: pos, length: end - pos };
  };
  return [...left, ...unmet.map(said)];
}

/** What silences the place on disk: in the line above, or above the comments and blank lines right above it. */
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

/** One for each line: of what the parser reads twice, such as `(` before an arrow function, it keeps two. */
function directivesByLine(file: TS.SourceFile): Map<number, CommentDirective> {
  return new Map(directivesOf(file).map((one) => [lineOf(file, one.range.end), one]));
}

function directivesOf(file: TS.SourceFile): readonly CommentDirective[] {
  return internals(file).commentDirectives ?? [];
}

function lineOf(file: TS.SourceFile, offset: number): number {
  return file.getLineAndCharacterOfPosition(offset).line;
}
