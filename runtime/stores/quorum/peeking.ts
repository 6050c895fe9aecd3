import { isReserved } from "../value";
import type { Holds } from "./holds";
import type { Master } from "./master";
import { NO_ANSWER, patienceOf, type Masters } from "./masters";
import { Tally } from "./tally";

/** The value is not decided yet. */
const UNDECIDED = Symbol("open");

/** Reads the values that a majority has for keys. */
export class Peeking {
  readonly #masters: Masters;
  readonly #holds: Holds;

  constructor(masters: Masters, holds: Holds) {
    this.#masters = masters;
    this.#holds = holds;
  }

  async peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    if (keys.length === 0) return [];
    const patienceMs = patienceOf(timeoutMs);
    const replies = keys.map(() => new Map<Master, string | Error | undefined>());
    const asked = this.#masters.askAll(
      patienceMs,
      ({ store }) => store.peek(keys, patienceMs),
      (master, values) =>
        replies.forEach((byMaster, index) =>
          byMaster.set(master, values instanceof Error ? values : values[index]),
        ),
    );
    const isDecided = (): boolean =>
      replies.every((byMaster, index) => this.#value(keys[index] ?? "", byMaster) !== UNDECIDED);
    await this.#masters.awaitReplies(asked, isDecided, patienceMs);
    return keys.map((key, index) => {
      const byMaster = replies[index] ?? new Map<Master, string | Error | undefined>();
      for (const master of this.#masters.all) if (!byMaster.has(master)) byMaster.set(master, NO_ANSWER);
      const value = this.#value(key, byMaster);
      if (value !== UNDECIDED) return value;
      const tally = new Tally(this.#masters.votes);
      for (const [master, reply] of byMaster) if (reply instanceof Error) tally.silent(master, reply);
      return tally.error();
    });
  }

  /** Returns the value that a majority has. Without one, returns the gate's reservation for a waiter, if there is one. */
  #value(
    key: string,
    byMaster: ReadonlyMap<Master, string | Error | undefined>,
  ): string | undefined | typeof UNDECIDED {
    const counts = new Map<string, number>();
    let missing = this.#masters.votes.all;
    for (const [master, value] of byMaster) {
      if (value instanceof Error) continue;
      missing -= 1;
      if (value === undefined) continue;
      const hold = this.#holds.get(value);
      if (hold === undefined || hold.witnesses.has(master)) counts.set(value, (counts.get(value) ?? 0) + 1);
      else missing += 1; // The master is not a witness of the hold, so its reply proves and disproves nothing.
    }
    const { majority } = this.#masters.votes;
    for (const [value, count] of counts) if (count >= majority) return value;
    if (Math.max(0, ...counts.values()) + missing >= majority) return UNDECIDED;
    const [gate] = this.#masters.inOrder(key);
    if (gate === undefined || !byMaster.has(gate)) return UNDECIDED;
    const first = this.#masters
      .inOrder(key)
      .map((master) => byMaster.get(master))
      .find((value) => !(value instanceof Error));
    return typeof first === "string" && isReserved(first) ? first : undefined;
  }
}
