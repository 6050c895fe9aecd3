import type { Clock } from "./clock";
import type { Lines } from "./lines";
import type { SafeLogger } from "./logger";
import type { Settings } from "./settings";
import type { Store } from "./store";
import type { Story } from "./story";

/** Everything that the locks of one configuration share. */
export interface Locker {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: SafeLogger;
  readonly story: Story;
  readonly defaults: Settings;
  /** @param others names among the options that are not for the lock */
  readonly place: (options: object, site: string | undefined, others: readonly string[]) => Place;
  readonly newRequestId: () => string;
  readonly lines: Lines;
}

/** What all locks that one place in the code asks for have in common. */
export interface Place {
  readonly locker: Locker;
  readonly settings: Settings;
  /** The function that asks: `OrderService.pay`. */
  readonly site: string | undefined;
}
