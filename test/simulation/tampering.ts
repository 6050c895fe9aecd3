import type { Store } from "../../runtime/stores/port";

/** Plants a fault of a test in a store. */
export type Tamper = (store: Store) => Store;

/** Returns the store with some of its methods replaced. */
export function but(store: Store, faults: Partial<Store>): Store {
  return {
    acquire: (request, timeoutMs) => store.acquire(request, timeoutMs),
    renew: (requests, timeoutMs) => store.renew(requests, timeoutMs),
    release: (request, timeoutMs) => store.release(request, timeoutMs),
    peek: (keys, timeoutMs) => store.peek(keys, timeoutMs),
    revoke:
      store.revoke && ((request, timeoutMs) => store.revoke?.(request, timeoutMs) ?? Promise.resolve(false)),
    enqueue: (request, timeoutMs) => store.enqueue(request, timeoutMs),
    dequeue: (key, place, timeoutMs) => store.dequeue(key, place, timeoutMs),
    releaseAndEnqueue: (held, request, timeoutMs) => store.releaseAndEnqueue(held, request, timeoutMs),
    listen: (listener) => store.listen(listener),
    close: () => store.close(),
    ...faults,
  };
}
