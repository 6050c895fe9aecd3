import test from "ava";
import { TICKET_TIME_MS, type EnqueueRequest } from "../../runtime/stores/port";
import { batching } from "../support/batching-store";
import { Fleet, type FleetProcess } from "../support/fleet";
import { idle } from "../support/jobs";
import { replacing } from "../support/flat-store";

const SECOND = 1_000;
const KEYS = Array.from({ length: 40 }, (_, index) => `LOCK_payOrder_${index}`);

interface Asked {
  readonly at: number;
  readonly keys: readonly string[];
}

/** Returns a process and a record of its enqueue commands, with their times and keys. */
function observed(fleet: Fleet): { readonly process: FleetProcess; readonly asked: Asked[] } {
  const asked: Asked[] = [];
  const store = batching(fleet.memory);
  const note = (requests: readonly EnqueueRequest[]): void =>
    void asked.push({ at: fleet.clock.now(), keys: requests.map(({ key }) => key) });
  const process = fleet.process({
    store: replacing(store, {
      enqueue(request, timeoutMs) {
        note([request]);
        return store.enqueue(request, timeoutMs);
      },
      enqueueMany(requests, timeoutMs) {
        note(requests);
        return store.enqueueMany?.(requests, timeoutMs) ?? Promise.reject(new Error("cannot"));
      },
    }),
  });
  return { process, asked };
}

test("each waiter enqueues again once a second, and a process batches its waiters into a few commands", async (t) => {
  const fleet = new Fleet();
  const { process, asked } = observed(fleet);
  const controller = new AbortController();
  const outcomes: Promise<unknown>[] = [];
  for (const key of KEYS) {
    await fleet.acquireElsewhere(key, 60 * SECOND);
    const { signal } = controller;
    outcomes.push(t.throwsAsync(process.call(key, { waitTime: "1m" }, idle, { signal }), { any: true }));
    await fleet.clock.settle();
    await fleet.clock.advance(20);
  }
  t.is(asked.length, KEYS.length, "the first command of each waiter");
  for (let second = 0; second < 10; second += 1) {
    asked.length = 0;
    await fleet.clock.advance(SECOND);
    t.true(asked.length <= 10, `${asked.length} commands`);
    t.deepEqual(new Set(asked.flatMap(({ keys }) => keys)), new Set(KEYS));
  }
  controller.abort();
  await Promise.all(outcomes);
  for (const key of KEYS) await fleet.releaseElsewhere(key);
  for (const key of KEYS) t.true(await fleet.isForgotten(key));
  t.is(fleet.clock.pendingTimers, 0);
});

test("a waiter renews its ticket before it expires, whenever it joined the queue", async (t) => {
  for (const late of [0, 1, 37.5, 99, 99.999]) {
    const fleet = new Fleet();
    const { process, asked } = observed(fleet);
    const [key = ""] = KEYS;
    await fleet.acquireElsewhere(key, 8 * SECOND);
    await fleet.clock.advance(late);
    const called = process.call(key, {}, idle);
    await fleet.clock.advance(7 * SECOND);
    const gaps = asked.slice(1).map(({ at }, index) => at - (asked[index]?.at ?? 0));
    t.true(gaps.length >= 6);
    t.true(Math.max(...gaps) <= SECOND + 1 && SECOND + 1 < TICKET_TIME_MS);
    await fleet.releaseElsewhere(key);
    await fleet.clock.advance(SECOND);
    t.is(await called, "done");
  }
});

test("an enqueue is not sent if its waiter gives up in the same tick", async (t) => {
  const fleet = new Fleet();
  const controller = new AbortController();
  const store = batching(fleet.store);
  const process = fleet.process({
    store: replacing(store, {
      async acquireMany(requests, timeoutMs) {
        const replies = (await store.acquireMany?.(requests, timeoutMs)) ?? [];
        // After the promise jobs that handle the replies, and before the tick that sends the batch.
        void passed(20).then(() => controller.abort());
        return replies;
      },
    }),
  });
  const keys = KEYS.slice(0, 3);
  for (const key of keys) await fleet.acquireElsewhere(key, 60 * SECOND);
  await Promise.all(keys.map((key) => t.throwsAsync(process.call(key, {}, idle, controller), { any: true })));
  await fleet.clock.settle();
  t.is(fleet.store.acquireRequests.length, keys.length, "only the acquires");
  for (const key of keys) await fleet.releaseElsewhere(key);
  await fleet.leftNothing(t, keys[0] ?? "", process);
});

async function passed(jobs: number): Promise<void> {
  for (let job = 0; job < jobs; job += 1) await Promise.resolve();
}
