import { LockMisconfiguredError, errorMessage } from "../../errors";
import type { Master } from "./master";

/** How many masters there are, and how many must say the same. */
export interface Votes {
  readonly all: number;
  readonly majority: number;
}

/** `silent`: it failed, or its word does not count. */
type Word =
  | { readonly says: "yes" }
  | { readonly says: "no"; readonly holder: string | undefined }
  | { readonly says: "silent"; readonly error: unknown };

const YES: Word = { says: "yes" };

/** What masters say to one question. */
export class Tally {
  readonly #votes: Votes;
  readonly #words = new Map<Master, Word>();

  constructor(votes: Votes) {
    this.#votes = votes;
  }

  yes(master: Master): void {
    this.#words.set(master, YES);
  }

  /** @param holder what the key holds instead */
  no(master: Master, holder: string | undefined): void {
    this.#words.set(master, { says: "no", holder });
  }

  silent(master: Master, error: unknown): void {
    this.#words.set(master, { says: "silent", error });
  }

  /** A majority says yes. */
  get isYes(): boolean {
    return this.count("yes") >= this.#votes.majority;
  }

  /** So many say no that no majority can say yes. */
  get isNo(): boolean {
    return this.count("no") > this.#votes.all - this.#votes.majority;
  }

  count(says: Word["says"]): number {
    let count = 0;
    for (const word of this.#words.values()) if (word.says === says) count += 1;
    return count;
  }

  /** What it has said, as far as it has. */
  of(master: Master): Word | undefined {
    return this.#words.get(master);
  }

  /** What those who say no have instead: what a majority has, else what the first of them in the key's order has. */
  holder(order: readonly Master[]): string | undefined {
    const holders = order.flatMap((master) => {
      const word = this.#words.get(master);
      return word?.says === "no" ? [word.holder] : [];
    });
    return holders.find((holder) => this.isHeldBy(holder)) ?? holders[0];
  }

  /** Whether a majority has this instead. */
  isHeldBy(holder: string | undefined): boolean {
    return holder !== undefined && this.#countOf(holder) >= this.#votes.majority;
  }

  /** Whether any of them has this instead. */
  has(holder: string): boolean {
    return this.#countOf(holder) > 0;
  }

  #countOf(holder: string): number {
    let count = 0;
    for (const word of this.#words.values()) if (word.says === "no" && word.holder === holder) count += 1;
    return count;
  }

  /** Why there is no majority. */
  error(): Error {
    const { all, majority } = this.#votes;
    const faults = [...this.#words].flatMap(([{ name }, word]) =>
      word.says === "silent" ? [{ name, error: word.error }] : [],
    );
    const refusals = faults.filter(({ error }) => error instanceof LockMisconfiguredError);
    const reasons = faults.map(({ name, error }) => `${name}: ${errorMessage(error)}`);
    const unheard = all - this.#words.size;
    if (unheard > 0) reasons.push(`${unheard} did not answer in time`);
    const message = `${majority} of ${all} masters must agree, and ${this.count("yes")} did (${reasons.join("; ")})`;
    const cause = (refusals[0] ?? faults[0])?.error;
    if (refusals.length > all - majority) return new LockMisconfiguredError(message, { cause });
    return new Error(message, { cause });
  }
}
