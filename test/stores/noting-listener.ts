import type { WholeStore, StoreListener } from "../../runtime/stores/port";
import { deferred } from "../support/deferred";

/** The events that a store has reported to its listener so far. */
export interface RecordedEvents extends StoreListener {
  readonly wakeUps: (string | undefined)[];
  readonly warnings: string[];
  readonly reconnects: number;
  /** Resolves with the first warning. */
  readonly warned: Promise<string>;
  /** Resolves when the store wakes all waiters. */
  readonly allWoken: Promise<void>;
  /** Resolves at the first new connection. */
  readonly reconnected: Promise<void>;
}

export function recordEvents(store: WholeStore): RecordedEvents {
  const [warned, allWoken, reconnected] = [deferred<string>(), deferred(), deferred()];
  const wakeUps: (string | undefined)[] = [];
  const warnings: string[] = [];
  let reconnects = 0;
  const listener: RecordedEvents = {
    wakeUps,
    warnings,
    get reconnects() {
      return reconnects;
    },
    warned: warned.promise,
    allWoken: allWoken.promise,
    reconnected: reconnected.promise,
    onWakeUp(ticket) {
      wakeUps.push(ticket);
      if (ticket === undefined) allWoken.resolve();
    },
    onReconnect() {
      reconnects += 1;
      reconnected.resolve();
    },
    onWarning(message) {
      warnings.push(message);
      warned.resolve(message);
    },
  };
  store.listen(listener);
  return listener;
}
