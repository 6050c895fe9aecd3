import { setTimeout as pause } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { LockUnreachableError } from "../../runtime/errors";
import { redisStore } from "../../runtime/stores/redis/redis";
import { queueOf } from "../support/beside";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startRedis, type RedisServer } from "../support/redis-server";
import { startTcpProxy, type Fate, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// Redis carries a command out and its reply is lost. Callers do not notice, and nobody waits for a lock time.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

/** So long that nothing here can wait for their end, within the time that a test has. */
const LOCK_TIME = { lockTime: "10m", waitTime: "10m" } as const;
const OTHER_LOCK_TIME = { lockTime: "9m", waitTime: "10m" } as const;
/** What a command may take, and for how long the network is silent: longer, so that we give the reply up. */
const COMMAND_TIMEOUT_MS = 200;
const SILENCE_MS = 400;

interface Loss {
  readonly fate: Fate;
  recover(proxy: TcpProxy): Promise<void>;
}

const LOSSES: Record<string, Loss> = {
  "the connection is reset": { fate: "reset", recover: async () => {} },
  "the connection falls silent, and is reset after our time-out": {
    fate: "silence",
    async recover(proxy) {
      await pause(SILENCE_MS);
      proxy.reset();
    },
  },
  "it comes after our time-out": {
    fate: "silence",
    async recover(proxy) {
      await pause(SILENCE_MS);
      proxy.heal();
    },
  },
};

let names = 0;

/** A process behind a proxy, another one that has nothing to suffer, and a key. */
async function scene(t: ExecutionContext) {
  const key = `LOCK_lost_${(names += 1)}`;
  const watcher = server.client();
  const proxy = await startTcpProxy(server.port);
  const stores = [redisStore(server.client({ port: proxy.port })), redisStore(server.client())] as const;
  const logger = { warn: () => {} };
  const [process, neighbour] = [
    new FleetProcess({ store: stores[0], commandTimeout: `${COMMAND_TIMEOUT_MS}ms`, logger }),
    new FleetProcess({ store: stores[1], logger }),
  ];
  t.teardown(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await proxy.stop();
  });
  // Redis knows the scripts from here on: otherwise the first reply would be that it does not.
  for (const fencing of [true, false]) await process.call(`${key}:first`, { fencing }, () => {});
  return { key, watcher, proxy, process, neighbour };
}

type Scene = Awaited<ReturnType<typeof scene>>;

/** The neighbour enters and leaves without waiting for the end of a lock time, and nothing is left. */
async function isFree(t: ExecutionContext, { key, neighbour, watcher }: Scene): Promise<void> {
  t.is(await neighbour.call(key, LOCK_TIME, () => "in"), "in");
  await until(async () => (await watcher.exists(key, queueOf(key))) === 0);
}

/** The process holds the lock until `end` is called. */
async function holding(process: FleetProcess, key: string, lockTime: typeof LOCK_TIME) {
  const [entered, end] = [deferred(), deferred()];
  const call = process.call(key, lockTime, async () => {
    entered.resolve();
    await end.promise;
    return "first";
  });
  await entered.promise;
  return { call, end: () => end.resolve() };
}

for (const [name, { fate, recover }] of Object.entries(LOSSES)) {
  for (const fencing of [false, true]) {
    const token = fencing ? ", which drew a fencing token" : "";
    test(`the reply to an acquire${token} is lost: ${name}`, async (t) => {
      const here = await scene(t);
      const { key, proxy, process } = here;
      const struck = proxy.strike(1, fate, key);
      let runs = 0;
      const call = process.call(key, { ...LOCK_TIME, fencing }, (lock) => {
        lock.assertHeld();
        runs += 1;
        return "result";
      });
      await struck;
      await recover(proxy);
      t.is(await call, "result");
      t.is(runs, 1);
      await isFree(t, here);
    });
  }

  test(`the reply to one who asks for a place in the queue is lost: ${name}`, async (t) => {
    const here = await scene(t);
    const { key, proxy, process, neighbour } = here;
    const other = await holding(neighbour, key, LOCK_TIME);
    const struck = proxy.strike(2, fate, key); // After the acquire, which is refused.
    const call = process.call(key, LOCK_TIME, () => "result");
    await struck;
    other.end();
    await recover(proxy);
    t.is(await call, "result");
    t.is(await other.call, "first");
    await isFree(t, here);
  });

  test(`the reply by which one who waited is granted the lock is lost: ${name}`, async (t) => {
    const here = await scene(t);
    const { key, watcher, proxy, process, neighbour } = here;
    const other = await holding(neighbour, key, LOCK_TIME);
    const call = process.call(key, LOCK_TIME, () => "result");
    await until(async () => (await watcher.exists(queueOf(key))) === 1);
    const struck = proxy.strike(1, fate, key);
    other.end();
    await struck;
    await recover(proxy);
    t.is(await call, "result");
    await isFree(t, here);
  });

  test(`the reply to a renewal is lost: ${name}`, async (t) => {
    const here = await scene(t);
    const { key, proxy, process } = here;
    const call = process.call(key, { lockTime: "12s" }, async (lock) => {
      await proxy.strike(1, fate, key);
      const before = lock.remaining();
      await recover(proxy);
      await until(() => lock.remaining() > before); // A later renewal succeeded.
      t.false(lock.signal.aborted);
      return "result";
    });
    t.is(await call, "result");
    await isFree(t, here);
  });

  test(`the reply to a release is lost: ${name}`, async (t) => {
    const here = await scene(t);
    const { proxy, process } = here;
    let struck = Promise.resolve();
    const call = process.call(here.key, LOCK_TIME, () => {
      struck = proxy.strike(1, fate, here.key);
      return "result";
    });
    t.is(await call, "result", "a body that succeeded is not failed by it");
    await struck;
    await isFree(t, here); // Before the network recovers.
    await recover(proxy);
    t.is(await process.call(here.key, LOCK_TIME, () => "again"), "again");
  });

  test(`the reply to a release that gives the lock to the next is lost: ${name}`, async (t) => {
    const here = await scene(t);
    const { key, proxy, process } = here;
    const first = await holding(process, key, LOCK_TIME);
    // Of another lock time, because otherwise it would be handed on inside the process.
    const second = process.call(key, OTHER_LOCK_TIME, () => "second");
    const struck = proxy.strike(1, fate, key);
    first.end();
    await struck;
    await recover(proxy);
    t.is(await first.call, "first");
    t.is(await second, "second");
    await isFree(t, here);
  });
}

for (const recovery of ["heal", "reset"] as const) {
  test(`a lock whose grant nobody heard of in time is given back after the network's ${recovery}`, async (t) => {
    const here = await scene(t);
    const { key, watcher, proxy, process } = here;
    const struck = proxy.strike(1, "silence", key);
    const call = process.call(key, { ...LOCK_TIME, retryTimes: 1, waitTime: "300ms" }, () => t.fail());
    await struck;
    await t.throwsAsync(call, { instanceOf: LockUnreachableError });
    proxy[recovery]();
    await until(async () => (await watcher.exists(key)) === 0);
    await isFree(t, here);
  });
}
