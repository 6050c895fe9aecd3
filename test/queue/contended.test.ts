import test from "ava";
import { Contended } from "../../runtime/queue/busy-key";
import { Fleet } from "../support/fleet";
import { idle, job } from "../support/jobs";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a contended key is remembered for at least one second and at most two", (t) => {
  for (const addedAt of [0, 1, 999, 1_000, 1_500, 123_456]) {
    const contended = new Contended();
    contended.add("another", addedAt - 900);
    contended.add(KEY, addedAt);
    t.true(contended.has(KEY, addedAt));
    t.true(contended.has(KEY, addedAt + 999));
    t.false(contended.has("a third", addedAt));
    t.false(contended.has(KEY, addedAt + 2 * SECOND));
  }
});

test("a caller for a recently contended key enqueues immediately, which acquires the key if it is free", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const called = process.call(KEY, {}, idle);
  await fleet.clock.settle();
  await fleet.releaseElsewhere(KEY);
  await fleet.clock.advance(SECOND);
  t.is(await called, "done");
  const kinds = (): string[] =>
    fleet.store.acquireRequests.splice(0).map((request) => ("ticket" in request ? "enqueue" : "acquire"));
  t.deepEqual(kinds(), ["acquire", "enqueue", "enqueue"]);

  await fleet.clock.advance(SECOND - 1);
  t.is(await process.call(KEY, {}, idle), "done");
  t.deepEqual(kinds(), ["enqueue"]);
  t.is(await process.call("LOCK_another", {}, idle), "done");
  t.deepEqual(kinds(), ["acquire"]);
  t.is(await process.call(KEY, { retryTimes: 0 }, idle), "done");
  t.deepEqual(kinds(), ["acquire"], "a caller with no wait budget does not enqueue");

  await fleet.clock.advance(SECOND);
  t.is(await process.call(KEY, {}, idle), "done");
  t.deepEqual(kinds(), ["acquire"], "no other holder was found since");
  await fleet.leftNothing(t, KEY, process);
});

test("a call for a contended key that is aborted immediately also leaves the queue", async (t) => {
  const fleet = new Fleet();
  const [process, other] = [fleet.process(), fleet.process()];
  const holder = job();
  const released = other.call(KEY, {}, holder.body);
  await holder.running;
  const inVain = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "10ms" }, idle), { any: true });
  await fleet.clock.settle();
  await fleet.clock.advance(10);
  await inVain;
  const controller = new AbortController();
  const aborted = t.throwsAsync(process.call(KEY, {}, idle, { signal: controller.signal }), { any: true });
  controller.abort();
  await aborted;
  holder.end();
  await released;
  await fleet.leftNothing(t, KEY, process, other);
});

test("a caller whose wait budget is spent does not join the queue of its last key", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [before, last] = ["LOCK_payOrder_1", "LOCK_payOrder_2"];
  for (const key of [before, last]) await fleet.acquireElsewhere(key, 60 * SECOND);
  const locks = process.locks([before, last], { retryTimes: 1, waitTime: "700ms" });
  const waiting = (async () => {
    while (!(await locks.acquire())) await locks.retryCheck();
  })();
  const inVain = t.throwsAsync(waiting, { code: "LOCK_WAIT_TIME_OUT" });
  await fleet.clock.advance(650);
  fleet.store.onEnqueue = async (send) => {
    const reply = await send();
    await new Promise<void>((resolve) => fleet.clock.after(100, resolve));
    return reply;
  };
  await fleet.releaseElsewhere(before);
  await fleet.clock.advance(500);
  await inVain;
  t.deepEqual([...new Set(fleet.store.enqueueRequests.map(({ key }) => key))], [before]);
  t.is(
    fleet.store.acquireRequests.filter(({ key }) => key === last).length,
    2,
    "once together with the other key, and once after it",
  );
  await fleet.releaseElsewhere(last);
  for (const key of [before, last]) await fleet.leftNothing(t, key, process);
});
