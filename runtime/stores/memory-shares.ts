import { UNLIMITED } from "../base/limits";
import { MOST_DEAD_AT_ONCE, type InspectedHold } from "./port";
import { revokedFrom, SHARED_BY_READERS, sharedByPermits } from "./value";

interface Share {
  readonly limit: number;
  count: number;
  expiresAt: number;
}

interface Deadline {
  readonly id: string;
  readonly at: number;
}

/**
 * The holds of one shared key in the memory store. Each step takes O(log n) time, and removes at most `MOST_DEAD_AT_ONCE` expired holds.
 * The others count as held until a later step removes them.
 */
export class MemoryShares {
  readonly #all = new Map<string, Share>();
  /** The number of holds for each limit of permits. */
  readonly #limits = new Map<number, number>();
  #first = new Heap((one, other) => one.at < other.at);
  #last = new Heap((one, other) => one.at > other.at);
  #permitsHeld = 0;
  #isOfReaders = false;

  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** The value of the key. */
  get value(): string {
    return this.#isOfReaders ? SHARED_BY_READERS : sharedByPermits(this.#permitsHeld);
  }

  /** The earliest deadline of all holds. */
  get firstEndsAt(): number | undefined {
    return this.#top(this.#first)?.at;
  }

  get lastEndsAt(): number | undefined {
    return this.#top(this.#last)?.at;
  }

  removeOver(now: number): void {
    for (let removed = 0; removed < MOST_DEAD_AT_ONCE; removed += 1) {
      const first = this.#top(this.#first);
      if (first === undefined || first.at > now) return;
      this.remove(first.id);
    }
  }

  /** Returns the ID under which the hold is stored. A revoked hold has another ID. `undefined` if there is no such hold. */
  own(requestId: string, now: number): string | undefined {
    return [requestId, revokedFrom(requestId)].find((id) => (this.#all.get(id)?.expiresAt ?? now) > now);
  }

  /** Returns the number of permits that are left for a caller with that limit. Readers share a key with readers only. */
  roomFor(limit: number): number {
    const isReader = limit === UNLIMITED;
    if (isReader || this.#isOfReaders) return isReader && (this.#isOfReaders || this.isEmpty) ? 1 : 0;
    return Math.min(limit, ...this.#limits.keys()) - this.#permitsHeld;
  }

  /** Returns a limit of another holder that differs from this one, the smallest if possible. */
  otherLimit(limit: number): number | undefined {
    const [smallest, largest] = [Math.min(...this.#limits.keys()), Math.max(...this.#limits.keys())];
    if (this.#limits.size === 0 || this.#isOfReaders) return undefined;
    return [smallest, largest].find((one) => one !== limit);
  }

  /** Adds a hold. Returns the number of permits that it got. */
  join(id: string, expiresAt: number, limit: number, wanted: number): number {
    this.#isOfReaders = limit === UNLIMITED;
    const count = this.#isOfReaders ? 1 : Math.min(wanted, limit, this.roomFor(limit));
    this.#add(id, { limit, count, expiresAt });
    return count;
  }

  /** Renews a hold. Returns the number of permits that it released. */
  renew(id: string, expiresAt: number, kept: number | undefined): number {
    const share = this.#all.get(id);
    if (share === undefined) return 0;
    if (expiresAt > share.expiresAt) {
      share.expiresAt = expiresAt;
      this.#addDeadline(id, expiresAt);
    }
    const released = this.#isOfReaders || kept === undefined ? 0 : Math.max(share.count - kept, 0);
    share.count -= released;
    this.#permitsHeld -= released;
    return released;
  }

  revoke(id: string): void {
    const share = this.#all.get(id);
    this.remove(id);
    if (share !== undefined) this.#add(revokedFrom(id), share);
  }

  remove(id: string): void {
    const share = this.#all.get(id);
    if (share === undefined) return;
    this.#all.delete(id);
    this.#permitsHeld -= share.count;
    const left = (this.#limits.get(share.limit) ?? 1) - 1;
    if (left > 0) this.#limits.set(share.limit, left);
    else this.#limits.delete(share.limit);
  }

  list(now: number): InspectedHold[] {
    return Array.from(this.#all, ([value, { expiresAt, count }]) => {
      const hold = { value, leftMs: expiresAt - now };
      return this.#isOfReaders ? hold : { ...hold, permits: count };
    }).filter(({ leftMs }) => leftMs > 0);
  }

  #add(id: string, share: Share): void {
    this.#all.set(id, share);
    this.#permitsHeld += share.count;
    this.#limits.set(share.limit, (this.#limits.get(share.limit) ?? 0) + 1);
    this.#addDeadline(id, share.expiresAt);
  }

  /** Adds a deadline to both heaps. Outdated deadlines leave a heap when they reach its top, or all at once when most are outdated. */
  #addDeadline(id: string, at: number): void {
    this.#first.push({ id, at });
    this.#last.push({ id, at });
    if (
      this.#first.size <= 2 * this.#all.size + MIN_OUTDATED &&
      this.#last.size <= 2 * this.#all.size + MIN_OUTDATED
    )
      return;
    const deadlines = Array.from(this.#all, ([one, { expiresAt }]): Deadline => ({ id: one, at: expiresAt }));
    this.#first.reset(deadlines);
    this.#last.reset(deadlines);
  }

  #top(heap: Heap): Deadline | undefined {
    for (;;) {
      const { top } = heap;
      if (top === undefined || this.#all.get(top.id)?.expiresAt === top.at) return top;
      heap.pop();
    }
  }
}

const MIN_OUTDATED = 16;

/** A binary heap with the first item on top. */
class Heap {
  readonly #goesBefore: (one: Deadline, other: Deadline) => boolean;
  #items: Deadline[] = [];

  constructor(goesBefore: (one: Deadline, other: Deadline) => boolean) {
    this.#goesBefore = goesBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  get top(): Deadline | undefined {
    return this.#items[0];
  }

  /** Replaces all items. */
  reset(items: readonly Deadline[]): void {
    // A sorted list is a heap.
    this.#items = items.toSorted((one, other) => (this.#goesBefore(one, other) ? -1 : 1));
  }

  push(item: Deadline): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = items[parent];
      if (above === undefined || !this.#goesBefore(item, above)) break;
      items[at] = above;
      at = parent;
    }
    items[at] = item;
  }

  pop(): void {
    const items = this.#items;
    const item = items.pop();
    if (item === undefined || items.length === 0) return;
    let at = 0;
    for (;;) {
      const [left, right] = [items[2 * at + 1], items[2 * at + 2]];
      if (left === undefined) break;
      const isRight = right !== undefined && this.#goesBefore(right, left);
      const below = isRight ? right : left;
      if (!this.#goesBefore(below, item)) break;
      items[at] = below;
      at = 2 * at + (isRight ? 2 : 1);
    }
    items[at] = item;
  }
}
