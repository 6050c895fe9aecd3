// Several independent masters as one store. A lock is held only while a majority of them has its requestId. docs/architecture.md describes what each
// method does, and why two callers never hold one lock.

import { inRootContext, type Clock } from "../../base/clock";
import { LockMisconfiguredError } from "../../base/errors";
import { requestIds } from "../../base/request-id";
import { rooted } from "../../base/root-context";
import { markAsOurs } from "../checked-store";
import type {
  AnnounceRequest,
  ReleaseReply,
  ReleaseRequest,
  Inspection,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  StoreAdmin,
  StoreBatch,
  StoreListener,
  StoreQueue,
  StoreState,
  WholeStore,
  AcquireReply,
  AcquireRequest,
} from "../port";
import { tryStore } from "../trial";
import { Election } from "./election";
import { Releasing } from "./ending";
import { Rollback } from "./rollback";
import { Holds } from "./holds";
import { QuorumQueue } from "./quorum-queue";
import { Peeking } from "./peeking";
import { Master, withoutFencing, type Member } from "./master";
import { Masters, patienceOf } from "./masters";
import { Renewal } from "./renewal";

/** The time for commands that are under way when the store is closed. `close()` waits only for masters that answer promptly. */
const LAST_PATIENCE_MS = 250;
const RESPONSIVE_WITHIN_MS = 20;
const TRIAL_LOCK_TIME_MS = 5_000;

export class QuorumStore implements WholeStore, StoreQueue, StoreAdmin, StoreBatch {
  readonly queue: StoreQueue = this;
  readonly admin: StoreAdmin = this;
  readonly batch: StoreBatch = this;
  readonly #masters: Masters;
  readonly #election: Election;
  readonly #renewal: Renewal;
  readonly #releasing: Releasing;
  readonly #peeking: Peeking;
  readonly #gates: QuorumQueue;
  readonly #listeners = new Set<StoreListener>();
  readonly #warnings = new Set<string>();
  readonly #unsubscribe: () => void;

