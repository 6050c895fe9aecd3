import type { Deployment, FoundLock } from "./port/deployment";
import type { StoredLock } from "./port/stored-lock";
import { holdId, type LockRow, type Snapshot, type WaiterRow } from "./snapshot";
import { Processes } from "./processes";

/** The names that one snapshot scans on each master. The limit keeps a snapshot fast, however many keys there are. */
const NAMES_PER_SNAPSHOT = 20_000;
/** The limit for a command that takes only one snapshot. */
export const NAMES_OF_ONE_SNAPSHOT = 2_000_000;

/** A lock, and what a forced release needs to know: see {@link StoredLock}. */
export interface SeenLock extends Pick<StoredLock, "values" | "refusal"> {
  readonly row: LockRow;
}

/** Takes snapshots of the locks. It remembers how long each lock has been in its state, and which process announced what. */
export class LockScanner {
  readonly #deployment: Deployment;
  readonly #processes: Processes;
  /** For each lock: its holders in the last snapshot, when they were first seen, and whether others held the lock before them. */
  readonly #firstSeen = new Map<string, { what: string; at: number; isAnother: boolean }>();

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
    this.#processes = new Processes(deployment);
  }

  /**
   * Takes a snapshot of all locks.
   *
   * @throws {UsageError} if too few servers answer
   */
  async look(maxNames = NAMES_PER_SNAPSHOT): Promise<Snapshot> {
    const startedAt = performance.now();
    const { locks: found, commands, ...cost } = await this.#deployment.scan(maxNames);
    const numbers = new Set(processesOf(byWaiting(found)));
    const announcementCommands = await this.#processes.read(numbers);
    const locks = found.map((lock) => this.#row(lock, startedAt));
    const seen = new Set(locks.map(({ key }) => key));
    for (const key of this.#firstSeen.keys()) if (!seen.has(key)) this.#firstSeen.delete(key);
    return {
      locks: byContention(locks),
      ...cost,
      commands: commands + announcementCommands,
      unknownProcesses: [...numbers].filter((number) => !this.#processes.has(number)).length,
      unlistedCalls: sum([...numbers].map((number) => this.#processes.unlistedCalls(number))),
      tookMs: performance.now() - startedAt,
    };
  }

  /** Reads one lock. Returns `undefined` if nobody holds it and nobody waits for it. */
  async lookAtOne(key: string): Promise<SeenLock | undefined> {
    const lock = await this.#deployment.read(key);
    if (lock === undefined) return undefined;
    await this.#processes.read(processesOf([lock]));
    const { values, refusal } = lock;
    return { row: this.#row(lock, performance.now()), values, refusal };
  }

  #row(lock: FoundLock, now: number): LockRow {
    const { key, state, holders, waiting: queued, waiters: tickets, masters } = lock;
    const what = holders.map(holdId).join();
    const before = this.#firstSeen.get(key);
    const seen = before?.what === what ? before : { what, at: now, isAnother: before !== undefined };
    this.#firstSeen.set(key, seen);
    const since = seen.isAnother ? seen.at : -Infinity;
    const processes = this.#processes;
    const waiters = this.#waiters(lock, now);
    return {
      key,
      state,
      waiting: queued - tickets.length + sum(waiters.map(({ calls }) => calls)),
      queued,
      masters,
      holders: Array.from(holders, ({ process: number, ...holder }) => ({
        ...holder,
        process: number === undefined ? undefined : processes.named(number),
        ...(number !== undefined && processes.holds(number, key, now, since)),
      })),
      waiters,
      seenForMs: now - seen.at,
    };
  }

  /** Returns the processes with calls that wait for the lock. Calls of its holder wait in that process, and have no ticket. */
  #waiters({ key, holders, waiters }: FoundLock, now: number): readonly WaiterRow[] {
    const tickets = new Map<string, number>();
    for (const number of waiters) tickets.set(number, (tickets.get(number) ?? 0) + 1);
    for (const { process } of holders)
      if (process !== undefined && !tickets.has(process)) tickets.set(process, 0);
    return [...tickets].flatMap(([number, count]) => {
      const isNewHolder =
        holders.some(({ process }) => process === number) && !this.#processes.announcesHold(number, key);
      const last = this.#processes.waits(number, key, now);
      // The call that holds the lock now was the first of those that waited at the time of the announcement.
      const announced = isNewHolder ? { calls: last.calls - 1 } : last;
      const calls = Math.max(count, announced.calls);
      return calls === 0 ? [] : [{ ...this.#processes.named(number), ...announced, calls }];
    });
  }
}

function processesOf(locks: readonly StoredLock[]): string[] {
  return locks.flatMap(({ holders, waiters }) => [
    ...holders.flatMap(({ process }) => (process === undefined ? [] : [process])),
    ...waiters,
  ]);
}

function byWaiting(locks: readonly FoundLock[]): FoundLock[] {
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
