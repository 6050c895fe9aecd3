import { setImmediate as nextTurn } from "node:timers/promises";
import test from "ava";
import { storeContract } from "../store-contract";
import { memoryStore } from "../../runtime/stores/memory";
import type { StoreListener } from "../../runtime/stores/port";
import { isHeldBy } from "../../runtime/stores/value";
import { VirtualClock } from "../support/virtual-clock";
import { but, type Tamper } from "../simulation/tampering";
import { flat, type FlatStore } from "../support/flat-store";

// The contract must detect faulty stores: each fault here must make at least one test of the contract fail.

/**
 * A test of the contract that waits for a wake-up has failed after this many turns of the event loop. Under virtual time,
 * no other test takes as many.
 */
const TURNS_WITHOUT_WAKE_UP = 20_000;

async function valueOf(store: FlatStore, key: string, timeoutMs: number): Promise<string | undefined> {
  const [value] = await store.peek([key], timeoutMs);
  return value instanceof Error ? undefined : value;
}

/** The titles of the contract's tests that a memory store with this fault fails. */
async function broken(fault: Tamper): Promise<string[]> {
  const promises: { title: string; run: () => Promise<void> }[] = [];
  storeContract(
    (title, run) => void promises.push({ title, run }),
    () => {
      const clock = new VirtualClock();
      const store = flat(memoryStore({ clock }));
      return {
        store: fault(store),
        elapse: (ms) => clock.advance(ms),
        put: async (key, value, ms) =>
          void (await store.acquire({ key, requestId: value, lockTimeMs: ms, fencing: false }, 1)),
      };
    },
    () => {},
  );
  const titles: string[] = [];
  for (const { title, run } of promises) {
    const never = Symbol("never");
    const end: { outcome: unknown; isReached: boolean } = { outcome: never, isReached: false };
    const reach = async (): Promise<void> => {
      end.outcome = await run().catch(() => never);
      end.isReached = true;
    };
    void reach();
    for (let turn = 0; turn < TURNS_WITHOUT_WAKE_UP && !end.isReached; turn += 1) await nextTurn();
    if (end.outcome === never) titles.push(title);
  }
  return titles;
}

test.serial("a correct store passes every test of the contract", async (t) => {
  t.deepEqual(await broken((store) => store), []);
});

