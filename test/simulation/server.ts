import type { Clock } from "../../runtime/base/clock";
import { memoryStore } from "../../runtime/stores/memory";
import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  WholeStore,
  AcquireReply,
  AcquireRequest,
} from "../../runtime/stores/port";
import { isClosed, isReserved, isRevokedFrom, reservedFor } from "../../runtime/stores/value";
import type { Tamper } from "./tampering";
import { flat } from "../support/flat-store";
import type { Truth } from "./truth";

/** Enough for any command. The server ignores it. */
const TIMEOUT_MS = 1_000;

/** The time of the world that the server is in. */
export type WorldTime = Pick<Clock, "now" | "after" | "epochMicroseconds">;

/**
 * The server of the world. It is the memory store, which a separate test compares with Redis. It may stall, lose its data, and
 * have its clock set. `Truth` records all its replies.
 */
export class SimulatedServer {
  isDown = false;
  readonly #world: WorldTime;
  readonly #truth: Truth;
  readonly #tamper: Tamper;
  readonly #onCarriedOut: () => void;
  readonly #listeners = new Set<(place: string) => void>();
  readonly #clock: Clock;
  #store: WholeStore;
  /** The wake-ups that were sent during a command, and what the key held then. */
  #hints: { readonly place: string; readonly seen: ReturnType<WholeStore["peek"]> }[] = [];
  #jumpMs = 0;
  /** The commands that arrived during a stall. */
  #backlog: (() => void)[] | undefined;

  /** @param onCarriedOut called after each executed command */
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

  #empty(): WholeStore {
    const store = this.#tamper(flat(memoryStore({ clock: this.#clock })));
    store.listen({
      onWakeUp: (place) => {
        if (store !== this.#store || place === undefined) return;
        const key = this.#truth.keyOf(place);
        // Reads what the key holds now. A wake-up that only says that there is room comes without a reservation.
        if (key !== undefined) this.#hints.push({ place, seen: store.peek([key], TIMEOUT_MS) });
        for (const onHint of this.#listeners) onHint(place);
      },
      onReconnect: () => {},
      onWarning: () => {},
    });
    return store;
  }

  // ---- what becomes of it -----------------------------------------------------------------------------

  /** Executes an arrived command now, or after the stall. */
  receive(command: () => void): void {
    if (this.#backlog === undefined) command();
    else this.#backlog.push(command);
  }

  stall(ms: number): void {
    if (this.#backlog !== undefined || this.isDown) return;
    this.#backlog = [];
    this.#world.after(ms, () => this.#workOff());
  }

  /** Ends all faults of the server. */
  moveOn(): void {
    this.isDown = false;
    this.#workOff();
  }

  #workOff(): void {
    const backlog = this.#backlog ?? [];
    this.#backlog = undefined;
    for (const command of backlog) this.#world.after(0, command);
  }

  /** Stops the server, and starts it again without data after `ms`. */
  restartEmpty(ms: number): void {
    if (this.isDown) return;
    this.isDown = true;
    this.#backlog &&= [];
    this.loseEverything();
    this.#world.after(ms, () => {
      this.isDown = false;
    });
  }

  /** Deletes all data without notifying anyone. */
  loseEverything(): void {
    this.#store = this.#empty();
    this.#truth.forget();
  }

  /** Deletes the hold of the key, as an operator may. */
  async delete(key: string): Promise<void> {
    this.#truth.looksAt(key);
    const [holder] = await this.#store.peek([key], TIMEOUT_MS);
    if (typeof holder !== "string") return;
    // The first one, if several hold the key.
    const { holds } = await this.#store.admin.inspect(key, TIMEOUT_MS);
    const requestId = holds[0]?.value ?? holder;
    // Unlike a deletion, this serves the next waiter immediately.
    const reply = await this.#store.release({ key, requestId }, TIMEOUT_MS);
    const held = this.#truth
      .values(key)
      .find((value) => value === requestId || isRevokedFrom(value, requestId));
    if (reply.released) this.#truth.deleted(key, held ?? requestId);
    await this.#noteReservations();
  }

  /** Revokes the holds of the key. */
  async revoke(key: string): Promise<void> {
    this.#truth.looksAt(key);
    await this.#store.peek([key], TIMEOUT_MS); // Removes what has expired, as each command does.
    for (const requestId of this.#truth.values(key)) {
      if (isReserved(requestId) || isClosed(requestId)) continue; // Nobody holds it.
      if (await this.#store.admin.revoke({ key, requestId }, TIMEOUT_MS)) this.#truth.revoked(key, requestId);
    }
    await this.#noteReservations();
  }

  /** Sets the server's clock. */
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
    const reply = await this.#store.queue.enqueue(request, TIMEOUT_MS);
    if (reply.acquired) this.#truth.taken(request, reply);
    else if (reply.holder !== request.requestId) this.#truth.placed(request);
    await this.#noteReservations();
    this.#onCarriedOut();
    return reply;
  }

  async leave(key: string, place: string): Promise<void> {
    this.#truth.looksAt(key);
    await this.#store.queue.dequeue(key, place, TIMEOUT_MS);
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
    const reply = await this.#store.queue.releaseAndEnqueue(held, request, TIMEOUT_MS);
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

/** The memory store does not use timers. */
const NO_TIMER = { set: () => {}, clear: () => {} };
