import type { ReleaseRequest, EnqueueRequest, Store, AcquireRequest } from "../../runtime";
import { flat, replacing } from "./flat-store";

/** Gets notified of the holds in a store. */
export interface Observer {
  onAcquired(key: string): void;
  /** Called right before a hold is released. */
  onRelease(key: string): void;
}

/** Wraps a store, and notifies the observer of acquired and released holds. */
export function observed(inner: Store, observer: Observer): Store {
  const store = flat(inner);
  return replacing(inner, {
    async acquire(request: AcquireRequest, timeoutMs: number) {
      const reply = await store.acquire(request, timeoutMs);
      if (reply.acquired) observer.onAcquired(request.key);
      return reply;
    },
    async enqueue(request: EnqueueRequest, timeoutMs: number) {
      const reply = await store.enqueue(request, timeoutMs);
      if (reply.acquired) observer.onAcquired(request.key);
      return reply;
    },
    async release(request: ReleaseRequest, timeoutMs: number) {
      observer.onRelease(request.key);
      return await store.release(request, timeoutMs);
    },
    async releaseAndEnqueue(held: ReleaseRequest, request: EnqueueRequest, timeoutMs: number) {
      observer.onRelease(held.key);
      const reply = await store.releaseAndEnqueue(held, request, timeoutMs);
      if (reply.released && typeof reply.next === "object") observer.onAcquired(request.key);
      return reply;
    },
  });
}
