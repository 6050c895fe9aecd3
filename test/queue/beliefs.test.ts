import test from "ava";
import { CLAIM_TIME_MS, type Store } from "../../runtime/stores/port";
import { batching } from "../support/batching-store";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { job, passes } from "../support/jobs";
import { withoutBatch, type FlatStore } from "../support/flat-store";

// A process never believes it holds more than the store has for it, in whatever order its commands arrive.

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;
const PATIENT = { retryTimes: 1_000, waitTime: "60s" } as const;
const SHORT = { ...PATIENT, lockTime: "30s", watchdog: false } as const;

for (const [what, abortAfterMs, hintsArrive] of [
  ["in the same tick, before its command is sent", undefined, true],
  ["in the same tick, and the wake-up is lost", undefined, false],
  ["while its command is in flight and arrives late", 1, true],
  ["while its command is in flight, and the wake-up is lost", 1, false],
] as const) {
  test(`a waiter behind one that aborts ${what} never trusts its hold for longer than the store keeps it`, async (t) => {
    const fleet = new Fleet();
    const [other, third] = [fleet.process(), fleet.process()];
    const process = fleet.process({ store: batchingAcquires(fleet.store) });
    const holder = job();
    const released = other.call(KEY, SHORT, holder.body);
    await holder.running;

    // The process batches its commands, except enqueues. Its acquires arrive late.
    const late = deferred();
    fleet.store.onAcquire = async (send) => {
      await late.promise;
      return await send();
    };
    fleet.store.onEnqueue = (send) => send();
    const busy = process.call("LOCK_other", {}, () => {});
    await fleet.clock.settle();

    const controller = new AbortController();
    const reason = new Error("the client went away");
    const aborted = t.throwsAsync(
      process.call(KEY, SHORT, () => t.fail(), { signal: controller.signal }),
      { is: reason },
    );
    let inside = 0;
    const entered = deferred<{ remainingMs: number; storeValue: string | undefined }>();
    const next = process.call(KEY, SHORT, async (lock) => {
      t.is((inside += 1), 1);
      const remainingMs = lock.remaining();
      entered.resolve({ remainingMs, storeValue: lock.storeValue });
      await passes(fleet.clock, remainingMs);
      inside -= 1;
    });
    if (abortAfterMs !== undefined) await fleet.clock.advance(abortAfterMs);
    controller.abort(reason);
    await aborted;
    await fleet.clock.settle();
    const asked = fleet.store.acquireRequests.filter(({ key }) => key === KEY);
    t.deepEqual(
      asked.map((request) => ("ticket" in request ? "enqueue" : "acquire")),
      abortAfterMs === undefined ? ["acquire", "enqueue", "acquire"] : ["acquire", "acquire", "enqueue"],
      "the holder acquires, and the next waiter acquires before or after the aborted one enqueues",
    );
    t.is(new Set(asked.map(({ requestId }) => requestId)).size, 3);
    if (!hintsArrive) fleet.store.onWakeUp = () => {};

    holder.end();
    await released;
    await fleet.clock.settle();
    late.resolve();
    fleet.store.onAcquire = (send) => send();
    const after = third.call(KEY, SHORT, () => {
      t.is((inside += 1), 1);
      inside -= 1;
    });
    await fleet.clock.advance(CLAIM_TIME_MS);
    const { remainingMs, storeValue } = await entered.promise;
    t.true(remainingMs > 0);
    t.is(await fleet.valueOf(KEY), storeValue);
    await fleet.clock.advance(remainingMs - CLAIM_TIME_MS - 1);
    t.is(
      await fleet.valueOf(KEY),
      storeValue,
      "no other caller can hold the key while this one trusts its hold",
    );
    await fleet.clock.advance(10 * SECOND);
    await Promise.all([busy, next, after]);
    await fleet.leftNothing(t, KEY, process, other, third);
  });
}

/** Returns a store that accepts batches, but none that enqueue. */
function batchingAcquires(store: Store): FlatStore {
  const { acquireMany, releaseMany } = batching(store);
  if (acquireMany === undefined || releaseMany === undefined)
    throw new Error("Expected a store with batches");
  return withoutBatch(store, { acquireMany, releaseMany });
}
