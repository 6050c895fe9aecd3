import { AsyncLocalStorage } from "node:async_hooks";
import test from "ava";
import { isIdle, onceIdle } from "../../runtime/config/when-idle";
import { Fleet } from "../support/fleet";

test("onceIdle() runs the callback once, outside of any context, when the last lock or waiter ends", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const requests = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const watch = (): void => {
    t.false(isIdle(process.locker));
    onceIdle(process.locker, () => seen.push(requests.getStore()));
  };
  t.true(isIdle(process.locker));
  await requests.run("a request", () => process.call("k", {}, watch));
  t.deepEqual(seen, [undefined]);

  await fleet.acquireElsewhere("k", 60_000);
  const waiting = process.lock("k");
  t.false(await waiting.acquire());
  watch();
  requests.run("a request", () => void waiting.release());
  t.deepEqual(seen, [undefined, undefined]);
  await process.call("another", {}, () => {});
  t.deepEqual(seen, [undefined, undefined]);
  await fleet.clock.settle();
  t.is(fleet.clock.pendingTimers, 0);
});

test("a lock of several keys that is released before acquire() leaves the process idle", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const locks = process.locks(["k", "l"]);
  await locks.release();
  await t.throwsAsync(locks.acquire(), { message: /they were released/ });
  t.true(isIdle(process.locker));
});
