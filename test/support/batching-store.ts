import type { Store } from "../../runtime/stores/port";
import { flat, replacing, type FlatStore } from "./flat-store";

/** Wraps a store so that it also accepts batches, and runs each request of a batch by itself. */
export function batching(store: Store): FlatStore {
  const { queue } = flat(store);
  return replacing(store, {
    acquireMany: (requests, timeoutMs) =>
      Promise.all(requests.map((request) => store.acquire(request, timeoutMs))),
    releaseMany: (requests, timeoutMs) =>
      Promise.all(requests.map((request) => store.release(request, timeoutMs))),
    enqueueMany: (requests, timeoutMs) =>
      Promise.all(requests.map((request) => queue.enqueue(request, timeoutMs))),
  });
}
