import { assertClock, systemClock, type Clock } from "../base/clock";
import { LockOptionError } from "../base/errors";
import { Fifo } from "../base/fifo";
import { UNLIMITED } from "../base/limits";
import { isOptions, readOptions } from "../base/options";
import { RecyclingMap } from "../base/recycling-map";
import { formatValue } from "../base/format-value";
import { markAsOurs } from "./checked-store";
import { MemoryShares } from "./memory-shares";
import {
  CLAIM_TIME_MS,
  FENCING_STRIDE,
  MOST_DEAD_AT_ONCE,
  TICKET_TIME_MS,
  type ReleaseReply,
  type ReleaseRequest,
  type Inspection,
  type ReleaseAndEnqueueReply,
  type NotReleased,
  type NotAcquired,
  type EnqueueRequest,
  type RenewReply,
  type RenewRequest,
  type StoreAdmin,
  type StoreListener,
  type StoreQueue,
  type StoreState,
  type WholeStore,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
} from "./port";
import { closedAfter, isHeldBy, permitsDiffer, reservedFor, revokedFrom, SHARED_BY_READERS } from "./value";

interface QueuedWaiter {
  /** The deadline in microseconds on the wall clock. As in Redis, it does not affect the order of the queue. */
  readonly endsAt: number;
  readonly isForReader: boolean;
}

/** The state of one key: its value, and its queue. */
interface Entry {
  held: { value: string; expiresAt: number } | undefined;
  /** The holds of a shared key. If present, `held` is `undefined`. */
  shares: MemoryShares | undefined;
  queue: Fifo<string, QueuedWaiter>;
  /** The number of readers in the queue. */
  readersWaiting: number;
  /** The time at which the whole queue expires if no waiter asks again. On the wall clock, like the deadlines of the waiters. */
  queueEndsAt: number;
}

/**
 * Returns a store that keeps locks in memory, for tests, scripts, and trials. It behaves like the Redis store, but excludes only callers in
 * this process.
 */
export function memoryStore(options: { readonly clock?: Clock } = {}): WholeStore {
  const expected = (): LockOptionError =>
    new LockOptionError(`Expected memoryStore() or memoryStore({ clock }), got ${formatValue(options)}`);
  if (!isOptions(options)) throw expected();
  const { clock = systemClock } = readOptions(options, ["clock"], expected);
  assertClock(clock);
  return new MemoryStore(clock);
}

class MemoryStore implements WholeStore, StoreQueue, StoreAdmin {
  readonly queue: StoreQueue = this;
  readonly admin: StoreAdmin = this;
  /** There is nothing to confirm: no replica without the holds can replace this process. */
  readonly confirmsReplicas = true;
  readonly #clock: Clock;
  readonly #entries = new RecyclingMap<string, Entry>();
  readonly #listeners = new Set<StoreListener>();
  /** The subjects of earlier warnings. */
  readonly #warnings = new Set<string>();
  #lastToken = 0;
  /** Whether the last call of `#first` found more dead waiters in front than it removes. */
  #areDeadLeft = false;
  #sweepAtSize = 1_024;

  constructor(clock: Clock) {
    markAsOurs(this);
    this.#clock = clock;
  }

  state(): StoreState {
    return "up";
  }

  // ---- holds ------------------------------------------------------------------------------------------

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const entry = this.#findOrCreate(request.key);
    const value = valueOf(entry);
    if (value === undefined) return this.#grant(entry, request);
    const { shares } = entry;
    const own = shares?.own(request.requestId, this.#clock.now());
    const { permits = 1 } = request;
    const mayJoin = shares !== undefined && own === undefined && !this.#hasWaiters(entry, permits);
    if (mayJoin && shares.roomFor(permits) > 0) return this.#grant(entry, request);
    return notAcquired(own ?? value, undefined);
  }

