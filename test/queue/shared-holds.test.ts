import test from "ava";
import { LockLostError } from "../../runtime/base/errors";
import type { Lock } from "../../runtime/lock/lock";
import { deferred } from "../support/deferred";
import { Fleet, type FleetProcess } from "../support/fleet";
import { lostOnTheWay } from "../support/tampered-store";

// The readers of one process share one hold. They lose it when the process loses it.

const KEY = "LOCK_report_1";
const READ = { mode: "read", lockTime: "30s" } as const;
const SECOND = 1_000;

/** Starts readers whose bodies run until `end`. They are in `inside` as long as their bodies run. */
function readers(
  process: FleetProcess,
  count: number,
  end: Promise<unknown>,
  inside: Lock[],
): Promise<unknown>[] {
  return Array.from({ length: count }, () =>
    process
      .call(KEY, READ, async (lock) => {
        inside.push(lock);
        await end;
        inside.splice(inside.indexOf(lock), 1);
      })
      .catch((error: unknown) => error),
  );
}

async function holdsOf(fleet: Fleet): Promise<readonly string[]> {
  const { holds } = await fleet.memory.admin.inspect(KEY, SECOND);
  return holds.map(({ value }) => value);
}

for (const count of [10, 2_000]) {
  test(`${count} readers of one process cost as many commands as one reader`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    const end = deferred();
    const inside: Lock[] = [];
    const calls = readers(process, count, end.promise, inside);
    await fleet.clock.advance(10);
    t.is(inside.length, count);
    t.is((await holdsOf(fleet)).length, 1);
    t.is(fleet.store.acquireRequests.length, 1);
    end.resolve();
    await fleet.clock.advance(10);
    await Promise.all(calls);
    t.is(fleet.store.releases, 1);
    t.true(fleet.store.commands <= 4, `${fleet.store.commands} commands`);
    await fleet.leftNothing(t, KEY, process);
  });
}

test("no reader joins the hold of its process once a writer waits in another process", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process(), fleet.process()];
  const ends = [deferred(), deferred(), deferred()];
  const order: string[] = [];
  const inside: Lock[] = [];
  const first = ends.flatMap(({ promise }) => readers(one, 1, promise, inside));
  await fleet.clock.advance(500);
  const writer = two.call(KEY, {}, () => void order.push(`writer beside ${inside.length} readers`));
  await fleet.clock.advance(500);
  const late = one.call(KEY, READ, () => void order.push("late reader"));
  await fleet.clock.advance(SECOND);
  t.deepEqual(order, []);
  t.is(inside.length, 3);
  for (const end of ends) {
    end.resolve();
    await fleet.clock.advance(2 * SECOND);
  }
  await Promise.all([...first, writer, late]);
  t.deepEqual(order, ["writer beside 0 readers", "late reader"]);
  await fleet.leftNothing(t, KEY, one, two);
});

test("a constant stream of readers does not keep out a writer of another process", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process(), fleet.process()];
  let [readersInside, isServed] = [0, false];
  const calls: Promise<unknown>[] = [];
  const comeAgain = (): void => {
    if (isServed) return;
    calls.push(
      one.call(KEY, READ, async () => {
        readersInside += 1;
        await new Promise((resolve) => fleet.clock.after(30, () => resolve(undefined)));
        readersInside -= 1;
      }),
    );
    fleet.clock.after(10, comeAgain);
  };
  comeAgain();
  await fleet.clock.advance(SECOND);
  const writer = two.call(KEY, { waitTime: "5s" }, () => {
    isServed = true;
    t.is(readersInside, 0);
  });
  await fleet.clock.advance(400);
  t.true(isServed);
  await fleet.clock.advance(SECOND);
  await Promise.all([...calls, writer]);
  await fleet.leftNothing(t, KEY, one, two);
});

