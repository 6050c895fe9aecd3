import type { Store, StoreAdmin, StoreBatch, StoreQueue, WholeStore } from "../../runtime/stores/port";

/** A store with the methods of its groups beside its own, so that a test can call and replace them by name. */
export interface FlatStore extends WholeStore, StoreQueue, StoreAdmin, Partial<StoreBatch> {}

/** The methods of a store and of its groups. */
export type StoreMethods = Omit<FlatStore, "queue" | "admin" | "batch">;

/** @throws if the store has no queue, or no commands for people */
export function flat(store: Store): FlatStore {
  return grouped(methodsOf(store));
}

/** Returns the store with some of its methods replaced. */
export function replacing(store: Store, methods: Partial<StoreMethods>): FlatStore {
  return grouped({ ...methodsOf(store), ...methods });
}

/** Returns the store without commands for many keys, and with some of its methods replaced. */
export function withoutBatch(store: Store, methods: Partial<StoreMethods> = {}): FlatStore {
  return grouped({ ...singleMethodsOf(store), ...methods });
}

function methodsOf(store: Store): StoreMethods {
  const { batch } = store;
  if (batch === undefined) return singleMethodsOf(store);
  return {
    ...singleMethodsOf(store),
    ...(batch.splitsMany !== undefined && { splitsMany: batch.splitsMany }),
    acquireMany: (requests, timeoutMs) => batch.acquireMany(requests, timeoutMs),
    releaseMany: (requests, timeoutMs) => batch.releaseMany(requests, timeoutMs),
    ...(batch.enqueueMany !== undefined && { enqueueMany: batch.enqueueMany.bind(batch) }),
  };
}

function singleMethodsOf(store: Store): StoreMethods {
  const { queue, admin } = store;
  if (queue === undefined || admin === undefined)
    throw new Error("Expected a store with `queue` and `admin`");
  return {
    ...(store.confirmsReplicas !== undefined && { confirmsReplicas: store.confirmsReplicas }),
    acquire: (request, timeoutMs) => store.acquire(request, timeoutMs),
    renew: (requests, timeoutMs) => store.renew(requests, timeoutMs),
    release: (request, timeoutMs) => store.release(request, timeoutMs),
    peek: (keys, timeoutMs) => store.peek(keys, timeoutMs),
    enqueue: (request, timeoutMs) => queue.enqueue(request, timeoutMs),
    dequeue: (key, ticket, timeoutMs) => queue.dequeue(key, ticket, timeoutMs),
    releaseAndEnqueue: (held, request, timeoutMs) => queue.releaseAndEnqueue(held, request, timeoutMs),
    inspect: (key, timeoutMs) => admin.inspect(key, timeoutMs),
    revoke: (request, timeoutMs) => admin.revoke(request, timeoutMs),
    announce: (request, timeoutMs) => admin.announce(request, timeoutMs),
    ...(admin.announced !== undefined && { announced: admin.announced.bind(admin) }),
    listen: (listener) => store.listen?.(listener) ?? (() => {}),
    close: async () => await store.close?.(),
  };
}

/** Adds the groups to an object that has their methods. A method that a test replaces later counts for its group, too. */
function grouped(methods: StoreMethods): FlatStore {
  const store = { ...methods } as FlatStore;
  const hasBatch = methods.acquireMany !== undefined && methods.releaseMany !== undefined;
  return Object.assign(store, {
    queue: store,
    admin: store,
    ...(hasBatch && { batch: store as StoreBatch }),
  });
}
