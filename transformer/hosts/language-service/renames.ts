import type * as TS from "typescript";
import { mayHaveTags } from "../../read/spelling";
import type { OpenProject } from "./project";
import { declaredNames, referencesIn } from "./references";

/** The words of tags that change with what TypeScript renames. */
export function renamedInTags(
  ts: typeof TS,
  { program }: OpenProject,
  renamed: readonly TS.RenameLocation[],
): TS.RenameLocation[] {
  // With a suffix, as in `{ Busy as OrderBusy }`, the name that the file goes by stays.
  const places = new Set(
    renamed
      .filter(({ suffixText }) => suffixText === undefined)
      .map(({ fileName, textSpan }) => `${fileName} ${textSpan.start}`),
  );
  return program
    .getSourceFiles()
    .filter(({ text, isDeclarationFile }) => !isDeclarationFile && mayHaveTags(text))
    .flatMap((file) =>
      referencesIn(ts, program, file)
        .filter((reference) =>
          declaredNames(ts, reference).some((name) => places.has(`${name.fileName} ${name.start}`)),
        )
        .map(({ start, end }) => ({ fileName: file.fileName, textSpan: { start, length: end - start } })),
    )
    .filter(({ fileName, textSpan }) => !places.has(`${fileName} ${textSpan.start}`)); // As it looks into comments.
}
