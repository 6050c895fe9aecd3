import { systemClock } from "../base/clock";
import { errorMessage } from "../base/errors";
import { inRoot } from "../base/root-context";
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
  Store,
  StoreListener,
  AcquireReply,
  AcquireRequest,
} from "./port";
import type { RedisClass } from "./redis/redis-class";

/** A store that opens its own connections. */
export interface OpenStore extends Store {
  readonly acquireMany: NonNullable<Store["acquireMany"]>;
  readonly releaseMany: NonNullable<Store["releaseMany"]>;
  readonly revoke: NonNullable<Store["revoke"]>;
  readonly announce: NonNullable<Store["announce"]>;
}

/** A Redis by URL. It also supports the optional methods that a quorum lacks. */
export interface OneRedis extends OpenStore {
  readonly inspect: NonNullable<Store["inspect"]>;
}

type Loading = RedisClass | Promise<RedisClass>;

/** Opens the store as soon as ioredis has loaded. In CommonJS, that is immediately. */
export function openRedis(Redis: Loading, open: (Redis: RedisClass) => OneRedis): Store {
  return Redis instanceof Promise ? new LateRedis(Redis, open) : open(Redis);
}

/** Does the same for a quorum. */
export function openQuorum(Redis: Loading, open: (Redis: RedisClass) => OpenStore): Store {
  return Redis instanceof Promise ? new LateStore(Redis, open) : open(Redis);
}

interface Subscription {
  readonly listener: StoreListener;
  /** Ends the subscription. Set once the store is open. */
  stop?: () => void;
}

/** A store that opens when ioredis has loaded. Until then, its commands wait. If ioredis is missing, they reject. */
class LateStore<Open extends OpenStore = OpenStore> implements OpenStore {
  readonly #opening: Promise<Open>;
  #store: Open | undefined;
  #isClosed = false;
  readonly #subscriptions = new Set<Subscription>();

  constructor(loading: Promise<RedisClass>, open: (Redis: RedisClass) => Open) {
    this.#opening = inRoot(() => loading.then((Redis) => this.#open(() => open(Redis))));
    this.#opening.catch((error: unknown) => this.#warn(errorMessage(error))); // A lock that needs the store rejects with this error.
  }

  #warn(message: string): void {
    if (this.#isClosed) return;
    for (const { listener } of this.#subscriptions) listener.onWarning(message);
  }

  #open(open: () => Open): Open {
    if (this.#isClosed) throw new Error("the store was closed before it opened");
    const store = open();
    this.#store = store;
    for (const subscription of this.#subscriptions) subscription.stop = store.listen(subscription.listener);
    return store;
  }

  protected ask<Reply>(
    timeoutMs: number,
    command: (store: Open, timeoutMs: number) => Promise<Reply>,
  ): Promise<Reply> {
    return this.#store === undefined ? this.#askLater(timeoutMs, command) : command(this.#store, timeoutMs);
  }

  async #askLater<Reply>(
    timeoutMs: number,
    command: (store: Open, timeoutMs: number) => Promise<Reply>,
  ): Promise<Reply> {
    const startedAt = systemClock.now();
    const store = await this.#opening;
    const leftMs = timeoutMs - (systemClock.now() - startedAt);
    if (leftMs <= 0) throw new Error("ioredis was still loading");
    return await command(store, leftMs);
  }

  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    return this.ask(timeoutMs, (store, leftMs) => store.acquire(request, leftMs));
  }

  // Properties and not methods, because callers call them without `this`.
  readonly acquireMany = (
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> => {
    return this.ask(timeoutMs, (store, leftMs) => store.acquireMany(requests, leftMs));
  };

  renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    return this.ask(timeoutMs, (store, leftMs) => store.renew(requests, leftMs));
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    return this.ask(timeoutMs, (store, leftMs) => store.release(request, leftMs));
  }

  readonly releaseMany = (
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]> => {
    return this.ask(timeoutMs, (store, leftMs) => store.releaseMany(requests, leftMs));
  };

  revoke(request: ReleaseRequest, timeoutMs: number): Promise<boolean> {
    return this.ask(timeoutMs, (store, leftMs) => store.revoke(request, leftMs));
  }

  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    return this.ask(timeoutMs, (store, leftMs) => store.peek(keys, leftMs));
  }

  announce(request: AnnounceRequest, timeoutMs: number): Promise<void> {
    return this.ask(timeoutMs, (store, leftMs) => store.announce(request, leftMs));
  }

  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    return this.ask(timeoutMs, (store, leftMs) => store.enqueue(request, leftMs));
  }

  dequeue(key: string, place: string, timeoutMs: number): Promise<void> {
    return this.ask(timeoutMs, (store, leftMs) => store.dequeue(key, place, leftMs));
  }

  releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    return this.ask(timeoutMs, (store, leftMs) => store.releaseAndEnqueue(held, request, leftMs));
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

class LateRedis extends LateStore<OneRedis> implements OneRedis {
  readonly confirmsReplicas = true;

  readonly enqueueMany = (
    requests: readonly EnqueueRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> => {
    // Only a cluster store lacks `enqueueMany`, and no URL opens one.
    return this.ask(timeoutMs, async (store, leftMs) => (await store.enqueueMany?.(requests, leftMs)) ?? []);
  };

  inspect(key: string, timeoutMs: number): Promise<Inspection> {
    return this.ask(timeoutMs, (store, leftMs) => store.inspect(key, leftMs));
  }
}
