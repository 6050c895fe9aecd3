import { FENCING_STRIDE } from "../stores/port";
import type { Loss } from "./loss";

/**
 * The hand-off budget: a lease is handed on inside the process so often and for so long, before other processes have
 * their turn. Where the work takes next to no time, a turn is not over before it is worth the round trip.
 */
const HAND_ONS = 15;
const MOST_HAND_ONS = FENCING_STRIDE - 1;
const WORTH_A_TURN_MS = 5;
const LONGEST_TURN_MS = 100;

/** Is told how a hold ended: `undefined`: it was held to its end. */
export type Ended = (loss: Loss | undefined) => void;

/** What this process had of a key since it was first handed on. */
export class Turn {
  handOns = 0;
  readonly #since: number;
  /** Those who handed on, and of whom the store has not confirmed yet that they had held it to their end. */
  #unproven: Ended[] = [];

  constructor(since: number) {
    this.#since = since;
  }

  static mayBegin(since: number, now: number): boolean {
    return now - since < LONGEST_TURN_MS;
  }

  mayGoOn(now: number): boolean {
    const pastMs = now - this.#since;
    const most = pastMs < WORTH_A_TURN_MS ? MOST_HAND_ONS : HAND_ONS;
    return this.handOns < most && pastMs < LONGEST_TURN_MS;
  }

  /** One more has handed on. */
  add(ended: Ended): void {
    this.handOns += 1;
    this.#unproven.push(ended);
  }

  /** Those of the first `handOns` who were not told yet are told. */
  tell(handOns: number, loss: Loss | undefined): void {
    const told = this.handOns - this.#unproven.length;
    for (const ended of this.#unproven.splice(0, Math.max(handOns - told, 0))) ended(loss);
  }

  tellAll(loss: Loss | undefined): void {
    this.tell(this.handOns, loss);
  }
}
