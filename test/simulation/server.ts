import type { Clock } from "../../runtime/clock";
import type {
  AcquireReply,
  AcquireRequest,
  Released,
  RenewReply,
  RenewRequest,
  Store,
} from "../../runtime/store";
import { memoryStore } from "../../runtime/stores/memory";
import type { VirtualClock } from "../support/virtual-clock";
import type { Tamper } from "./tampering";
import type { Truth } from "./truth";

/**
 * The server of the world: the memory store, whose agreement with Redis is a test of its own. It may stand
 * still, lose everything, and have its wall clock set; all that it says is noted down as the truth.
 */
export class SimulatedServer implements Store {
  isDown = false;
  readonly #world: VirtualClock;
  readonly #truth: Truth;
  readonly #tamper: Tamper;
  readonly #listeners = new Set<(requestId: string | undefined) => void>();
  readonly #clock: Clock;
  #store: Store;
  #wallJumpMs = 0;
  /** What arrived while it stood still. */
  #backlog: (() => void)[] | undefined;

  constructor(world: VirtualClock, truth: Truth, tamper: Tamper) {
    this.#world = world;
    this.#truth = truth;
    this.#tamper = tamper;
    this.#clock = {
      now: () => world.now(),
      epochMicroseconds: () => world.epochMicroseconds() + this.#wallJumpMs * 1_000,
      after: (ms, callback) => world.after(ms, callback),
      afterInBackground: (ms, callback) => world.afterInBackground(ms, callback),
      timer: (callback) => world.timer(callback),
      timerInBackground: (callback) => world.timerInBackground(callback),
    };
    this.#store = this.#empty();
  }

  #empty(): Store {
    const store = this.#tamper(memoryStore({ clock: this.#clock }));
    store.listen((requestId) => {
      if (store !== this.#store || requestId === undefined) return;
      this.#truth.offered(requestId);
      for (const onHint of this.#listeners) onHint(requestId);
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
    this.#store = this.#empty();
    this.#truth.forget();
    this.#world.after(ms, () => {
      this.isDown = false;
    });
  }

  jump(ms: number): void {
    this.#wallJumpMs += ms;
  }

  // ---- what it does -----------------------------------------------------------------------------------

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const reply = await this.#store.acquire(request);
    if (!reply.granted) return { granted: false, freeInMs: undefined }; // Redis says no more to one who does not wait.
    return this.#noted(request, reply);
  }

  async wait(request: AcquireRequest): Promise<AcquireReply> {
    const reply = await this.#store.wait(request);
    if (!reply.granted) this.#truth.queued(request.key, request.requestId);
    return this.#noted(request, reply);
  }

  #noted({ key, requestId, lockTimeMs }: AcquireRequest, reply: AcquireReply): AcquireReply {
    if (reply.granted) this.#truth.granted(key, requestId, lockTimeMs, reply.fresh, reply.fencingToken);
    return reply;
  }

  async leave(key: string, requestId: string): Promise<void> {
    await this.#store.leave(key, requestId);
    this.#truth.left(key, requestId);
  }

  async renew(holders: readonly RenewRequest[]): Promise<RenewReply[]> {
    const replies = await this.#store.renew(holders);
    holders.forEach(({ key, requestId, lockTimeMs }, index) => {
      if (replies[index] === "renewed") this.#truth.renewed(key, requestId, lockTimeMs);
    });
    return replies;
  }

  async release(key: string, requestId: string, next?: AcquireRequest): Promise<Released> {
    const released = await this.#store.release(key, requestId, next);
    if (released.outcome !== "released") return released;
    this.#truth.gaveBack(key, requestId);
    if (next !== undefined && released.handedOn !== undefined) this.#noted(next, released.handedOn);
    else if (next !== undefined) this.#truth.queued(key, next.requestId);
    return released;
  }

  listen(onHint: (requestId: string | undefined) => void): () => void {
    this.#listeners.add(onHint);
    return () => this.#listeners.delete(onHint);
  }

  async close(): Promise<void> {}
}
