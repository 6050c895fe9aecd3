import { assertClock, systemClock, type Clock } from "../clock";
import { LockOptionError } from "../errors";
import { isOptions, readOptions } from "../options";
import { Roster } from "../roster";
import { shown } from "../shown";
import {
  CLAIM_TIME_MS,
  FENCING_STRIDE,
  PLACE_TIME_MS,
  type DropReply,
  type DropRequest,
  type Inspection,
  type NextReply,
  type NotDropped,
  type NotTaken,
  type PlaceRequest,
  type RenewReply,
  type RenewRequest,
  type Store,
  type StoreListener,
  type Taken,
  type TakeReply,
  type TakeRequest,
} from "./port";
import {
  closedAfter,
  isHeldBy,
  isShared,
  permitsDiffer,
  reservedFor,
  revokedFrom,
  sharedBy,
  sharesIn,
  type Share,
} from "./value";

/** What is known of one key: what it holds, and who waits for it, in order. */
interface Entry {
  held: { value: string; expiresAt: number } | undefined;
  /** When each of the places ends, in microseconds on the wall clock: as in Redis, it has no say in their order. */
  queue: Map<string, number>;
  /** When the whole queue ends if nobody in it is heard of, as the places do. */
  queueEndsAt: number;
}

/**
 * Locks that live in this process: for tests, for scripts, and for trying things out with no server at all.
 * It keeps the same contract as the Redis store, but excludes nobody outside this process.
 */
export function memoryStore(options: { readonly clock?: Clock } = {}): Store {
  const expected = (): LockOptionError =>
    new LockOptionError(`Expected memoryStore() or memoryStore({ clock }), got ${shown(options)}`);
  if (!isOptions(options)) throw expected();
  const { clock = systemClock } = readOptions(options, ["clock"], expected);
  assertClock(clock);
  return new MemoryStore(clock);
}

class MemoryStore implements Store {
  /** Nothing can come in the place of this process that lacks what it had. */
  readonly confirmsReplicas = true;
  readonly #clock: Clock;
  readonly #entries = new Roster<string, Entry>();
  readonly #listeners = new Set<StoreListener>();
  readonly #warnings = new Set<string>();
  #lastToken = 0;
  #sweepAtSize = 1_024;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  // ---- who holds --------------------------------------------------------------------------------------

