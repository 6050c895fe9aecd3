import type { Store } from "../../runtime/stores/port";

/** Wraps a store so that single requests use the commands for many keys where possible. */
export function asOneOfMany(store: Store): Store {
  const { acquireMany, enqueueMany, releaseMany } = store;
  if (acquireMany === undefined || releaseMany === undefined)
    throw new Error("Expected a store with acquireMany() and releaseMany()");
  return {
    acquire: async (request, timeoutMs) =>
      request.fencing
        ? await store.acquire(request, timeoutMs)
        : only(await acquireMany([request], timeoutMs)),
    acquireMany,
    renew: (requests, timeoutMs) => store.renew(requests, timeoutMs),
    release: async (request, timeoutMs) => only(await releaseMany([request], timeoutMs)),
    releaseMany,
    peek: (keys, timeoutMs) => store.peek(keys, timeoutMs),
    enqueue: async (request, timeoutMs) =>
      enqueueMany === undefined || request.fencing
        ? await store.enqueue(request, timeoutMs)
        : only(await enqueueMany([request], timeoutMs)),
    enqueueMany,
    dequeue: (key, place, timeoutMs) => store.dequeue(key, place, timeoutMs),
    releaseAndEnqueue: (held, request, timeoutMs) => store.releaseAndEnqueue(held, request, timeoutMs),
    listen: (listener) => store.listen(listener),
    close: () => store.close(),
  };
}

function only<Reply>(replies: readonly (Reply | Error)[]): Reply {
  const [reply = new Error("Expected one reply")] = replies;
  if (reply instanceof Error) throw reply;
  return reply;
}
