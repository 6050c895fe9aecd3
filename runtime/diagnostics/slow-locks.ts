import type { Clock } from "../base/clock";
import { errorMessage } from "../base/errors";
import type { SafeLogger } from "../base/logger";
import { holdersOf, inspectKey, withAnnounced, type InspectedHolder } from "./holders";
import { fieldsOf, nameOf, type LockEvent } from "../lock/events";
import type { Lockers } from "../lock/locker";
import { followLocks, type UnderWay } from "../lock/under-way";
import { holderName } from "../lock/wait-timeout";
import { isLockweaveHold } from "../stores/value";

const CHECKS_PER_TIME = 4;

/**
 * Warns once of each lock that is waited for or held longer than `afterMs`. The warning about a waiter names the holders. The list of locks
 * is checked a few times in that time.
 *
 * @returns a function that ends the warnings
 */
export function warnOfSlowLocks(
  all: Lockers,
  processNumber: string,
  afterMs: number,
  clock: Clock,
  warn: SafeLogger["warn"],
): () => void {
  const warned = new WeakSet<UnderWay>();
  let cancel: (() => void) | undefined;

  const check = (): void => {
    cancel = undefined;
    const now = clock.now();
    const unwarned = locks.all().filter((one) => !warned.has(one));
    const slow = unwarned.filter(({ since }) => now - since >= afterMs);
    for (const one of slow) {
      warned.add(one);
      void warnOf(one, now - one.since);
    }
    if (slow.length < unwarned.length) checkLater();
  };
  const checkLater = (): void => {
    cancel ??= clock.afterInBackground(afterMs / CHECKS_PER_TIME, check);
  };
  const warnOf = async ({ lock, what }: UnderWay, sinceMs: number): Promise<void> => {
    const beginning = `${nameOf(lock)} ${lock.requestId.slice(-8)}`;
    const seconds = formatDuration(sinceMs);
    if (what === "holds")
      return warn(`${beginning} has held the lock for ${seconds}`, { ...fieldsOf(lock), heldMs: sinceMs });
    const by = await holdersText(all, lock);
    warn(`${beginning} has waited for the lock for ${seconds}: ${by}`, {
      ...fieldsOf(lock),
      waitedMs: sinceMs,
    });
  };
  const locks = followLocks(clock, processNumber, checkLater);
  return () => {
    locks.stop();
    cancel?.();
  };
}

async function holdersText(all: Lockers, { key, store }: LockEvent): Promise<string> {
  const of = all.get(store);
  if (of?.store.admin === undefined) return "its holder is not known";
  try {
    const { holds } = await inspectKey(of, key);
    const holders = await withAnnounced(of, key, holdersOf(of, key, holds));
    if (holders.length === 0) return "nobody holds it now";
    return `it is held by ${holders.map(holderText).join(", ")}`;
  } catch (error) {
    return `its holder could not be read (${errorMessage(error)})`;
  }
}

function holderText({ storeValue, isRevoked, here, elsewhere }: InspectedHolder): string {
  if (here !== undefined) return `${here.site ?? "this process"} here, for ${formatDuration(here.heldForMs)}`;
  if (elsewhere !== undefined) return holderName(elsewhere);
  // A value of another program may be secret, and logs keep it.
  if (!isLockweaveHold(storeValue)) return "another program";
  return isRevoked ? "a process whose lock was revoked" : `process ${storeValue.slice(0, 12)}`;
}

function formatDuration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${Number((ms / 1_000).toFixed(1))} s`;
}
