import type { Redis } from "ioredis";
import { ask } from "./errors";
import type { StoredLock } from "./stored-lock";
import type { Deployment } from "./deployment";
import { holdId, type LockRow, type Snapshot } from "./snapshot";
import { Processes } from "./processes";
import { readLock, readLocks, type Reading } from "./read-locks";
import { KeyScanner } from "./key-scanner";

export interface ScanOptions {
  /** A pattern of `SCAN` that matches the keys of locks. */
  readonly match: string;
  /** The `keyPrefix` of the client. */
  readonly prefix: string;
}

/** The names that one snapshot scans on each master. The limit keeps a snapshot fast, however many keys there are. */
const NAMES_PER_SNAPSHOT = 20_000;
/** The limit for a command that takes only one snapshot. */
export const NAMES_OF_ONE_SNAPSHOT = 2_000_000;

/** A lock with the complete values that its key had on the masters. A forced release requires that these have not changed. */
export interface SeenLock {
  readonly row: LockRow;
  /** `undefined` if the values cannot be compared, because they are binary or too long. */
  readonly values: readonly string[] | undefined;
}

/**
 * Reads the locks of all servers repeatedly, and changes nothing. Each snapshot costs a bounded number of commands and bytes. It continues
 * the scan where the last one stopped, and reads all locks that are known by then.
 */
export class LockScanner {
  readonly #options: ScanOptions;
  readonly #scanners = new Map<Redis, KeyScanner>();
  readonly #processes: Processes;
  /** For each lock: its holders in the last snapshot, when they were first seen, and whether others held the lock before them. */
  readonly #firstSeen = new Map<string, { what: string; at: number; isAnother: boolean }>();

  constructor(options: ScanOptions) {
    this.#options = options;
    this.#processes = new Processes(options.prefix);
  }

  /**
   * Takes a snapshot of all locks.
   *
   * @throws {UsageError} if too few servers answer
   */
  async look(deployment: Deployment, maxNames = NAMES_PER_SNAPSHOT): Promise<Snapshot> {
    const startedAt = performance.now();
    const masters = deployment.masters();
    const scans = await enoughReplies(
      deployment,
      masters.map((redis) => this.#scanMaster(redis, maxNames)),
    );
    const found = byWaiting(merged(scans.flatMap((look) => look.found)));
    const announcementCommands = await this.#processes.read(deployment, processesOf(found));
    const locks = found.map((lock) => this.#row(lock, startedAt));
    const seen = new Set(locks.map(({ key }) => key));
    for (const key of this.#firstSeen.keys()) if (!seen.has(key)) this.#firstSeen.delete(key);
    return {
      locks: byContention(locks),
      keys: sum(scans.map(({ keys }) => keys)),
      scanned: sum(scans.map(({ names }) => names)),
      isWhole: scans.every(({ isWhole }) => isWhole),
      leftOut: sum(scans.map(({ leftOut }) => leftOut)),
      masters: masters.length,
      unanswered: masters.length - scans.length,
      commands: sum(scans.map(({ commands }) => commands)) + announcementCommands,
      tookMs: performance.now() - startedAt,
    };
  }

  /** Reads one lock. Returns `undefined` if nobody holds it and nobody waits for it. */
  async lookAtOne(deployment: Deployment, key: string): Promise<SeenLock | undefined> {
    const { prefix } = this.#options;
    const scans = deployment.masters().map((redis) => readLock(redis, prefix, key));
    const found = (await enoughReplies(deployment, scans)).flatMap((reading) => reading.found);
    await this.#processes.read(deployment, processesOf(found));
    const [lock] = merged(found);
    if (lock === undefined) return undefined;
    const all = found.map(({ values }) => values);
    return {
      row: this.#row(lock, performance.now()),
      values: all.includes(undefined) ? undefined : [...new Set(all.flatMap((values = []) => values))],
    };
  }

  async #scanMaster(
    redis: Redis,
    maxNames: number,
  ): Promise<
    Pick<Reading, "found"> & {
      keys: number;
      names: number;
      commands: number;
      isWhole: boolean;
      leftOut: number;
    }
  > {
    const { match, prefix } = this.#options;
    const scanner = this.#scanners.get(redis) ?? new KeyScanner(redis, match, prefix);
    this.#scanners.set(redis, scanner);
    const scanned = await scanner.scan(maxNames);
    const keys = await ask(() => redis.dbsize());
    const { found, free, commands } = await readLocks(redis, prefix, scanner.keys);
    for (const key of free) scanner.forget(key);
    const { isWhole, leftOut } = scanner;
    return {
      found,
      keys,
      names: scanned.names,
      commands: scanned.commands + 1 + commands,
      isWhole,
      leftOut,
    };
  }

  #row({ key, state, holders, waiting, waiters, masters }: MergedLock, now: number): LockRow {
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
}

/** Returns the replies of the servers that answered, if there are enough of them. A majority of a quorum is enough. */
async function enoughReplies<Reply>(
  deployment: Deployment,
  scans: readonly Promise<Reply>[],
): Promise<readonly Reply[]> {
  const settled = await Promise.allSettled(scans);
  const replies = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = settled.find((one) => one.status === "rejected");
  if (failed !== undefined && replies.length < deployment.needed()) throw failed.reason;
  return replies;
}

function processesOf(locks: readonly StoredLock[]): string[] {
  return locks.flatMap(({ holders, waiters }) => [
    ...holders.flatMap(({ process }) => (process === undefined ? [] : [process])),
    ...waiters,
  ]);
}

type MergedLock = StoredLock & { readonly masters: number };

/** Merges what several masters of a quorum store for each lock. */
function merged(locks: readonly StoredLock[]): readonly MergedLock[] {
  const byKey = new Map<string, MergedLock>();
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

function byWaiting(locks: readonly MergedLock[]): MergedLock[] {
  return locks.toSorted((one, other) => other.waiting - one.waiting);
}

function byContention(locks: readonly LockRow[]): LockRow[] {
  return locks.toSorted(
    (a, b) => b.waiting - a.waiting || b.seenForMs - a.seenForMs || (a.key < b.key ? -1 : 1),
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
