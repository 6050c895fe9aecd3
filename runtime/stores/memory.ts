import { assertClock, systemClock, type Clock } from "../clock";
import { LockOptionError } from "../errors";
import { Fifo } from "../fifo";
import { UNLIMITED } from "../limits";
import { isOptions, readOptions } from "../options";
import { RecyclingMap } from "../recycling-map";
import { formatValue } from "../format-value";
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
  type Store,
  type StoreListener,
  type Acquired,
  type AcquireReply,
  type AcquireRequest,
} from "./port";
import { closedAfter, isHeldBy, permitsDiffer, reservedFor, revokedFrom, SHARED_BY_READERS } from "./value";

interface Place {
  /** In microseconds on the wall clock. As in Redis, it does not affect the order of the queue. */
  readonly endsAt: number;
  readonly isForReader: boolean;
}

/** What is known of one key: what it holds, and who waits for it, in order. */
interface Entry {
  held: { value: string; expiresAt: number } | undefined;
  /** Those who hold it together: then nothing else is held. */
  shares: MemoryShares | undefined;
  queue: Fifo<string, Place>;
  /** How many of the places in the queue are for readers. */
  readersWaiting: number;
  /** When the whole queue ends if nobody in it is heard of, as the places do. */
  queueEndsAt: number;
}

/**
 * Locks that live in this process: for tests, for scripts, and for trying things out with no server at all.
 * It keeps the same contract as the Redis store, but excludes nobody outside this process.
 */
export function memoryStore(options: { readonly clock?: Clock } = {}): Store {
  const expected = (): LockOptionError =>
    new LockOptionError(`Expected memoryStore() or memoryStore({ clock }), got ${formatValue(options)}`);
  if (!isOptions(options)) throw expected();
  const { clock = systemClock } = readOptions(options, ["clock"], expected);
  assertClock(clock);
  return new MemoryStore(clock);
}

class MemoryStore implements Store {
  /** Nothing can come in the place of this process that lacks what it had. */
  readonly confirmsReplicas = true;
  readonly #clock: Clock;
  readonly #entries = new RecyclingMap<string, Entry>();
  readonly #listeners = new Set<StoreListener>();
  readonly #warnings = new Set<string>();
  #lastToken = 0;
  /** Whether the last look at a queue found more dead waiters in front than it removes. */
  #areDeadLeft = false;
  #sweepAtSize = 1_024;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  // ---- who holds --------------------------------------------------------------------------------------

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const entry = this.#entry(request.key);
    const value = valueOf(entry);
    if (value === undefined) return this.#take(entry, request);
    const { shares } = entry;
    const own = shares?.own(request.requestId, this.#clock.now());
    const { permits = 1 } = request;
    const mayJoin = shares !== undefined && own === undefined && !this.#somebodyWaits(entry, permits);
    if (mayJoin && shares.roomFor(permits) > 0) return this.#take(entry, request);
    return notTaken(own ?? value, undefined);
  }

