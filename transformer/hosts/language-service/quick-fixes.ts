import type * as TS from "typescript";
import { numberOf, type TagDiagnostic } from "../diagnostics/own-problems";
import { FIXABLE_CODES, fixesFor } from "./fixes-by-code";
import type { OpenProject } from "./project";
import { editableTagsIn } from "./tag-at";

/** The numeric codes of our problems that have a fix. */
export const FIXABLE = FIXABLE_CODES.map(numberOf);

/** Whether the offset is in a tag. TypeScript's own fixes at that place would be for the code after the comment. */
export function isInTag(ts: typeof TS, { program }: OpenProject, fileName: string, offset: number): boolean {
  const file = program.getSourceFile(fileName);
  return (
    file !== undefined &&
    editableTagsIn({ ts, file }).some(({ writtenUpTo }) => writtenUpTo(offset) !== undefined)
  );
}

/** Returns the fixes for the problems with these codes at this place. */
export function fixesAt(
  ts: typeof TS,
  found: readonly TagDiagnostic[],
  fileName: string,
  place: { readonly start: number; readonly end: number },
  codes: readonly number[],
): TS.CodeFixAction[] {
  const length = place.end - place.start;
  return found
    .filter((one) => codes.includes(one.code) && one.start === place.start && one.length === length)
    .flatMap(({ code, file, messageText, replacements, start = 0 }) => {
      if (file === undefined) return [];
      const ours = FIXABLE_CODES.find((name) => numberOf(name) === code) ?? "";
      const words = file.text.slice(start, start + length);
      const message = ts.flattenDiagnosticMessageText(messageText, "\n");
      const problem = { ts, file, start, length, words, message, replacements };
      return fixesFor(ours, problem).map(({ description, changes }) => ({
        fixName: "lockweave",
        description,
        changes: [{ fileName, textChanges: changes }],
      }));
    });
}