test("a lost hold is lost for all its readers, and no reader joins it afterward", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const inside: Lock[] = [];
  const calls = readers(process, 3, end.promise, inside);
  await fleet.clock.advance(10);
  const [lost = ""] = await holdsOf(fleet);
  await fleet.memory.release({ key: KEY, requestId: lost }, SECOND);
  await fleet.acquireElsewhere(KEY, 5 * SECOND);
  fleet.store.reconnect(); // The process verifies its leases.
  await fleet.clock.advance(10);
  t.deepEqual(
    inside.map((lock) => [lock.signal.aborted, lock.remaining()]),
    inside.map(() => [true, 0]),
  );
  const late: Lock[] = [];
  const lateCalls = readers(process, 2, end.promise, late);
  await fleet.clock.advance(4 * SECOND);
  t.is(late.length, 0, "another caller holds the key");
  await fleet.clock.advance(3 * SECOND);
  t.is(late.length, 2);
  end.resolve();
  await fleet.clock.advance(SECOND);
  const ends = await Promise.all(calls);
  t.true(ends.every((error) => error instanceof LockLostError));
  t.deepEqual(await Promise.all(lateCalls), [undefined, undefined]);
  await fleet.leftNothing(t, KEY, process);
});

test("a revoked hold keeps out writers until its last reader has left", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process(), fleet.process()];
  const end = deferred();
  const order: string[] = [];
  const inside: Lock[] = [];
  const calls = readers(one, 3, end.promise, inside);
  await fleet.clock.advance(10);
  const [requestId = ""] = await holdsOf(fleet);
  t.true(await fleet.memory.admin.revoke({ key: KEY, requestId }, SECOND));
  const writer = two.call(KEY, { waitTime: "60s" }, () => void order.push("writer"));
  await fleet.clock.advance(15 * SECOND); // A renewal has reported it by then.
  t.true(inside.every((lock) => lock.signal.aborted && lock.remaining() === 0));
  t.deepEqual(order, []);
  end.resolve();
  await fleet.clock.advance(2 * SECOND);
  await Promise.all([...calls, writer]);
  t.deepEqual(order, ["writer"]);
  await fleet.leftNothing(t, KEY, one, two);
});

test("a reader does not join a hold that could not be renewed for half of its lock time", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const [inside, late]: [Lock[], Lock[]] = [[], []];
  const first = readers(process, 1, end.promise, inside);
  await fleet.clock.advance(10);
  fleet.store.onRenew = lostOnTheWay;
  await fleet.clock.advance(20 * SECOND);
  const second = readers(process, 1, end.promise, late);
  await fleet.clock.advance(10);
  t.true((inside[0]?.remaining() ?? 0) < 10 * SECOND);
  t.true((late[0]?.remaining() ?? 0) > 29 * SECOND);
  t.is((await holdsOf(fleet)).length, 2);
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(3 * SECOND);
  end.resolve();
  await fleet.clock.advance(SECOND);
  await Promise.all([...first, ...second]);
  await fleet.leftNothing(t, KEY, process);
});

test("holdAtMost ends the lock of one reader and keeps those of the others", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process(), fleet.process()];
  const [end, otherEnds] = [deferred(), [deferred(), deferred()]];
  const inside: Lock[] = [];
  const others = otherEnds.flatMap(({ promise }) => readers(one, 1, promise, inside));
  let limitedLock: Lock | undefined;
  const limited = one.call(KEY, { ...READ, holdAtMost: "40s" }, async (lock) => {
    limitedLock = lock;
    await end.promise;
  });
  const overdue = t.throwsAsync(limited, { instanceOf: LockLostError });
  await fleet.clock.advance(10);
  t.is((await holdsOf(fleet)).length, 1);
  const writer = two.call(KEY, { waitTime: "120s" }, () => t.is(inside.length, 0));
  await fleet.clock.advance(40 * SECOND);
  t.deepEqual([limitedLock?.signal.aborted, limitedLock?.remaining()], [true, 0]);
  t.deepEqual(
    inside.map((lock) => [lock.signal.aborted, lock.remaining() > 0]),
    [
      [false, true],
      [false, true],
    ],
  );
  await fleet.clock.advance(55 * SECOND);
  t.true(inside.every((lock) => lock.remaining() > 0));
  end.resolve();
  for (const { resolve } of otherEnds) {
    await fleet.clock.advance(2 * SECOND);
    t.true(inside.every((lock) => lock.remaining() > 0));
    resolve();
  }
  await fleet.clock.advance(2 * SECOND);
  await Promise.all([...others, overdue, writer]);
  await fleet.leftNothing(t, KEY, one, two);
});

