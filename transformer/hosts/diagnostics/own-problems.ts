import type * as TS from "typescript";
import type { Problem } from "../../text/problems";

// ts-patch, TypeScript 7, and the editor report our problems as diagnostics of the compiler.

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

/** A diagnostic of the compiler that keeps what only the editor needs of a problem. */
export interface TagDiagnostic extends TS.Diagnostic, Pick<Problem, "replacements"> {}

export function diagnosticOf(
  ts: typeof TS,
  found: Problem,
  file: TS.SourceFile | undefined,
  category: TS.DiagnosticCategory = ts.DiagnosticCategory.Error,
): TagDiagnostic {
  const { code, start, end, replacements } = found;
  return {
    category,
    code: numberOf(code),
    messageText: messageOf(found),
    source: OURS,
    file,
    start: file && start,
    length: file && end - start,
    ...(replacements !== undefined && { replacements }),
  };
}

/** The `source` of our diagnostics. */
const OURS = "lockweave";

/** Whether the diagnostic comes from the compiler, and not from us. */
export function isOfCompiler({ source }: TS.Diagnostic): boolean {
  return source !== OURS;
}

/** The compiler reports these itself: a file that does not parse, and a parameter that is declared twice. One error is enough. */
const FOUND_BY_THE_COMPILER: ReadonlySet<string> = new Set(["LW1312", "LW1402"]);

/** Returns the problems that the compiler does not report. */
export function notReportedByCompiler(problems: readonly Problem[]): Problem[] {
  return problems.filter(({ code }) => !FOUND_BY_THE_COMPILER.has(code));
}

/** TypeScript's codes for unused names, properties, imports, and type parameters. */
export const UNUSED_NAMES: ReadonlySet<number> = new Set([6133, 6138, 6192, 6196, 6198, 6199, 6205]);
