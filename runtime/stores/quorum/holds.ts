import type { Clock } from "../../base/clock";
import { LockMisconfiguredError } from "../../base/errors";
import { RecyclingMap } from "../../base/recycling-map";
import { Certainty } from "../../base/certainty";
import type { AcquireRequest } from "../port";
import { Hold } from "./hold";
import type { Votes } from "./tally";

const SWEEP_FROM_SIZE = 1_024;

/** The holds that this process asks for, and those that it acquired and has not released. */
export class Holds {
  readonly #clock: Clock;
  readonly #certainty: Certainty;
  readonly #votes: Votes;
  readonly #longestLockTimeMs: number;
  readonly #all = new RecyclingMap<string, Hold>();
  #sweepAtSize = SWEEP_FROM_SIZE;

  constructor(clock: Clock, votes: Votes, longestLockTimeMs: number) {
    this.#clock = clock;
    this.#certainty = new Certainty(clock);
    this.#votes = votes;
    this.#longestLockTimeMs = longestLockTimeMs;
  }

  get(requestId: string): Hold | undefined {
    return this.#all.get(requestId);
  }

  /** Marks a hold as acquired. From here on, callers may rely on it. */
  declare(hold: Hold): void {
    hold.isDeclared = true;
    this.#all.set(hold.request.requestId, hold);
  }

  /** Registers a new hold that this process asks for. */
  begin(request: AcquireRequest): Hold {
    if (this.#all.size >= this.#sweepAtSize) this.#sweep();
    const hold = new Hold(request, this.#votes, this.#clock.now());
    // If a command runs twice, the first run counts.
    if (this.#all.get(request.requestId) === undefined) this.#all.set(request.requestId, hold);
    return hold;
  }

  /** Ends a hold for good. From here on, nobody may rely on it. */
  end(hold: Hold): void {
    hold.isOver = true;
    const { requestId } = hold.request;
    if (this.#all.get(requestId) === hold) this.#all.delete(requestId);
  }

  isSure(hold: Hold): boolean {
    return this.#certainty.timeLeft(hold) > 0;
  }

  /** Whether the hold belongs to the second run of a command whose first run is registered. */
  isSecond(hold: Hold): boolean {
    const first = this.#all.get(hold.request.requestId);
    return first !== undefined && first !== hold;
  }

  /** Returns why a quorum cannot grant the lock, or `undefined` if it can. */
  refusal({ lockTimeMs, permits = 1 }: AcquireRequest): Error | undefined {
    if (permits > 1) {
      return new LockMisconfiguredError(
        "a quorum of masters does not support shared locks (mode=read, permits). Fix: use one Redis for them, or an exclusive lock",
      );
    }
    if (lockTimeMs <= this.#longestLockTimeMs) return undefined;
    return new LockMisconfiguredError(
      `its lockTime is ${lockTimeMs} ms, but longestLockTime is ${this.#longestLockTimeMs} ms. Fix: set a larger longestLockTime in quorumStore(masters, { longestLockTime }), in all processes`,
    );
  }

  /** Removes holds that were left to expire, so that they do not accumulate. */
  #sweep(): void {
    const now = this.#clock.now();
    for (const [, hold] of this.#all.entries()) if (hold.isForgotten(now)) this.end(hold);
    this.#sweepAtSize = Math.max(SWEEP_FROM_SIZE, 2 * this.#all.size);
  }
}
