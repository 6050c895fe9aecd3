import type * as TS from "typescript";
import { lineStarts } from "../../text/line-starts";
import type { Problem } from "../../text/problems";
import { asCompilerProblem, notReportedByCompiler } from "../diagnostics/own-problems";
import { printedToDisk, tagOffsetOf } from "../diagnostics/to-disk";
import type { CompilerDiagnostic } from "./compiler-output";
import type { NativeProject } from "./project";

/** Returns our problems in the project's tags as diagnostics of the compiler. */
export function problemsIn({ woven }: NativeProject, kind: "errors" | "warnings"): CompilerDiagnostic[] {
  return [...woven].flatMap(([file, { text, woven: of }]) => {
    const starts = lineStarts(text);
    return notReportedByCompiler(kind === "errors" ? of.diagnostics : of.warnings).map((found) =>
      diagnosticFor(found, positionOf(file, found, starts), kind === "errors" ? "error" : "warning"),
    );
  });
}

/** Converts a problem in a file to a diagnostic of the compiler. */
export function diagnosticAt(file: TS.SourceFile | undefined, found: Problem): CompilerDiagnostic {
  return file === undefined
    ? diagnosticFor(found)
    : diagnosticFor(found, positionOf(file.fileName, found, lineStarts(file.text)));
}

function positionOf(
  file: string,
  { start }: Problem,
  starts: readonly number[],
): Pick<CompilerDiagnostic, "file" | "line" | "column"> {
  const line = starts.findLastIndex((one) => one <= start);
  return { file, line: line + 1, column: start - (starts[line] ?? 0) + 1 };
}

/** Converts a problem to a diagnostic of the compiler. Without a place, it is about the project as a whole. */
export function diagnosticFor(
  found: Problem,
  place: Pick<CompilerDiagnostic, "file" | "line" | "column"> = { file: undefined, line: 0, column: 0 },
  category = "error",
): CompilerDiagnostic {
  return { ...place, category, ...asCompilerProblem(found) };
}

/** Maps a diagnostic of a woven text to the text on disk. */
export function toDisk(one: CompilerDiagnostic, { woven }: NativeProject): CompilerDiagnostic {
  const file = one.file === undefined ? undefined : woven.get(one.file);
  return file === undefined ? one : printedToDisk(one, file);
}

/** Returns the offset of the diagnostic on disk, if it is in a tag. */
export function offsetInTag(one: CompilerDiagnostic, { woven }: NativeProject): number | undefined {
  const file = one.file === undefined ? undefined : woven.get(one.file);
  return file && tagOffsetOf(one, file);
}
