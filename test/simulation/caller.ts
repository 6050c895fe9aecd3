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
  /** Whether it runs inside the body of another call with the same lock. */
  readonly isNested: boolean;
  /** Whether it runs inside the body of another call with another key. */
  readonly isInside: boolean;
  /** Whether its lock belongs to a multi-key call, whose places in local queues are not known here. */
  readonly isMultiKey: boolean;
  /** Whether another body may enter inside its own. */
  readonly isReentrant: boolean;
  /** Whether its body has its own async context, which shows that a call runs inside it. */
  readonly hasFrame: boolean;
  /** Whether its release may resolve before the store has answered. */
  readonly isReleasedInBackground: boolean;
  /** Ends its wait. */
  readonly abortController: AbortController;
  /** `leaving`: its body has ended, and its release has not. */
  state: "waiting" | "inside" | "leaving" | "gone";
  /** Whether it releases its lock itself, so that it learns the outcome. */
  readonly releasesItself: boolean;
  /** The grant on which it entered. */
  grant: Grant | undefined;
  storeValue: string | undefined;
  /** Whether the server had kept its promise when its body ended. */
  wasKeptToTheEnd: boolean;
  /** Another caller entered meanwhile, so this one must get an error. */
  mustGetError: boolean;
  /** It need not report a loss, for example because its own error wins. */
  mayBeSilent: boolean;
  /** The time since which its process has been awake without the lock, while the signal has not aborted. */
  silentSince: number | undefined;
}
