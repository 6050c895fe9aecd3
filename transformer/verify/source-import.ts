import { basename } from "node:path";
import type * as TS from "typescript";
import { notAllowed } from "../analyze/allowed";
import type { DeclaredTag } from "../read/declared-tags";
import { groupedBy } from "../text/grouped-by";
import { problem } from "../text/problems";
import type { PlacedProblem } from "./project";

/** An import in a source file of the project itself. */
export interface SourceImport {
  readonly file: TS.SourceFile | undefined;
  readonly specifier: string;
  readonly at: { readonly start: number; readonly end: number };
}

/** Returns the import of a specifier. Problems of the import are reported at the specifier. */
export function importAt(specifier: TS.StringLiteralLike, file: TS.SourceFile): SourceImport {
  const at = { start: specifier.getStart(file), end: specifier.end };
  return { file, specifier: specifier.text, at };
}

/** Returns an error at the import, unless a comment there allows it with a reason. */
export function importProblem(
  kind: Parameters<typeof problem>[0],
  { file, at }: SourceImport,
  tags: readonly DeclaredTag[],
  where: string,
): PlacedProblem[] {
  if (file === undefined) return [];
  const found = problem(kind, at, namesOf(tags), basename(where));
  return notAllowed([{ file, problem: found, isCertain: true, proof: [{ file, ...at }] }]);
}

/** Returns the names of the functions and their tags for messages: `` `pay`, `refund` with `@redisLock` ``. */
export function namesOf(tags: readonly DeclaredTag[]): string {
  return [...groupedBy(tags, ({ tag }) => tag)]
    .map(([tag, all]) => `${all.map(({ name, flag }) => `\`${name ?? flag}\``).join(", ")} with \`@${tag}\``)
    .join(", and ");
}
