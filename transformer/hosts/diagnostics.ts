import type * as TS from "typescript";
import type { Problem } from "../text/problems";
import { typeAdvice } from "../text/type-advice";
import { isOfTag, type Woven } from "../weave/weave";

// How ts-patch, TypeScript 7, and the editor report our problems among those of the compiler.

/** Returns the numeric code. TypeScript prints it after `TS`, so ours are outside of TypeScript's own range. */
export function numberOf(code: string): number {
  return 900_000 + Number(code.slice("LW".length));
}

/** Returns the code and the message in the form of a compiler, which accepts only codes of its own form. */
export function asCompilerProblem({ code, message }: Pick<Problem, "code" | "message">): {
  readonly code: string;
  readonly message: string;
} {
  return { code: `TS${numberOf(code)}`, message: messageOf({ code, message }) };
}

function messageOf({ code, message }: Pick<Problem, "code" | "message">): string {
  return `${code}: ${message}`;
}

export function diagnosticOf(
  ts: typeof TS,
  found: Problem,
  file: TS.SourceFile | undefined,
  category: TS.DiagnosticCategory = ts.DiagnosticCategory.Error,
): TS.Diagnostic {
  const { code, start, end } = found;
  return {
    category,
    code: numberOf(code),
    messageText: messageOf(found),
    source: "lockweave",
    file,
    start: file && start,
    length: file && end - start,
  };
}

/** The compiler reports these itself: a file that does not parse, and a parameter that is declared twice. One error is enough. */
const FOUND_BY_THE_COMPILER: ReadonlySet<string> = new Set(["LW1312", "LW1402"]);

/** Returns the problems that the compiler does not report. */
export function foundOnlyByUs(problems: readonly Problem[]): Problem[] {
  return problems.filter(({ code }) => !FOUND_BY_THE_COMPILER.has(code));
}

/**
 * Returns advice that the compiler cannot give, if its error is in a tag.
 *
 * @param code the compiler's code, such as `TS2345`
 * @param offset the offset of the error in the text on disk
 */
export function adviceInTag(
  { sites }: Woven,
  onDisk: string,
  { code, message, offset }: { readonly code: string; readonly message: string; readonly offset: number },
): string | undefined {
  const advice = typeAdvice(code, message);
  return advice !== undefined && isOfTag(sites, onDisk, offset) ? advice : undefined;
}

/** TypeScript's codes for unused names, properties, imports, and type parameters. */
export const UNUSED_NAMES: ReadonlySet<number> = new Set([6133, 6138, 6192, 6196, 6198, 6199, 6205]);
