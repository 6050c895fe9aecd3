import { setTimeout as sleep } from "node:timers/promises";
import test from "ava";
import { configure, shutdown } from "lockweave";
import { makeProject } from "../hosts/project";
import { memoryStore } from "../../runtime/stores/memory";
import { storeContract } from "../store-contract";
import { acquire } from "../store-contract/subject";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { flat } from "../support/flat-store";
import { VirtualClock } from "../support/virtual-clock";
import { MinimalStore } from "./minimal-store";
import { registering } from "./registering";

// A store needs four methods. Without a queue, waiters ask again and again.

const reports: string[] = [];

storeContract(
  registering(test),
  () => {
    const clock = new VirtualClock();
    const store = new MinimalStore(() => clock.now());
    return {
      store,
      canShare: false,
      elapse: (ms) => clock.advance(ms),
      put: async (key, value, ms) => void (await acquire(store, key, value, { lockTimeMs: ms })),
    };
  },
  (line) => void reports.push(line),
);

test.after("the contract reports once which groups it tested", (t) => {
  t.deepEqual(reports, [
    "lockweave/store-contract tests: acquire, renew, release, peek, no shared locks. The store lacks: queue, admin, batch",
  ]);
});

const SECOND = 1_000;
const KEY = "LOCK_pay_A1";
const PATIENT = { retryTimes: 100, waitTime: "5s" } as const;

/** Two processes that share one store under virtual time. */
function twoProcesses(): {
  readonly clock: VirtualClock;
  readonly store: MinimalStore;
  readonly one: FleetProcess;
  readonly other: FleetProcess;
} {
  const clock = new VirtualClock();
  const store = new MinimalStore(() => clock.now());
  const open = (): FleetProcess => new FleetProcess({ store, clock, logger: { warn() {} } });
  return { clock, store, one: open(), other: open() };
}

test("a waiter of another process polls a store without a queue several times a second", async (t) => {
  const { clock, store, one } = twoProcesses();
  const foreign = { key: KEY, requestId: "0".repeat(32) };
  await store.acquire({ ...foreign, lockTimeMs: 60 * SECOND, fencing: false });
  const askedAt: number[] = [];
  const real = store.acquire.bind(store);
  store.acquire = (request) => {
    askedAt.push(clock.now());
    return real(request);
  };
  let isInside = false;
  const call = one.call(KEY, PATIENT, () => {
    isInside = true;
  });
  await clock.advance(10 * SECOND);
  t.false(isInside);
  const pauses = askedAt.slice(1).map((at, index) => at - (askedAt[index] ?? 0));
  t.true(pauses.length >= 60 && pauses.length <= 200, String(pauses.length));
  t.true(pauses.every((ms) => ms <= 151));
  t.true(new Set(pauses).size > 5, "the pauses vary");
  await store.release(foreign);
  await clock.advance(200);
  t.true(isInside);
  await call;
  t.is(store.size, 0);
  t.true(one.isIdle);
  t.is(clock.pendingTimers, 0);
});

test("waiters of one process enter in order, and a hold that nobody releases expires", async (t) => {
  const { clock, store, one } = twoProcesses();
  const foreign = { key: KEY, requestId: "0".repeat(32), lockTimeMs: SECOND, fencing: false };
  await store.acquire(foreign);
  const order: number[] = [];
  const calls = [1, 2, 3, 4, 5].map((n) => one.call(KEY, PATIENT, () => void order.push(n)));
  await clock.advance(SECOND + 1);
  t.deepEqual(order, [1, 2, 3, 4, 5]);
  await Promise.all(calls);
  t.is(store.size, 0);
});

