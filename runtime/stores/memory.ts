import { assertClock, systemClock, type Clock } from "../clock";
import { LockOptionError } from "../errors";
import { Roster } from "../roster";
import { isOptions, shown } from "../shown";
import {
  CLAIM_TIME_MS,
  FENCING_STRIDE,
  PLACE_TIME_MS,
  type AcquireReply,
  type AcquireRequest,
  type Granted,
  type Released,
  type RenewReply,
  type RenewRequest,
  type Store,
} from "../store";

/** What is known of one key: who holds it, and who waits for it, in order. */
interface Entry {
  holder: { requestId: string; expiresAt: number; fencingToken: number | undefined } | undefined;
  /** Until when each of those who wait has its place. */
  readonly queue: Map<string, number>;
}

/**
 * Locks that live in this process: for tests, for scripts, and for trying things out with no server at all.
 * It keeps the same contract as the Redis store, but excludes nobody outside this process.
 */
export function memoryStore(options: { readonly clock?: Clock } = {}): Store {
  const unknown = isOptions(options) ? Object.keys(options).find((name) => name !== "clock") : "";
  if (unknown !== undefined) {
    throw new LockOptionError(`Expected memoryStore() or memoryStore({ clock }), got ${shown(options)}`);
  }
  const { clock = systemClock } = options;
  assertClock(clock);
  return new MemoryStore(clock);
}

class MemoryStore implements Store {
  readonly #clock: Clock;
  readonly #entries = new Roster<string, Entry>();
  readonly #listeners = new Set<(requestId: string | undefined) => void>();
  #lastToken = 0;
  #sweepAtSize = 1_024;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const entry = this.#entry(request.key);
    const { holder } = entry;
    if (holder === undefined) return this.#give(entry, request);
    if (holder.requestId === request.requestId) return this.#grant(holder, request, false);
    return { granted: false, freeInMs: holder.expiresAt - this.#clock.now() };
  }

  async wait(request: AcquireRequest): Promise<AcquireReply> {
    const { key, requestId } = request;
    const entry = this.#entry(key);
    if (entry.holder?.requestId === requestId) return this.#give(entry, request); // Claimed.
    entry.queue.set(requestId, this.#clock.now() + PLACE_TIME_MS);
    if (entry.holder === undefined) {
      const first = this.#takeFirst(entry);
      if (first === requestId) return this.#give(entry, request);
      this.#offer(entry, first);
    }
    const isNext = this.#first(entry) === requestId;
    const freeInMs = isNext && entry.holder ? entry.holder.expiresAt - this.#clock.now() : undefined;
    return { granted: false, freeInMs };
  }

  async leave(key: string, requestId: string): Promise<void> {
    const entry = this.#known(key);
    if (entry === undefined) return;
    entry.queue.delete(requestId);
    if (entry.holder?.requestId === requestId) this.#pass(key, entry);
    else if (entry.holder === undefined && entry.queue.size === 0) this.#entries.delete(key);
  }

  async renew(holders: readonly RenewRequest[]): Promise<RenewReply[]> {
    return holders.map(({ key, requestId, lockTimeMs }) => {
      const holder = this.#known(key)?.holder;
      if (holder === undefined) return "expired";
      if (holder.requestId !== requestId) return "stolen";
      holder.expiresAt = this.#clock.now() + lockTimeMs;
      return "renewed";
    });
  }

  async release(key: string, requestId: string, next?: AcquireRequest): Promise<Released> {
    const entry = this.#known(key);
    if (entry?.holder === undefined) return { outcome: "expired" };
    if (entry.holder.requestId !== requestId) return { outcome: "stolen" };
    if (next !== undefined) entry.queue.set(next.requestId, this.#clock.now() + PLACE_TIME_MS);
    if (next !== undefined && this.#first(entry) === next.requestId) {
      return { outcome: "released", handedOn: this.#give(entry, next) };
    }
    this.#pass(key, entry);
    return next === undefined ? { outcome: "released" } : { outcome: "released", isQueued: true };
  }

  listen(onHint: (requestId: string | undefined) => void): () => void {
    this.#listeners.add(onHint);
    return () => this.#listeners.delete(onHint);
  }

  async close(): Promise<void> {}

  /** The key as it is now, if anything is known of it. */
  #known(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    const expiresAt = entry?.holder?.expiresAt ?? Infinity;
    if (entry !== undefined && expiresAt <= this.#clock.now()) entry.holder = undefined;
    return entry;
  }

  /** The same for one who takes the key, or waits for it. */
  #entry(key: string): Entry {
    const known = this.#known(key);
    if (known !== undefined) return known;
    if (this.#entries.size >= this.#sweepAtSize) this.#sweep();
    const entry: Entry = { holder: undefined, queue: new Map() };
    this.#entries.set(key, entry);
    return entry;
  }

  #give(entry: Entry, request: AcquireRequest): Granted {
    const { requestId, lockTimeMs, fencing } = request;
    entry.queue.delete(requestId);
    const expiresAt = this.#clock.now() + lockTimeMs;
    entry.holder = { requestId, expiresAt, fencingToken: fencing ? this.#drawToken() : undefined };
    return this.#grant(entry.holder, request, true);
  }

  #grant(holder: NonNullable<Entry["holder"]>, { fencing }: AcquireRequest, fresh: boolean): Granted {
    if (!fencing) return { granted: true, fresh };
    return { granted: true, fresh, fencingToken: (holder.fencingToken ??= this.#drawToken()) };
  }

  #drawToken(): number {
    const token = Math.max(this.#lastToken + 1, this.#clock.epochMicroseconds());
    this.#lastToken = token + FENCING_STRIDE - 1;
    return token;
  }

  /** The holder goes: the first who waits is offered the lock. */
  #pass(key: string, entry: Entry): void {
    const first = this.#takeFirst(entry);
    if (first === undefined) this.#entries.delete(key);
    else this.#offer(entry, first);
  }

  #offer(entry: Entry, requestId: string | undefined): void {
    if (requestId === undefined) return;
    const expiresAt = this.#clock.now() + CLAIM_TIME_MS;
    entry.holder = { requestId, expiresAt, fencingToken: undefined };
    for (const onHint of this.#listeners) onHint(requestId);
  }

  #takeFirst(entry: Entry): string | undefined {
    const first = this.#first(entry);
    if (first !== undefined) entry.queue.delete(first);
    return first;
  }

  /** The first who was heard of in time. Those who were not lose their places. */
  #first({ queue }: Entry): string | undefined {
    for (const [requestId, placeEndsAt] of queue) {
      if (this.#clock.now() < placeEndsAt) return requestId;
      queue.delete(requestId);
    }
    return undefined;
  }

  /** Expired keys that nobody asks for again must not pile up. */
  #sweep(): void {
    for (const [key, entry] of this.#entries.entries()) {
      const isHeld = entry.holder !== undefined && this.#clock.now() < entry.holder.expiresAt;
      if (!isHeld && this.#first(entry) === undefined) this.#entries.delete(key);
    }
    this.#sweepAtSize = Math.max(1_024, 2 * this.#entries.size);
  }
}
