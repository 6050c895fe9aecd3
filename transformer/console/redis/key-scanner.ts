import { MOST_LOCKS } from "../port/deployment";
import { ask } from "../port/errors";
import type { Server } from "./server";

const SCAN_COUNT = 1_000;
const QUEUES = "lockweave:1:queue*";

/** A repeated scan of all keys that match one pattern. */
interface Round {
  readonly pattern: string;
  readonly type: "string" | "zset";
  /** The keys that are tracked. Other locks are only counted. */
  readonly keys: Set<string>;
  cursor: string;
  leftOutSoFar: number;
  leftOut: number;
  isWhole: boolean;
}

/** Finds the keys of locks on one master with a bounded number of `SCAN` commands. */
export class KeyScanner {
  readonly #server: Server;
  readonly #prefix: string;
  readonly #rounds: readonly [queues: Round, locks: Round];

  /**
   * Creates a scanner.
   *
   * @param match a pattern of `SCAN`
   */
  constructor(server: Server, match: string, prefix: string) {
    const round = (pattern: string, type: Round["type"]): Round => ({
      pattern: escapePattern(prefix) + pattern,
      type,
      keys: new Set(),
      cursor: "0",
      leftOutSoFar: 0,
      leftOut: 0,
      isWhole: false,
    });
    this.#server = server;
    this.#prefix = prefix;
    this.#rounds = [round(QUEUES, "zset"), round(match, "string")];
  }

  /** The keys that are tracked, those with waiters first. */
  get keys(): readonly string[] {
    const [queues, locks] = this.#rounds;
    return [...new Set([...queues.keys, ...locks.keys])];
  }

  /** The approximate number of locks that the last complete scan found but that are not tracked. */
  get leftOut(): number {
    return this.#rounds.reduce((sum, { leftOut }) => sum + leftOut, 0);
  }

  /** Whether every key has been scanned at least once. */
  get isWhole(): boolean {
    return this.#rounds.every(({ isWhole }) => isWhole);
  }

  forget(key: string): void {
    for (const { keys } of this.#rounds) keys.delete(key);
  }

  /**
   * Continues where the last call stopped.
   *
   * @returns the number of commands, and the approximate number of names that the server scanned
   */
  async scan(maxNames: number): Promise<{ readonly commands: number; readonly names: number }> {
    const unfinished = new Set(this.#rounds);
    let commands = 0;
    while (commands * SCAN_COUNT < maxNames && unfinished.size > 0) {
      for (const round of unfinished) {
        await this.#scanOnce(round);
        commands += 1;
        if (round.cursor === "0") unfinished.delete(round);
      }
    }
    return { commands, names: commands * SCAN_COUNT };
  }

  async #scanOnce(round: Round): Promise<void> {
    const { pattern, type, keys, cursor } = round;
    const [next, names] = (await ask(() =>
      this.#server.send("scan", cursor, "MATCH", pattern, "COUNT", SCAN_COUNT, "TYPE", type),
    )) as [cursor: string, names: string[]];
    for (const name of names) {
      const key = this.#lockOf(name);
      if (key === undefined || keys.has(key)) continue;
      if (keys.size < MOST_LOCKS) keys.add(key);
      else round.leftOutSoFar += 1;
    }
    round.cursor = next;
    if (next !== "0") return;
    round.isWhole = true;
    round.leftOut = round.leftOutSoFar;
    round.leftOutSoFar = 0;
  }

  /** Returns the lock's key without the client's prefix. For the name of a queue, this is the key of the queue's lock. */
  #lockOf(name: string): string | undefined {
    const prefix = this.#prefix;
    const bare = name.slice(prefix.length);
    if (!bare.startsWith("lockweave:")) return bare;
    const whole = /^lockweave:1:queue:\{([^]*)\}$/.exec(bare)?.[1];
    if (whole !== undefined) return whole.startsWith(prefix) ? whole.slice(prefix.length) : undefined;
    return /^lockweave:1:queue-by-(?:name:|tag:\{[^}]*\}:)([^]*)$/.exec(bare)?.[1];
  }
}

/** Escapes the special characters of `SCAN` patterns. */
function escapePattern(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}
