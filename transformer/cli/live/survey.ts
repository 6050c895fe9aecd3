import type { Redis } from "ioredis";
import type { Home } from "./home";
import { nameBeside, processName } from "../../../runtime/stores/redis/keys";
import { isClosed, isReserved, isRevoked, sharesIn } from "../../../runtime/stores/value";

/** One process, as far as it is known. */
export interface Process {
  /** With which its request ids begin. */
  readonly number: string;
  /** Of one that was configured with `announce: true`. */
  readonly host?: string;
  readonly pid?: number;
  readonly version?: string;
}

export interface HolderRow {
  /** What the key holds of it. */
  readonly storeValue: string;
  /** Of a lock of ours. */
  readonly process: Process | undefined;
  readonly leftMs: number;
  readonly isRevoked: boolean;
}

export interface LockRow {
  readonly key: string;
  readonly state: "held" | "free" | "next" | "closed";
  readonly holders: readonly HolderRow[];
  /** How many have a place in its queue: one for all of a process that wait to be alone. */
  readonly waiting: number;
  /** The first of them. */
  readonly waiters: readonly Process[];
  /** Since it was first seen held by these, or waited for; the server does not know since when it is. */
  readonly seenForMs: number;
  /** By how many masters of a quorum. */
  readonly masters: number;
}

export interface Look {
  readonly locks: readonly LockRow[];
  /** How many keys the servers have in all. */
  readonly keys: number;
  /** How many of them were looked at for it, of those whose names were not known yet. */
  readonly scanned: number;
  /** Whether all keys have been looked at since the survey began. */
  readonly isWhole: boolean;
  /** What it has cost the servers, and how long it waited for them. */
  readonly commands: number;
  readonly tookMs: number;
}

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
const ASKED_EVERY_MS = 5_000;
const QUEUES = "lockweave:2:queue*";

interface Master {
  readonly redis: Redis;
  /** What is scanned for, and how far: `undefined` of one that has been all round. */
  readonly cursors: Map<string, string>;
  readonly known: Set<string>;
  isWhole: boolean;
}

/**
 * Looks at all locks of a server, time and again. It reads: `SCAN`, `GET`, `PTTL`, `ZRANGE`, `DBSIZE`. What a look may cost is
 * bounded; of many keys, the next look goes on where this one has ended, and all that is known is looked at each time.
 */
export class Survey {
  readonly #options: SurveyOptions;
  readonly #masters = new Map<Redis, Master>();
  readonly #processes = new Map<string, Process>();
  readonly #askAgainAt = new Map<string, number>();
  readonly #firstSeen = new Map<string, { what: string; at: number }>();
  #commands = 0;

  constructor(options: SurveyOptions) {
    this.#options = options;
  }