  /** @param majority changed only by tests that must detect a wrong majority */
  constructor(
    members: readonly Member[],
    given: Clock,
    longestLockTimeMs: number,
    majority = Math.floor(members.length / 2) + 1,
  ) {
    markAsOurs(this);
    const clock = inRootContext(given);
    const all = members.map((member, index) => {
      const name = `master ${index + 1}`;
      return new Master(name, member, clock, longestLockTimeMs, (reason) => this.#warn(`${name} ${reason}`));
    });
    const votes = { all: all.length, majority };
    const masters = new Masters(all, votes, clock);
    const holds = new Holds(clock, votes, longestLockTimeMs);
    const rollback = new Rollback(masters, holds, longestLockTimeMs);
    this.#masters = masters;
    this.#gates = new QuorumQueue(masters);
    this.#peeking = new Peeking(masters, holds);
    this.#election = new Election(masters, holds, rollback);
    this.#renewal = new Renewal(clock, masters, holds, rollback, this.#election, this.#peeking);
    this.#releasing = new Releasing(masters, holds, rollback, this.#election, this.#gates);
    const unsubscribers = all.map((master) =>
      master.member.store.listen({
        onWakeUp() {},
        onReconnect: rooted(() => master.onReconnect()),
        onWarning() {},
      }),
    );
    this.#unsubscribe = () => unsubscribers.forEach((unsubscribe) => unsubscribe());
  }

  // ---- holds ------------------------------------------------------------------------------------------

  async acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    const patienceMs = patienceOf(timeoutMs);
    const { reply } = await this.#election.elect(request, patienceMs, (gate) =>
      gate.acquire(request, patienceMs),
    );
    return reply;
  }

  /** Sends each master one command for all requests, because `Master` batches them. */
  acquireMany(
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    return Promise.all(requests.map((request) => orError(this.acquire(request, timeoutMs))));
  }

  renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    return this.#renewal.renew(requests, timeoutMs);
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    return this.#releasing.release(request, timeoutMs);
  }

  releaseMany(
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]> {
    return Promise.all(requests.map((request) => orError(this.release(request, timeoutMs))));
  }

  /**
   * Revokes the hold at a majority of masters. If another master acquires the hold after that, the masters that know of the revocation
   * still refuse its renewal.
   */
  async revoke(request: ReleaseRequest, timeoutMs: number): Promise<boolean> {
    const patienceMs = patienceOf(timeoutMs);
    let isRevoked = false;
    await this.#masters.poll(patienceMs, async ({ store }) => {
      if (await store.admin.revoke(request, patienceMs)) isRevoked = true;
      return true;
    });
    return isRevoked;
  }

  /**
   * Returns the value that a majority has. The time for which a majority keeps it is unknown, and so is the number of waiters at all gates.
   */
  async inspect(key: string, timeoutMs: number): Promise<Inspection> {
    const [value] = await this.peek([key], timeoutMs);
    if (value instanceof Error) throw value;
    return { holds: value === undefined ? [] : [{ value, leftMs: undefined }], waiting: undefined };
  }

  /** Sends the announcement to each master that answers. */
  async announce(request: AnnounceRequest, timeoutMs: number): Promise<void> {
    const patienceMs = patienceOf(timeoutMs);
    await this.#masters.poll(patienceMs, async ({ store }) => {
      await store.admin.announce(request, patienceMs);
      return true;
    });
  }

  /** Asks a majority of masters, because a majority has the announcement. */
  async announced(processNumber: string, timeoutMs: number): Promise<string | undefined> {
    const patienceMs = patienceOf(timeoutMs);
    let about: string | undefined;
    await this.#masters.poll(patienceMs, async ({ store }) => {
      const found = await store.admin.announced?.(processNumber, patienceMs);
      about ??= found; // A master that lost the announcement may reply last.
      return true;
    });
    return about;
  }

  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    return this.#peeking.peek(keys, timeoutMs);
  }

  // ---- queue ------------------------------------------------------------------------------------------

  async enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    const patienceMs = patienceOf(timeoutMs);
    const { ticket } = request;
    const askGate = (master: Master): Promise<AcquireReply> => {
      this.#gates.asks(ticket, master);
      return master.ask((store) => store.queue.enqueue({ ...withoutFencing(request), ticket }, patienceMs));
    };
    try {
      const { gate, reply } = await this.#election.elect(request, patienceMs, askGate);
      if (reply.acquired) this.#gates.leave(request, patienceMs, gate);
      else this.#gates.enqueued(request, gate, patienceMs);
      return reply;
    } catch (error) {
      // The runtime does not dequeue a waiter whose request was refused for good.
      if (error instanceof LockMisconfiguredError) this.#gates.leave(request, patienceMs);
      throw error;
    }
  }

  dequeue(key: string, ticket: string, timeoutMs: number): Promise<void> {
    return this.#gates.dequeue(key, ticket, timeoutMs);
  }

  releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    return this.#releasing.releaseAndEnqueue(held, request, timeoutMs);
  }

  /** Returns whether a majority of masters is up, or may still start. */
  state(): StoreState {
    const states = this.#masters.all.map((master) => master.state());
    const count = (...some: readonly StoreState[]): number =>
      states.filter((state) => some.includes(state)).length;
    const { majority } = this.#masters.votes;
    if (count("up") >= majority) return "up";
    return count("up", "starting") >= majority ? "starting" : "down";
  }

  /** Tries a lock at each master, because a waiter is in the queue of one master only. */
  async ready(key: string, timeoutMs: number): Promise<void> {
    const { next } = requestIds();
    await this.#masters.poll(timeoutMs, async ({ store }) => {
      await tryStore(store, { key, lockTimeMs: TRIAL_LOCK_TIME_MS }, next, (send) => send(timeoutMs));
      await store.ready?.(key, timeoutMs);
      return true;
    });
  }

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    const unsubscribers = this.#masters.all.map(({ name, member }) =>
      member.store.listen({
        onWakeUp: (ticket) => listener.onWakeUp(ticket),
        onReconnect: () => listener.onReconnect(),
        onWarning: (message) => listener.onWarning(`${name}: ${message}`),
        shortestTimeLeftMs: () => listener.shortestTimeLeftMs?.() ?? Infinity,
      }),
    );
    return () => {
      this.#listeners.delete(listener);
      for (const unsubscribe of unsubscribers) unsubscribe();
    };
  }

  #warn(message: string): void {
    if (this.#warnings.has(message)) return;
    this.#warnings.add(message);
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  /** Waits for releases that are under way to masters that answer, then closes the connections. */
  async close(): Promise<void> {
    const releases = this.#masters.all.flatMap((master) =>
      master.isResponsive(RESPONSIVE_WITHIN_MS) ? [...master.pendingReleases] : [],
    );
    await this.#masters.awaitReplies(releases, () => false, LAST_PATIENCE_MS);
    this.#unsubscribe();
    await Promise.all(this.#masters.all.map(({ member }) => member.close()));
  }
}

function orError<Reply>(asked: Promise<Reply>): Promise<Reply | Error> {
  return asked.catch((error: unknown) =>
    error instanceof Error ? error : new Error("it failed", { cause: error }),
  );
}
