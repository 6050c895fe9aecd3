import type { Announcement, HolderRow, LockRow, Snapshot, WaiterRow } from "./snapshot";

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

/** The number of waiting calls of one process, if it is not 1. */
export function callsOf({ calls }: WaiterRow): string {
  return calls === 1 ? "" : ` (${calls} calls)`;
}

/** Returns the number of all waiters: the processes that are known, and the tickets of others in the store queue. */
export function waitersIn({ waiting, waiters }: LockRow): number {
  return waiters.reduce((sum, { calls }) => sum + 1 - calls, waiting);
}

/** Says how many waiting calls the numbers of the locks may leave out. Empty if none. */
export function unknownCalls({
  unknownProcesses,
  unlistedCalls,
}: Pick<Snapshot, "unknownProcesses" | "unlistedCalls">): string {
  const processes = unknownProcesses === 1 ? "1 process" : `${unknownProcesses} processes`;
  return [
    ...(unlistedCalls === 0 ? [] : [`${unlistedCalls} more calls wait for locks that are not listed.`]),
    ...(unknownProcesses === 0 ? [] : [`The waiting calls of ${processes} are not known.`]),
  ].join(" ");
}

/** Describes a hold that has been revoked, or that a transaction guards. Empty for any other. */
export function remarks({ isRevoked, guardedBy }: Pick<HolderRow, "isRevoked" | "guardedBy">): string {
  const all = [
    ...(isRevoked ? ["revoked"] : []),
    ...(guardedBy === undefined ? [] : [`guarded by ${guardedBy}`]),
  ];
  return all.length === 0 ? "" : ` (${all.join(", ")})`;
}

/** Formats the longest announced time for which one of them has held or waited. `undefined` if none announced it. */
export function longest(
  announcements: readonly Announcement[],
  inWords: (ms: number) => string,
): string | undefined {
  const times = announcements.flatMap(({ forMs }) => (forMs === undefined ? [] : [forMs]));
  return times.length === 0 ? undefined : inWords(Math.max(...times));
}
