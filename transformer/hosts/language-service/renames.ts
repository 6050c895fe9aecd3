import type * as TS from "typescript";
import { mayHaveTags } from "../../read/spelling";
import type { OpenProject } from "./project";
import { declaredNames, referencesIn } from "./references";

/** Returns the names in tags that change together with the names that TypeScript renames. */
export function renamedInTags(
  ts: typeof TS,
  { program }: OpenProject,
  renamed: readonly TS.RenameLocation[],
): TS.RenameLocation[] {
  // A suffix, as in `{ Busy as OrderBusy }`, keeps the local name, so tags keep it, too.
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
    .filter(({ fileName, textSpan }) => !places.has(`${fileName} ${textSpan.start}`)); // TypeScript may rename in comments, too.
}
