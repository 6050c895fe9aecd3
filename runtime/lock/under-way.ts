import type { Clock } from "../clock";
import { listenToLocks, type LockEvent } from "./events";

/** A lock that is waited for or held, and since when. */
export interface UnderWay {
  readonly lock: LockEvent;
  readonly what: "waits" | "holds";
  readonly since: number;
}

export interface LocksUnderWay {
  all(): readonly UnderWay[];
  /** Forgets them, and listens no more. */
  stop(): void;
}

/**
 * Keeps what is waited for and held, by listening to what is told of all locks: a lock costs it two entries of a map.
 *
 * @param processNumber of the configuration whose locks they are: those of another one in this process are its own affair
 * @param onMore told of each as it begins
 */
export function followLocks(
  clock: Clock,
  processNumber: string,
  onMore: () => void = () => {},
): LocksUnderWay {
  const underWay = new Map<string, UnderWay>();
  const add = (lock: LockEvent, what: UnderWay["what"]): void => {
    if (!lock.requestId.startsWith(processNumber)) return;
    underWay.set(lock.requestId, { lock, what, since: clock.now() });
    onMore();
  };
  const remove = ({ requestId }: LockEvent): void => void underWay.delete(requestId);
  const stopListening = listenToLocks({
    "lockweave:wait": (lock) => {
      if (!underWay.has(lock.requestId)) add(lock, "waits");
    },
    "lockweave:grant": (lock) => add(lock, "holds"),
    "lockweave:give-up": remove,
    "lockweave:release": remove,
  });
  return {
    all: () => [...underWay.values()],
    stop() {
      stopListening();
      underWay.clear();
    },
  };
}
