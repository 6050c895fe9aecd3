import type * as TS from "typescript";
import { meantIn } from "../../text/did-you-mean";
import { numberOf } from "../ts-patch/report-on-disk";
import { weaveOpen } from "./diagnostics";
import type { OpenProject } from "./project";

/** The problems that may be told with what was meant. */
export const FIXABLE = ["LW1002", "LW1007", "LW1107", "LW1108", "LW1202"].map(numberOf);

/** Writes what was meant, for the problems of these codes at this place. */
export function fixesAt(
  ts: typeof TS,
  project: OpenProject,
  fileName: string,
  place: { readonly start: number; readonly end: number },
  codes: readonly number[],
): TS.CodeFixAction[] {
  if (!codes.some((code) => FIXABLE.includes(code))) return [];
  const { diagnostics = [] } = weaveOpen(ts, project, fileName) ?? {};
  return diagnostics
    .filter(
      ({ code, start, end }) => codes.includes(numberOf(code)) && start === place.start && end === place.end,
    )
    .flatMap(({ message, start, end }) => {
      const meant = meantIn(message);
      if (meant === undefined) return [];
      const textChanges = [{ span: { start, length: end - start }, newText: meant }];
      return [
        { fixName: "lockweave", description: `Change to \`${meant}\``, changes: [{ fileName, textChanges }] },
      ];
    });
}
