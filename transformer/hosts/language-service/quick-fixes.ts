import type * as TS from "typescript";
import { meantIn } from "../../text/did-you-mean";
import { numberOf } from "../ts-patch/report-on-disk";
import type { OpenProject } from "./project";
import { tagsIn } from "./tag-at";

/** The problems of ours that may be told with what was meant. */
export const FIXABLE = ["LW1002", "LW1007", "LW1107", "LW1108", "LW1202"].map(numberOf);

/** Whether the place is in a tag. TypeScript's own fixes there would be for what stands behind the comment. */
export function isInTag(ts: typeof TS, { program }: OpenProject, fileName: string, offset: number): boolean {
  const file = program.getSourceFile(fileName);
  return file !== undefined && tagsIn(ts, file).some(({ writtenUpTo }) => writtenUpTo(offset) !== undefined);
}

/** Writes what was meant, for what of these codes was found at this place. */
export function fixesAt(
  ts: typeof TS,
  found: readonly TS.Diagnostic[],
  fileName: string,
  place: { readonly start: number; readonly end: number },
  codes: readonly number[],
): TS.CodeFixAction[] {
  const length = place.end - place.start;
  return found
    .filter((one) => codes.includes(one.code) && one.start === place.start && one.length === length)
    .flatMap(({ messageText }) => {
      const meant = meantIn(ts.flattenDiagnosticMessageText(messageText, "\n"));
      if (meant === undefined) return [];
      const textChanges = [{ span: { start: place.start, length }, newText: meant }];
      return [
        { fixName: "lockweave", description: `Change to \`${meant}\``, changes: [{ fileName, textChanges }] },
      ];
    });
}
