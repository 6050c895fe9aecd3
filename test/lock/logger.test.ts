import test from "ava";
import { Fleet } from "../support/fleet";
import { connectionRefused } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a logger that throws does not affect the lock", async (t) => {
  const fleet = new Fleet();
  const complain = (): never => {
    throw new Error("disk full");
  };
  const process = fleet.process({ logger: { debug: complain, warn: complain } });
  await fleet.acquireElsewhere(KEY, SECOND);
  const waiter = process.call(KEY, {}, () => "result");
  await fleet.clock.advance(SECOND);
  t.is(await waiter, "result");
  t.true(await fleet.isFree(KEY));
  fleet.store.onRelease = connectionRefused;
  t.is(await process.call(KEY, {}, () => "result"), "result");
  fleet.store.onRelease = (send) => send();
  await fleet.clock.advance(SECOND);
  t.true(await fleet.isFree(KEY), "the release is sent again");
  t.is(fleet.clock.pendingTimers, 0);
});

test("a logger with debug() receives the timeline of a lock", async (t) => {
  const fleet = new Fleet();
  const lines: string[] = [];
  const logger = { debug: (line: string) => void lines.push(line), warn: () => t.fail() };
  await fleet.acquireElsewhere(KEY, SECOND);
  const call = fleet.process({ logger }).call(KEY, {}, (lock) => lock.requestId);
  await fleet.clock.advance(SECOND);
  const id = (await call)?.slice(-8);
  t.deepEqual(lines, [
    `LOCK_payOrder_1 ${id} waits`,
    `LOCK_payOrder_1 ${id} holds the lock after 1000 ms`,
    `LOCK_payOrder_1 ${id} released after 0 ms`,
  ]);
});

test("a logger with debug() receives a line when a waiter gives up", async (t) => {
  const fleet = new Fleet();
  const lines: string[] = [];
  const logger = { debug: (line: string) => void lines.push(line), warn: () => t.fail() };
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  const process = fleet.process({ logger });
  const call = process.call(KEY, { retryTimes: 2, waitTime: "1s" }, () => t.fail());
  const refused = t.throwsAsync(call, { code: "LOCK_WAIT_TIME_OUT" });
  await fleet.clock.advance(3 * SECOND);
  await refused;
  t.is(lines.length, 2);
  t.regex(lines[0] ?? "", /^LOCK_payOrder_1 \w{8} waits$/);
  t.regex(lines[1] ?? "", /^LOCK_payOrder_1 \w{8} gives up after 2000 ms$/);
});
