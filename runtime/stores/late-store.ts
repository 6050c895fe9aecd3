import { systemClock } from "../base/clock";
import { errorMessage } from "../base/errors";
import { inRoot } from "../base/root-context";
import { markAsOurs } from "./checked-store";
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
} from "./port";

/** A store that opens its own connections. */
export interface OpenStore extends WholeStore {
  readonly batch: StoreBatch;
}

/** Opens the store as soon as the client library has loaded. In CommonJS, that is immediately. */
export function openRedis<Library>(
  library: Library | Promise<Library>,
  open: (library: Library) => OpenStore,
): WholeStore {
  return library instanceof Promise ? new LateRedis(library, open) : open(library);
}

/** Opens the store of a quorum as soon as the client libraries have loaded. In CommonJS, that is immediately. */
export function openQuorum<Library>(
  library: Library | Promise<Library>,
  open: (library: Library) => OpenStore,
): WholeStore {
  return library instanceof Promise ? new LateStore(library, open) : open(library);
}

interface Subscription {
  readonly listener: StoreListener;
  /** Ends the subscription. Set once the store is open. */
  stop?: () => void;
}

/** A store that opens when the client library has loaded. Until then, its commands wait. If the library is missing, they reject. */
class LateStore<Library> implements OpenStore, StoreQueue, StoreAdmin, StoreBatch {
  readonly queue: StoreQueue = this;
  readonly admin: StoreAdmin = this;
  readonly batch: StoreBatch = this;
  readonly #opening: Promise<OpenStore>;
  #store: OpenStore | undefined;
  #isClosed = false;
  readonly #subscriptions = new Set<Subscription>();

  constructor(loading: Promise<Library>, open: (library: Library) => OpenStore) {
    markAsOurs(this);
    this.#opening = inRoot(() => loading.then((library) => this.#open(() => open(library))));
    this.#opening.catch((error: unknown) => this.#warn(errorMessage(error))); // A lock that needs the store rejects with this error.
  }

  #warn(message: string): void {
    if (this.#isClosed) return;
    for (const { listener } of this.#subscriptions) listener.onWarning(message);
  }

  #open(open: () => OpenStore): OpenStore {
    if (this.#isClosed) throw new Error("the store was closed before it opened");
    const store = open();
    this.#store = store;
    for (const subscription of this.#subscriptions) subscription.stop = store.listen(subscription.listener);
    return store;
  }

  protected ask<Reply>(
    timeoutMs: number,
    command: (store: OpenStore, timeoutMs: number) => Promise<Reply>,
  ): Promise<Reply> {
    return this.#store === undefined ? this.#askLater(timeoutMs, command) : command(this.#store, timeoutMs);
  }

  async #askLater<Reply>(
    timeoutMs: number,
    command: (store: OpenStore, timeoutMs: number) => Promise<Reply>,
  ): Promise<Reply> {
    const startedAt = systemClock.now();
    const store = await this.#opening;
    const leftMs = timeoutMs - (systemClock.now() - startedAt);
    if (leftMs <= 0) throw new Error("the Redis client was still loading");
    return await command(store, leftMs);
  }

  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    return this.ask(timeoutMs, (store, leftMs) => store.acquire(request, leftMs));
  }

  acquireMany(
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    return this.ask(timeoutMs, ({ batch }, leftMs) => batch.acquireMany(requests, leftMs));
  }

  renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    return this.ask(timeoutMs, (store, leftMs) => store.renew(requests, leftMs));
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    return this.ask(timeoutMs, (store, leftMs) => store.release(request, leftMs));
  }

  releaseMany(
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]> {
    return this.ask(timeoutMs, ({ batch }, leftMs) => batch.releaseMany(requests, leftMs));
  }

  inspect(key: string, timeoutMs: number): Promise<Inspection> {
    return this.ask(timeoutMs, ({ admin }, leftMs) => admin.inspect(key, leftMs));
  }

  revoke(request: ReleaseRequest, timeoutMs: number): Promise<boolean> {
    return this.ask(timeoutMs, ({ admin }, leftMs) => admin.revoke(request, leftMs));
  }

  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    return this.ask(timeoutMs, (store, leftMs) => store.peek(keys, leftMs));
  }

  announce(request: AnnounceRequest, timeoutMs: number): Promise<void> {
    return this.ask(timeoutMs, ({ admin }, leftMs) => admin.announce(request, leftMs));
  }

  announced(processNumber: string, timeoutMs: number): Promise<string | undefined> {
    return this.ask(timeoutMs, async ({ admin }, leftMs) => admin.announced?.(processNumber, leftMs));
  }

  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    return this.ask(timeoutMs, ({ queue }, leftMs) => queue.enqueue(request, leftMs));
  }

  dequeue(key: string, ticket: string, timeoutMs: number): Promise<void> {
    return this.ask(timeoutMs, ({ queue }, leftMs) => queue.dequeue(key, ticket, leftMs));
  }

  releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    return this.ask(timeoutMs, ({ queue }, leftMs) => queue.releaseAndEnqueue(held, request, leftMs));
  }

  state(): StoreState {
    return this.#store?.state?.() ?? "starting";
  }

  ready(key: string, timeoutMs: number): Promise<void> {
    return this.ask(timeoutMs, async (store, leftMs) => store.ready?.(key, leftMs));
  }

  listen(listener: StoreListener): () => void {
    if (this.#store !== undefined) return this.#store.listen(listener);
    const subscription: Subscription = { listener };
    this.#subscriptions.add(subscription);
    return () => {
      this.#subscriptions.delete(subscription);
      subscription.stop?.();
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#store?.close();
  }
}

class LateRedis<Library> extends LateStore<Library> {
  readonly confirmsReplicas = true;

  enqueueMany(
    requests: readonly EnqueueRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    // Only a cluster store lacks `enqueueMany`, and no URL opens one.
    return this.ask(
      timeoutMs,
      async ({ batch }, leftMs) => (await batch.enqueueMany?.(requests, leftMs)) ?? [],
    );
  }
}
