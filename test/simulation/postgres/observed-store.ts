import type {
  AcquireReply,
  AcquireRequest,
  ReleaseRequest,
  WholeStore,
  Store,
} from "../../../runtime/stores/port";
import type { ProcessObserver } from "../process-observer";

/** Returns the store of a process, which reports to the world what it sends and receives. */
export function observedStore(store: WholeStore & Store, observer: ProcessObserver): Store {
  const { queue, batch, transactions } = store;
  if (batch === undefined || transactions === undefined) throw new Error("Expected a store with all groups");
  const acquiring = async (
    request: AcquireRequest,
    sent: () => Promise<AcquireReply>,
  ): Promise<AcquireReply> => {
    observer.onAcquireSent(request.requestId);
    try {
      return noteAcquired(request, await sent());
    } catch (error) {
      observer.onAcquired(request.requestId); // It may have acquired the key, and its process knows that.
      throw error;
    }
  };
  const noteAcquired = <Reply extends AcquireReply | Error>(request: AcquireRequest, reply: Reply): Reply => {
    if (reply instanceof Error || reply.acquired) observer.onAcquired(request.requestId);
    return reply;
  };
  const noteReleased = <Reply extends { readonly released: boolean } | Error>(
    { key, requestId }: ReleaseRequest,
    reply: Reply,
  ): Reply => {
    if (!(reply instanceof Error) && !reply.released) observer.onNotReleased(key, requestId);
    return reply;
  };
  const many = async (
    requests: readonly AcquireRequest[],
    sent: () => Promise<readonly (AcquireReply | Error)[]>,
  ): Promise<readonly (AcquireReply | Error)[]> => {
    for (const { requestId } of requests) observer.onAcquireSent(requestId);
    try {
      const replies = await sent();
      return replies.map((reply, index) => {
        const request = requests[index];
        return request === undefined ? reply : noteAcquired(request, reply);
      });
    } catch (error) {
      for (const { requestId } of requests) observer.onAcquired(requestId);
      throw error;
    }
  };
  return {
    acquire: (request, timeoutMs) => acquiring(request, () => store.acquire(request, timeoutMs)),
    renew: (requests, timeoutMs) => store.renew(requests, timeoutMs),
    peek: (keys, timeoutMs) => store.peek(keys, timeoutMs),
    async release(request, timeoutMs) {
      observer.onReleaseSent(request.requestId);
      return noteReleased(request, await store.release(request, timeoutMs));
    },
    listen: (listener) => store.listen(listener),
    transactions: { guard: (holds, run) => transactions.guard(holds, run) },
    queue: {
      enqueue: (request, timeoutMs) => acquiring(request, () => queue.enqueue(request, timeoutMs)),
      dequeue: (key, ticket, timeoutMs) => queue.dequeue(key, ticket, timeoutMs),
      async releaseAndEnqueue(held, request, timeoutMs) {
        observer.onReleaseSent(held.requestId);
        observer.onAcquireSent(request.requestId);
        try {
          const reply = noteReleased(held, await queue.releaseAndEnqueue(held, request, timeoutMs));
          if (reply.released && typeof reply.next === "object") observer.onAcquired(request.requestId);
          return reply;
        } catch (error) {
          observer.onAcquired(request.requestId);
          throw error;
        }
      },
    },
    batch: {
      acquireMany: (requests, timeoutMs) => many(requests, () => batch.acquireMany(requests, timeoutMs)),
      async releaseMany(requests, timeoutMs) {
        for (const { requestId } of requests) observer.onReleaseSent(requestId);
        const replies = await batch.releaseMany(requests, timeoutMs);
        return replies.map((reply, index) => {
          const request = requests[index];
          return request === undefined ? reply : noteReleased(request, reply);
        });
      },
      ...(batch.enqueueMany !== undefined && {
        enqueueMany: (requests, timeoutMs) =>
          many(requests, async () => (await batch.enqueueMany?.(requests, timeoutMs)) ?? []),
      }),
    },
  };
}
