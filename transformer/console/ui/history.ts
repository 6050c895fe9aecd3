import { holdId, type LockRow, type Announcement } from "../snapshot";
import type { HeatRow, Segment } from "./state";

const MINUTES = 60;
const MINUTE_MS = 60_000;
const MOST_HEATED = 1_000;
const MOST_LINES = 500;
const LONGEST_LINE = 200;

interface Line {
  /** The segments that have not ended, by hold or waiter. */
  readonly open: Map<string, Segment>;
  readonly ended: Segment[];
}

/** Records what snapshots saw in the last hour. Its size is bounded. With too many locks, it first forgets those without waiters. */
export class History {
  /** The most waiters by key and minute. */
  readonly #heat = new Map<string, Map<number, number>>();
  readonly #lines = new Map<string, Line>();

  /**
   * Adds a snapshot.
   *
   * @param at the time of the snapshot in milliseconds since 1970
   */
  add(locks: readonly LockRow[], at: number): void {
    const minute = Math.floor(at / MINUTE_MS);
    for (const { key, waiting } of locks) if (waiting > 0) this.#heatUp(key, minute, waiting);
    this.#coolDown(minute);
    const seen = new Map(locks.map((lock) => [lock.key, lock]));
    for (const key of this.#lines.keys()) if (!seen.has(key)) this.#follow(key, undefined, at);
    for (const [key, lock] of seen) this.#follow(key, lock, at);
    this.#forget(at);
  }

  /** Returns the locks with the most waiters, the most contended first. */
  heat(most: number, at: number): readonly HeatRow[] {
    const last = Math.floor(at / MINUTE_MS);
    return [...this.#heat]
      .map(([key, minutes]) => ({
        key,
        cells: Array.from({ length: MINUTES }, (_, index) => minutes.get(last - MINUTES + 1 + index) ?? 0),
      }))
      .map((row) => ({ row, total: total(row.cells) }))
      .toSorted((one, other) => other.total - one.total || (one.row.key < other.row.key ? -1 : 1))
      .slice(0, most)
      .map(({ row }) => row);
  }

  /** Returns the holds and waits of a lock, ordered by their start. */
  line(key: string): readonly Segment[] {
    const line = this.#lines.get(key);
    if (line === undefined) return [];
    return [...line.ended, ...line.open.values()].toSorted((one, other) => one.from - other.from);
  }

  #heatUp(key: string, minute: number, waiting: number): void {
    const minutes = this.#heat.get(key) ?? new Map<number, number>();
    this.#heat.set(key, minutes);
    minutes.set(minute, Math.max(minutes.get(minute) ?? 0, waiting));
  }

  #coolDown(minute: number): void {
    for (const [key, minutes] of this.#heat) {
      for (const old of minutes.keys()) if (old <= minute - MINUTES) minutes.delete(old);
      if (minutes.size === 0) this.#heat.delete(key);
    }
    if (this.#heat.size <= MOST_HEATED) return;
    const coolest = [...this.#heat]
      .map(([key, minutes]) => ({ key, total: total([...minutes.values()]) }))
      .toSorted((one, other) => one.total - other.total);
    for (const { key } of coolest.slice(0, this.#heat.size - MOST_HEATED)) this.#heat.delete(key);
  }

  #follow(key: string, lock: LockRow | undefined, at: number): void {
    const line = this.#lines.get(key) ?? { open: new Map<string, Segment>(), ended: [] };
    const now = new Map(lock === undefined ? [] : segmentsOf(lock, at));
    for (const [id, segment] of line.open) {
      if (now.has(id)) continue;
      line.open.delete(id);
      line.ended.push({ ...segment, to: at });
    }
    for (const [id, segment] of now) {
      // The process may have become known in the meantime. The start must not move.
      const before = line.open.get(id);
      // The value of a revoked hold no longer identifies its process.
      const who = typeof segment.who === "string" ? (before?.who ?? segment.who) : segment.who;
      line.open.set(id, { ...segment, who, from: before?.from ?? segment.from });
    }
    line.ended.splice(0, line.ended.length - LONGEST_LINE);
    if (line.open.size + line.ended.length > 0) this.#lines.set(key, line);
  }

  #forget(at: number): void {
    const hourAgo = at - MINUTES * MINUTE_MS;
    for (const [key, { open, ended }] of this.#lines) {
      const old = ended.findIndex(({ to = at }) => to >= hourAgo);
      ended.splice(0, old === -1 ? ended.length : old);
      if (open.size + ended.length === 0) this.#lines.delete(key);
    }
    if (this.#lines.size <= MOST_LINES) return;
    const quietest = [...this.#lines]
      .map(([key, { open, ended }], index) => ({
        key,
        index,
        until: open.size > 0 ? Infinity : (ended.at(-1)?.to ?? 0),
        isHeated: this.#heat.has(key),
      }))
      .toSorted(
        (one, other) =>
          Number(one.isHeated) - Number(other.isHeated) ||
          (one.until === other.until ? other.index - one.index : one.until < other.until ? -1 : 1),
      );
    for (const { key } of quietest.slice(0, this.#lines.size - MOST_LINES)) this.#lines.delete(key);
  }
}

function segmentsOf({ holders, waiters }: LockRow, at: number): [id: string, Segment][] {
  return [
    ...holders.map((holder): [string, Segment] => [
      `holds ${holdId(holder)}`,
      { what: "holds", who: holder.process ?? holder.storeValue, ...startOf(holder, at) },
    ]),
    ...waiters.map((waiter): [string, Segment] => [
      `waits ${waiter.number}`,
      { what: "waits", who: waiter, ...startOf(waiter, at) },
    ]),
  ];
}

function startOf({ site, forMs = 0 }: Announcement, at: number): Pick<Segment, "site" | "from"> {
  return site === undefined ? { from: at - forMs } : { site, from: at - forMs };
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}