test("a reader that leaves before its holdAtMost is over leaves no timer", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const others = readers(process, 1, end.promise, []);
  await fleet.clock.advance(10);
  const timers = fleet.clock.pendingTimers;
  const limited = process.call(KEY, { ...READ, holdAtMost: "10h" }, () => {
    t.is(fleet.clock.pendingTimers, timers + 1);
  });
  await fleet.clock.advance(10);
  await limited;
  t.is(fleet.clock.pendingTimers, timers);
  end.resolve();
  await fleet.clock.advance(SECOND);
  await Promise.all(others);
  await fleet.leftNothing(t, KEY, process);
});

test("readers with another lock time have their own hold", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const calls = (["30s", "10s", "30s"] as const).map((lockTime) =>
    process.call(KEY, { mode: "read", lockTime }, () => end.promise),
  );
  await fleet.clock.advance(10);
  t.is((await holdsOf(fleet)).length, 2);
  end.resolve();
  await fleet.clock.advance(10);
  await Promise.all(calls);
  await fleet.leftNothing(t, KEY, process);
});

test("a multi-key reader without a watchdog does not stop the renewals of other readers", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const inside: Lock[] = [];
  const calls = readers(process, 2, end.promise, inside);
  await fleet.clock.advance(10);
  const locks = process.locks([KEY, "LOCK_report_2"], { ...READ, watchdog: false });
  t.true(await locks.acquire());
  await fleet.clock.advance(60 * SECOND);
  t.is(locks.remaining(), 0);
  t.deepEqual(
    inside.map((lock) => lock.remaining() > 0),
    [true, true],
  );
  end.resolve();
  await t.throwsAsync(locks.release(), { instanceOf: LockLostError });
  await fleet.clock.advance(SECOND);
  t.deepEqual(await Promise.all(calls), [undefined, undefined]);
  await fleet.leftNothing(t, KEY, process);
});

test("a multi-key reader learns when its holdAtMost is over, while other readers continue", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const inside: Lock[] = [];
  const calls = readers(process, 2, end.promise, inside);
  await fleet.clock.advance(10);
  const locks = process.locks([KEY, "LOCK_report_2"], { ...READ, holdAtMost: "40s" });
  t.true(await locks.acquire());
  const { signal } = locks;
  await fleet.clock.advance(39 * SECOND);
  t.false(signal.aborted);
  await fleet.clock.advance(2 * SECOND);
  t.true(signal.aborted);
  t.true(inside.every((lock) => lock.remaining() > 0));
  await t.throwsAsync(locks.release(), { instanceOf: LockLostError });
  end.resolve();
  await fleet.clock.advance(SECOND);
  t.deepEqual(await Promise.all(calls), [undefined, undefined]);
  await fleet.leftNothing(t, KEY, process);
});

test("callers that leave one after the other release their permits in at most two commands", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const ends = Array.from({ length: 20 }, () => deferred());
  const calls = ends.map(({ promise }) => process.call(KEY, { permits: 20 }, () => promise));
  await fleet.clock.advance(10);
  const before = fleet.store.commands;
  for (const end of ends.slice(1)) {
    end.resolve();
    await fleet.clock.settle();
  }
  await fleet.clock.advance(10);
  const renewals = fleet.store.commands - before;
  t.true(renewals <= 2, `${renewals} commands`);
  const { holds } = await fleet.memory.admin.inspect(KEY, SECOND);
  t.deepEqual(
    holds.map(({ permits }) => permits),
    [1],
  );
  ends[0]?.resolve();
  await Promise.all(calls);
  await fleet.leftNothing(t, KEY, process);
});

test("extend() of a shared lock keeps the key no longer than holdAtMost allows", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const call = process.call(KEY, { mode: "read", lockTime: "1s", holdAtMost: "5s" }, async (lock) => {
    await lock.extend("1h");
    await end.promise;
  });
  await fleet.clock.advance(10);
  const { holds } = await fleet.memory.admin.inspect(KEY, SECOND);
  t.true(holds.length === 1 && holds.every(({ leftMs = Infinity }) => leftMs <= 5 * SECOND));
  end.resolve();
  await call;
  await fleet.leftNothing(t, KEY, process);
});
