import type { Announcement } from "./snapshot";

const MOST_NAMED = 3;

/**
 * @param all how many there are, of whom these are the first
 * @param none what stands for nobody
 */
export function few(names: readonly string[], all: number, none: string): string {
  if (names.length === 0) return none;
  const named = names.slice(0, MOST_NAMED);
  const more = all - named.length;
  return named.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** For how long they have held or waited, as far as one of them says it. */
export function longest(said: readonly Announcement[], inWords: (ms: number) => string): string | undefined {
  const times = said.flatMap(({ forMs }) => (forMs === undefined ? [] : [forMs]));
  return times.length === 0 ? undefined : inWords(Math.max(...times));
}
