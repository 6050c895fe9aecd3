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
import { WorldServer, type WorldTime } from "./world-server";

/** Enough for any command. The server ignores it. */
const TIMEOUT_MS = 1_000;

/**
 * The server of the world. It is the memory store, which a separate test compares with Redis. It may stall, lose its data, and
 * have its clock set. `Truth` records all its replies.
 */
export class SimulatedServer extends WorldServer {
  readonly #truth: Truth;
  readonly #tamper: Tamper;
  readonly #onExecuted: () => void;
  readonly #listeners = new Set<(ticket: string) => void>();
  #store: WholeStore;
  /** The wake-ups that were sent during a command, and what the key held then. */
  #wakeUps: { readonly ticket: string; readonly seen: ReturnType<WholeStore["peek"]> }[] = [];

  /** @param onExecuted called after each executed command */
  constructor(
    world: WorldTime,
    truthOf: (now: () => number) => Truth,
    tamper: Tamper,
    onExecuted: () => void,
  ) {
    super(world);
    this.#tamper = tamper;
    this.#onExecuted = onExecuted;
    this.#truth = truthOf(() => this.clock.now());
    this.#store = this.#empty();
  }

  #empty(): WholeStore {
    const store = this.#tamper(flat(memoryStore({ clock: this.clock })));
    store.listen({
      onWakeUp: (ticket) => {
        if (store !== this.#store || ticket === undefined) return;
        const key = this.#truth.keyOf(ticket);
        // Reads what the key holds now. A wake-up that only says that there is room comes without a reservation.
        if (key !== undefined) this.#wakeUps.push({ ticket, seen: store.peek([key], TIMEOUT_MS) });
        for (const wakeUp of this.#listeners) wakeUp(ticket);
      },
      onReconnect: () => {},
      onWarning: () => {},
    });
    return store;
  }

  // ---- what becomes of it -----------------------------------------------------------------------------

  protected onCrash(): void {
    this.loseEverything();
  }

  /** Deletes all data without notifying anyone. */
  loseEverything(): void {
    this.#store = this.#empty();
    this.#truth.forget();
  }

  async delete(key: string): Promise<void> {
    this.#truth.reads(key);
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

  async revoke(key: string): Promise<void> {
    this.#truth.reads(key);
    await this.#store.peek([key], TIMEOUT_MS); // Removes what has expired, as each command does.
    for (const requestId of this.#truth.values(key)) {
      if (isReserved(requestId) || isClosed(requestId)) continue; // Nobody holds it.
      if (await this.#store.admin.revoke({ key, requestId }, TIMEOUT_MS)) this.#truth.revoked(key, requestId);
    }
    await this.#noteReservations();
  }

  protected onJump(ms: number): void {
    if (ms > 0) this.#truth.steppedForward(ms);
    else this.#truth.steppedBack();
  }

  // ---- what it does -----------------------------------------------------------------------------------

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    this.#truth.reads(request.key);
    const reply = await this.#store.acquire(request, TIMEOUT_MS);
    if (reply.acquired) this.#truth.acquired(request, reply);
    await this.#noteReservations();
    this.#onExecuted();
    return reply;
  }

  async enqueue(request: EnqueueRequest): Promise<AcquireReply> {
    this.#truth.reads(request.key);
    const reply = await this.#store.queue.enqueue(request, TIMEOUT_MS);
    if (reply.acquired) this.#truth.acquired(request, reply);
    else if (reply.holder !== request.requestId) this.#truth.enqueued(request);
    await this.#noteReservations();
    this.#onExecuted();
    return reply;
  }

  async dequeue(key: string, ticket: string): Promise<void> {
    this.#truth.reads(key);
    await this.#store.queue.dequeue(key, ticket, TIMEOUT_MS);
    this.#truth.dequeued(key, ticket);
    await this.#noteReservations();
    this.#onExecuted();
  }

  async renew(requests: readonly RenewRequest[]): Promise<readonly RenewReply[]> {
    for (const { key } of requests) this.#truth.reads(key);
    const replies = await this.#store.renew(requests, TIMEOUT_MS);
    requests.forEach((request, index) => {
      const reply = replies[index];
      if (reply !== undefined && "renewed" in reply && reply.renewed) this.#truth.renewed(request, reply);
    });
    await this.#noteReservations();
    this.#onExecuted();
    return replies;
  }

  async release(request: ReleaseRequest): Promise<ReleaseReply> {
    this.#truth.reads(request.key);
    const reply = await this.#store.release(request, TIMEOUT_MS);
    if (reply.released) this.#truth.released(request.key, request.requestId, request.cooldownMs);
    await this.#noteReservations();
    this.#onExecuted();
    return reply;
  }

  peek(keys: readonly string[]): Promise<readonly (string | Error | undefined)[]> {
    for (const key of keys) this.#truth.reads(key);
    return this.#store.peek(keys, TIMEOUT_MS);
  }

  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    this.#truth.reads(held.key);
    const reply = await this.#store.queue.releaseAndEnqueue(held, request, TIMEOUT_MS);
    if (reply.released) {
      this.#truth.released(held.key, held.requestId);
      if (reply.next === "enqueued") this.#truth.enqueued(request);
      else if (reply.next !== undefined) this.#truth.acquired(request, reply.next);
    }
    await this.#noteReservations();
    this.#onExecuted();
    return reply;
  }

  async #noteReservations(): Promise<void> {
    for (const { ticket, seen } of this.#wakeUps.splice(0)) {
      const [value] = await seen;
      if (value === reservedFor(ticket)) this.#truth.reserved(ticket);
    }
  }

  async isForgotten(key: string): Promise<boolean> {
    const [probe, next] = ["e", "f"].map((digit) => ({
      key,
      requestId: digit.repeat(32),
      lockTimeMs: 1,
      fencing: false,
    }));
    if (probe === undefined || next === undefined) return false;
    if (!(await this.acquire(probe)).acquired) return false;
    const reply = await this.releaseAndEnqueue(probe, { ...next, ticket: "d".repeat(32) });
    return reply.released && reply.next !== "enqueued";
  }

  listen(wakeUp: (ticket: string) => void): () => void {
    this.#listeners.add(wakeUp);
    return () => this.#listeners.delete(wakeUp);
  }
}
