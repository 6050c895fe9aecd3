import type { Clock } from "./clock";
import { reasonOf } from "./errors";
import { holdersOf, inspected, type InspectedHolder } from "./holders";
import { listenToLocks, nameOf, type LockEvent, type LockListeners } from "./lock/events";
import type { Lockers } from "./lock/locker";

/** A lock that is waited for or held, and since when. */
interface Slow {
  readonly lock: LockEvent;
  readonly what: "waits" | "holds";
  readonly since: number;
  isTold: boolean;
}

const LOOKS_PER_TIME = 4;

/**
 * Warns, once for each, of a lock that is waited for or held longer than `afterMs`; of one that is waited for, with those
 * who hold it. It listens to what is told of all locks, and looks at its list a few times in that time: a lock costs it two
 * entries of a map.
 *
 * @returns ends it
 */
export function warnOfSlowLocks(
  all: Lockers,
  afterMs: number,
  clock: Clock,
  warn: (message: string) => void,
): () => void {
  const slow = new Map<string, Slow>();
  let cancel: (() => void) | undefined;

  const look = (): void => {
    cancel = undefined;
    const now = clock.now();
    for (const one of slow.values()) {
      if (one.isTold || now - one.since < afterMs) continue;
      one.isTold = true;
      void tell(one, now - one.since);
    }
    if ([...slow.values()].some(({ isTold }) => !isTold)) lookLater();
  };
  const lookLater = (): void => {
    cancel ??= clock.afterInBackground(afterMs / LOOKS_PER_TIME, look);
  };
  const tell = async ({ lock, what }: Slow, sinceMs: number): Promise<void> => {
    const beginning = `${nameOf(lock)} ${lock.requestId.slice(-8)}`;
    const seconds = inSeconds(sinceMs);
    if (what === "holds") return warn(`${beginning} has held the lock for ${seconds}`);
    const by = await holdersText(all, lock);
    warn(`${beginning} has waited for the lock for ${seconds}: ${by}`);
  };
  const add = (lock: LockEvent, what: Slow["what"]): void => {
    slow.set(lock.requestId, { lock, what, since: clock.now(), isTold: false });
    lookLater();
  };
  const remove = ({ requestId }: LockEvent): void => void slow.delete(requestId);

  const listeners: LockListeners = {
    "lockweave:wait": (lock) => {
      if (!slow.has(lock.requestId)) add(lock, "waits");
    },
    "lockweave:grant": (lock) => add(lock, "holds"),
    "lockweave:give-up": remove,
    "lockweave:release": remove,
  };
  const stop = listenToLocks(listeners);
  return () => {
    stop();
    cancel?.();
    slow.clear();
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
    return `who holds it could not be asked (${reasonOf(error)})`;
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
