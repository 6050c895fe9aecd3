import { FENCING_STRIDE } from "../stores/port";
import type { Loss } from "./loss";

/**
 * The hand-off budget: how often and how long a process hands off a lease inside itself before other processes get their turn. If bodies
 * take almost no time, the larger number of hand-offs applies for the first 5 ms, so that the turn is worth its round trip.
 */
const HAND_OFFS = 15;
const MOST_HAND_OFFS = FENCING_STRIDE - 1;
const SHORTEST_TURN_MS = 5;
const LONGEST_TURN_MS = 100;

/** A caller that left a hold after its body. */
export interface FormerHolder {
  /** Receives how the hold ended. `undefined`: the caller held the lock to its end. */
  onEnded(loss: Loss | undefined): void;
}

/** A series of holders of one lease in this process, since its first hand-off. */
export class HandOffTurn {
  handOffs = 0;
  /** Whether no further holder may get the lease. */
  isClosed = false;
  readonly #since: number;
  /** Holders that handed off, and for which the store has not yet confirmed that they held the lock to their end. */
  #unproven: FormerHolder[] = [];

  constructor(since: number) {
    this.#since = since;
  }

  static mayBegin(since: number, now: number): boolean {
    return now - since < LONGEST_TURN_MS;
  }

  mayContinue(now: number): boolean {
    if (this.isClosed) return false;
    const pastMs = now - this.#since;
    const most = pastMs < SHORTEST_TURN_MS ? MOST_HAND_OFFS : HAND_OFFS;
    return this.handOffs < most && pastMs < LONGEST_TURN_MS;
  }

  /** Adds a holder that has handed off. */
  add(former: FormerHolder): void {
    this.handOffs += 1;
    this.#unproven.push(former);
  }

  /** Reports how it ended to each of the first `handOffs` holders that do not know it yet. */
  report(handOffs: number, loss: Loss | undefined): void {
    const reported = this.handOffs - this.#unproven.length;
    for (const former of this.#unproven.splice(0, Math.max(handOffs - reported, 0))) former.onEnded(loss);
  }

  reportAll(loss: Loss | undefined): void {
    this.report(this.handOffs, loss);
  }
}
