import { systemClock } from "../clock";
import { reasonOf } from "../errors";
import { inRoot } from "../root-context";
import type {
  AnnounceRequest,
  DropReply,
  DropRequest,
  Inspection,
  NextReply,
  NotDropped,
  PlaceRequest,
  RenewReply,
  RenewRequest,
  Store,
  StoreListener,
  TakeReply,
  TakeRequest,
} from "./port";
import type { RedisClass } from "./redis/redis-class";

/** A store that opens connections by itself. */
export interface OpenStore extends Store {
  readonly takeMany: NonNullable<Store["takeMany"]>;
  readonly dropMany: NonNullable<Store["dropMany"]>;
  readonly revoke: NonNullable<Store["revoke"]>;
  readonly announce: NonNullable<Store["announce"]>;
}

/** A Redis by URL. A quorum has no such methods. */
export interface OneRedis extends OpenStore {
  readonly inspect: NonNullable<Store["inspect"]>;
}

type Loading = RedisClass | Promise<RedisClass>;

/** Opens the store when ioredis has loaded. In CommonJS, that is at once. */
export function openRedis(Redis: Loading, open: (Redis: RedisClass) => OneRedis): Store {
  return Redis instanceof Promise ? new LateRedis(Redis, open) : open(Redis);
}

/** Does the same for a quorum. */
export function openQuorum(Redis: Loading, open: (Redis: RedisClass) => OpenStore): Store {
  return Redis instanceof Promise ? new LateStore(Redis, open) : open(Redis);
}

interface Listening {
  readonly listener: StoreListener;
  /** Ends it, once the store is open. */
  stop?: () => void;
}

/** A store that opens when ioredis has loaded. Until then, its commands wait. If ioredis is missing, they reject. */
class LateStore<Open extends OpenStore = OpenStore> implements OpenStore {
  readonly #opening: Promise<Open>;
  #store: Open | undefined;
  #isClosed = false;
  readonly #listening = new Set<Listening>();

  constructor(loading: Promise<RedisClass>, open: (Redis: RedisClass) => Open) {
    this.#opening = inRoot(() => loading.then((Redis) => this.#open(() => open(Redis))));
    this.#opening.catch((error: unknown) => this.#warn(reasonOf(error))); // A lock that needs the store rejects with it.
  }

  #warn(message: string): void {
    if (this.#isClosed) return;
    for (const { listener } of this.#listening) listener.onWarning(message);
  }

  #open(open: () => Open): Open {
    if (this.#isClosed) throw new Error("the store was closed before it opened");
    const store = open();
    this.#store = store;
    for (const each of this.#listening) each.stop = store.listen(each.listener);
    return store;
  }

  protected ask<Reply>(
    withinMs: number,
    command: (store: Open, withinMs: number) => Promise<Reply>,
  ): Promise<Reply> {
    return this.#store === undefined ? this.#askLater(withinMs, command) : command(this.#store, withinMs);
  }

  async #askLater<Reply>(
    withinMs: number,
    command: (store: Open, withinMs: number) => Promise<Reply>,
  ): Promise<Reply> {
    const startedAt = systemClock.now();
    const store = await this.#opening;
    const leftMs = withinMs - (systemClock.now() - startedAt);
    if (leftMs <= 0) throw new Error("ioredis was still loading");
    return await command(store, leftMs);
  }

  take(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    return this.ask(withinMs, (store, leftMs) => store.take(request, leftMs));
  }

  // Properties, because callers of the batches call them by themselves.
  readonly takeMany = (
    requests: readonly TakeRequest[],
    withinMs: number,
  ): Promise<readonly (TakeReply | Error)[]> => {
    return this.ask(withinMs, (store, leftMs) => store.takeMany(requests, leftMs));
  };

  renew(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    return this.ask(withinMs, (store, leftMs) => store.renew(requests, leftMs));
  }

  drop(request: DropRequest, withinMs: number): Promise<DropReply> {
    return this.ask(withinMs, (store, leftMs) => store.drop(request, leftMs));
  }

  readonly dropMany = (
    requests: readonly DropRequest[],
    withinMs: number,
  ): Promise<readonly (DropReply | Error)[]> => {
    return this.ask(withinMs, (store, leftMs) => store.dropMany(requests, leftMs));
  };

  revoke(request: DropRequest, withinMs: number): Promise<boolean> {
    return this.ask(withinMs, (store, leftMs) => store.revoke(request, leftMs));
  }

  look(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]> {
    return this.ask(withinMs, (store, leftMs) => store.look(keys, leftMs));
  }

  announce(request: AnnounceRequest, withinMs: number): Promise<void> {
    return this.ask(withinMs, (store, leftMs) => store.announce(request, leftMs));
  }

  place(request: PlaceRequest, withinMs: number): Promise<TakeReply> {
    return this.ask(withinMs, (store, leftMs) => store.place(request, leftMs));
  }

  leave(key: string, place: string, withinMs: number): Promise<void> {
    return this.ask(withinMs, (store, leftMs) => store.leave(key, place, leftMs));
  }

  next(held: DropRequest, request: PlaceRequest, withinMs: number): Promise<NextReply | NotDropped> {
    return this.ask(withinMs, (store, leftMs) => store.next(held, request, leftMs));
  }

  listen(listener: StoreListener): () => void {
    if (this.#store !== undefined) return this.#store.listen(listener);
    const each: Listening = { listener };
    this.#listening.add(each);
    return () => {
      this.#listening.delete(each);
      each.stop?.();
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#store?.close();
  }
}

class LateRedis extends LateStore<OneRedis> implements OneRedis {
  readonly confirmsReplicas = true;

  readonly placeMany = (
    requests: readonly PlaceRequest[],
    withinMs: number,
  ): Promise<readonly (TakeReply | Error)[]> => {
    // Only a store over a cluster lacks it, and no URL leads to one.
    return this.ask(withinMs, async (store, leftMs) => (await store.placeMany?.(requests, leftMs)) ?? []);
  };

  inspect(key: string, withinMs: number): Promise<Inspection> {
    return this.ask(withinMs, (store, leftMs) => store.inspect(key, leftMs));
  }
}
