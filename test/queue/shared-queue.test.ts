import test from "ava";
import { LockWaitTimeoutError } from "../../runtime/base/errors";
import { deferred } from "../support/deferred";
import { Fleet, type FleetProcess } from "../support/fleet";
import { lostOnTheWay } from "../support/tampered-store";

// Callers of one process that share a key with permits. A release hands off its permit, and a caller without room sends nothing.

const KEY = "LOCK_mail_1";
const TWO = { permits: 2 } as const;

/** Runs this many calls of one millisecond at once, and returns the largest number that were inside together. */
async function crowd(fleet: Fleet, process: FleetProcess, size: number): Promise<number> {
  let [inside, most] = [0, 0];
  const calls = Array.from({ length: size }, () =>
    process.call(KEY, TWO, async () => {
      inside += 1;
      most = Math.max(most, inside);
      await new Promise((resolve) => fleet.clock.after(1, () => resolve(undefined)));
      inside -= 1;
    }),
  );
  await fleet.clock.advance(1_000);
  await Promise.all(calls);
  return most;
}

test("many callers in one process share all permits of a key for a few commands", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  t.is(await crowd(fleet, process, 28), 2);
  // Each of the two permits is acquired once and handed off for one turn.
  t.true(fleet.store.acquireRequests.length <= 4, `${fleet.store.acquireRequests.length} requests`);
  t.is(fleet.store.enqueueRequests.length, 0);
  await fleet.leftNothing(t, KEY, process);
});

test("a process with many callers leaves a permit to a waiter of another process", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process(), fleet.process()];
  let isServed = false;
  const crowded = crowd(fleet, one, 200);
  const other = two.call(KEY, TWO, () => {
    isServed = true;
  });
  await fleet.clock.advance(120);
  t.true(isServed);
  await Promise.all([crowded, other]);
  await fleet.leftNothing(t, KEY, one, two);
});

test("callers with permits do not overtake an exclusive waiter that came first", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const order: string[] = [];
  const shares = [1, 2].map(() => process.call(KEY, TWO, () => end.promise));
  await fleet.clock.advance(1);
  const alone = process.call(KEY, {}, () => void order.push("alone"));
  await fleet.clock.advance(1);
  const late = process.call(KEY, TWO, () => void order.push("late"));
  await fleet.clock.advance(1);
  end.resolve();
  await fleet.clock.advance(2_000);
  await Promise.all([...shares, alone, late]);
  t.deepEqual(order, ["alone", "late"]);
  await fleet.leftNothing(t, KEY, process);
});

test("a permit is handed off only to a caller that asks for the same number of permits", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const held = [1, 2, 3].map(() => process.call(KEY, { permits: 3 }, () => end.promise));
  await fleet.clock.advance(1);
  const values: (string | undefined)[] = [];
  const others = [TWO, { permits: 3 }].map((how) =>
    process.call(KEY, how, (lock) => void values.push(lock.storeValue)),
  );
  await fleet.clock.advance(1);
  const before = await fleet.valueOf(KEY);
  end.resolve();
  await fleet.clock.advance(3_000);
  await Promise.all([...held, ...others]);
  t.is(values.length, 2);
  t.false(before?.includes(values[0] ?? "-"), "the first has its own hold");
  await fleet.leftNothing(t, KEY, process);
});

test("a timeout names the local holder of a permit, and local waiters share one ticket", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [end, leaves] = [deferred(), new AbortController()];
  const held = [1, 2].map(() => process.call(KEY, TWO, () => end.promise, { site: "Mailer.send" }));
  await fleet.clock.advance(1);
  const refused = process.call(KEY, { ...TWO, retryTimes: 0 }, () => {});
  await t.throwsAsync(refused, {
    instanceOf: LockWaitTimeoutError,
    message: /held in this process by Mailer\.send/,
  });
  end.resolve();
  await fleet.clock.advance(10);
  await Promise.all(held);

  // Another process holds the key. One local waiter asks for all, and another continues when it leaves.
  await fleet.acquireElsewhere(KEY, 60_000);
  const asking = [leaves.signal, undefined, undefined].map((signal) =>
    process.call(KEY, TWO, () => {}, { signal }).catch((error: unknown) => error),
  );
  await fleet.clock.advance(1);
  const askedBefore = new Set(fleet.store.enqueueRequests.map(({ ticket }) => ticket)).size;
  t.is(askedBefore, 1);
  leaves.abort("away");
  await fleet.clock.advance(1);
  t.is(new Set(fleet.store.enqueueRequests.map(({ ticket }) => ticket)).size, 1);
  await fleet.releaseElsewhere(KEY);
  await fleet.clock.advance(2_000);
  await Promise.all(asking);
  await fleet.leftNothing(t, KEY, process);
});

test("callers with another number of permits wait in the store queue and enter when there is room", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const held = [1, 2].map(() => process.call(KEY, TWO, () => end.promise));
  const others = [1, 2].map(() => process.call(KEY, { permits: 5 }, () => {}));
  await fleet.clock.advance(1);
  t.is(new Set(fleet.store.enqueueRequests.map(({ ticket }) => ticket)).size, 1);
  end.resolve();
  await fleet.clock.advance(3_000);
  await Promise.all([...held, ...others]);
  await fleet.leftNothing(t, KEY, process);
});

test("an expired permit without a watchdog blocks no caller even if its body still runs", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  const brief = { ...TWO, lockTime: "500ms", watchdog: false, onLost: "warn" } as const;
  const held = [1, 2].map(() => process.call(KEY, brief, () => end.promise));
  await fleet.clock.advance(1);
  let isServed = false;
  const next = process.call(KEY, TWO, () => {
    isServed = true;
  });
  await fleet.clock.advance(1_100);
  t.true(isServed);
  await next;
  end.resolve();
  await Promise.all(held);
  await fleet.leftNothing(t, KEY, process);
});

test("a lost permit blocks no caller even if its body still runs", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "100ms" });
  const end = deferred();
  const held = [1, 2].map(() =>
    process.call(KEY, { ...TWO, lockTime: "1s" }, () => end.promise).catch(String),
  );
  await fleet.clock.advance(1);
  fleet.store.onRenew = lostOnTheWay;
  let isServed = false;
  const next = process.call(KEY, TWO, () => {
    isServed = true;
  });
  await fleet.clock.advance(2_500);
  t.true(isServed);
  await next;
  end.resolve();
  await fleet.clock.advance(200);
  t.deepEqual(
    (await Promise.all(held)).map((error) => /LockLostError/.test(String(error))),
    [true, true],
  );
  await fleet.leftNothing(t, KEY, process);
});
