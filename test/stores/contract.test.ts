import { setImmediate as nextTurn } from "node:timers/promises";
import test from "ava";
import { storeContract } from "../../runtime/stores/contract";
import { memoryStore } from "../../runtime/stores/memory";
import type { Store, StoreListener } from "../../runtime/stores/port";
import { isHeldBy } from "../../runtime/stores/value";
import { VirtualClock } from "../support/virtual-clock";
import { but, type Tamper } from "../simulation/tampering";

// That the contract bites: for each way in which a store could lie, the promises that it breaks.

/**
 * A promise to be hinted is broken when nothing is heard for so many turns of the event loop. Under virtual time no other promise
 * takes as many.
 */
const HEARS_NOTHING_TURNS = 20_000;

async function valueOf(store: Store, key: string, withinMs: number): Promise<string | undefined> {
  const [value] = await store.look([key], withinMs);
  return value instanceof Error ? undefined : value;
}

/** The promises that a memory store with this fault breaks. */
async function broken(fault: Tamper): Promise<string[]> {
  const promises: { title: string; run: () => Promise<void> }[] = [];
  storeContract(
    (title, run) => void promises.push({ title, run }),
    () => {
      const clock = new VirtualClock();
      const store = memoryStore({ clock });
      return {
        store: fault(store),
        elapse: (ms) => clock.advance(ms),
        put: async (key, value, ms) =>
          void (await store.take({ key, requestId: value, lockTimeMs: ms, fencing: false }, 1)),
      };
    },
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
    for (let turn = 0; turn < HEARS_NOTHING_TURNS && !end.isReached; turn += 1) await nextTurn();
    if (end.outcome === never) titles.push(title);
  }
  return titles;
}

test.serial("a store that keeps the contract breaks no promise", async (t) => {
  t.deepEqual(await broken((store) => store), []);
});

