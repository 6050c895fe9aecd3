import type { Clock } from "./clock";
import { errorMessage } from "./errors";
import { holdersOf, inspected, type InspectedHolder } from "./holders";
import { nameOf, type LockEvent } from "./lock/events";
import type { Lockers } from "./lock/locker";
import { followLocks, type UnderWay } from "./lock/under-way";

const LOOKS_PER_TIME = 4;

/**
 * Warns, once for each, of a lock that is waited for or held longer than `afterMs`; of one that is waited for, with those
 * who hold it. It looks at its list a few times in that time.
 *
 * @returns ends it
 */
export function warnOfSlowLocks(
  all: Lockers,
  processNumber: string,
  afterMs: number,
  clock: Clock,
  warn: (message: string) => void,
): () => void {
  const told = new WeakSet<UnderWay>();
  let cancel: (() => void) | undefined;

  const look = (): void => {
    cancel = undefined;
    const now = clock.now();
    const untold = locks.all().filter((one) => !told.has(one));
    const slow = untold.filter(({ since }) => now - since >= afterMs);
    for (const one of slow) {
      told.add(one);
      void tell(one, now - one.since);
    }
    if (slow.length < untold.length) lookLater();
  };
  const lookLater = (): void => {
    cancel ??= clock.afterInBackground(afterMs / LOOKS_PER_TIME, look);
  };
  const tell = async ({ lock, what }: UnderWay, sinceMs: number): Promise<void> => {
    const beginning = `${nameOf(lock)} ${lock.requestId.slice(-8)}`;
    const seconds = inSeconds(sinceMs);
    if (what === "holds") return warn(`${beginning} has held the lock for ${seconds}`);
    const by = await holdersText(all, lock);
    warn(`${beginning} has waited for the lock for ${seconds}: ${by}`);
  };
  const locks = followLocks(clock, processNumber, lookLater);
  return () => {
    locks.stop();
    cancel?.();
  };
}

async function holdersText(all: Lockers, { key, store }: LockEvent): Promise<string> {
  const of = all.get(store);
  if (of === undefined) return "its holder is not known";
  try {
    const { holds } = await inspected(of, key);
    const holders = holdersOf(of, key, holds);
    if (holders.length === 0) return "nobody holds it now";
    return `it is held by ${holders.map(holderText).join(", ")}`;
  } catch (error) {
    return `who holds it could not be asked (${errorMessage(error)})`;
  }
}

function holderText({ storeValue, here }: InspectedHolder): string {
  if (here !== undefined) return `${here.site ?? "this process"} here, for ${inSeconds(here.heldForMs)}`;
  const isOurs = /^[0-9a-f]{32}$/.test(storeValue);
  return isOurs ? `process ${storeValue.slice(0, 12)}` : `"${storeValue}"`;
}

function inSeconds(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${Number((ms / 1_000).toFixed(1))} s`;
}
