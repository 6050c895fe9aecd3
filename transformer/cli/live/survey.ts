import type { Redis } from "ioredis";
import { nameBeside } from "../../../runtime/stores/redis/keys";
import { UsageError } from "../../verify/usage-error";
import { foundOf, type Found } from "./found";
import type { Home } from "./home";
import { holdId, type LockRow, type Look } from "./look";
import { Processes } from "./processes";

export interface SurveyOptions {
  /** Of the locks' keys, as Redis' SCAN has it. */
  readonly match: string;
  /** What the client puts before each key. */
  readonly prefix: string;
}

/** Per master and look: so many keys are looked at, and no more. */
const MOST_SCANNED = 20_000;
const SCAN_COUNT = 1_000;
const AT_ONCE = 200;
const MOST_WAITERS = 20;
/** The most bytes that are read of one key: it may be shared by many, or contain another program's data. */
export const MOST_READ = 1_000_000;
/** What is no lock, and in a cluster what another node has. */
const IS_ELSEWHERE = /^(?:WRONGTYPE|MOVED|ASK)\b/;
/** What PTTL says. */
const NO_KEY = -2;
const QUEUES = "lockweave:2:queue*";

/** One lock, with the full texts that its key contained on any master at that moment. */
export interface SeenLock {
  readonly row: LockRow;
  readonly values: readonly string[];
}

interface Master {
  readonly redis: Redis;
  /** What is scanned for, and how far: `undefined` of one that has been all round. */
  readonly cursors: Map<string, string>;
  readonly known: Set<string>;
  isWhole: boolean;
}

/**
 * Looks at all locks of a server, time and again. It reads: `SCAN`, `GETRANGE`, `PTTL`, `ZRANGE`, `DBSIZE`. What a look may cost is
 * bounded; of many keys, the next look goes on where this one has ended, and all that is known is looked at each time.
 */
export class Survey {
  readonly #options: SurveyOptions;
  readonly #masters = new Map<Redis, Master>();
  readonly #processes: Processes;
  /** Of each lock, who held it at the last look, since which look, and whether it was somebody else before. */
  readonly #firstSeen = new Map<string, { what: string; at: number; isAnother: boolean }>();
  #commands = 0;

  constructor(options: SurveyOptions) {
    this.#options = options;
    this.#processes = new Processes(options.prefix);
  }

  async look(home: Home): Promise<Look> {
    const startedAt = performance.now();
    this.#commands = 0;
    const masters = home.masters();
    const looks = await ofThoseThere(
      home,
      masters.map((redis) => this.#lookAt(this.#masterOf(redis))),
    );
    const found = joined(looks.flatMap((look) => look.found));
    await this.#askProcesses(home, found);
    const locks = found.map((lock) => this.#row(lock, startedAt));
    const seen = new Set(locks.map(({ key }) => key));
    for (const key of this.#firstSeen.keys()) if (!seen.has(key)) this.#firstSeen.delete(key);
    return {
      locks: byContention(locks),
      keys: sum(looks.map(({ keys }) => keys)),
      scanned: sum(looks.map(({ scanned }) => scanned)),
      isWhole: looks.every(({ isWhole }) => isWhole),
      masters: masters.length,
      unanswered: masters.length - looks.length,
      commands: this.#commands,
      tookMs: performance.now() - startedAt,
    };
  }

  /** Reads one lock. Returns `undefined` if nobody holds it and nobody waits for it. */
  async lookAtOne(home: Home, key: string): Promise<SeenLock | undefined> {
    // In a cluster, it is on one of them: the others say so.
    const looks = home
      .masters()
      .map((redis) =>
        this.#holds({ redis, cursors: new Map(), known: new Set([key]), isWhole: false }, [key]),
      );
    const found = (await ofThoseThere(home, looks)).flat();
    await this.#askProcesses(home, found);
    const [lock] = joined(found);
    if (lock === undefined) return undefined;
    return {
      row: this.#row(lock, performance.now()),
      values: [...new Set(found.flatMap(({ values }) => values))],
    };
  }

  #masterOf(redis: Redis): Master {
    const known = this.#masters.get(redis);
    if (known !== undefined) return known;
    const { match, prefix } = this.#options;
    const master: Master = {
      redis,
      cursors: new Map([match, QUEUES].map((pattern) => [literally(prefix) + pattern, "0"])),
      known: new Set(),
      isWhole: false,
    };
    this.#masters.set(redis, master);
    return master;
  }

  async #lookAt(
    master: Master,
  ): Promise<{ found: Found[]; keys: number; scanned: number; isWhole: boolean }> {
    const scanned = await this.#scan(master);
    const keys = await this.#ask(() => master.redis.dbsize());
    const keysKnown = [...master.known];
    const found: Found[] = [];
    for (let from = 0; from < keysKnown.length; from += AT_ONCE) {
      found.push(...(await this.#holds(master, keysKnown.slice(from, from + AT_ONCE))));
    }
    return { found, keys, scanned, isWhole: master.isWhole };
  }

  /** Goes on through the names, by both patterns in turns. */
  async #scan(master: Master): Promise<number> {
    let scanned = 0;
    const ended = new Set<string>();
    while (scanned < MOST_SCANNED && ended.size < master.cursors.size) {
      for (const [pattern, cursor] of master.cursors) {
        if (ended.has(pattern)) continue;
        const [next, found] = await this.#ask(() =>
          master.redis.scan(
            cursor,
            "MATCH",
            pattern,
            "COUNT",
            SCAN_COUNT,
            "TYPE",
            pattern === literally(this.#options.prefix) + QUEUES ? "zset" : "string",
          ),
        );
        scanned += SCAN_COUNT;
        for (const name of found) {
          const key = this.#lockOf(name);
          if (key !== undefined) master.known.add(key);
        }
        master.cursors.set(pattern, next);
        if (next === "0") ended.add(pattern);
      }
    }
    if (ended.size === master.cursors.size) master.isWhole = true;
    return scanned;
  }

  /** Without the client's prefix. Of a queue, that of its lock. */
  #lockOf(name: string): string | undefined {
    const { prefix } = this.#options;
    const bare = name.slice(prefix.length);
    if (!bare.startsWith("lockweave:")) return bare;
    const whole = /^lockweave:2:queue:\{([^]*)\}$/.exec(bare)?.[1];
    if (whole !== undefined) return whole.startsWith(prefix) ? whole.slice(prefix.length) : undefined;
    return /^lockweave:2:queue-by-(?:name:|tag:\{[^}]*\}:)([^]*)$/.exec(bare)?.[1];
  }

