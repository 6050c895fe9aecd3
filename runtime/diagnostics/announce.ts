import { hostname } from "node:os";
import { MOST_TOLD, STANDS_FOR_MS, type Announced, type AnnouncedLock } from "./announced";
import type { Clock } from "../base/clock";
import { followLocks, type UnderWay } from "../lock/under-way";
import type { AnnounceRequest, Store } from "../stores/port";
import { VERSION } from "../base/version";

const INTERVAL_MS = STANDS_FOR_MS / 3;
/** The interval while there are long locks. */
const LONG_LOCKS_INTERVAL_MS = 5_000;
/** The age from which a lock is announced. Nobody could read of a shorter one in time. */
const LONG_LOCK_MS = 1_000;
const LONGEST_KEY = 1_000;

/**
 * Keeps an announcement of the process in each store, by its process number, with which all its request IDs begin. So people who inspect a
 * lock can see which process holds it, and for a long lock also its function and its age. Locks themselves carry nothing extra. A failed
 * announcement is sent again the next time, and costs no lock.
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
    const longLocks = all.filter(({ since }) => now - since >= LONG_LOCK_MS);
    const hasLongLocks = longLocks.length > 0 || hasAnnouncedLocks;
    if (now - announcedAt >= (hasLongLocks ? LONG_LOCKS_INTERVAL_MS : INTERVAL_MS))
      announceAll(longLocks, now);
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
  const announceAll = (longLocks: readonly UnderWay[], now: number): void => {
    announcedAt = now;
    hasAnnouncedLocks = longLocks.length > 0;
    for (const [name, store] of stores) {
      const about: Announced = {
        host,
        pid: process.pid,
        version: VERSION,
        ...(hasAnnouncedLocks && {
          holds: announcedLocks(longLocks, "holds", name, now),
          waits: announcedLocks(longLocks, "waits", name, now),
        }),
      };
      const request = { processNumber, about: JSON.stringify(about), forMs: STANDS_FOR_MS };
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

function announcedLocks(
  locks: readonly UnderWay[],
  wanted: UnderWay["what"],
  store: string,
  now: number,
): readonly AnnouncedLock[] {
  return locks
    .filter(({ what, lock }) => what === wanted && lock.store === store && lock.key.length <= LONGEST_KEY)
    .toSorted((one, other) => one.since - other.since)
    .slice(0, MOST_TOLD)
    .map(({ lock: { key, site }, since }) => {
      const forMs = Math.round(now - since);
      return site === undefined ? { key, forMs } : { key, site, forMs };
    });
}
