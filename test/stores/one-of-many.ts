import type { Store } from "../../runtime/stores/port";
import { flat, replacing, type FlatStore } from "../support/flat-store";

/** Wraps a store so that single requests use the commands for many keys where possible. */
export function asOneOfMany(store: Store): FlatStore {
  const { queue, batch } = flat(store);
  if (batch === undefined) throw new Error("Expected a store with `batch`");
  return replacing(store, {
    acquire: async (request, timeoutMs) =>
      request.fencing
        ? await store.acquire(request, timeoutMs)
        : only(await batch.acquireMany([request], timeoutMs)),
    release: async (request, timeoutMs) => only(await batch.releaseMany([request], timeoutMs)),
    enqueue: async (request, timeoutMs) =>
      batch.enqueueMany === undefined || request.fencing
        ? await queue.enqueue(request, timeoutMs)
        : only(await batch.enqueueMany([request], timeoutMs)),
  });
}

function only<Reply>(replies: readonly (Reply | Error)[]): Reply {
  const [reply = new Error("Expected one reply")] = replies;
  if (reply instanceof Error) throw reply;
  return reply;
}