  async renew(requests: readonly RenewRequest[]): Promise<readonly RenewReply[]> {
    return requests.map((request): RenewReply => {
      const { key, requestId, lockTimeMs, fencing, count } = request;
      const entry = this.#find(key);
      const now = this.#clock.now();
      const own = entry?.shares?.own(requestId, now);
      if (entry?.shares !== undefined && own === requestId) {
        const released = entry.shares.renew(requestId, now + lockTimeMs, count);
        if (released > 0) this.#wakeUp(this.#first(entry));
        const permits = entry.shares.value === SHARED_BY_READERS ? UNLIMITED : 1;
        return this.#hasWaiters(entry, permits) ? { renewed: true, hasWaiters: true } : { renewed: true };
      }
      if (entry?.held?.value !== requestId) return { renewed: false, holder: own ?? valueOf(entry) };
      entry.held.expiresAt = Math.max(entry.held.expiresAt, now + lockTimeMs);
      return fencing ? { renewed: true, fencingToken: this.#drawToken() } : { renewed: true };
    });
  }

  async release({ key, requestId, cooldownMs }: ReleaseRequest): Promise<ReleaseReply> {
    const entry = this.#find(key);
    if (cooldownMs !== undefined && entry?.held?.value === closedAfter(requestId)) return { released: true };
    if (entry !== undefined && isExclusiveHold(requestId, entry)) {
      if (cooldownMs === undefined) this.#reserveOrFree(key, entry);
      else entry.held = { value: closedAfter(requestId), expiresAt: this.#clock.now() + cooldownMs };
      return { released: true };
    }
    const own = entry?.shares?.own(requestId, this.#clock.now());
    if (entry?.shares === undefined || own === undefined) return { released: false, holder: valueOf(entry) };
    entry.shares.remove(own);
    if (entry.shares.isEmpty) this.#reserveOrFree(key, entry);
    else this.#wakeUp(this.#first(entry));
    return { released: true };
  }

  async revoke({ key, requestId }: ReleaseRequest): Promise<boolean> {
    const entry = this.#find(key);
    if (entry?.held?.value === requestId) entry.held.value = revokedFrom(requestId);
    if (entry?.held?.value === revokedFrom(requestId)) return true;
    const own = entry?.shares?.own(requestId, this.#clock.now());
    if (own === requestId) entry?.shares?.revoke(requestId);
    return own !== undefined;
  }

  async peek(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return keys.map((key) => valueOf(this.#find(key)));
  }

  async inspect(key: string): Promise<Inspection> {
    const entry = this.#find(key);
    const { held, shares } = entry ?? {};
    const now = this.#clock.now();
    const alone = held === undefined ? [] : [{ value: held.value, leftMs: held.expiresAt - now }];
    const wallNow = this.#clock.epochMicroseconds();
    const waiting = [...(entry?.queue.values() ?? [])].filter(({ endsAt }) => wallNow < endsAt).length;
    return { holds: shares?.list(now) ?? alone, waiting };
  }

  /** Does nothing, because nobody outside this process can read its locks. */
  async announce(): Promise<void> {}

  // ---- queue ------------------------------------------------------------------------------------------

  async enqueue(request: EnqueueRequest): Promise<AcquireReply> {
    const { key, requestId, ticket, permits = 1 } = request;
    const entry = this.#findOrCreate(key);
    const own = entry.shares?.own(requestId, this.#clock.now());
    // The command ran twice.
    if (own !== undefined && permits > 1) return notAcquired(own, undefined);
    if (isHeldBy(requestId, entry.held?.value)) return notAcquired(requestId, undefined);
    if (entry.held?.value === reservedFor(ticket)) return this.#grantInTurn(entry, request);
    this.#keepInQueue(entry, ticket, permits === UNLIMITED);
    const hasRoom = permits > 1 && entry.shares !== undefined && entry.shares.roomFor(permits) > 0;
    if (valueOf(entry) === undefined || hasRoom) {
      const mayPass = permits === UNLIMITED && hasRoom && onlyReadersWait(entry);
      const first = mayPass ? ticket : this.#first(entry);
      if (first === ticket) return this.#grantInTurn(entry, request);
      if (hasRoom) this.#wakeUp(first);
      else if (first !== undefined) this.#reserve(entry, first);
    }
    const until = this.#first(entry) === ticket ? this.#freeAt(permits, entry) : undefined;
    const askAgainMs = this.#areDeadLeft ? 1 : undefined;
    const freeInMs = until === undefined ? askAgainMs : until - this.#clock.now();
    const reply = notAcquired(valueOf(entry), freeInMs);
    return permits > 1 && entry.queue.last === ticket ? { ...reply, isLast: true } : reply;
  }

  /** Returns when to ask again. A reader or an exclusive caller waits for the last hold, and any other caller for the first. */
  #freeAt(permits: number, { held, shares }: Entry): number | undefined {
    if (shares === undefined) return held?.expiresAt;
    const isForFirst = permits > 1 && permits !== UNLIMITED && shares.value !== SHARED_BY_READERS;
    return isForFirst ? shares.firstEndsAt : shares.lastEndsAt;
  }

  async dequeue(key: string, ticket: string): Promise<void> {
    const entry = this.#find(key);
    if (entry === undefined) return;
    const wasQueued = dequeue(entry, ticket);
    if (entry.held?.value === reservedFor(ticket)) this.#reserveOrFree(key, entry);
    else if (entry.shares !== undefined && wasQueued) this.#wakeUp(this.#first(entry));
    else if (valueOf(entry) === undefined && entry.queue.size === 0) this.#entries.delete(key);
  }

  async releaseAndEnqueue(
    { key, requestId }: ReleaseRequest,
    request: EnqueueRequest,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    const entry = this.#find(key);
    if (entry === undefined || !isExclusiveHold(requestId, entry)) {
      return { released: false, holder: valueOf(entry) };
    }
    this.#keepInQueue(entry, request.ticket, false);
    const first = this.#first(entry);
    if (first === request.ticket) return { released: true, next: this.#grantInTurn(entry, request) };
    if (first === undefined) entry.held = undefined;
    else this.#reserve(entry, first);
    return { released: true, next: "enqueued" };
  }

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {}

  // ---- internals --------------------------------------------------------------------------------------

  /** Returns the current entry of the key, if there is one. Removes what has expired. */
  #find(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const now = this.#clock.now();
    if (entry.held !== undefined && entry.held.expiresAt <= now) entry.held = undefined;
    entry.shares?.removeOver(now);
    if (entry.shares?.isEmpty === true) entry.shares = undefined;
    if (entry.queue.size > 0 && entry.queueEndsAt <= this.#clock.epochMicroseconds()) {
      entry.queue.clear();
      entry.readersWaiting = 0;
    }
    return entry;
  }

  /** Returns the current entry of the key, for a caller that acquires it or waits for it. Creates a missing entry. */
  #findOrCreate(key: string): Entry {
    const known = this.#find(key);
    if (known !== undefined) return known;
    if (this.#entries.size >= this.#sweepAtSize) this.#sweep();
    const entry: Entry = {
      held: undefined,
      shares: undefined,
      queue: EMPTY_QUEUE,
      readersWaiting: 0,
      queueEndsAt: 0,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  /** Acquires a key that is free or has room. */
  #grant(entry: Entry, request: AcquireRequest): Acquired {
    const { requestId, lockTimeMs, fencing, permits = 1, count } = request;
    const expiresAt = this.#clock.now() + lockTimeMs;
    if (permits === 1) {
      entry.held = { value: requestId, expiresAt };
      return fencing ? { acquired: true, fencingToken: this.#drawToken() } : { acquired: true };
    }
    entry.held = undefined;
    entry.shares ??= new MemoryShares();
    const other = entry.shares.otherLimit(permits);
    if (other !== undefined)
      this.#warn(permitsDiffer(request.key, permits, other), `permits ${permits} ${other}`);
    const granted = entry.shares.join(requestId, expiresAt, permits, count ?? 1);
    return {
      acquired: true,
      ...(count !== undefined && { count: granted }),
      ...(this.#hasWaiters(entry, permits) && { hasWaiters: true }),
    };
  }

  #grantInTurn(entry: Entry, request: EnqueueRequest): Acquired {
    const { ticket, permits = 1 } = request;
    dequeue(entry, ticket);
    const acquired = this.#grant(entry, request);
    if (entry.shares !== undefined && entry.shares.roomFor(permits) > 0) this.#wakeUp(this.#first(entry));
    return acquired;
  }

  /** Reports a warning, unless it has already reported one about this subject. */
  #warn(message: string, subject: string): void {
    if (this.#warnings.has(subject)) return;
    this.#warnings.add(subject);
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  #drawToken(): number {
    const token = Math.max(this.#lastToken + 1, this.#clock.epochMicroseconds());
    this.#lastToken = token + FENCING_STRIDE - 1;
    return token;
  }

  /** Reserves a key without holders for the first waiter, or frees it. */
  #reserveOrFree(key: string, entry: Entry): void {
    const first = this.#first(entry);
    entry.shares = undefined;
    if (first !== undefined) this.#reserve(entry, first);
    else if (this.#areDeadLeft) entry.held = undefined;
    else this.#entries.delete(key);
  }

  #reserve(entry: Entry, ticket: string): void {
    dequeue(entry, ticket);
    entry.shares = undefined;
    entry.held = { value: reservedFor(ticket), expiresAt: this.#clock.now() + CLAIM_TIME_MS };
    this.#wakeUp(ticket);
  }

  #wakeUp(ticket: string | undefined): void {
    if (ticket === undefined) return;
    for (const listener of this.#listeners) listener.onWakeUp(ticket);
  }

  #keepInQueue(entry: Entry, ticket: string, isForReader: boolean): void {
    const now = this.#clock.epochMicroseconds();
    if (entry.queue === EMPTY_QUEUE) entry.queue = new Fifo();
    const wasForReader = entry.queue.get(ticket)?.isForReader === true;
    if (isForReader && !wasForReader) entry.readersWaiting += 1;
    entry.queue.set(ticket, {
      endsAt: now + TICKET_TIME_MS * 1_000,
      isForReader: isForReader || wasForReader,
    });
    entry.queueEndsAt = now + 2 * TICKET_TIME_MS * 1_000;
  }

  /** Whether there is a waiter that a caller with this number of permits must not overtake. */
  #hasWaiters(entry: Entry, permits: number): boolean {
    if (permits === UNLIMITED && onlyReadersWait(entry)) return false;
    return this.#first(entry) !== undefined || this.#areDeadLeft;
  }

  /** Returns the first waiter that asked in time. Removes dead waiters in front of it, at most `MOST_DEAD_AT_ONCE` at a time. */
  #first(entry: Entry): string | undefined {
    const { queue } = entry;
    const now = this.#clock.epochMicroseconds();
    this.#areDeadLeft = false;
    for (let removed = 0; removed < MOST_DEAD_AT_ONCE; removed += 1) {
      const { first } = queue;
      if (first === undefined || now < (queue.get(first)?.endsAt ?? 0)) return first;
      dequeue(entry, first);
    }
    this.#areDeadLeft = queue.size > 0;
    return undefined;
  }

  /** Removes the entries of expired keys. Otherwise keys that are never used again would accumulate. */
  #sweep(): void {
    for (const [key, entry] of this.#entries.entries()) {
      const endsAt = entry.shares?.lastEndsAt ?? entry.held?.expiresAt ?? 0;
      const isHeld = valueOf(entry) !== undefined && this.#clock.now() < endsAt;
      if (!isHeld && !this.#hasWaiters(entry, 1)) this.#entries.delete(key);
    }
    this.#sweepAtSize = Math.max(1_024, 2 * this.#entries.size);
  }
}

/** The shared queue of all keys for which nobody has ever waited, which are most keys. It stays empty. */
const EMPTY_QUEUE = new Fifo<string, QueuedWaiter>();

/** Returns whether the ticket was in the queue. */
function dequeue(entry: Entry, ticket: string): boolean {
  if (entry.queue.get(ticket)?.isForReader === true) entry.readersWaiting -= 1;
  return entry.queue.delete(ticket);
}

/** Whether the queue has no waiters but readers. A reader may overtake these, since all readers may hold the key together. */
function onlyReadersWait({ queue, readersWaiting }: Entry): boolean {
  return readersWaiting === queue.size;
}

/** Whether the request holds the key exclusively. Its hold may be revoked. */
function isExclusiveHold(requestId: string, { held }: Entry): boolean {
  return held?.value === requestId || held?.value === revokedFrom(requestId);
}

function notAcquired(holder: string | undefined, freeInMs: number | undefined): NotAcquired {
  return { acquired: false, holder, freeInMs };
}

/** Returns the value of the key, or `undefined` if it is free. */
function valueOf(entry: Entry | undefined): string | undefined {
  return entry?.shares?.value ?? entry?.held?.value;
}
