import type { Clock } from "../clock";
import type { DropReply, Store, TakeReply } from "../stores/port";
import type { Attempt } from "./attempt";
import { Batch } from "./batch";
import type { Drop, Next } from "./drop";
import { InFlight } from "./in-flight";

/** All that this process asks the store, in flight within a time-out of ours, and together where that is cheaper. */
export class Commands {
  readonly store: Store;
  readonly #inFlight: InFlight;
  readonly #takes: Batch<Attempt, TakeReply>;
  readonly #drops: Batch<Drop<unknown>, DropReply>;

  constructor(clock: Clock, store: Store, timeoutMs: number) {
    this.store = store;
    this.#inFlight = new InFlight(clock, timeoutMs);
    const { takeMany, dropMany } = store;
    this.#takes = new Batch(
      this.#inFlight,
      takeMany &&
        ((attempts, withinMs) =>
          takeMany.call(
            store,
            attempts.map(({ request }) => request),
            withinMs,
          )),
    );
    this.#drops = new Batch(
      this.#inFlight,
      dropMany &&
        ((drops, withinMs) =>
          dropMany.call(
            store,
            drops.map(({ request }) => request),
            withinMs,
          )),
    );
  }

  /** What one command may take, in milliseconds. */
  get timeoutMs(): number {
    return this.#inFlight.usualTimeoutMs;
  }

  /** @param mostMs never more than {@link timeoutMs} */
  attempt<Asker>(attempt: Attempt<Asker>, mostMs: number): void {
    if (attempt.isForPlace || attempt.request.fencing) this.#inFlight.send(attempt, attempt.sentAt, mostMs);
    else this.#takes.send(attempt as Attempt, attempt.sentAt, mostMs);
  }

  /** Takes back an attempt that was not sent yet. Returns whether it was. */
  cancel(attempt: Attempt): boolean {
    return this.#takes.cancel(attempt);
  }

  drop<Held>(drop: Drop<Held>, now: number): void {
    this.#drops.send(drop as Drop<unknown>, now);
  }

  /** Resolves when nothing is in flight: all was answered, or its time is over. */
  settled(): Promise<void> {
    return this.#inFlight.settled();
  }

  next<Held>(next: Next<Held>): void {
    this.#inFlight.send(next, next.sentAt);
  }

  /**
   * Any other command. Rejects with the store's error, or with a `NoReplyError`.
   *
   * @param mostMs never more than {@link timeoutMs}
   */
  ask<Reply>(send: (store: Store, withinMs: number) => Promise<Reply>, mostMs = Infinity): Promise<Reply> {
    return this.#inFlight.ask((withinMs) => send(this.store, withinMs), mostMs);
  }
}
