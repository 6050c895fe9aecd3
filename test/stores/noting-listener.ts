import type { Store, StoreListener } from "../../runtime/stores/port";
import { deferred } from "../support/deferred";

/** What a store told without having been asked, as it is told. */
export interface Noting extends StoreListener {
  readonly hints: (string | undefined)[];
  readonly warnings: string[];
  readonly reconnects: number;
  /** Resolves at the next warning, or the first if there was one. */
  readonly warned: Promise<string>;
  /** Resolves when everybody was hinted to look again. */
  readonly everybodyHinted: Promise<void>;
  /** Resolves at the first new connection. */
  readonly reconnected: Promise<void>;
}

export function noting(store: Store): Noting {
  const [warned, everybodyHinted, reconnected] = [deferred<string>(), deferred(), deferred()];
  const hints: (string | undefined)[] = [];
  const warnings: string[] = [];
  let reconnects = 0;
  const listener: Noting = {
    hints,
    warnings,
    get reconnects() {
      return reconnects;
    },
    warned: warned.promise,
    everybodyHinted: everybodyHinted.promise,
    reconnected: reconnected.promise,
    onWakeUp(place) {
      hints.push(place);
      if (place === undefined) everybodyHinted.resolve();
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