  async take(request: TakeRequest): Promise<TakeReply> {
    const entry = this.#entry(request.key);
    if (entry.held === undefined) return this.#take(entry, request);
    const others = this.#roomFor(request, entry.held.value);
    if (others !== undefined && this.#first(entry) === undefined) return this.#share(entry, others, request);
    return notTaken(entry.held.value, undefined);
  }

  async renew(requests: readonly RenewRequest[]): Promise<readonly RenewReply[]> {
    return requests.map(({ key, requestId, lockTimeMs, fencing }) => {
      const held = this.#known(key)?.held;
      const until = this.#clock.now() + lockTimeMs;
      const [share] = this.#shareOf(requestId, held?.value);
      if (held !== undefined && share?.requestId === requestId) {
        const expiresAt = Math.max(share.expiresAt, until);
        const renewed = { ...share, expiresAt };
        const all = this.#sharesIn(held.value) ?? [];
        held.value = sharedBy(all.map((one) => (one.requestId === requestId ? renewed : one)));
      } else if (held?.value !== requestId) {
        return { renewed: false, holder: held?.value };
      }
      held.expiresAt = Math.max(held.expiresAt, until);
      return fencing ? { renewed: true, fencingToken: this.#drawToken() } : { renewed: true };
    });
  }

  async drop({ key, requestId, closedForMs }: DropRequest): Promise<DropReply> {
    const entry = this.#known(key);
    if (closedForMs !== undefined && entry?.held?.value === closedAfter(requestId)) return { dropped: true };
    if (entry !== undefined && isAlone(requestId, entry)) {
      if (closedForMs === undefined) this.#passOn(key, entry);
      else entry.held = { value: closedAfter(requestId), expiresAt: this.#clock.now() + closedForMs };
      return { dropped: true };
    }
    const [share, others] = this.#shareOf(requestId, entry?.held?.value);
    if (entry === undefined || share === undefined) return { dropped: false, holder: entry?.held?.value };
    if (others.length === 0) {
      this.#passOn(key, entry);
    } else {
      entry.held = heldBy(others);
      this.#hint(this.#first(entry));
    }
    return { dropped: true };
  }

  async revoke({ key, requestId }: DropRequest): Promise<boolean> {
    const held = this.#known(key)?.held;
    const revoked = revokedFrom(requestId);
    if (held === undefined) return false;
    if (held.value === requestId) held.value = revoked;
    const shares = this.#sharesIn(held.value);
    if (shares === undefined) return held.value === revoked;
    held.value = sharedBy(
      shares.map((share) => (share.requestId === requestId ? { ...share, requestId: revoked } : share)),
    );
    return shares.some((share) => share.requestId === requestId || share.requestId === revoked);
  }

  async look(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return keys.map((key) => {
      const value = this.#known(key)?.held?.value;
      const shares = value === undefined ? undefined : this.#sharesIn(value);
      return shares === undefined ? value : sharedBy(shares);
    });
  }

  async inspect(key: string): Promise<Inspection> {
    const entry = this.#known(key);
    const { held } = entry ?? {};
    const now = this.#clock.now();
    const shares = held && this.#sharesIn(held.value);
    const alone = held === undefined ? [] : [{ value: held.value, leftMs: held.expiresAt - now }];
    const holds = shares?.map(({ requestId, expiresAt }) => ({ value: requestId, leftMs: expiresAt - now }));
    const wall = this.#clock.epochMicroseconds();
    const waiting = [...(entry?.queue.values() ?? [])].filter((endsAt) => wall < endsAt).length;
    return { holds: holds ?? alone, waiting };
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  async place(request: PlaceRequest): Promise<TakeReply> {
    const { key, requestId, place } = request;
    const entry = this.#entry(key);
    const { value } = entry.held ?? {};
    if (isHeldBy(requestId, value) || this.#shareOf(requestId, value)[0] !== undefined) {
      return notTaken(value, undefined); // Carried out twice.
    }
    if (entry.held?.value === reservedFor(place)) return this.#takeInTurn(entry, request);
    this.#keepPlace(entry, place);
    if (entry.held === undefined) {
      const first = this.#first(entry) ?? place;
      if (first === place) return this.#takeInTurn(entry, request);
      this.#reserve(entry, first);
    } else {
      const others = this.#roomFor(request, entry.held.value);
      const first = this.#first(entry);
      if (others !== undefined && first === place) return this.#takeInTurn(entry, request, others);
      if (others !== undefined) this.#hint(first);
    }
    const isFirst = this.#first(entry) === place;
    const until = isFirst && entry.held ? this.#freeAt(request, entry.held) : undefined;
    return notTaken(entry.held?.value, until === undefined ? undefined : until - this.#clock.now());
  }

  /** When there is room for the one who asks, if nobody leaves before and nobody comes. */
  #freeAt({ permits = 1 }: TakeRequest, { value, expiresAt }: NonNullable<Entry["held"]>): number {
    const shares = this.#sharesIn(value);
    if (shares === undefined) return expiresAt;
    const ends = shares.map((share) => share.expiresAt).toSorted((one, other) => one - other);
    return ends[shares.length - most(permits, shares)] ?? expiresAt;
  }

  async leave(key: string, place: string): Promise<void> {
    const entry = this.#known(key);
    if (entry === undefined) return;
    const hadPlace = entry.queue.delete(place);
    if (entry.held?.value === reservedFor(place)) this.#passOn(key, entry);
    else if (entry.held !== undefined && hadPlace && isShared(entry.held.value))
      this.#hint(this.#first(entry));
    else if (entry.held === undefined && entry.queue.size === 0) this.#entries.delete(key);
  }

  async next({ key, requestId }: DropRequest, request: PlaceRequest): Promise<NextReply | NotDropped> {
    const entry = this.#known(key);
    if (entry === undefined || !isAlone(requestId, entry)) {
      return { dropped: false, holder: entry?.held?.value };
    }
    this.#keepPlace(entry, request.place);
    const first = this.#first(entry) ?? request.place;
    if (first === request.place) return { dropped: true, next: this.#takeInTurn(entry, request) };
    this.#reserve(entry, first);
    return { dropped: true, next: "placed" };
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
    if (entry.held !== undefined && entry.held.expiresAt <= this.#clock.now()) entry.held = undefined;
    if (entry.queue.size > 0 && entry.queueEndsAt <= this.#clock.epochMicroseconds()) entry.queue.clear();
    return entry;
  }

  /** The same for one who takes the key, or waits for it. */
  #entry(key: string): Entry {
    const known = this.#known(key);
    if (known !== undefined) return known;
    if (this.#entries.size >= this.#sweepAtSize) this.#sweep();
    const entry: Entry = { held: undefined, queue: NOBODY, queueEndsAt: 0 };
    this.#entries.set(key, entry);
    return entry;
  }

  #take(entry: Entry, request: TakeRequest, others: readonly Share[] = []): Taken {
    const { requestId, lockTimeMs, fencing, permits = 1 } = request;
    if (permits > 1) return this.#share(entry, others, request);
    entry.held = { value: requestId, expiresAt: this.#clock.now() + lockTimeMs };
    return fencing ? { taken: true, fencingToken: this.#drawToken() } : { taken: true };
  }

  #takeInTurn(entry: Entry, request: PlaceRequest, others: readonly Share[] = []): Taken {
    const { place, permits = 1 } = request;
    entry.queue.delete(place);
    const taken = this.#take(entry, request, others);
    if (others.length + 1 < most(permits, others)) this.#hint(this.#first(entry));
    return taken;
  }

  // Who holds a key together with others.

  #share(entry: Entry, others: readonly Share[], { requestId, lockTimeMs, permits = 1 }: TakeRequest): Taken {
    const expiresAt = this.#clock.now() + lockTimeMs;
    entry.held = heldBy([...others, { requestId, expiresAt, permits }]);
    const told = twoNumbers(permits, others);
    if (told !== undefined) this.#warn(told);
    return { taken: true };
  }

  /** Those beside whom it may hold the key, which is not free; `undefined` where it may not. */
  #roomFor({ requestId, permits = 1 }: TakeRequest, value: string): Share[] | undefined {
    const others = this.#sharesIn(value);
    if (others === undefined || this.#shareOf(requestId, value)[0] !== undefined) return undefined;
    return others.length < most(permits, others) ? others : undefined;
  }

  /** The one with the `requestId` among those who hold the key together, revoked or not, if it is there, and the others. */
  #shareOf(requestId: string, value: string | undefined): [Share | undefined, Share[]] {
    const shares = value === undefined ? undefined : this.#sharesIn(value);
    if (shares === undefined) return [undefined, []];
    const revoked = revokedFrom(requestId);
    const share = shares.find((one) => one.requestId === requestId || one.requestId === revoked);
    return [share, shares.filter((one) => one !== share)];
  }

  /** Those whose time is not over. */
  #sharesIn(value: string): Share[] | undefined {
    return sharesIn(value)?.filter(({ expiresAt }) => this.#clock.now() < expiresAt);
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
    if (first === undefined) this.#entries.delete(key);
    else this.#reserve(entry, first);
  }

  #reserve(entry: Entry, place: string): void {
    entry.queue.delete(place);
    entry.held = { value: reservedFor(place), expiresAt: this.#clock.now() + CLAIM_TIME_MS };
    this.#hint(place);
  }

  #hint(place: string | undefined): void {
    if (place === undefined) return;
    for (const listener of this.#listeners) listener.onHint(place);
  }

  #keepPlace(entry: Entry, place: string): void {
    const now = this.#clock.epochMicroseconds();
    if (entry.queue === NOBODY) entry.queue = new Map();
    entry.queue.set(place, now + PLACE_TIME_MS * 1_000);
    entry.queueEndsAt = now + 2 * PLACE_TIME_MS * 1_000;
  }

  /** The first who was heard of in time. Those who were not lose their places. */
  #first({ queue }: Entry): string | undefined {
    for (const [place, endsAt] of queue) {
      if (this.#clock.epochMicroseconds() < endsAt) return place;
      queue.delete(place);
    }
    return undefined;
  }

  /** Expired keys that nobody asks for again must not pile up. */
  #sweep(): void {
    for (const [key, entry] of this.#entries.entries()) {
      const isHeld = entry.held !== undefined && this.#clock.now() < entry.held.expiresAt;
      if (!isHeld && this.#first(entry) === undefined) this.#entries.delete(key);
    }
    this.#sweepAtSize = Math.max(1_024, 2 * this.#entries.size);
  }
}

/** The queue of all keys for which nobody has ever waited: most of them. Nobody is put into it. */
const NOBODY = new Map<string, number>();

/** Whether it has the key alone, revoked or not. */
function isAlone(requestId: string, { held }: Entry): boolean {
  return held?.value === requestId || held?.value === revokedFrom(requestId);
}

function notTaken(holder: string | undefined, freeInMs: number | undefined): NotTaken {
  return { taken: false, holder, freeInMs };
}

function heldBy(shares: readonly Share[]): NonNullable<Entry["held"]> {
  return { value: sharedBy(shares), expiresAt: Math.max(...shares.map(({ expiresAt }) => expiresAt)) };
}

/** How many may hold a key at once: who asks, and those who hold it. */
function most(permits: number, others: readonly Share[]): number {
  return Math.min(permits, ...others.map((share) => share.permits));
}

function twoNumbers(permits: number, others: readonly Share[]): string | undefined {
  const other = others.find((share) => share.permits !== permits);
  return other && permitsDiffer(permits, other.permits);
}
