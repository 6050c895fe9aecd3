import type * as TS from "typescript";
import { lineStarts } from "../../text/line-starts";
import { typeAdvice } from "../../text/type-advice";
import type { Problem } from "../../text/problems";
import { isOfTag } from "../../weave/weave";
import type { CompilerDiagnostic } from "./diagnostics";
import type { NativeProject } from "./project";

/** Returns our problems in the project's tags as diagnostics of the compiler. */
export function problemsIn({ woven }: NativeProject, kind: "errors" | "warnings"): CompilerDiagnostic[] {
  return [...woven].flatMap(([file, { text, woven: of }]) => {
    const starts = lineStarts(text);
    return (kind === "errors" ? of.diagnostics : of.warnings)
      .filter(({ code }) => !FOUND_BY_THE_COMPILER.has(code))
      .map((found) =>
        diagnosticFor(found, placeOf(file, found, starts), kind === "errors" ? "error" : "warning"),
      );
  });
}

/** Converts a problem in a file to a diagnostic of the compiler. */
export function diagnosticAt(file: TS.SourceFile | undefined, found: Problem): CompilerDiagnostic {
  return file === undefined
    ? diagnosticFor(found)
    : diagnosticFor(found, placeOf(file.fileName, found, lineStarts(file.text)));
}

function placeOf(
  file: string,
  { start }: Problem,
  starts: readonly number[],
): Pick<CompilerDiagnostic, "file" | "line" | "column"> {
  const line = starts.findLastIndex((one) => one <= start);
  return { file, line: line + 1, column: start - (starts[line] ?? 0) + 1 };
}

/** Converts a problem to a diagnostic of the compiler. Without a place, it is about the project as a whole. */
export function diagnosticFor(
  { code, message }: Problem,
  place: Pick<CompilerDiagnostic, "file" | "line" | "column"> = { file: undefined, line: 0, column: 0 },
  category = "error",
): CompilerDiagnostic {
  // Under `tspc`, the codes are the same. The compiler accepts only codes of its own form.
  const ours = `TS${900_000 + Number(code.slice("LW".length))}`;
  return { ...place, category, code: ours, message: `${code}: ${message}` };
}

/** The compiler reports these itself: a file that does not parse, and a parameter that is declared twice. One error is enough. */
const FOUND_BY_THE_COMPILER: ReadonlySet<string> = new Set(["LW1312", "LW1402"]);

/** Maps a diagnostic of a woven text to the text on disk. */
export function toDisk(one: CompilerDiagnostic, project: NativeProject): CompilerDiagnostic {
  const found = one.file === undefined ? undefined : project.woven.get(one.file);
  if (found === undefined) return one;
  const { line, column } = found.woven.positions.columnToDisk(one.line - 1, one.column - 1);
  const mapped = { ...one, line: line + 1, column: column + 1 };
  const advice = placeInTag(mapped, project) === undefined ? undefined : typeAdvice(one.code, one.message);
  return advice === undefined ? mapped : { ...mapped, message: `${one.message}\n  ${advice}` };
}

/** Returns the offset of the diagnostic if it is in a tag. The compiler reports nothing there without the weave. */
export function placeInTag(
  { file, line, column }: CompilerDiagnostic,
  { woven }: NativeProject,
): number | undefined {
  const found = file === undefined ? undefined : woven.get(file);
  if (found === undefined) return undefined;
  const { text } = found;
  const offset = (lineStarts(text)[line - 1] ?? 0) + column - 1;
  return isOfTag(found.woven.sites, text, offset) ? offset : undefined;
}
