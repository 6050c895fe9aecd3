import type { Lock } from "../../runtime/lock";
import type { SimulatedProcess } from "./process";
import type { Grant } from "./truth";

/** One call of a function with a lock. */
export interface Caller {
  readonly key: string;
  readonly lock: Lock;
  readonly process: SimulatedProcess;
  /** In the time of its process. */
  readonly joinedAt: number;
  readonly budgetMs: number;
  readonly watchesSignal: boolean;
  /** Ends its wait. */
  readonly goesAway: AbortController;
  state: "waiting" | "inside" | "gone";
  /** What it was let in on. */
  grant: Grant | undefined;
  /** Somebody else was let in meanwhile, so its caller must hear of it. */
  mustBeTold: boolean;
  /** Since when its process has been awake without the lock, and the signal silent. */
  silentSince: number | undefined;
}