  async renew(requests: readonly RenewRequest[]): Promise<readonly RenewReply[]> {
    return requests.map((request): RenewReply => {
      const { key, requestId, lockTimeMs, fencing, count } = request;
      const entry = this.#known(key);
      const now = this.#clock.now();
      const own = entry?.shares?.own(requestId, now);
      if (entry?.shares !== undefined && own === requestId) {
        const given = entry.shares.renew(requestId, now + lockTimeMs, count);
        if (given > 0) this.#hint(this.#first(entry));
        const permits = entry.shares.value === SHARED_BY_READERS ? UNLIMITED : 1;
        return this.#somebodyWaits(entry, permits)
          ? { renewed: true, somebodyWaits: true }
          : { renewed: true };
      }
      if (entry?.held?.value !== requestId) return { renewed: false, holder: own ?? valueOf(entry) };
      entry.held.expiresAt = Math.max(entry.held.expiresAt, now + lockTimeMs);
      return fencing ? { renewed: true, fencingToken: this.#drawToken() } : { renewed: true };
    });
  }

  async release({ key, requestId, cooldownMs }: ReleaseRequest): Promise<ReleaseReply> {
    const entry = this.#known(key);
    if (cooldownMs !== undefined && entry?.held?.value === closedAfter(requestId)) return { released: true };
    if (entry !== undefined && isAlone(requestId, entry)) {
      if (cooldownMs === undefined) this.#passOn(key, entry);
      else entry.held = { value: closedAfter(requestId), expiresAt: this.#clock.now() + cooldownMs };
      return { released: true };
    }
    const own = entry?.shares?.own(requestId, this.#clock.now());
    if (entry?.shares === undefined || own === undefined) return { released: false, holder: valueOf(entry) };
    entry.shares.remove(own);
    if (entry.shares.isEmpty) this.#passOn(key, entry);
    else this.#hint(this.#first(entry));
    return { released: true };
  }

  async revoke({ key, requestId }: ReleaseRequest): Promise<boolean> {
    const entry = this.#known(key);
    if (entry?.held?.value === requestId) entry.held.value = revokedFrom(requestId);
    if (entry?.held?.value === revokedFrom(requestId)) return true;
    const own = entry?.shares?.own(requestId, this.#clock.now());
    if (own === requestId) entry?.shares?.revoke(requestId);
    return own !== undefined;
  }

  async peek(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return keys.map((key) => valueOf(this.#known(key)));
  }

  async inspect(key: string): Promise<Inspection> {
    const entry = this.#known(key);
    const { held, shares } = entry ?? {};
    const now = this.#clock.now();
    const alone = held === undefined ? [] : [{ value: held.value, leftMs: held.expiresAt - now }];
    const wall = this.#clock.epochMicroseconds();
    const waiting = [...(entry?.queue.values() ?? [])].filter(({ endsAt }) => wall < endsAt).length;
    return { holds: shares?.list(now) ?? alone, waiting };
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  async enqueue(request: EnqueueRequest): Promise<AcquireReply> {
    const { key, requestId, ticket, permits = 1 } = request;
    const entry = this.#entry(key);
    const own = entry.shares?.own(requestId, this.#clock.now());
    // Carried out twice.
    if (own !== undefined && permits > 1) return notTaken(own, undefined);
    if (isHeldBy(requestId, entry.held?.value)) return notTaken(requestId, undefined);
    if (entry.held?.value === reservedFor(ticket)) return this.#takeInTurn(entry, request);
    this.#keepPlace(entry, ticket, permits === UNLIMITED);
    const hasRoom = permits > 1 && entry.shares !== undefined && entry.shares.roomFor(permits) > 0;
    if (valueOf(entry) === undefined || hasRoom) {
      const mayPass = permits === UNLIMITED && hasRoom && onlyReadersWait(entry);
      const first = mayPass ? ticket : this.#first(entry);
      if (first === ticket) return this.#takeInTurn(entry, request);
      if (hasRoom) this.#hint(first);
      else if (first !== undefined) this.#reserve(entry, first);
    }
    const until = this.#first(entry) === ticket ? this.#freeAt(permits, entry) : undefined;
    const askAgainMs = this.#areDeadLeft ? 1 : undefined;
    const freeInMs = until === undefined ? askAgainMs : until - this.#clock.now();
    const reply = notTaken(valueOf(entry), freeInMs);
    return permits > 1 && entry.queue.last === ticket ? { ...reply, isLast: true } : reply;
  }

  /** When to ask again: one that would be alone, or reads, waits for the last hold, any other for the first. */
  #freeAt(permits: number, { held, shares }: Entry): number | undefined {
    if (shares === undefined) return held?.expiresAt;
    const isForFirst = permits > 1 && permits !== UNLIMITED && shares.value !== SHARED_BY_READERS;
    return isForFirst ? shares.firstEndsAt : shares.lastEndsAt;
  }

  async dequeue(key: string, place: string): Promise<void> {
    const entry = this.#known(key);
    if (entry === undefined) return;
    const hadPlace = dequeue(entry, place);
    if (entry.held?.value === reservedFor(place)) this.#passOn(key, entry);
    else if (entry.shares !== undefined && hadPlace) this.#hint(this.#first(entry));
    else if (valueOf(entry) === undefined && entry.queue.size === 0) this.#entries.delete(key);
  }

  async releaseAndEnqueue(
    { key, requestId }: ReleaseRequest,
    request: EnqueueRequest,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    const entry = this.#known(key);
    if (entry === undefined || !isAlone(requestId, entry)) {
      return { released: false, holder: valueOf(entry) };
    }
    this.#keepPlace(entry, request.ticket, false);
    const first = this.#first(entry);
    if (first === request.ticket) return { released: true, next: this.#takeInTurn(entry, request) };
    if (first === undefined) entry.held = undefined;
    else this.#reserve(entry, first);
    return { released: true, next: "enqueued" };
  }

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async close(): Promise<void> {}

  // ---- what it is made of -----------------------------------------------------------------------------

  /** The key as it is now, if anything is known of it. */
  #known(key: string): Entry | undefined {
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

  /** The same for one who takes the key, or waits for it. */
  #entry(key: string): Entry {
    const known = this.#known(key);
    if (known !== undefined) return known;
    if (this.#entries.size >= this.#sweepAtSize) this.#sweep();
    const entry: Entry = {
      held: undefined,
      shares: undefined,
      queue: NOBODY,
      readersWaiting: 0,
      queueEndsAt: 0,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  /** Of a key that is free, or has room for it. */
  #take(entry: Entry, request: AcquireRequest): Acquired {
    const { requestId, lockTimeMs, fencing, permits = 1, count } = request;
    const expiresAt = this.#clock.now() + lockTimeMs;
    if (permits === 1) {
      entry.held = { value: requestId, expiresAt };
      return fencing ? { acquired: true, fencingToken: this.#drawToken() } : { acquired: true };
    }
    entry.held = undefined;
    entry.shares ??= new MemoryShares();
    const other = entry.shares.otherLimit(permits);
    if (other !== undefined) this.#warn(permitsDiffer(permits, other));
    const got = entry.shares.join(requestId, expiresAt, permits, count ?? 1);
    return {
      acquired: true,
      ...(count !== undefined && { count: got }),
      ...(this.#somebodyWaits(entry, permits) && { somebodyWaits: true }),
    };
  }

  #takeInTurn(entry: Entry, request: EnqueueRequest): Acquired {
    const { ticket, permits = 1 } = request;
    dequeue(entry, ticket);
    const taken = this.#take(entry, request);
    if (entry.shares !== undefined && entry.shares.roomFor(permits) > 0) this.#hint(this.#first(entry));
    return taken;
  }

  #warn(message: string): void {
    if (this.#warnings.has(message)) return;
    this.#warnings.add(message);
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  #drawToken(): number {
    const token = Math.max(this.#lastToken + 1, this.#clock.epochMicroseconds());
    this.#lastToken = token + FENCING_STRIDE - 1;
    return token;
  }

  /** Nobody holds the key any more: it is kept for the first who waits, or free. */
  #passOn(key: string, entry: Entry): void {
    const first = this.#first(entry);
    entry.shares = undefined;
    if (first !== undefined) this.#reserve(entry, first);
    else if (this.#areDeadLeft) entry.held = undefined;
    else this.#entries.delete(key);
  }

  #reserve(entry: Entry, place: string): void {
    dequeue(entry, place);
    entry.shares = undefined;
    entry.held = { value: reservedFor(place), expiresAt: this.#clock.now() + CLAIM_TIME_MS };
    this.#hint(place);
  }

  #hint(place: string | undefined): void {
    if (place === undefined) return;
    for (const listener of this.#listeners) listener.onWakeUp(place);
  }

  #keepPlace(entry: Entry, place: string, isForReader: boolean): void {
    const now = this.#clock.epochMicroseconds();
    if (entry.queue === NOBODY) entry.queue = new Fifo();
    const wasForReader = entry.queue.get(place)?.isForReader === true;
    if (isForReader && !wasForReader) entry.readersWaiting += 1;
    entry.queue.set(place, {
      endsAt: now + TICKET_TIME_MS * 1_000,
      isForReader: isForReader || wasForReader,
    });
    entry.queueEndsAt = now + 2 * TICKET_TIME_MS * 1_000;
  }

  /** Whether somebody waits whom such a caller must not pass. */
  #somebodyWaits(entry: Entry, permits: number): boolean {
    if (permits === UNLIMITED && onlyReadersWait(entry)) return false;
    return this.#first(entry) !== undefined || this.#areDeadLeft;
  }

  /** The first who was heard of in time. Those who were not lose their places: a few of them at each look. */
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

  /** Expired keys that nobody asks for again must not pile up. */
  #sweep(): void {
    for (const [key, entry] of this.#entries.entries()) {
      const endsAt = entry.shares?.lastEndsAt ?? entry.held?.expiresAt ?? 0;
      const isHeld = valueOf(entry) !== undefined && this.#clock.now() < endsAt;
      if (!isHeld && !this.#somebodyWaits(entry, 1)) this.#entries.delete(key);
    }
    this.#sweepAtSize = Math.max(1_024, 2 * this.#entries.size);
  }
}

/** The queue of all keys for which nobody has ever waited: most of them. Nobody is put into it. */
const NOBODY = new Fifo<string, Place>();

/** Returns whether the place was in the queue. */
function dequeue(entry: Entry, place: string): boolean {
  if (entry.queue.get(place)?.isForReader === true) entry.readersWaiting -= 1;
  return entry.queue.delete(place);
}

/** Readers may all hold the key together, so a reader may pass them. */
function onlyReadersWait({ queue, readersWaiting }: Entry): boolean {
  return readersWaiting === queue.size;
}

/** Whether it has the key alone, revoked or not. */
function isAlone(requestId: string, { held }: Entry): boolean {
  return held?.value === requestId || held?.value === revokedFrom(requestId);
}

function notTaken(holder: string | undefined, freeInMs: number | undefined): NotAcquired {
  return { acquired: false, holder, freeInMs };
}

/** What the key holds; `undefined`: it is free. */
function valueOf(entry: Entry | undefined): string | undefined {
  return entry?.shares?.value ?? entry?.held?.value;
}
