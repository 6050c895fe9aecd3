import type * as TS from "typescript";
import { lineStarts } from "../../text/line-starts";
import type { Span } from "../../text/span";
import { typeAdvice } from "../../text/type-advice";
import { isOfTag, type Woven } from "../../weave/weave";
import { isOfCompiler } from "./own-problems";

// Maps what a compiler says about woven text to the file on disk. A compiler with an API gives an offset and a length. One that runs as a
// program prints a line and a column.

/** A woven file, and the file to which its diagnostics point. */
export interface WovenOnDisk {
  readonly woven: Woven;
  readonly onDisk: TS.SourceFile;
}

/** Finds the woven file of a file that the compiler compiled, or of the file on disk. */
export type FindWoven = (file: TS.SourceFile) => WovenOnDisk | undefined;

/** Maps the diagnostic to the file on disk. */
export function toDisk<D extends TS.DiagnosticRelatedInformation>(diagnostic: D, fileOf: FindWoven): D {
  const file = diagnostic.file && fileOf(diagnostic.file);
  const isMapped = file === undefined || diagnostic.file === file.onDisk;
  const { start = 0, length = 0 } = diagnostic;
  const span = isMapped ? undefined : file.woven.positions.toDisk({ start, end: start + length });
  const { relatedInformation } = diagnostic as Partial<TS.Diagnostic>;
  const inside = span && file && insideExpression(diagnostic, span, file.woven);
  return {
    ...diagnostic,
    ...inside?.message,
    ...(span && file && withAdvice(diagnostic, span, file)),
    ...(span && placed(inside?.at ?? span, file)),
    ...(relatedInformation && {
      relatedInformation: relatedInformation.map((related) => toDisk(related, fileOf)),
    }),
  };
}

function placed({ start, end }: Span, file: WovenOnDisk | undefined): Partial<TS.Diagnostic> {
  return { file: file?.onDisk, start, length: end - start };
}

const NOT_ASSIGNABLE = 2322;

/** Replaces an error about the type of a function by the error about its return value. See {@link NamedExpression}. */
function insideExpression(
  { code, messageText }: TS.DiagnosticRelatedInformation,
  { start, end }: Span,
  { expressions }: Woven,
): { at: Span; message: Pick<TS.Diagnostic, "messageText"> } | undefined {
  const named = expressions.find(({ name }) => name.start === start && name.end === end);
  if (named === undefined || code !== NOT_ASSIGNABLE || typeof messageText === "string") return undefined;
  const [inner, another] = messageText.next ?? [];
  if (inner?.code !== NOT_ASSIGNABLE || another !== undefined) return undefined;
  return { at: named.value, message: { messageText: inner } };
}

/** Adds advice that the compiler cannot give. */
function withAdvice(
  { category, code, messageText }: TS.DiagnosticRelatedInformation,
  { start }: Span,
  { woven, onDisk: { text } }: WovenOnDisk,
): Partial<Pick<TS.Diagnostic, "messageText">> {
  const chain = typeof messageText === "string" ? { category, code, messageText } : messageText;
  const error = { code: `TS${code}`, message: chain.messageText };
  const advice = adviceAt({ woven, text }, start, error);
  if (advice === undefined) return {};
  const { next = [] } = chain as Partial<TS.DiagnosticMessageChain>;
  return { messageText: { ...chain, next: [...next, { category, code, messageText: advice }] } };
}

/** Returns the compiler's own errors in the tags. It reports all others without the weave, too. */
export function compilerErrorsInTags<D extends TS.Diagnostic>(
  onDisk: readonly D[],
  tags: Woven["tags"],
  text: string,
): D[] {
  return onDisk.filter(
    (one) => isOfCompiler(one) && one.start !== undefined && isOfTag(tags, text, one.start),
  );
}

/** Woven text, and the text on disk. */
export interface WovenText {
  readonly woven: Woven;
  readonly text: string;
}

/** An error as a compiler prints it. Line and column start at 1. */
interface PrintedError {
  readonly line: number;
  readonly column: number;
  /** The code, such as `TS2339`. */
  readonly code: string;
  readonly message: string;
}

/** Maps a printed error to the text on disk. */
export function printedToDisk<E extends PrintedError>(error: E, file: WovenText): E {
  const at = file.woven.positions.columnToDisk(error.line - 1, error.column - 1);
  const mapped = { ...error, line: at.line + 1, column: at.column + 1 };
  const advice = adviceAt(file, offsetOf(mapped, file.text), error);
  return advice === undefined ? mapped : { ...mapped, message: `${error.message}\n  ${advice}` };
}

/** Returns the offset of a printed error on disk, if it is in a tag. The compiler reports nothing there without the weave. */
export function tagOffsetOf(error: PrintedError, { woven: { tags }, text }: WovenText): number | undefined {
  const offset = offsetOf(error, text);
  return isOfTag(tags, text, offset) ? offset : undefined;
}

function offsetOf({ line, column }: PrintedError, text: string): number {
  return (lineStarts(text)[line - 1] ?? 0) + column - 1;
}

/** Returns advice that the compiler cannot give, if its error is in a tag. */
function adviceAt(
  { woven: { tags }, text }: WovenText,
  offset: number,
  { code, message }: Pick<PrintedError, "code" | "message">,
): string | undefined {
  const advice = typeAdvice(code, message);
  return advice !== undefined && isOfTag(tags, text, offset) ? advice : undefined;
}
