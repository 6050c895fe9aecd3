import { LockMisconfiguredError, errorMessage } from "../../base/errors";
import type { Master } from "./master";

/** The number of masters, and the number that must agree. */
export interface Votes {
  readonly all: number;
  readonly majority: number;
}

/** `silent`: the master failed, or its vote does not count. */
type Vote =
  | { readonly says: "yes" }
  | { readonly says: "no"; readonly holder: string | undefined }
  | { readonly says: "silent"; readonly error: unknown };

/** The reason why a reply does not count if the master may have lost its data since it acquired the hold. */
export const UNPROVEN = new Error("it may have lost the key in the meantime");

const YES: Vote = { says: "yes" };

/** The votes of the masters on one question. */
export class Tally {
  readonly #votes: Votes;
  readonly #byMaster = new Map<Master, Vote>();

  constructor(votes: Votes) {
    this.#votes = votes;
  }

  yes(master: Master): void {
    this.#byMaster.set(master, YES);
  }

  /** @param holder the value that the key has instead */
  no(master: Master, holder: string | undefined): void {
    this.#byMaster.set(master, { says: "no", holder });
  }

  silent(master: Master, error: unknown): void {
    this.#byMaster.set(master, { says: "silent", error });
  }

  /** Whether a majority says yes. */
  get isYes(): boolean {
    return this.count("yes") >= this.#votes.majority;
  }

  /** Whether so many say no that no majority can say yes. */
  get isNo(): boolean {
    return this.count("no") > this.#votes.all - this.#votes.majority;
  }

  count(says: Vote["says"]): number {
    let count = 0;
    for (const vote of this.#byMaster.values()) if (vote.says === says) count += 1;
    return count;
  }

  /** Returns the vote of the master, if it has one. */
  voteOf(master: Master): Vote | undefined {
    return this.#byMaster.get(master);
  }

  /** Returns the value that the key has instead: the one that a majority has, or else that of the first master that says no. */
  holder(order: readonly Master[]): string | undefined {
    const holders = order.flatMap((master) => {
      const vote = this.#byMaster.get(master);
      return vote?.says === "no" ? [vote.holder] : [];
    });
    return holders.find((holder) => this.isHeldBy(holder)) ?? holders[0];
  }

  /** Whether a majority has this value instead. */
  isHeldBy(holder: string | undefined): boolean {
    return holder !== undefined && this.#countOf(holder) >= this.#votes.majority;
  }

  /** Whether any master has this value instead. */
  has(holder: string): boolean {
    return this.#countOf(holder) > 0;
  }

  #countOf(holder: string): number {
    let count = 0;
    for (const vote of this.#byMaster.values()) if (vote.says === "no" && vote.holder === holder) count += 1;
    return count;
  }

  /**
   * Returns why there is no majority.
   *
   * @param asked the masters that were asked
   */
  error(asked: Iterable<Master>): Error {
    const { all, majority } = this.#votes;
    const faults = [...this.#byMaster].flatMap(([{ name }, vote]) =>
      vote.says === "silent" ? [{ name, error: vote.error }] : [],
    );
    for (const master of asked) {
      if (!this.#byMaster.has(master)) faults.push({ name: master.name, error: master.silence });
    }
    const refusals = faults.filter(({ error }) => error instanceof LockMisconfiguredError);
    const reasons = faults.map(({ name, error }) => `${name}: ${errorMessage(error)}`);
    const message = `only ${this.count("yes")} of ${all} masters agreed, but ${majority} must (${reasons.join("; ")})`;
    const cause = (refusals[0] ?? faults[0])?.error;
    if (refusals.length > all - majority) return new LockMisconfiguredError(message, { cause });
    return new Error(message, { cause });
  }
}
