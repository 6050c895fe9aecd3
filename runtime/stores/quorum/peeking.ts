import { isReserved } from "../value";
import type { Holds } from "./holds";
import type { Master } from "./master";
import { NO_ANSWER, patienceOf, type Masters } from "./masters";
import { Tally } from "./tally";

/** What is not known yet. */
const OPEN = Symbol("open");

/** What keys hold, as a majority has it. */
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
    const said = keys.map(() => new Map<Master, string | Error | undefined>());
    const asked = this.#masters.askAll(
      patienceMs,
      ({ store }) => store.peek(keys, patienceMs),
      (master, values) =>
        said.forEach((words, index) => words.set(master, values instanceof Error ? values : values[index])),
    );
    const isDecided = (): boolean =>
      said.every((words, index) => this.#value(keys[index] ?? "", words) !== OPEN);
    await this.#masters.heard(asked, isDecided, patienceMs);
    return keys.map((key, index) => {
      const words = said[index] ?? new Map<Master, string | Error | undefined>();
      for (const master of this.#masters.all) if (!words.has(master)) words.set(master, NO_ANSWER);
      const value = this.#value(key, words);
      if (value !== OPEN) return value;
      const tally = new Tally(this.#masters.votes);
      for (const [master, word] of words) if (word instanceof Error) tally.silent(master, word);
      return tally.error();
    });
  }

  /** What a majority has; where there is none, what the gate keeps for one who waits. */
  #value(
    key: string,
    words: ReadonlyMap<Master, string | Error | undefined>,
  ): string | undefined | typeof OPEN {
    const counts = new Map<string, number>();
    let unheard = this.#masters.votes.all;
    for (const [master, value] of words) {
      if (value instanceof Error) continue;
      unheard -= 1;
      if (value === undefined) continue;
      const hold = this.#holds.get(value);
      if (hold === undefined || hold.witnesses.has(master)) counts.set(value, (counts.get(value) ?? 0) + 1);
      else unheard += 1; // It proves nothing, and disproves nothing.
    }
    const { majority } = this.#masters.votes;
    for (const [value, count] of counts) if (count >= majority) return value;
    if (Math.max(0, ...counts.values()) + unheard >= majority) return OPEN;
    const [gate] = this.#masters.inOrder(key);
    if (gate === undefined || !words.has(gate)) return OPEN;
    const first = this.#masters
      .inOrder(key)
      .map((master) => words.get(master))
      .find((value) => !(value instanceof Error));
    return typeof first === "string" && isReserved(first) ? first : undefined;
  }
}
