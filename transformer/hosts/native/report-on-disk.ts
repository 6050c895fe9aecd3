import type * as TS from "typescript";
import { lineStarts } from "../../text/line-starts";
import type { Problem } from "../../text/problems";
import { isOfTag } from "../../weave/weave";
import { adviceInTag, asCompilerProblem, foundOnlyByUs } from "../diagnostics";
import type { CompilerDiagnostic } from "./compiler-output";
import type { NativeProject } from "./project";

/** Returns our problems in the project's tags as diagnostics of the compiler. */
export function problemsIn({ woven }: NativeProject, kind: "errors" | "warnings"): CompilerDiagnostic[] {
  return [...woven].flatMap(([file, { text, woven: of }]) => {
    const starts = lineStarts(text);
    return foundOnlyByUs(kind === "errors" ? of.diagnostics : of.warnings).map((found) =>
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
export function toDisk(one: CompilerDiagnostic, project: NativeProject): CompilerDiagnostic {
  const found = one.file === undefined ? undefined : project.woven.get(one.file);
  if (found === undefined) return one;
  const { line, column } = found.woven.positions.columnToDisk(one.line - 1, one.column - 1);
  const mapped = { ...one, line: line + 1, column: column + 1 };
  const offset = offsetOf(mapped, found.text);
  const advice = adviceInTag(found.woven, found.text, { code: one.code, message: one.message, offset });
  return advice === undefined ? mapped : { ...mapped, message: `${one.message}\n  ${advice}` };
}

/** Returns the offset of the diagnostic if it is in a tag. The compiler reports nothing there without the weave. */
export function offsetInTag(one: CompilerDiagnostic, { woven }: NativeProject): number | undefined {
  const found = one.file === undefined ? undefined : woven.get(one.file);
  if (found === undefined) return undefined;
  const offset = offsetOf(one, found.text);
  return isOfTag(found.woven.sites, found.text, offset) ? offset : undefined;
}

function offsetOf({ line, column }: CompilerDiagnostic, text: string): number {
  return (lineStarts(text)[line - 1] ?? 0) + column - 1;
}
