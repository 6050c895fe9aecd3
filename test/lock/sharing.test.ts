import test from "ava";
import { LockMisconfiguredError, LockOptionError, LockWaitTimeoutError } from "../../runtime/base/errors";
import type { LockOptions } from "../../runtime/lock/settings";
import { JOIN_WINDOW_MS } from "../../runtime/queue/shared-lease";
import { deferred } from "../support/deferred";
import { Fleet, type FleetProcess } from "../support/fleet";

const KEY = "LOCK_cache_1";
const READ = { mode: "read" } as const satisfies LockOptions;

/** A call whose body runs until `leave` is called. */
interface OpenCall {
  readonly leave: () => void;
  readonly done: Promise<unknown>;
  readonly isInside: () => boolean;
}

function openCall(process: FleetProcess, options: LockOptions): OpenCall {
  const end = deferred();
  let isInside = false;
  const done = process.call(KEY, options, async () => {
    isInside = true;
    await end.promise;
    isInside = false;
  });
  return { leave: end.resolve, done, isInside: () => isInside };
}

const inside = (calls: readonly OpenCall[]): boolean[] => calls.map((one) => one.isInside());

test("readers hold the lock together, in one process and in several, and a writer holds it alone", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process(), fleet.process()];
  const readers = [openCall(one, READ), openCall(one, READ), openCall(two, READ)];
  await fleet.clock.advance(1);
  t.deepEqual(inside(readers), [true, true, true]);
  const writer = openCall(two, {});
  await fleet.clock.advance(3_000);
  t.false(writer.isInside());
  readers.forEach((reader) => reader.leave());
  await Promise.all(readers.map(({ done }) => done));
  await fleet.clock.advance(1);
  t.true(writer.isInside());
  const late = openCall(one, READ);
  await fleet.clock.advance(3_000);
  t.false(late.isInside());
  writer.leave();
  await writer.done;
  await fleet.clock.advance(1);
  t.true(late.isInside());
  late.leave();
  await late.done;
  t.true(await fleet.isFree(KEY));
  t.true(one.isIdle && two.isIdle);
  t.is(fleet.clock.pendingTimers, 0);
});

test("a waiting writer enters before later readers, which then enter together", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process(), fleet.process()];
  const first = openCall(one, READ);
  await fleet.clock.advance(1);
  const writer = openCall(two, {});
  await fleet.clock.advance(JOIN_WINDOW_MS); // Readers may join without queueing for this long.
  const later = [openCall(one, READ), openCall(two, READ), openCall(one, READ)];
  await fleet.clock.advance(2_000);
  t.deepEqual([writer.isInside(), ...inside(later)], [false, false, false, false]);
  first.leave();
  await first.done;
  await fleet.clock.advance(1);
  t.deepEqual([writer.isInside(), ...inside(later)], [true, false, false, false]);
  writer.leave();
  await writer.done;
  await fleet.clock.advance(1);
  t.deepEqual(inside(later), [true, true, true]);
  for (const { leave } of later) leave();
  await fleet.clock.advance(1);
  await Promise.all(later.map(({ done }) => done));
  t.true(await fleet.isFree(KEY));
});

test("readers of one process that queued before a writer enter together, not one at a time", async (t) => {
  const fleet = new Fleet();
  const [one, two, three] = [fleet.process(), fleet.process(), fleet.process()];
  const holder = openCall(two, {});
  await fleet.clock.advance(1);
  const readers = Array.from({ length: 5 }, () => openCall(one, READ));
  await fleet.clock.advance(1);
  const writer = openCall(three, {});
  await fleet.clock.advance(1);
  holder.leave();
  await fleet.clock.advance(10);
  t.deepEqual([...inside(readers), writer.isInside()], [true, true, true, true, true, false]);
  for (const { leave } of [...readers, writer]) leave();
  await fleet.clock.advance(1_100);
  await Promise.all([holder, ...readers, writer].map(({ done }) => done));
  t.true(await fleet.isFree(KEY));
});

