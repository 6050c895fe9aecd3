import type {
  AcquireRequest,
  EnqueueRequest,
  ReleaseRequest,
  Store,
  StoreBatch,
  StoreQueue,
} from "../../runtime/stores/port";
import { replacing, type FlatStore } from "../support/flat-store";
import { ModelTrace, type Belief } from "./model-trace";

type Sends = (request: AcquireRequest) => void;
type Releases = (request: ReleaseRequest) => void;

/** Records a run of the code, in virtual time, as steps of `lock.pml`: one trace for each key. */
export class Recording {
  readonly #nowMs: () => number;
  readonly #beliefs: () => Iterable<Belief>;
  readonly #traces = new Map<string, ModelTrace>();
  /** Why the model says nothing about the run, if it does not. */
  unfit: string | undefined;
  #servers = 0;
  #isOver = false;

  /**
   * @param nowMs returns the time of the store
   * @param beliefs returns the callers that may believe that they hold a key
   */
  constructor(nowMs: () => number, beliefs: () => Iterable<Belief>) {
    this.#nowMs = nowMs;
    this.#beliefs = beliefs;
  }

  /** Notes what changed in the beliefs of the processes. */
  look(): void {
    const byKey = new Map<string, Belief[]>();
    for (const belief of this.#beliefs()) {
      if (belief.leftMs <= 0) continue;
      const others = byKey.get(belief.key) ?? [];
      byKey.set(belief.key, [...others, belief]);
    }
    for (const [key, beliefs] of byKey) this.#traceOf(key).believes(beliefs);
  }

  /** Ends the traces. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const trace of this.#traces.values()) trace.end();
  }

  /** The traces of keys about which the model says something. */
  get traces(): readonly ModelTrace[] {
    return [...this.#traces.values()].filter(({ unfit }) => (this.unfit ?? unfit) === undefined);
  }

  /**
   * Returns the store of a process, which records what the process sends.
   *
   * @param rate the milliseconds of its clock in a millisecond of the store's
   */
  ofProcess(process: number, store: Store, rate = 1): Store {
    const sends: Sends = (request) => {
      this.look();
      this.#traceOf(request.key).sends(process, request, this.#believes(process, request.key), rate);
    };
    const releases: Releases = ({ key, requestId }) => {
      this.look();
      this.#traceOf(key).sendsRelease(process, requestId);
    };
    return {
      acquire: (request, timeoutMs) => {
        sends(request);
        return this.#seen(store.acquire(request, timeoutMs));
      },
      renew: (requests, timeoutMs) => {
        this.look();
        for (const request of requests) this.#traceOf(request.key).sendsRenewal(request, rate);
        return this.#seen(store.renew(requests, timeoutMs));
      },
      release: (request, timeoutMs) => {
        releases(request);
        return store.release(request, timeoutMs);
      },
      peek: (keys, timeoutMs) => store.peek(keys, timeoutMs),
      listen: (listener) => store.listen?.(listener) ?? (() => {}),
      ...(store.queue !== undefined && { queue: this.#queueOf(store.queue, sends, releases) }),
      ...(store.batch !== undefined && { batch: this.#batchOf(store.batch, sends, releases) }),
    };
  }

  #queueOf(queue: StoreQueue, sends: Sends, releases: Releases): StoreQueue {
    return {
      enqueue: (request, timeoutMs) => {
        sends(request);
        return this.#seen(queue.enqueue(request, timeoutMs));
      },
      dequeue: (key, ticket, timeoutMs) => queue.dequeue(key, ticket, timeoutMs),
      releaseAndEnqueue: (held, request, timeoutMs) => {
        releases(held);
        sends(request);
        return this.#seen(queue.releaseAndEnqueue(held, request, timeoutMs));
      },
    };
  }

  #batchOf(batch: StoreBatch, sends: Sends, releases: Releases): StoreBatch {
    const enqueueMany = batch.enqueueMany?.bind(batch);
    return {
      acquireMany: (requests, timeoutMs) => {
        requests.forEach(sends);
        return this.#seen(batch.acquireMany(requests, timeoutMs));
      },
      releaseMany: (requests, timeoutMs) => {
        requests.forEach(releases);
        return batch.releaseMany(requests, timeoutMs);
      },
      ...(enqueueMany !== undefined && {
        enqueueMany: (requests: readonly EnqueueRequest[], timeoutMs: number) => {
          requests.forEach(sends);
          return this.#seen(enqueueMany(requests, timeoutMs));
        },
      }),
    };
  }

  /** Returns the store of the server, which records each change of a key. */
  ofServer(store: FlatStore): FlatStore {
    this.#servers += 1;
    if (this.#servers > 1) this.unfit = "the store lost its data";
    return replacing(store, {
      acquire: (request, timeoutMs) =>
        this.#ran(store, request.key, store.acquire(request, timeoutMs), request.requestId),
      enqueue: (request, timeoutMs) =>
        this.#ran(store, request.key, store.enqueue(request, timeoutMs), request.requestId),
      renew: async (requests, timeoutMs) => {
        const replies = store.renew(requests, timeoutMs);
        for (const { key, requestId } of requests) await this.#ran(store, key, replies, requestId, true);
        return await replies;
      },
      release: (request, timeoutMs) => this.#ran(store, request.key, store.release(request, timeoutMs)),
      dequeue: (key, ticket, timeoutMs) => this.#ran(store, key, store.dequeue(key, ticket, timeoutMs)),
      releaseAndEnqueue: (held, request, timeoutMs) =>
        this.#ran(store, held.key, store.releaseAndEnqueue(held, request, timeoutMs), request.requestId),
      revoke: (request, timeoutMs) => this.#ran(store, request.key, store.revoke(request, timeoutMs)),
    });
  }

  /** Reads the key in the same turn in which the command runs. */
  async #ran<Reply>(
    store: FlatStore,
    key: string,
    reply: Promise<Reply>,
    requestId?: string,
    isRenewal = false,
  ): Promise<Reply> {
    const { holds } = await store.inspect(key, TIMEOUT_MS);
    this.#traceOf(key).ran(requestId, holds, isRenewal);
    return await reply;
  }

  /** Looks after the process has handled the reply. */
  async #seen<Reply>(command: Promise<Reply>): Promise<Reply> {
    const look = (): void => process.nextTick(() => this.look());
    command.then(look, look);
    return await command;
  }

  #believes(process: number, key: string): boolean {
    for (const belief of this.#beliefs())
      if (belief.process === process && belief.key === key && belief.leftMs > 0) return true;
    return false;
  }

  #traceOf(key: string): ModelTrace {
    let trace = this.#traces.get(key);
    if (trace === undefined) {
      trace = new ModelTrace(this.#nowMs);
      if (!this.#isOver) this.#traces.set(key, trace);
    }
    return trace;
  }
}

/** Enough for any command. The server ignores it. */
const TIMEOUT_MS = 1_000;
