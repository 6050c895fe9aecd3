import type { Redis } from "ioredis";
import { ask } from "./errors";

/** So many locks of one master are followed, and as many that somebody waits for. */
const MOST_FOLLOWED = 10_000;
const SCAN_COUNT = 1_000;
const QUEUES = "lockweave:2:queue*";

/** Goes round all keys with one pattern. */
interface Round {
  readonly pattern: string;
  readonly type: "string" | "zset";
  /** The names that are followed. Those of other locks are only counted. */
  readonly keys: Set<string>;
  cursor: string;
  leftOutSoFar: number;
  leftOut: number;
  isWhole: boolean;
}

/** Finds the names of locks on one master, by a bounded number of `SCAN`s. */
export class KeyScanner {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #rounds: readonly [queues: Round, locks: Round];

  /** @param match a pattern of `SCAN` */
  constructor(redis: Redis, match: string, prefix: string) {
    const round = (pattern: string, type: Round["type"]): Round => ({
      pattern: literally(prefix) + pattern,
      type,
      keys: new Set(),
      cursor: "0",
      leftOutSoFar: 0,
      leftOut: 0,
      isWhole: false,
    });
    this.#redis = redis;
    this.#prefix = prefix;
    this.#rounds = [round(QUEUES, "zset"), round(match, "string")];
  }

  /** The locks that are followed, those with waiters first. */
  get keys(): readonly string[] {
    const [queues, locks] = this.#rounds;
    return [...new Set([...queues.keys, ...locks.keys])];
  }

  /** About how many more locks were found in the last round than are followed. */
  get leftOut(): number {
    return this.#rounds.reduce((sum, { leftOut }) => sum + leftOut, 0);
  }

  /** Whether it has been all round. */
  get isWhole(): boolean {
    return this.#rounds.every(({ isWhole }) => isWhole);
  }

  forget(key: string): void {
    for (const { keys } of this.#rounds) keys.delete(key);
  }

  /**
   * Goes on from where the last call ended.
   *
   * @returns the number of commands, and about how many names the server looked through
   */
  async scan(mostNames: number): Promise<{ readonly commands: number; readonly names: number }> {
    const going = new Set(this.#rounds);
    let commands = 0;
    while (commands * SCAN_COUNT < mostNames && going.size > 0) {
      for (const round of going) {
        await this.#goOn(round);
        commands += 1;
        if (round.cursor === "0") going.delete(round);
      }
    }
    return { commands, names: commands * SCAN_COUNT };
  }

  async #goOn(round: Round): Promise<void> {
    const { pattern, type, keys, cursor } = round;
    const [next, names] = await ask(() =>
      this.#redis.scan(cursor, "MATCH", pattern, "COUNT", SCAN_COUNT, "TYPE", type),
    );
    for (const name of names) {
      const key = this.#lockOf(name);
      if (key === undefined || keys.has(key)) continue;
      if (keys.size < MOST_FOLLOWED) keys.add(key);
      else round.leftOutSoFar += 1;
    }
    round.cursor = next;
    if (next !== "0") return;
    round.isWhole = true;
    round.leftOut = round.leftOutSoFar;
    round.leftOutSoFar = 0;
  }

  /** The lock's key without the client's prefix. Of a queue, the key of its lock. */
  #lockOf(name: string): string | undefined {
    const prefix = this.#prefix;
    const bare = name.slice(prefix.length);
    if (!bare.startsWith("lockweave:")) return bare;
    const whole = /^lockweave:2:queue:\{([^]*)\}$/.exec(bare)?.[1];
    if (whole !== undefined) return whole.startsWith(prefix) ? whole.slice(prefix.length) : undefined;
    return /^lockweave:2:queue-by-(?:name:|tag:\{[^}]*\}:)([^]*)$/.exec(bare)?.[1];
  }
}

/** Escapes what is special in the patterns of `SCAN`. */
function literally(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}
