import type { Clock } from "../base/clock";
import { listenToLocks, type LockEvent } from "./events";

/** A lock that a caller waits for or holds, and when that began. */
export interface UnderWay {
  readonly lock: LockEvent;
  readonly what: "waits" | "holds";
  readonly since: number;
}

export interface LocksUnderWay {
  all(): readonly UnderWay[];
  /** Unsubscribes, and forgets all locks. */
  stop(): void;
}

/**
 * Follows the locks that callers wait for or hold, by subscribing to the events of all locks. Each lock costs two updates of a map.
 *
 * @param processNumber the process number of the configuration to follow. Each configuration in this process has its own
 * @param onAdded called each time that a wait or a hold begins
 */
export function followLocks(
  clock: Clock,
  processNumber: string,
  onAdded: () => void = () => {},
): LocksUnderWay {
  const underWay = new Map<string, UnderWay>();
  const add = (lock: LockEvent, what: UnderWay["what"]): void => {
    if (!lock.requestId.startsWith(processNumber)) return;
    underWay.set(lock.requestId, { lock, what, since: clock.now() });
    onAdded();
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
