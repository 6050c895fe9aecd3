import test from "ava";
import { LockMisconfiguredError } from "../../runtime/base/errors";
import { Fleet } from "../support/fleet";
import { idle, job } from "../support/jobs";
import { connectionRefused, lostOnTheWay, replyLost } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;

test("a release that never arrived is sent again, so the key is freed before its lock time ends", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = (send) => {
    fleet.store.onRelease = () => send();
    return lostOnTheWay();
  };
  const call = fleet.process({ commandTimeout: "1s" }).call(KEY, {}, idle);
  await fleet.clock.advance(SECOND);
  t.is(await call, "done");
  t.is(fleet.store.releases, 2);
  t.true(await fleet.isForgotten(KEY));
});

test("a release is retried until the store answers, with pauses that grow to one second", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRelease = connectionRefused;
  const startedAt = fleet.clock.now();
  const sentAt: number[] = [];
  fleet.store.onAny = (send) => {
    sentAt.push(fleet.clock.now() - startedAt);
    return send();
  };
  t.is(
    await process.call(KEY, { lockTime: "30s" }, idle),
    "done",
    "the caller does not wait for the retries",
  );
  await fleet.clock.advance(5_000);
  t.deepEqual(sentAt.slice(1), [0, 0, 100, 300, 700, 1_500, 2_500, 3_500, 4_500]);
  t.false(await fleet.isFree(KEY));
  fleet.store.onRelease = (send) => send();
  await fleet.clock.advance(SECOND);
  await fleet.leftNothing(t, KEY, process);
  t.is(fleet.warnings.length, 1, fleet.warnings.join("\n"));
});

test("a release is no longer retried once the key has expired", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRelease = connectionRefused;
  await process.call(KEY, { lockTime: "3s" }, idle);
  await fleet.clock.advance(3 * SECOND);
  const { releases } = fleet.store;
  t.is(fleet.clock.pendingTimers, 0);
  await fleet.clock.advance(60 * SECOND);
  t.is(fleet.store.releases, releases);
  await fleet.leftNothing(t, KEY, process);
});

test("a release that the store rejects is retried until the lock time ends", async (t) => {
  const fleet = new Fleet();
  fleet.store.onRelease = () => Promise.reject(new LockMisconfiguredError("NOPERM"));
  await fleet.process().call(KEY, {}, idle);
  await fleet.clock.advance(60 * SECOND);
  t.true(fleet.store.releases > 25 && fleet.store.releases < 40, `${fleet.store.releases} releases`);
  t.is(fleet.clock.pendingTimers, 0);
  t.regex(fleet.warnings.join("\n"), /the store did not confirm the release \(NOPERM\)/);
});

for (const [what, fate] of [
  ["refused", connectionRefused],
  ["lost", lostOnTheWay],
  ["executed without a reply", replyLost],
] as const) {
  test(`the next local waiter enters as soon as a release that was ${what} is confirmed`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process({ commandTimeout: "1s" });
    const { body, running, end } = job();
    const holder = process.call(KEY, { watchdog: false, lockTime: "30s" }, body); // So the hand-off goes through the store.
    await running;
    const next = process.call(KEY, { retryTimes: 1, waitTime: "20s" }, () => fleet.clock.now());
    fleet.store.onRelease = fate;
    const endedAt = fleet.clock.now();
    end();
    await fleet.clock.advance(2_700);
    t.is(await holder, "done");
    fleet.store.onWakeUp = () => {};
    let confirmedAt = NaN;
    fleet.store.onRelease = async (send) => {
      const reply = await send();
      if (Number.isNaN(confirmedAt)) confirmedAt = fleet.clock.now();
      return reply;
    };
    await fleet.clock.advance(2 * SECOND);
    const enteredAt = await next;
    // A release that was executed enqueued the waiter, so its first try after the command timeout gets the key.
    t.is(enteredAt, fate === replyLost ? endedAt + SECOND : confirmedAt);
    await fleet.leftNothing(t, KEY, process);
  });
}
