import type { Clock } from "../clock";
import type { Commands } from "../commands/commands";
import type { Suspension } from "../suspension";
import type { Deadlines } from "./deadlines";
import type { GiveBacks } from "./give-backs";
import type { Renewals } from "./renewals";

/** One who has a place in a queue of the store, and hears when to ask again. */
export interface Listening {
  readonly place: string;
  onHint(): void;
}

/** What the queues of a process share. */
export interface Shared {
  readonly clock: Clock;
  readonly commands: Commands;
  readonly renewals: Renewals;
  readonly deadlines: Deadlines;
  readonly giveBacks: GiveBacks;
  readonly suspension: Suspension;
  readonly newRequestId: () => string;
  /** Whether no lock is given any more. */
  readonly isClosed: boolean;
  /** A stay of this process on a key begins, and ends. */
  onBegin(): void;
  onEnd(): void;
  listen(listening: Listening): void;
  listenNoMore(listening: Listening): void;
}
