import type { Announcement } from "./snapshot";

const MOST_NAMED = 3;

/**
 * Lists the first names, and the number of the others.
 *
 * @param all the total number, of which `names` are the first
 * @param none the text if there are no names
 */
export function few(names: readonly string[], all: number, none: string): string {
  if (names.length === 0) return none;
  const named = names.slice(0, MOST_NAMED);
  const more = all - named.length;
  return named.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** Formats the longest announced time for which one of them has held or waited. `undefined` if none announced it. */
export function longest(
  announcements: readonly Announcement[],
  inWords: (ms: number) => string,
): string | undefined {
  const times = announcements.flatMap(({ forMs }) => (forMs === undefined ? [] : [forMs]));
  return times.length === 0 ? undefined : inWords(Math.max(...times));
}
