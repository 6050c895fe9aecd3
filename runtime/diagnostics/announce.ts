import { hostname } from "node:os";
import {
  MOST_ANNOUNCED,
  VALID_FOR_MS,
  type Announced,
  type AnnouncedLock,
  type AnnouncedWait,
} from "./announced";
import type { Clock } from "../base/clock";
import { followLocks, type UnderWay } from "../lock/under-way";
import type { AnnounceRequest, Store } from "../stores/port";
import { VERSION } from "../base/version";

const INTERVAL_MS = VALID_FOR_MS / 3;
/** The interval while there are long locks. */
const LONG_LOCKS_INTERVAL_MS = 5_000;
/** The age from which a lock is announced. A shorter lock would end before anybody could read about it. */
const LONG_LOCK_MS = 1_000;
/** In bytes of JSON. An announcement lists no longer key, and only the beginning of a longer function name. So its size is bounded. */
const LONGEST_KEY = 1_000;
const LONGEST_SITE = 100;

/**
 * Keeps an announcement of the process in each store, under its process number. All its request IDs begin with that number. So people who inspect a
 * lock see which process holds it. For a long lock, they also see its function and its age, and how many calls wait for it. Locks themselves carry
 * nothing extra. A failed announcement is sent again the next time, and never costs a lock.
 *
 * @param stores the stores by name
 * @returns a function that ends the announcements
 */
export function announce(
  stores: ReadonlyMap<string, Store>,
  processNumber: string,
  clock: Clock,
  timeoutMs: number,
): () => void {
  const host = hostname();
  let announcedAt = -Infinity;
  let hasAnnouncedLocks = false;
  let nextAt = Infinity;
  let cancel = (): void => {};
  const check = (): void => {
    const now = clock.now();
    const all = locks.all();
    const hasLongLocks = hasAnnouncedLocks || hasLong(all, now);
    if (now - announcedAt >= (hasLongLocks ? LONG_LOCKS_INTERVAL_MS : INTERVAL_MS)) announceAll(all, now);
    nextAt = Infinity;
    // A lock that becomes long is announced soon, no matter when the last announcement was sent.
    checkIn(all.length > 0 || hasAnnouncedLocks ? LONG_LOCK_MS : LONG_LOCKS_INTERVAL_MS, now);
  };
  const checkIn = (delayMs: number, now = clock.now()): void => {
    if (nextAt <= now + delayMs) return;
    nextAt = now + delayMs;
    cancel();
    cancel = clock.afterInBackground(delayMs, check);
  };
  const locks = followLocks(clock, processNumber, () => checkIn(LONG_LOCK_MS));
  const announceAll = (all: readonly UnderWay[], now: number): void => {
    announcedAt = now;
    hasAnnouncedLocks = hasLong(all, now);
    for (const [name, store] of stores) {
      const about: Announced = {
        host,
        pid: process.pid,
        version: VERSION,
        ...(hasAnnouncedLocks && longLocksIn(all, name, now)),
      };
      const request = { processNumber, about: JSON.stringify(about), forMs: VALID_FOR_MS };
      void send(store, request, timeoutMs);
    }
  };
  check();
  return () => {
    locks.stop();
    cancel();
  };
}

/** Sends an announcement. A custom store may throw or return something other than a promise, which is ignored, too. */
async function send(store: Store, request: AnnounceRequest, timeoutMs: number): Promise<void> {
  try {
    await store.admin?.announce(request, timeoutMs);
  } catch {
    // It is sent again the next time.
  }
}

function hasLong(all: readonly UnderWay[], now: number): boolean {
  return all.some(({ since }) => now - since >= LONG_LOCK_MS);
}

/** Lists the long locks of one store, the longest first, and counts the others. */
function longLocksIn(
  all: readonly UnderWay[],
  store: string,
  now: number,
): Pick<Announced, "holds" | "waits" | "unlisted"> {
  const locks = all
    .filter(({ lock }) => lock.store === store)
    .toSorted((one, other) => one.since - other.since);
  const allHolds = locks.filter(({ what }) => what === "holds").map((one) => announcedLock(one, now));
  const allWaits = waitsByKey(locks, now);
  const holds = listed(allHolds);
  const waits = listed(allWaits);
  const unlisted = {
    holds: allHolds.filter(isLong).length - holds.length,
    calls: callsOf(allWaits.filter(isLong)) - callsOf(waits),
  };
  return { holds, waits, ...((unlisted.holds > 0 || unlisted.calls > 0) && { unlisted }) };
}

/** Counts the waiting calls of each key. The first of each key has waited longest. */
function waitsByKey(sorted: readonly UnderWay[], now: number): readonly AnnouncedWait[] {
  const byKey = new Map<string, { readonly first: UnderWay; calls: number }>();
  for (const one of sorted) {
    if (one.what !== "waits") continue;
    const known = byKey.get(one.lock.key);
    if (known === undefined) byKey.set(one.lock.key, { first: one, calls: 1 });
    else known.calls += 1;
  }
  return Array.from(byKey.values(), ({ first, calls }) => ({ ...announcedLock(first, now), calls }));
}

function announcedLock({ lock: { key, site }, since }: UnderWay, now: number): AnnouncedLock {
  const forMs = Math.round(now - since);
  return site === undefined ? { key, forMs } : { key, site: site.slice(0, LONGEST_SITE), forMs };
}

function listed<Lock extends AnnouncedLock>(locks: readonly Lock[]): readonly Lock[] {
  return locks
    .filter((lock) => isLong(lock) && Buffer.byteLength(JSON.stringify(lock.key)) <= LONGEST_KEY)
    .slice(0, MOST_ANNOUNCED);
}

function isLong({ forMs }: AnnouncedLock): boolean {
  return forMs >= LONG_LOCK_MS;
}

function callsOf(waits: readonly AnnouncedWait[]): number {
  return waits.reduce((sum, { calls }) => sum + calls, 0);
}