  async #holds({ redis, known }: Master, keys: readonly string[]): Promise<Found[]> {
    const { prefix } = this.#options;
    const pipeline = redis.pipeline();
    for (const key of keys) {
      const queue = prefix + nameBeside("queue", prefix, key);
      pipeline.getrange(prefix + key, 0, MOST_READ).pttl(prefix + key);
      pipeline.zcount(queue, "(0", "+inf").zrangebyscore(queue, "(0", "+inf", "LIMIT", 0, MOST_WAITERS);
    }
    this.#commands += 4 * keys.length;
    const replies = (await pipeline.exec()) ?? [];
    for (const [error] of replies) {
      if (error !== null && !IS_ELSEWHERE.test(error.message))
        throw new UsageError(`It cannot be looked at who holds what: ${error.message}`);
    }
    return keys.flatMap((key, index): Found[] => {
      const [value, left, waiting, waiters] = replies
        .slice(4 * index, 4 * index + 4)
        .map(([, reply]) => reply);
      const isThere = typeof value === "string" && Number(left) !== NO_KEY;
      if (!isThere && !(Number(waiting) > 0)) {
        known.delete(key);
        return [];
      }
      const held = isThere ? value : undefined;
      return [foundOf(key, held, Number(left), Number(waiting), Array.isArray(waiters) ? waiters : [])];
    });
  }

  async #askProcesses(home: Home, locks: readonly Found[]): Promise<void> {
    const numbers = locks.flatMap(({ holders, waiters }) => [
      ...holders.flatMap(({ process }) => (process === undefined ? [] : [process])),
      ...waiters,
    ]);
    this.#commands += await this.#processes.ask(home, numbers);
  }

  #row({ key, state, holders, waiting, waiters, masters }: FoundOfAll, now: number): LockRow {
    const what = holders.map(holdId).join();
    const before = this.#firstSeen.get(key);
    const seen = before?.what === what ? before : { what, at: now, isAnother: before !== undefined };
    this.#firstSeen.set(key, seen);
    const since = seen.isAnother ? seen.at : -Infinity;
    const processes = this.#processes;
    return {
      key,
      state,
      waiting,
      masters,
      holders: holders.map(({ process: number, ...holder }) => ({
        ...holder,
        process: number === undefined ? undefined : processes.named(number),
        ...(number !== undefined && processes.holds(number, key, now, since)),
      })),
      waiters: waiters.map((number) => ({
        ...processes.named(number),
        ...processes.waits(number, key, now),
      })),
      seenForMs: now - seen.at,
    };
  }

  async #ask<Reply>(command: () => Promise<Reply>): Promise<Reply> {
    this.#commands += 1;
    return await command();
  }
}

/** Of a quorum those who answer are enough, if they are most of it. */
async function ofThoseThere<Reply>(home: Home, looks: readonly Promise<Reply>[]): Promise<readonly Reply[]> {
  const settled = await Promise.allSettled(looks);
  const replies = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = settled.find((one) => one.status === "rejected");
  if (failed !== undefined && replies.length < home.needed()) throw failed.reason;
  return replies;
}

/** As SCAN's patterns have it. */
function literally(text: string): string {
  return text.replace(/[\\*?[\]]/g, "\\$&");
}

type FoundOfAll = Found & { readonly masters: number };

/** What several masters of a quorum have of one lock. */
function joined(locks: readonly Found[]): readonly FoundOfAll[] {
  const byKey = new Map<string, FoundOfAll>();
  for (const lock of locks) {
    const other = byKey.get(lock.key);
    const isBetter = other === undefined || lock.holders.length > other.holders.length;
    byKey.set(lock.key, {
      ...(isBetter ? lock : other),
      waiting: Math.max(lock.waiting, other?.waiting ?? 0),
      masters: (other?.masters ?? 0) + 1,
    });
  }
  return [...byKey.values()];
}

function byContention(locks: readonly LockRow[]): LockRow[] {
  return locks.toSorted(
    (a, b) => b.waiting - a.waiting || b.seenForMs - a.seenForMs || (a.key < b.key ? -1 : 1),
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
