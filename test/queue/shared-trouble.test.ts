import test from "ava";
import { LockUnreachableError } from "../../runtime/base/errors";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { connectionRefused, lostOnTheWay } from "../support/tampered-store";

// Shared holds while the store is unreachable.

const KEY = "LOCK_report_1";
const READ = { mode: "read", lockTime: "30s" } as const;
const SECOND = 1_000;

test("a reader that cannot confirm a shared hold retries a few times a second", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const first = process.call(KEY, READ, () => end.promise);
  await fleet.clock.advance(SECOND);
  fleet.store.onRenew = connectionRefused;
  const before = fleet.store.commands;
  let isInside = false;
  const late = process.call(KEY, { ...READ, waitTime: "10s" }, async () => {
    isInside = true;
    await end.promise;
  });
  await fleet.clock.advance(SECOND);
  const commands = fleet.store.commands - before;
  t.true(commands > 2 && commands <= 12, `${commands} commands`);
  t.false(isInside);
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(200);
  t.true(isInside);
  end.resolve();
  await fleet.clock.advance(SECOND);
  await Promise.all([first, late]);
  await fleet.leftNothing(t, KEY, process);
});

test("a shared hold that the store may have lost is checked until the store answers", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const signals: AbortSignal[] = [];
  const calls = [1, 2].map(() =>
    process.call(KEY, READ, async ({ signal }) => {
      signals.push(signal);
      await end.promise;
    }),
  );
  await fleet.clock.advance(10);
  const { holds } = await fleet.memory.admin.inspect(KEY, SECOND);
  for (const { value } of holds) await fleet.memory.release({ key: KEY, requestId: value }, SECOND);
  fleet.store.onRenew = connectionRefused;
  fleet.store.reconnect();
  await fleet.clock.advance(500);
  t.deepEqual(
    signals.map(({ aborted }) => aborted),
    [false, false],
  );
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(200);
  t.deepEqual(
    signals.map(({ aborted }) => aborted),
    [true, true],
  );
  end.resolve();
  const ends = await Promise.allSettled(calls);
  t.true(ends.every(({ status }) => status === "rejected"));
  await fleet.leftNothing(t, KEY, process);
});

test("a reader gives up at the end of its wait budget even if the store has not answered", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "5s" });
  const end = deferred();
  const first = process.call(KEY, READ, () => end.promise);
  await fleet.clock.advance(SECOND);
  fleet.store.onRenew = lostOnTheWay;
  const impatient = process.call(KEY, { ...READ, retryTimes: 1, waitTime: "300ms" }, () => t.fail());
  const refused = t.throwsAsync(impatient, { instanceOf: LockUnreachableError });
  let isInside = false;
  const behind = process.call(KEY, { ...READ, retryTimes: 100, waitTime: "300ms" }, async () => {
    isInside = true;
    await end.promise;
  });
  await fleet.clock.advance(300);
  await refused;
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(6 * SECOND);
  t.true(isInside);
  end.resolve();
  await fleet.clock.advance(SECOND);
  await Promise.all([first, behind]);
  await fleet.leftNothing(t, KEY, process);
});