test("a crowd in one process does not keep the callers of another process out", async (t) => {
  const { clock, store, one: crowded, other } = twoProcesses();
  let inside = 0;
  const body = async (): Promise<void> => {
    t.is((inside += 1), 1);
    await new Promise<void>((resolve) => void clock.after(10, resolve));
    inside -= 1;
  };
  const ending = new AbortController();
  const crowd = Array.from({ length: 20 }, async () => {
    while (!ending.signal.aborted) await crowded.call(KEY, PATIENT, body);
  });
  await clock.advance(SECOND);
  let served = 0;
  const calls = Array.from({ length: 5 }, async () => {
    await other.call(KEY, PATIENT, body);
    served += 1;
  });
  await clock.advance(30 * SECOND);
  t.is(served, calls.length);
  ending.abort();
  await clock.advance(30 * SECOND);
  await Promise.all([...crowd, ...calls]);
  t.is(store.size, 0);
  t.is(clock.pendingTimers, 0);
});

test("a waiter whose wait ends while its process lets other processes try still gets a free key", async (t) => {
  const { clock, store, one } = twoProcesses();
  const body = (): Promise<void> => new Promise((resolve) => void clock.after(190, resolve));
  const holder = one.call(KEY, PATIENT, body);
  await clock.advance(1);
  let isInside = false;
  const waiter = one.call(KEY, { retryTimes: 1, waitTime: "200ms" }, () => {
    isInside = true;
  });
  await Promise.all([holder, t.notThrowsAsync(waiter), clock.advance(SECOND)]);
  t.true(isInside);
  t.is(store.size, 0);
  t.true(one.isIdle);
  t.is(clock.pendingTimers, 0);
});

test("callers of several processes share the permits of a store without a queue", async (t) => {
  const clock = new VirtualClock();
  const store = { ...flat(memoryStore({ clock })), queue: undefined };
  const all = [1, 2].map(() => new FleetProcess({ store, clock, logger: { warn() {} } }));
  let inside = 0;
  let most = 0;
  const calls = all.flatMap((process) =>
    Array.from({ length: 10 }, () =>
      process.call(KEY, { ...PATIENT, permits: 3 }, async () => {
        most = Math.max(most, (inside += 1));
        await new Promise<void>((resolve) => void clock.after(10, resolve));
        inside -= 1;
      }),
    ),
  );
  await clock.advance(20 * SECOND);
  await Promise.all(calls);
  t.is(most, 3);
  t.deepEqual(await store.peek([KEY], SECOND), [undefined]);
  t.is(clock.pendingTimers, 0);
});

test("a caller without a wait budget asks once, and a waiter that gives up leaves nothing", async (t) => {
  const { clock, store, one, other } = twoProcesses();
  const end = deferred();
  const holder = one.call(KEY, PATIENT, () => end.promise);
  await clock.advance(1);
  const busy = { code: "LOCK_WAIT_TIME_OUT", message: /is held by another caller/ };
  const impatient = other.call(KEY, { retryTimes: 0 }, () => t.fail());
  await Promise.all([t.throwsAsync(impatient, busy), clock.advance(1)]);
  const waiting = other.call(KEY, { retryTimes: 1, waitTime: "300ms" }, () => t.fail());
  await Promise.all([t.throwsAsync(waiting, busy), clock.advance(SECOND)]);
  end.resolve();
  await holder;
  t.is(store.size, 0);
  t.true(one.isIdle && other.isIdle);
});

test.serial("woven code takes turns with a store that has only four methods", async (t) => {
  const project = await makeProject({
    "package.json": "{}",
    "src/pay.ts": `let inside = 0;
/** @redisLock businessFlag=pay keyName=orderNo lockTime=20 */
export async function pay(orderNo: string, work: () => Promise<void>): Promise<number> {
  inside += 1;
  const most = inside;
  await work();
  inside -= 1;
  return most;
}
`,
  });
  const { code, stdout } = await project.tspc();
  t.is(code, 0, stdout);
  const { pay } = require(project.path("out/pay.js")) as {
    readonly pay: (orderNo: string, work: () => Promise<void>) => Promise<number>;
  };
  const store = new MinimalStore();
  configure({ store, woven: false });
  const held = async (): Promise<void> => {
    t.is(store.size, 1);
    await sleep(1);
  };
  t.deepEqual(await Promise.all([1, 2, 3, 4].map(() => pay("A1", held))), [1, 1, 1, 1]);
  await shutdown();
  t.is(store.size, 0);
});
