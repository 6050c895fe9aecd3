import type { Clock } from "../../runtime/clock";
import { memoryStore } from "../../runtime/stores/memory";
import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  Store,
  AcquireReply,
  AcquireRequest,
} from "../../runtime/stores/port";
import { isClosed, isReserved, isRevokedFrom, reservedFor } from "../../runtime/stores/value";
import type { Tamper } from "./tampering";
import type { Truth } from "./truth";

/** As much as any command needs: the server does not look at it. */
const TIMEOUT_MS = 1_000;

/** The time of the world that the server is in. */
export type WorldTime = Pick<Clock, "now" | "after" | "epochMicroseconds">;

/**
 * The server of the world: the memory store, whose agreement with Redis is a test of its own. It may stand
 * still, lose everything, and have its clock set; all that it says is noted down as the truth.
 */
export class SimulatedServer {
  isDown = false;
  readonly #world: WorldTime;
  readonly #truth: Truth;
  readonly #tamper: Tamper;
  readonly #onCarriedOut: () => void;
  readonly #listeners = new Set<(place: string) => void>();
  readonly #clock: Clock;
  #store: Store;
  /** Those that were given while a command was carried out, and what the key held then. */
  #hints: { readonly place: string; readonly seen: ReturnType<Store["peek"]> }[] = [];
  #jumpMs = 0;
  /** What arrived while it stood still. */
  #backlog: (() => void)[] | undefined;

