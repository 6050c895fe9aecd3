import type { Clock } from "../../clock";
import { LockMisconfiguredError } from "../../errors";
import { RecyclingMap } from "../../recycling-map";
import { Suspension } from "../../suspension";
import type { AcquireRequest } from "../port";
import { Hold } from "./hold";
import type { Votes } from "./tally";

const SWEEP_FROM_SIZE = 1_024;

/** What is asked for, and what was said to be taken and was not given back. */
export class Holds {
  readonly #clock: Clock;
  readonly #suspension: Suspension;
  readonly #votes: Votes;
  readonly #longestLockTimeMs: number;
  readonly #all = new RecyclingMap<string, Hold>();
  #sweepAtSize = SWEEP_FROM_SIZE;

  constructor(clock: Clock, votes: Votes, longestLockTimeMs: number) {
    this.#clock = clock;
    this.#suspension = new Suspension(clock);
    this.#votes = votes;
    this.#longestLockTimeMs = longestLockTimeMs;
  }

  get(requestId: string): Hold | undefined {
    return this.#all.get(requestId);
  }

  /** From here on it may be believed in. */
  declare(hold: Hold): void {
    hold.isDeclared = true;
    this.#all.set(hold.request.requestId, hold);
  }

  /** What is asked for now. */
  begin(request: AcquireRequest): Hold {
    if (this.#all.size >= this.#sweepAtSize) this.#sweep();
    const hold = new Hold(request, this.#votes, this.#clock.now());
    // Where a command is carried out twice, the first is what counts.
    if (this.#all.get(request.requestId) === undefined) this.#all.set(request.requestId, hold);
    return hold;
  }

  /** Nobody believes in it from here on, for good. */
  end(hold: Hold): void {
    hold.isOver = true;
    const { requestId } = hold.request;
    if (this.#all.get(requestId) === hold) this.#all.delete(requestId);
  }

  isSure(hold: Hold): boolean {
    return this.#suspension.timeLeft(hold) > 0;
  }

  /** Whether the same command was carried out before, and has the key. */
  isSecond(hold: Hold): boolean {
    const first = this.#all.get(hold.request.requestId);
    return first !== undefined && first !== hold;
  }

  /** Why a lock of that lock time cannot be had, if so. */
  refusal({ lockTimeMs, permits = 1 }: AcquireRequest): Error | undefined {
    if (permits > 1) {
      return new LockMisconfiguredError(
        "a quorum of masters has no shared locks (mode=read, permits). Fix: use one Redis for them, or an exclusive lock",
      );
    }
    if (lockTimeMs <= this.#longestLockTimeMs) return undefined;
    return new LockMisconfiguredError(
      `a lock has a lockTime of ${lockTimeMs} ms, but longestLockTime is ${this.#longestLockTimeMs} ms. Fix: give quorumStore(masters, { longestLockTime }) a longer time, in all processes`,
    );
  }

  /** Those that were left to expire must not pile up. */
  #sweep(): void {
    const now = this.#clock.now();
    for (const [, hold] of this.#all.entries()) if (hold.isForgotten(now)) this.end(hold);
    this.#sweepAtSize = Math.max(SWEEP_FROM_SIZE, 2 * this.#all.size);
  }
}