test("as many callers enter as there are permits, and each release admits the next", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process(), fleet.process()];
  const options = { permits: 2 } as const;
  const calls: OpenCall[] = [];
  for (const process of [one, one, one, two, two]) {
    calls.push(openCall(process, options));
    await fleet.clock.advance(1);
  }
  t.deepEqual(inside(calls), [true, true, false, false, false]);
  calls[0]?.leave();
  await fleet.clock.advance(5);
  await calls[0]?.done;
  t.deepEqual(inside(calls), [false, true, true, false, false]);
  calls[1]?.leave();
  calls[2]?.leave();
  await Promise.all([calls[1]?.done, calls[2]?.done]);
  await fleet.clock.advance(1_000);
  t.deepEqual(inside(calls), [false, false, false, true, true]);
  for (const { leave } of calls) leave();
  await Promise.all(calls.map(({ done }) => done));
  t.true(await fleet.isFree(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("callers with no wait budget share the lock, as readers and with permits", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  for (const how of [READ, { permits: 3 }] as const) {
    const calls = Array.from({ length: 3 }, () => openCall(process, { ...how, retryTimes: 0 }));
    await fleet.clock.advance(1);
    t.deepEqual(inside(calls), [true, true, true]);
    const refused = process.call(KEY, { permits: 3, retryTimes: 0 }, () => {});
    if (how !== READ) await t.throwsAsync(refused, { instanceOf: LockWaitTimeoutError });
    else await t.throwsAsync(process.call(KEY, { retryTimes: 0 }, () => {}));
    for (const { leave } of calls) leave();
    await Promise.allSettled([refused, ...calls.map(({ done }) => done)]);
    t.true(await fleet.isFree(KEY));
    t.true(process.isIdle);
  }
});

test("each shared lock is renewed on its own, and only the expired one is lost", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [kept, left] = [
    process.lock(KEY, { ...READ, lockTime: "3s" }),
    process.lock(KEY, { ...READ, lockTime: "3s", watchdog: false }),
  ];
  t.true(await kept.acquire());
  t.true(await left.acquire());
  t.not(kept.storeValue, left.storeValue);
  const { signal } = left;
  await fleet.clock.advance(10_000);
  t.true(kept.remaining() > 0);
  t.is(left.remaining(), 0);
  t.true(signal.aborted);
  await t.throwsAsync(left.release(), { code: "LOCK_LOST", message: /expired|deadline/ });
  await kept.release();
  t.true(await fleet.isFree(KEY));
});

test("a reader may read again inside its body even while a writer waits", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process(), fleet.process()];
  const writerCame = deferred();
  const outer = one.call(KEY, READ, async () => {
    await writerCame.promise;
    return await one.call(KEY, READ, () => "read twice");
  });
  await fleet.clock.advance(1);
  const writer = openCall(two, {});
  await fleet.clock.advance(1);
  writerCame.resolve();
  t.is(await outer, "read twice");
  await fleet.clock.advance(1);
  t.true(writer.isInside());
  writer.leave();
  await writer.done;
});

test("a reader that asks for another mode fails immediately and keeps its read lock", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  for (const options of [{}, { reentrant: true }, { permits: 3 }]) {
    const result = await process.call(KEY, READ, async (lock) => {
      await t.throwsAsync(
        process.call(KEY, options, () => t.fail()),
        {
          instanceOf: LockMisconfiguredError,
          message: /with (mode=write|permits=3) inside a body that holds it with mode=read/,
        },
      );
      return lock.remaining() > 0;
    });
    t.true(result);
  }
  t.is(fleet.store.acquireRequests.length, 3, "nothing was sent for the rejected calls");
  t.true(await fleet.isFree(KEY));
});

test("a reentrant writer may read inside its body", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const read = (): Promise<string | undefined> => process.call(KEY, READ, () => "read");
  t.is(await process.call(KEY, { reentrant: true }, read), "read");
});

test("a writer that gives up no longer holds back the readers behind it", async (t) => {
  const fleet = new Fleet();
  const [one, two] = [fleet.process(), fleet.process()];
  const first = openCall(one, READ);
  await fleet.clock.advance(1);
  const writer = two.call(KEY, { retryTimes: 1, waitTime: "2s" }, () => {});
  const refused = t.throwsAsync(writer, { instanceOf: LockWaitTimeoutError });
  await fleet.clock.advance(JOIN_WINDOW_MS);
  const behind = openCall(one, READ);
  await fleet.clock.advance(1_000);
  t.false(behind.isInside());
  await fleet.clock.advance(1_000 - JOIN_WINDOW_MS);
  await refused;
  await fleet.clock.advance(1);
  t.true(behind.isInside(), "immediately, not at its next check");
  behind.leave();
  first.leave();
  await Promise.all([behind.done, first.done]);
  t.true(await fleet.isFree(KEY));
});

test("invalid modes, permits, and combinations of options are rejected", (t) => {
  const process = new Fleet().process();
  const refusals: [options: object, message: RegExp][] = [
    [{ mode: "read", fencing: true }, /exclusive lock, but this lock has mode=read/],
    [{ permits: 2, fencing: true }, /exclusive lock, but this lock has permits=2/],
    [{ mode: "read", permits: 2 }, /either `mode`.* or `permits`/],
    [{ mode: "reads" }, /"read" or "write", got 'reads'/],
    [{ permits: 0 }, /whole number from 1 to 1000, got 0/],
    [{ permits: 1.5 }, /whole number from 1 to 1000/],
    [{ permits: 1001 }, /whole number from 1 to 1000/],
  ];
  for (const [options, message] of refusals) {
    t.throws(() => process.lock(KEY, options as LockOptions), { instanceOf: LockOptionError, message });
  }
  t.notThrows(() => process.lock(KEY, { permits: 1, fencing: true }));
});
