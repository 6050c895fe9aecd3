import type { Clock } from "../clock";
import type { AcquireCommand } from "../commands/acquire";
import type { ReleaseCommand } from "../commands/release";
import type { Batch, InFlight } from "../commands/in-flight";
import type { ReleaseReply, Store, AcquireReply } from "../stores/port";
import type { Suspension } from "../suspension";
import type { Contended } from "./contended";
import type { Deadlines } from "./deadlines";
import type { ReleaseRetries } from "./release-retries";
import type { Lease } from "./lease";
import type { LeaseVerifier } from "./lease-verifier";
import type { Renewals } from "./renewals";
import type { Refreshes } from "./refreshes";
import type { SharedLease } from "./shared-lease";
import type { Waiter } from "./waiter";

/** One who has a place in a queue of the store, and hears when to ask again. */
export interface Listening {
  readonly ticket: string;
  onWakeUp(): void;
}

/** What the queues of a process share. */
export interface QueueContext {
  readonly clock: Clock;
  readonly store: Store;
  readonly inFlight: InFlight;
  /** What asks for keys, and what gives them back, goes together. */
  readonly acquires: Batch<AcquireCommand, AcquireReply>;
  readonly enqueues: Batch<AcquireCommand, AcquireReply>;
  readonly releases: Batch<ReleaseCommand<unknown>, ReleaseReply>;
  readonly contended: Contended;
  readonly renewals: Renewals;
  readonly verifier: LeaseVerifier;
  readonly deadlines: Deadlines;
  readonly releaseRetries: ReleaseRetries;
  readonly suspension: Suspension;
  readonly refreshes: Refreshes;
  readonly newRequestId: () => string;
  /** Whether no lock is given any more. */
  readonly isClosed: boolean;
  /** A stay of this process on a key begins, and ends. */
  onBegin(): void;
  onEnd(): void;
  /** What this process has on the terms of that caller. */
  sharedOn(waiter: Waiter): Iterable<SharedLease>;
  /** Who waits for the key alone, and came first. */
  firstAlone(key: string): Waiter | undefined;
  /** The key, or room beside those who hold it, may be free: who is next may ask. */
  onFree(lease: Lease): void;
  /** Nobody waits in this queue, and nothing of its key is held, any more. */
  onEmpty(queue: { readonly name: string }): void;
  listen(listening: Listening): void;
  listenNoMore(listening: Listening): void;
}
