import type { Clock } from "./clock";
import type { Lines } from "./lines";
import type { Settings } from "./settings";
import type { Store } from "./store";
import type { Story } from "./story";

/** Where the runtime tells what happens; `console` fits. */
export interface Logger {
  /** The time line: who waits, who holds, who released. */
  debug?(message: string): void;
  /** What somebody should look at: a lock lost, a release without a reply. */
  warn(message: string): void;
}

/** Everything that the locks of one configuration share. */
export interface Locker {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly story: Story;
  readonly defaults: Settings;
  /** The options that one place in the code asks for, complete and checked: as `settle` lays them over the defaults. */
  readonly settle: (options: object, place: string, others: readonly string[]) => Settings;
  readonly newRequestId: () => string;
  readonly lines: Lines;
}
