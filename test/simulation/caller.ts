import type { Lock } from "../../runtime/lock/lock";
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
  /** Whether it stands inside the body of another one, with the same lock. */
  readonly isNested: boolean;
  /** Whether it stands inside the body of another one, with another key. */
  readonly isInside: boolean;
  /** Whether its lock is one of several that are had together: it stands in lines of which it is not told here. */
  readonly isOfSeveral: boolean;
  /** Whether another body may enter inside its own. */
  readonly isReentrant: boolean;
  /** Whether its body is in an async context of its own, by which a call inside it is known to be inside. */
  readonly hasFrame: boolean;
  /** Whether its release may resolve before the store has answered. */
  readonly isReleasedInBackground: boolean;
  /** Ends its wait. */
  readonly goesAway: AbortController;
  /** `leaving`: its body has ended, and its release has not. */
  state: "waiting" | "inside" | "leaving" | "gone";
  /** Whether it ends what it holds itself, so that it hears what became of it. */
  readonly isHeldToItsEnd: boolean;
  /** What it was let in on, and by which command of its process. */
  grant: Grant | undefined;
  storeValue: string | undefined;
  /** Whether the server had kept its word when its body ended. */
  wasKeptToItsEnd: boolean;
  /** Somebody else was let in meanwhile, so its caller must hear of it. */
  mustBeTold: boolean;
  /** It has an error of its own to tell. */
  mayBeSilent: boolean;
  /** Since when its process has been awake without the lock, and the signal silent. */
  silentSince: number | undefined;
}
