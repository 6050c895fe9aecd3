import { hostname } from "node:os";
import { MOST_TOLD, STANDS_FOR_MS, type Announced, type AnnouncedLock } from "./announced";
import type { Clock } from "./clock";
import { followLocks, type UnderWay } from "./lock/under-way";
import type { AnnounceRequest, Store } from "./stores/port";
import { VERSION } from "./version";

const SAID_EVERY_MS = STANDS_FOR_MS / 3;
/** And anew so often, while there are locks that last. */
const SAID_ANEW_EVERY_MS = 5_000;
/** Of a lock that is over before anybody could read of it, nothing is said. */
const LASTS_FROM_MS = 1_000;
const LONGEST_KEY = 1_000;

/**
 * Keeps in each store who the process is, by the number with which its request ids begin: so whoever looks at a lock can
 * tell whose it is, and of one that lasts, since when and for which function. Nothing is added to a lock. What cannot be said
 * now is said the next time; it costs no lock.
 *
 * @param stores by their names
 * @returns ends it
 */
export function announce(
  stores: ReadonlyMap<string, Store>,
  processNumber: string,
  clock: Clock,
  timeoutMs: number,
): () => void {
  const host = hostname();
  let saidAt = -Infinity;
  let toldOfLocks = false;
  let nextAt = Infinity;
  let cancel = (): void => {};
  const look = (): void => {
    const now = clock.now();
    const all = locks.all();
    const lasting = all.filter(({ since }) => now - since >= LASTS_FROM_MS);
    const areLocks = lasting.length > 0 || toldOfLocks;
    if (now - saidAt >= (areLocks ? SAID_ANEW_EVERY_MS : SAID_EVERY_MS)) say(lasting, now);
    nextAt = Infinity;
    // So that of one that begins to last is told soon after, whenever the last word was.
    lookIn(all.length > 0 || toldOfLocks ? LASTS_FROM_MS : SAID_ANEW_EVERY_MS, now);
  };
  const lookIn = (delayMs: number, now = clock.now()): void => {
    if (nextAt <= now + delayMs) return;
    nextAt = now + delayMs;
    cancel();
    cancel = clock.afterInBackground(delayMs, look);
  };
  const locks = followLocks(clock, processNumber, () => lookIn(LASTS_FROM_MS));
  const say = (lasting: readonly UnderWay[], now: number): void => {
    saidAt = now;
    toldOfLocks = lasting.length > 0;
    for (const [name, store] of stores) {
      const about: Announced = {
        host,
        pid: process.pid,
        version: VERSION,
        ...(toldOfLocks && {
          holds: toldOf(lasting, "holds", name, now),
          waits: toldOf(lasting, "waits", name, now),
        }),
      };
      const request = { processNumber, about: JSON.stringify(about), forMs: STANDS_FOR_MS };
      void said(store, request, timeoutMs);
    }
  };
  look();
  return () => {
    locks.stop();
    cancel();
  };
}

/** What a store of somebody's own throws or returns instead of a promise is no matter either. */
async function said(store: Store, request: AnnounceRequest, timeoutMs: number): Promise<void> {
  try {
    await store.announce?.(request, timeoutMs);
  } catch {
    // The next time.
  }
}

function toldOf(
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
