import type { Store } from "../../runtime/stores/port";

/** Wraps a store so that it also accepts batches, and runs each request of a batch by itself. */
export function batching(store: Store): Store {
  return {
    acquire: (request, timeoutMs) => store.acquire(request, timeoutMs),
    acquireMany: (requests, timeoutMs) =>
      Promise.all(requests.map((request) => store.acquire(request, timeoutMs))),
    renew: (requests, timeoutMs) => store.renew(requests, timeoutMs),
    release: (request, timeoutMs) => store.release(request, timeoutMs),
    releaseMany: (requests, timeoutMs) =>
      Promise.all(requests.map((request) => store.release(request, timeoutMs))),
    peek: (keys, timeoutMs) => store.peek(keys, timeoutMs),
    enqueue: (request, timeoutMs) => store.enqueue(request, timeoutMs),
    enqueueMany: (requests, timeoutMs) =>
      Promise.all(requests.map((request) => store.enqueue(request, timeoutMs))),
    dequeue: (key, place, timeoutMs) => store.dequeue(key, place, timeoutMs),
    releaseAndEnqueue: (held, request, timeoutMs) => store.releaseAndEnqueue(held, request, timeoutMs),
    listen: (listener) => store.listen(listener),
    close: () => store.close(),
  };
}