const FAULTS: Record<string, { readonly fault: Tamper; readonly breaks: RegExp }> = {
  "renews what is revoked": {
    fault: (store) =>
      but(store, {
        revoke: async ({ key, requestId }, withinMs) =>
          isHeldBy(requestId, await valueOf(store, key, withinMs)),
      }),
    breaks: /renewed no more/,
  },
  "frees what is revoked": {
    fault: (store) =>
      but(store, {
        revoke: async (request, withinMs) => (await store.drop(request, withinMs)).dropped,
      }),
    breaks: /keeps the key until its holder drops it/,
  },
  "revokes whatever a key holds": {
    fault: (store) =>
      but(store, {
        async revoke({ key }, withinMs) {
          const requestId = await valueOf(store, key, withinMs);
          return requestId !== undefined && (await store.revoke?.({ key, requestId }, withinMs)) === true;
        },
      }),
    breaks: /what another holds is not revoked/,
  },
  "takes its own id, found again, for a grant": {
    fault: (store) =>
      but(store, {
        async take(request, withinMs) {
          const reply = await store.take(request, withinMs);
          return !reply.taken && reply.holder === request.requestId ? { taken: true } : reply;
        },
      }),
    breaks: /a take that is carried out twice/,
  },
  "takes a reservation for a hold of the place": {
    fault: (store) =>
      but(store, {
        async renew(requests, withinMs) {
          const replies = await store.renew(requests, withinMs);
          return replies.map((reply, index) =>
            !(reply instanceof Error) &&
            !reply.renewed &&
            reply.holder === `reserved:${requests[index]?.requestId}`
              ? { renewed: true }
              : reply,
          );
        },
      }),
    breaks: /a reservation is no hold/,
  },
  "lets take what is reserved": {
    fault: (store) =>
      but(store, {
        async take(request, withinMs) {
          const reply = await store.take(request, withinMs);
          if (reply.taken || reply.holder?.startsWith("reserved:") !== true) return reply;
          await store.leave(request.key, reply.holder.slice("reserved:".length), withinMs);
          return await store.take(request, withinMs);
        },
      }),
    breaks: /in the order in which they came/,
  },
  "tells no holder": {
    fault: (store) =>
      but(store, {
        async drop(request, withinMs) {
          const reply = await store.drop(request, withinMs);
          return reply.dropped ? reply : { dropped: false, holder: undefined };
        },
      }),
    breaks: /a drop that is carried out twice/,
  },
  "drops what another holds": {
    fault: (store) =>
      but(store, {
        async drop(request, withinMs) {
          const reply = await store.drop(request, withinMs);
          if (reply.dropped || reply.holder === undefined) return reply;
          return await store.drop({ key: request.key, requestId: reply.holder }, withinMs);
        },
      }),
    breaks: /a drop that is carried out twice/,
  },
  "brings back what is over": {
    fault: (store) =>
      but(store, {
        async renew(requests, withinMs) {
          for (const request of requests) await store.take(request, withinMs);
          return await store.renew(requests, withinMs);
        },
      }),
    breaks: /a renewal that comes after its drop/,
  },
  "shortens a hold": {
    fault: (store) =>
      but(store, {
        async renew(requests, withinMs) {
          for (const request of requests) {
            const { dropped } = await store.drop(request, withinMs);
            if (dropped) await store.take(request, withinMs);
          }
          return await store.renew(requests, withinMs);
        },
      }),
    breaks: /a renewal never shortens/,
  },
  "keeps a place that is left": {
    fault: (store) => but(store, { leave: async () => {} }),
    breaks: /who leaves has no place/,
  },
  "tells nobody": {
    fault: (store) => but(store, { listen: () => () => {} }),
    breaks: /hints to it alone/,
  },
  "tells everybody": {
    fault: (store) => {
      const places = new Set<string>();
      const listeners = new Set<StoreListener>();
      return but(store, {
        async place(request, withinMs) {
          places.add(request.place);
          return await store.place(request, withinMs);
        },
        async drop(request, withinMs) {
          const reply = await store.drop(request, withinMs);
          for (const listener of listeners) for (const place of places) listener.onHint(place);
          return reply;
        },
        listen(listener) {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      });
    },
    breaks: /hints to it alone/,
  },
  "hands on to its own next before those who wait": {
    fault: (store) =>
      but(store, {
        async next(held, request, withinMs) {
          await store.renew([{ ...request, ...held, fencing: false }], withinMs);
          const reply = await store.next(held, request, withinMs);
          if (!reply.dropped || reply.next !== "placed") return reply;
          const [holder = ""] = await store.look([held.key], withinMs);
          await store.leave(held.key, String(holder).slice("reserved:".length), withinMs);
          return {
            dropped: true,
            next: await store.place(request, withinMs).then((taken) => (taken.taken ? taken : "placed")),
          };
        },
      }),
    breaks: /the next goes to the end of the queue/,
  },
  "gives a place to the next of one who holds nothing": {
    fault: (store) =>
      but(store, {
        async next(held, request, withinMs) {
          const reply = await store.next(held, request, withinMs);
          if (!reply.dropped) await store.place(request, withinMs);
          return reply;
        },
      }),
    breaks: /its next gets no place/,
  },
  "gives tokens to those who ask for none": {
    fault: (store) =>
      but(store, {
        place: (request, withinMs) => store.place({ ...request, fencing: true }, withinMs),
      }),
    breaks: /given none/,
  },
  "frees keys of a form that it does not know": {
    fault: (store: Store) =>
      but(store, {
        async take(request, withinMs) {
          const reply = await store.take(request, withinMs);
          if (reply.taken || reply.holder?.startsWith("closed:") !== true) return reply;
          await store.drop({ key: request.key, requestId: reply.holder }, withinMs);
          return await store.take(request, withinMs);
        },
      }),
    breaks: /"closed:" is held by another/,
  },
};

for (const [name, { fault, breaks }] of Object.entries(FAULTS)) {
  test.serial(`a store that ${name} is found out`, async (t) => {
    t.regex((await broken(fault)).join("\n"), breaks);
  });
}