  async look(home: Home): Promise<Look> {
    const startedAt = performance.now();
    this.#commands = 0;
    const looks = await Promise.all(home.masters().map((redis) => this.#lookAt(this.#masterOf(redis), home)));
    const locks = joined(looks.flatMap((look) => look.locks)).map((lock) => this.#timed(lock, startedAt));
    const seen = new Set(locks.map(({ key }) => key));
    for (const key of this.#firstSeen.keys()) if (!seen.has(key)) this.#firstSeen.delete(key);
    return {
      locks: byContention(locks),
      keys: sum(looks.map(({ keys }) => keys)),
      scanned: sum(looks.map(({ scanned }) => scanned)),
      isWhole: looks.every(({ isWhole }) => isWhole),
      commands: this.#commands,
      tookMs: performance.now() - startedAt,
    };
  }

  /** Of one lock; `undefined` where nobody holds it and nobody waits. */
  async lookAtOne(home: Home, key: string): Promise<LockRow | undefined> {
    const found: Found[] = [];
    for (const redis of home.masters()) {
      // In a cluster, it is on one of them: the others say so.
      const known = new Set([key]);
      found.push(...(await this.#holds({ redis, cursors: new Map(), known, isWhole: false }, [key])));
    }
    await this.#name(home, found, performance.now());
    const [lock] = joined(found.map((one) => this.#named(one)));
    return lock;
  }

  #masterOf(redis: Redis): Master {
    const known = this.#masters.get(redis);
    if (known !== undefined) return known;
    const { match, prefix } = this.#options;
    const master: Master = {
      redis,
      cursors: new Map([prefix + match, prefix + QUEUES].map((pattern) => [pattern, "0"])),
      known: new Set(),
      isWhole: false,
    };
    this.#masters.set(redis, master);
    return master;
  }

  async #lookAt(
    master: Master,
    home: Home,
  ): Promise<{ locks: LockRow[]; keys: number; scanned: number; isWhole: boolean }> {
    const scanned = await this.#scan(master);
    const keys = await this.#ask(() => master.redis.dbsize());
    const keysKnown = [...master.known];
    const locks: Found[] = [];
    for (let from = 0; from < keysKnown.length; from += AT_ONCE) {
      locks.push(...(await this.#holds(master, keysKnown.slice(from, from + AT_ONCE))));
    }
    await this.#name(home, locks, performance.now());
    return { locks: locks.map((lock) => this.#named(lock)), keys, scanned, isWhole: master.isWhole };
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
            pattern.includes("queue") ? "zset" : "string",
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
      pipeline.get(prefix + key).pttl(prefix + key);
      pipeline.zcount(queue, "(0", "+inf").zrangebyscore(queue, "(0", "+inf", "LIMIT", 0, MOST_WAITERS);
    }
    this.#commands += 4 * keys.length;
    const replies = (await pipeline.exec()) ?? [];
    return keys.flatMap((key, index): Found[] => {
      const [value, left, waiting, waiters] = replies
        .slice(4 * index, 4 * index + 4)
        .map(([, reply]) => reply);
      if (typeof value !== "string" && !(Number(waiting) > 0)) {
        known.delete(key);
        return [];
      }
      return [foundOf(key, value, Number(left), Number(waiting), Array.isArray(waiters) ? waiters : [])];
    });
  }

  /** What processes say of themselves. Who says nothing is asked again after a while. */
  async #name(home: Home, locks: readonly Found[], now: number): Promise<void> {
    const numbers = locks.flatMap(({ holders, waiters }) =>
      [...holders, ...waiters].map(({ process }) => process),
    );
    const unknown = [...new Set(numbers)].filter(
      (number): number is string =>
        number !== undefined && !this.#processes.has(number) && now >= (this.#askAgainAt.get(number) ?? 0),
    );
    const ask = async (number: string): Promise<void> => {
      this.#askAgainAt.set(number, now + ASKED_EVERY_MS);
      const said = await this.#ask(() => home.get(this.#options.prefix + processName(number)));
      if (said !== null) this.#processes.set(number, { number, ...aboutOf(said) });
    };
    await Promise.all(unknown.map(ask));
  }

  #named({ key, state, holders, waiting, waiters }: Found): LockRow {
    const processOf = (number: string): Process => this.#processes.get(number) ?? { number };
    return {
      key,
      state,
      holders: holders.map(({ process, ...holder }) => ({
        ...holder,
        process: process === undefined ? undefined : processOf(process),
      })),
      waiting,
      waiters: waiters.flatMap(({ process }) => (process === undefined ? [] : [processOf(process)])),
      seenForMs: 0,
      masters: 1,
    };
  }

  #timed(lock: LockRow, now: number): LockRow {
    const what = lock.holders.map(({ storeValue }) => storeValue).join();
    const before = this.#firstSeen.get(lock.key);
    if (before?.what === what) return { ...lock, seenForMs: now - before.at };
    this.#firstSeen.set(lock.key, { what, at: now });
    return lock;
  }

  async #ask<Reply>(command: () => Promise<Reply>): Promise<Reply> {
    this.#commands += 1;
    return await command();
  }
}

interface Found {
  readonly key: string;
  readonly state: LockRow["state"];
  readonly holders: readonly (Omit<HolderRow, "process"> & { readonly process: string | undefined })[];
  readonly waiting: number;
  readonly waiters: readonly { readonly process: string | undefined }[];
}

function foundOf(
  key: string,
  value: unknown,
  leftMs: number,
  waiting: number,
  waiters: readonly unknown[],
): Found {
  const holds =
    typeof value !== "string"
      ? []
      : (sharesIn(value)?.map(({ requestId }) => ({ value: requestId, leftMs })) ?? [{ value, leftMs }]);
  const holders = holds.filter((hold) => !isReserved(hold.value) && !isClosed(hold.value));
  const [other] = holds;
  const otherwise = other === undefined ? "free" : isReserved(other.value) ? "next" : "closed";
  return {
    key,
    state: holders.length > 0 ? "held" : otherwise,
    holders: holders.map((hold) => ({
      storeValue: hold.value,
      process: isRevoked(hold.value) ? undefined : processIn(hold.value),
      leftMs: hold.leftMs,
      isRevoked: isRevoked(hold.value),
    })),
    waiting,
    waiters: waiters.map((entry) => ({ process: processIn(String(entry).slice(0, 32)) })),
  };
}

/** The number of the process that an id of ours is from. */
function processIn(id: string): string | undefined {
  return /^[0-9a-f]{32}$/.test(id) ? id.slice(0, 12) : undefined;
}

function aboutOf(said: string): Omit<Process, "number"> {
  try {
    const { host, pid, version } = JSON.parse(said) as Record<string, unknown>;
    return {
      ...(typeof host === "string" && { host }),
      ...(typeof pid === "number" && { pid }),
      ...(typeof version === "string" && { version }),
    };
  } catch {
    return {};
  }
}

/** What several masters of a quorum have of one lock. */
function joined(locks: readonly LockRow[]): LockRow[] {
  const byKey = new Map<string, LockRow>();
  for (const lock of locks) {
    const other = byKey.get(lock.key);
    const isBetter = other === undefined || lock.holders.length > other.holders.length;
    const masters = (other?.masters ?? 0) + 1;
    byKey.set(lock.key, {
      ...(isBetter ? lock : other),
      waiting: Math.max(lock.waiting, other?.waiting ?? 0),
      masters,
    });
  }
  return [...byKey.values()];
}

/** A look that took long is not followed by another one at once: a slow server is not to be made slower. */
export function pauseAfter(tookMs: number, everyMs: number): number {
  return Math.max(everyMs, 10 * tookMs);
}

function byContention(locks: readonly LockRow[]): LockRow[] {
  return locks.toSorted(
    (a, b) => b.waiting - a.waiting || b.seenForMs - a.seenForMs || (a.key < b.key ? -1 : 1),
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
