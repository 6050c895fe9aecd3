import type * as TS from "typescript";
import { lineStarts } from "../../text/line-starts";
import { typeCure } from "../../text/type-cure";
import type { Problem } from "../../text/problems";
import { isOfTag } from "../../weave/weave";
import type { Said } from "./diagnostics";
import type { NativeProject } from "./project";

/** What we have to say of the project's tags, in the compiler's form. */
export function problemsIn({ woven }: NativeProject, kind: "errors" | "warnings"): Said[] {
  return [...woven].flatMap(([file, { text, woven: of }]) => {
    const starts = lineStarts(text);
    return (kind === "errors" ? of.diagnostics : of.warnings)
      .filter(({ code }) => !FOUND_BY_THE_COMPILER.has(code))
      .map((found) => said(found, placeOf(file, found, starts), kind === "errors" ? "error" : "warning"));
  });
}

/** A problem of a file in the compiler's form. */
export function saidAt(file: TS.SourceFile | undefined, found: Problem): Said {
  return file === undefined ? said(found) : said(found, placeOf(file.fileName, found, lineStarts(file.text)));
}

function placeOf(
  file: string,
  { start }: Problem,
  starts: readonly number[],
): Pick<Said, "file" | "line" | "column"> {
  const line = starts.findLastIndex((one) => one <= start);
  return { file, line: line + 1, column: start - (starts[line] ?? 0) + 1 };
}

/** A problem in the compiler's form, of the project as a whole if not of a place. */
export function said(
  { code, message }: Problem,
  place: Pick<Said, "file" | "line" | "column"> = { file: undefined, line: 0, column: 0 },
  category = "error",
): Said {
  // As under `tspc`, whose compiler knows codes of its own form only.
  const ours = `TS${900_000 + Number(code.slice("LW".length))}`;
  return { ...place, category, code: ours, message: `${code}: ${message}` };
}

/** A file that does not parse, and a parameter that is declared again: one error is enough. */
const FOUND_BY_THE_COMPILER: ReadonlySet<string> = new Set(["LW1312", "LW1402"]);

/** What is said of a woven text, led to the text on disk. */
export function toDisk(one: Said, project: NativeProject): Said {
  const found = one.file === undefined ? undefined : project.woven.get(one.file);
  if (found === undefined) return one;
  const { line, column } = found.woven.positions.columnToDisk(one.line - 1, one.column - 1);
  const led = { ...one, line: line + 1, column: column + 1 };
  const cure = placeInTag(led, project) === undefined ? undefined : typeCure(one.code, one.message);
  return cure === undefined ? led : { ...led, message: `${one.message}\n  ${cure}` };
}

/** Where in a tag it is said, of which the compiler knows nothing without the weave. */
export function placeInTag({ file, line, column }: Said, { woven }: NativeProject): number | undefined {
  const found = file === undefined ? undefined : woven.get(file);
  if (found === undefined) return undefined;
  const { text } = found;
  const offset = (lineStarts(text)[line - 1] ?? 0) + column - 1;
  return isOfTag(found.woven.sites, text, offset) ? offset : undefined;
}
