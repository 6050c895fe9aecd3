import { isReserved } from "../value";
import type { Holds } from "./holds";
import type { Master } from "./master";
import { orFailure, patienceOf, type Masters } from "./masters";
import { Tally, UNPROVEN } from "./tally";

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
      async ({ store }) => orFailure(await store.peek(keys, patienceMs)),
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
      for (const master of this.#masters.all) if (!byMaster.has(master)) byMaster.set(master, master.silence);
      const value = this.#value(key, byMaster);
      if (value !== UNDECIDED) return value;
      return this.#undecided(byMaster);
    });
  }

  /** Returns the error that names the masters without a reply that counts. */
  #undecided(byMaster: ReadonlyMap<Master, string | Error | undefined>): Error {
    const tally = new Tally(this.#masters.votes);
    const agreeing = new Map<string | undefined, Master[]>();
    for (const [master, value] of byMaster) {
      if (value instanceof Error) tally.silent(master, value);
      else if (this.#proves(master, value)) agreeing.set(value, [...(agreeing.get(value) ?? []), master]);
      else tally.silent(master, UNPROVEN);
    }
    const most = Math.max(0, ...Array.from(agreeing.values(), ({ length }) => length));
    for (const [value, masters] of agreeing) {
      for (const master of masters) {
        if (masters.length === most) tally.yes(master);
        else tally.no(master, value);
      }
    }
    return tally.error(byMaster.keys());
  }

  /** Whether the master's reply counts. A master that is not a witness of a hold proves and disproves nothing. */
  #proves(master: Master, value: string | undefined): boolean {
    const hold = value === undefined ? undefined : this.#holds.get(value);
    return hold === undefined || hold.witnesses.has(master);
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
      if (this.#proves(master, value)) counts.set(value, (counts.get(value) ?? 0) + 1);
      else missing += 1;
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
