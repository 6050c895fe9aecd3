import type * as TS from "typescript";
import type { Parser } from "../../parser/parser";
import { isOfTag } from "../../weave/weave";
import { toDisk, type FindWoven, type WovenOnDisk } from "./to-disk";

// `@ts-ignore` and `@ts-expect-error` apply to a line of the file on disk, and never to a tag. The compiler would apply them to the line of
// the woven text, where the key of a tag is in the line of its function. So the compiler gets the woven text without them.

/** A `@ts-ignore` or `@ts-expect-error`, in TypeScript's internal format. */
interface CommentDirective {
  readonly range: TS.TextRange;
  readonly type: number;
}

/** An internal field of TypeScript that its declarations omit. */
interface Directed {
  commentDirectives?: readonly CommentDirective[];
}

/** TypeScript's type for a directive `@ts-expect-error`. */
const EXPECT_ERROR = 0;

/** TypeScript's code for an expected error that did not occur. */
const UNUSED = 2578;

// ---- a compiler with an API -----------------------------------------------------------------------------

/**
 * Replaces the directives by one expectation at the end of the file, which no error can meet. If the compiler reports it as unused,
 * directives are in effect.
 */
export function replaceDirectives(compiled: TS.SourceFile): void {
  if (directivesOf(compiled).length === 0) return;
  const { end } = compiled;
  (compiled as Directed).commentDirectives = [{ range: { pos: end, end }, type: EXPECT_ERROR }];
}

/**
 * Maps the compiler's diagnostics of woven files to the disk. Removes those that a directive on disk silences, and reports expectations
 * that no error met.
 */
export function applyDirectives(diagnostics: readonly TS.Diagnostic[], fileOf: FindWoven): TS.Diagnostic[] {
  const markers = diagnostics.filter((diagnostic) => isMarker(diagnostic, fileOf));
  let remaining = diagnostics
    .filter((diagnostic) => !markers.includes(diagnostic))
    .map((diagnostic) => toDisk(diagnostic, fileOf));
  for (const marker of markers) {
    const file = marker.file && fileOf(marker.file);
    if (file !== undefined) remaining = applyDirectivesIn(file, remaining, marker);
  }
  return remaining;
}

/** Maps diagnostics about the program's structure to the disk, and removes those that a directive silences. Reports no unmet expectations. */
export function applyDirectivesInProgram(
  diagnostics: readonly TS.Diagnostic[],
  fileOf: FindWoven,
): TS.Diagnostic[] {
  const onDisk = diagnostics.map((diagnostic) => toDisk(diagnostic, fileOf));
  return onDisk.filter(({ file, start }) => {
    const woven = file && fileOf(file);
    return woven === undefined || start === undefined || directiveFor(woven, start) === undefined;
  });
}

function isMarker({ code, file, start }: TS.Diagnostic, fileOf: FindWoven): boolean {
  return code === UNUSED && file !== undefined && start === file.end && isCompiled(file, fileOf);
}

/** Whether the file is woven text, as opposed to the file on disk. */
function isCompiled(file: TS.SourceFile, fileOf: FindWoven): boolean {
  const woven = fileOf(file);
  return woven !== undefined && file !== woven.onDisk;
}

function applyDirectivesIn(
  file: WovenOnDisk,
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
function directiveFor(file: WovenOnDisk, offset: number): CommentDirective | undefined {
  const { onDisk } = file;
  const directives = directivesByLine(onDisk);
  if (directives.size === 0 || isOfTag(file.woven.tags, onDisk.text, offset)) return undefined;
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
  return (file as Directed).commentDirectives ?? [];
}

function lineOf(file: TS.SourceFile, offset: number): number {
  return file.getLineAndCharacterOfPosition(offset).line;
}

// ---- a compiler that runs as a program ------------------------------------------------------------------

/**
 * Disguises the directives of woven text. The compiler also runs on the originals, where it applies them to the errors that it finds there.
 */
export function withoutDirectives(ts: Parser, fileName: string, code: string): string {
  let text = code;
  for (const { range } of directivesOf(ts.createSourceFile(fileName, code, ts.ScriptTarget.Latest))) {
    const comment = text.slice(range.pos, range.end).replace(DIRECTIVE, `@ts${DISGUISE}`);
    text = text.slice(0, range.pos) + comment + text.slice(range.end);
  }
  return text;
}

const DIRECTIVE = /@ts-(?=ignore|expect-error)/g;
/** A hyphen that looks like the original one and has the same length. */
const DISGUISE = "\u2010";

/** Restores the directives in emitted code, which keeps comments. */
export function withDirectives(emitted: string): string {
  return emitted.replaceAll(`@ts${DISGUISE}`, "@ts-");
}

/** Whether the text may contain a directive. */
export function mayHaveDirectives(text: string): boolean {
  return text.search(DIRECTIVE) !== -1;
}