const FAULTS: Record<string, { readonly fault: Tamper; readonly breaks: RegExp }> = {
  "renews revoked holds": {
    fault: (store) =>
      but(store, {
        revoke: async ({ key, requestId }, timeoutMs) =>
          isHeldBy(requestId, await valueOf(store, key, timeoutMs)),
      }),
    breaks: /cannot be renewed/,
  },
  "frees the key of a revoked hold": {
    fault: (store) =>
      but(store, {
        revoke: async (request, timeoutMs) => (await store.release(request, timeoutMs)).released,
      }),
    breaks: /keeps the key until its holder releases it/,
  },
  "revokes the hold of another request": {
    fault: (store) =>
      but(store, {
        async revoke({ key }, timeoutMs) {
          const requestId = await valueOf(store, key, timeoutMs);
          return requestId !== undefined && (await store.revoke({ key, requestId }, timeoutMs));
        },
      }),
    breaks: /does not revoke the hold of another request/,
  },
  "reports a grant if acquire() runs twice": {
    fault: (store) =>
      but(store, {
        async acquire(request, timeoutMs) {
          const reply = await store.acquire(request, timeoutMs);
          return !reply.acquired && reply.holder === request.requestId ? { acquired: true } : reply;
        },
      }),
    breaks: /acquire\(\) that runs twice/,
  },
  "renews reservations": {
    fault: (store) =>
      but(store, {
        async renew(requests, timeoutMs) {
          const replies = await store.renew(requests, timeoutMs);
          return replies.map((reply, index) =>
            !(reply instanceof Error) &&
            !reply.renewed &&
            reply.holder === `reserved:${requests[index]?.requestId}`
              ? { renewed: true }
              : reply,
          );
        },
      }),
    breaks: /a reservation is not a hold/,
  },
  "lets other callers acquire a reserved key": {
    fault: (store) =>
      but(store, {
        async acquire(request, timeoutMs) {
          const reply = await store.acquire(request, timeoutMs);
          if (reply.acquired || reply.holder?.startsWith("reserved:") !== true) return reply;
          await store.dequeue(request.key, reply.holder.slice("reserved:".length), timeoutMs);
          return await store.acquire(request, timeoutMs);
        },
      }),
    breaks: /in the order in which they came/,
  },
  "reports no holder": {
    fault: (store) =>
      but(store, {
        async release(request, timeoutMs) {
          const reply = await store.release(request, timeoutMs);
          return reply.released ? reply : { released: false, holder: undefined };
        },
      }),
    breaks: /release\(\) that runs twice/,
  },
  "releases the hold of another request": {
    fault: (store) =>
      but(store, {
        async release(request, timeoutMs) {
          const reply = await store.release(request, timeoutMs);
          if (reply.released || reply.holder === undefined) return reply;
          return await store.release({ key: request.key, requestId: reply.holder }, timeoutMs);
        },
      }),
    breaks: /release\(\) that runs twice/,
  },
  "restores ended holds on a renewal": {
    fault: (store) =>
      but(store, {
        async renew(requests, timeoutMs) {
          for (const request of requests) await store.acquire(request, timeoutMs);
          return await store.renew(requests, timeoutMs);
        },
      }),
    breaks: /a renewal after the release/,
  },
  "shortens a hold on a renewal": {
    fault: (store) =>
      but(store, {
        async renew(requests, timeoutMs) {
          for (const request of requests) {
            const { released } = await store.release(request, timeoutMs);
            if (released) await store.acquire(request, timeoutMs);
          }
          return await store.renew(requests, timeoutMs);
        },
      }),
    breaks: /a renewal never shortens/,
  },
  "keeps the ticket after dequeue()": {
    fault: (store) => but(store, { dequeue: async () => {} }),
    breaks: /dequeue\(\) removes the waiter/,
  },
  "wakes nobody": {
    fault: (store) => but(store, { listen: () => () => {} }),
    breaks: /wakes only that one/,
  },
  "wakes everybody": {
    fault: (store) => {
      const places = new Set<string>();
      const listeners = new Set<StoreListener>();
      return but(store, {
        async enqueue(request, timeoutMs) {
          places.add(request.ticket);
          return await store.enqueue(request, timeoutMs);
        },
        async release(request, timeoutMs) {
          const reply = await store.release(request, timeoutMs);
          for (const listener of listeners) for (const place of places) listener.onWakeUp(place);
          return reply;
        },
        listen(listener) {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      });
    },
    breaks: /wakes only that one/,
  },
  "hands off to the next caller before the waiters": {
    fault: (store) =>
      but(store, {
        async releaseAndEnqueue(held, request, timeoutMs) {
          await store.renew([{ ...request, ...held, fencing: false }], timeoutMs);
          const reply = await store.releaseAndEnqueue(held, request, timeoutMs);
          if (!reply.released || reply.next !== "enqueued") return reply;
          const [holder = ""] = await store.peek([held.key], timeoutMs);
          await store.dequeue(held.key, String(holder).slice("reserved:".length), timeoutMs);
          return {
            released: true,
            next: await store
              .enqueue(request, timeoutMs)
              .then((taken) => (taken.acquired ? taken : "enqueued")),
          };
        },
      }),
    breaks: /the next caller goes to the end of the queue/,
  },
  "enqueues the next caller although the hold has ended": {
    fault: (store) =>
      but(store, {
        async releaseAndEnqueue(held, request, timeoutMs) {
          const reply = await store.releaseAndEnqueue(held, request, timeoutMs);
          if (!reply.released) await store.enqueue(request, timeoutMs);
          return reply;
        },
      }),
    breaks: /the next caller is not enqueued/,
  },
  "returns tokens without a request for one": {
    fault: (store) =>
      but(store, {
        enqueue: (request, timeoutMs) => store.enqueue({ ...request, fencing: true }, timeoutMs),
      }),
    breaks: /gets no token/,
  },
  "frees keys with an unknown value": {
    fault: (store: FlatStore) =>
      but(store, {
        async acquire(request, timeoutMs) {
          const reply = await store.acquire(request, timeoutMs);
          if (reply.acquired || reply.holder?.startsWith("closed:") !== true) return reply;
          await store.release({ key: request.key, requestId: reply.holder }, timeoutMs);
          return await store.acquire(request, timeoutMs);
        },
      }),
    breaks: /"closed:" counts as held by another caller/,
  },
};

for (const [name, { fault, breaks }] of Object.entries(FAULTS)) {
  test.serial(`the contract detects a store that ${name}`, async (t) => {
    t.regex((await broken(fault)).join("\n"), breaks);
  });
}