  /** @param onCarriedOut called after each command that was carried out */
  constructor(
    world: WorldTime,
    truthOf: (now: () => number) => Truth,
    tamper: Tamper,
    onCarriedOut: () => void,
  ) {
    this.#world = world;
    this.#tamper = tamper;
    this.#onCarriedOut = onCarriedOut;
    this.#clock = {
      now: () => world.now() + this.#jumpMs,
      epochMicroseconds: () => world.epochMicroseconds() + this.#jumpMs * 1_000,
      after: (ms, callback) => world.after(ms, callback),
      afterInBackground: (ms, callback) => world.after(ms, callback),
      timer: () => NO_TIMER,
      timerInBackground: () => NO_TIMER,
    };
    this.#truth = truthOf(() => this.#clock.now());
    this.#store = this.#empty();
  }

  #empty(): Store {
    const store = this.#tamper(memoryStore({ clock: this.#clock }));
    store.listen({
      onWakeUp: (place) => {
        if (store !== this.#store || place === undefined) return;
        const key = this.#truth.keyOf(place);
        // What the key holds at this very moment: whoever is told that there is room has nothing kept for it.
        if (key !== undefined) this.#hints.push({ place, seen: store.peek([key], TIMEOUT_MS) });
        for (const onHint of this.#listeners) onHint(place);
      },
      onReconnect: () => {},
      onWarning: () => {},
    });
    return store;
  }

  // ---- what becomes of it -----------------------------------------------------------------------------

  /** A command has come: it is carried out now, or when the server moves again. */
  receive(command: () => void): void {
    if (this.#backlog === undefined) command();
    else this.#backlog.push(command);
  }

  stall(ms: number): void {
    if (this.#backlog !== undefined || this.isDown) return;
    this.#backlog = [];
    this.#world.after(ms, () => this.#workOff());
  }

  /** Whatever ails it is over. */
  moveOn(): void {
    this.isDown = false;
    this.#workOff();
  }

  #workOff(): void {
    const backlog = this.#backlog ?? [];
    this.#backlog = undefined;
    for (const command of backlog) this.#world.after(0, command);
  }

  /** It ends, and is there again after `ms`, with nothing in it. */
  restartEmpty(ms: number): void {
    if (this.isDown) return;
    this.isDown = true;
    this.#backlog &&= [];
    this.loseEverything();
    this.#world.after(ms, () => {
      this.isDown = false;
    });
  }

  /** Nothing is left of what was stored, and nobody is told. */
  loseEverything(): void {
    this.#store = this.#empty();
    this.#truth.forget();
  }

  /** Somebody's hand deletes what holds the key. */
  async delete(key: string): Promise<void> {
    this.#truth.looksAt(key);
    const [holder] = await this.#store.peek([key], TIMEOUT_MS);
    if (typeof holder !== "string") return;
    // Of several who hold it, the first.
    const { holds } = (await this.#store.inspect?.(key, TIMEOUT_MS)) ?? { holds: [] };
    const requestId = holds[0]?.value ?? holder;
    // Unlike a deletion, this gives the next one its turn at once.
    const reply = await this.#store.release({ key, requestId }, TIMEOUT_MS);
    const held = this.#truth
      .values(key)
      .find((value) => value === requestId || isRevokedFrom(value, requestId));
    if (reply.released) this.#truth.deleted(key, held ?? requestId);
    await this.#noteReservations();
  }

  /** Somebody revokes what holds the key. */
  async revoke(key: string): Promise<void> {
    this.#truth.looksAt(key);
    await this.#store.peek([key], TIMEOUT_MS); // As before each command, what has expired is gone.
    for (const requestId of this.#truth.values(key)) {
      if (isReserved(requestId) || isClosed(requestId)) continue; // Nobody holds it.
      if (await this.#store.revoke?.({ key, requestId }, TIMEOUT_MS)) this.#truth.revoked(key, requestId);
    }
    await this.#noteReservations();
  }

  /** Its clock is set. */
  jump(ms: number): void {
    this.#jumpMs += ms;
    if (ms > 0) this.#truth.steppedForward(ms);
    else this.#truth.steppedBack();
  }

  // ---- what it does -----------------------------------------------------------------------------------

  async take(request: AcquireRequest): Promise<AcquireReply> {
    this.#truth.looksAt(request.key);
    const reply = await this.#store.acquire(request, TIMEOUT_MS);
    if (reply.acquired) this.#truth.taken(request, reply);
    await this.#noteReservations();
    this.#onCarriedOut();
    return reply;
  }

  async place(request: EnqueueRequest): Promise<AcquireReply> {
    this.#truth.looksAt(request.key);
    const reply = await this.#store.enqueue(request, TIMEOUT_MS);
    if (reply.acquired) this.#truth.taken(request, reply);
    else if (reply.holder !== request.requestId) this.#truth.placed(request);
    await this.#noteReservations();
    this.#onCarriedOut();
    return reply;
  }

  async leave(key: string, place: string): Promise<void> {
    this.#truth.looksAt(key);
    await this.#store.dequeue(key, place, TIMEOUT_MS);
    this.#truth.left(key, place);
    await this.#noteReservations();
    this.#onCarriedOut();
  }

  async renew(requests: readonly RenewRequest[]): Promise<readonly RenewReply[]> {
    for (const { key } of requests) this.#truth.looksAt(key);
    const replies = await this.#store.renew(requests, TIMEOUT_MS);
    requests.forEach((request, index) => {
      const reply = replies[index];
      if (reply !== undefined && "renewed" in reply && reply.renewed) this.#truth.renewed(request, reply);
    });
    await this.#noteReservations();
    this.#onCarriedOut();
    return replies;
  }

  async drop(request: ReleaseRequest): Promise<ReleaseReply> {
    this.#truth.looksAt(request.key);
    const reply = await this.#store.release(request, TIMEOUT_MS);
    if (reply.released) this.#truth.dropped(request.key, request.requestId, request.cooldownMs);
    await this.#noteReservations();
    this.#onCarriedOut();
    return reply;
  }

  look(keys: readonly string[]): Promise<readonly (string | Error | undefined)[]> {
    for (const key of keys) this.#truth.looksAt(key);
    return this.#store.peek(keys, TIMEOUT_MS);
  }

  async next(held: ReleaseRequest, request: EnqueueRequest): Promise<ReleaseAndEnqueueReply | NotReleased> {
    this.#truth.looksAt(held.key);
    const reply = await this.#store.releaseAndEnqueue(held, request, TIMEOUT_MS);
    if (reply.released) {
      this.#truth.dropped(held.key, held.requestId);
      if (reply.next === "enqueued") this.#truth.placed(request);
      else if (reply.next !== undefined) this.#truth.taken(request, reply.next);
    }
    await this.#noteReservations();
    this.#onCarriedOut();
    return reply;
  }

  async #noteReservations(): Promise<void> {
    for (const { place, seen } of this.#hints.splice(0)) {
      const [value] = await seen;
      if (value === reservedFor(place)) this.#truth.reserved(place);
    }
  }

  listen(onHint: (place: string) => void): () => void {
    this.#listeners.add(onHint);
    return () => this.#listeners.delete(onHint);
  }
}

/** The memory store has no use for one. */
const NO_TIMER = { set: () => {}, clear: () => {} };
