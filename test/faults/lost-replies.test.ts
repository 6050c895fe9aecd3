import { setTimeout as pause } from "node:timers/promises";
import test, { type ExecutionContext } from "ava";
import { LockUnreachableError } from "../../runtime/base/errors";
import { redisStore } from "../../runtime/stores/redis/redis";
import { queueOf } from "../support/beside";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startRedis, type RedisServer } from "../support/redis-server";
import { startTcpProxy, type Fate, type TcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// Redis executes a command, and its reply is lost. Callers do not notice, and no caller waits for a lock time.

let server: RedisServer;

test.before(async () => {
  server = await startRedis();
});

test.after.always(() => server.stop());

/** So long that a test would time out if it waited for their end. */
const LOCK_TIME = { lockTime: "10m", waitTime: "10m" } as const;
const OTHER_LOCK_TIME = { lockTime: "9m", waitTime: "10m" } as const;
/** The network is silent for longer than a command may take, so the reply times out. */
const COMMAND_TIMEOUT_MS = 200;
const SILENCE_MS = 400;

interface Loss {
  readonly fate: Fate;
  recover(proxy: TcpProxy): Promise<void>;
}

const LOSSES: Record<string, Loss> = {
  "the connection is reset": { fate: "reset", recover: async () => {} },
  "the connection falls silent and is reset after the command timeout": {
    fate: "silence",
    async recover(proxy) {
      await pause(SILENCE_MS);
      proxy.reset();
    },
  },
  "it arrives after the command timeout": {
    fate: "silence",
    async recover(proxy) {
      await pause(SILENCE_MS);
      proxy.heal();
    },
  },
};

let names = 0;

/** Creates a process behind a proxy, another one with a direct connection, and a key. */
async function scene(t: ExecutionContext) {
  const key = `LOCK_lost_${(names += 1)}`;
  const watcher = server.client();
  const proxy = await startTcpProxy(server.port);
  const stores = [redisStore(server.client({ port: proxy.port })), redisStore(server.client())] as const;
  const logger = { warn: () => {} };
  const [process, neighbor] = [
    new FleetProcess({ store: stores[0], commandTimeout: `${COMMAND_TIMEOUT_MS}ms`, logger }),
    new FleetProcess({ store: stores[1], logger }),
  ];
  t.teardown(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await proxy.stop();
  });
  // Loads the scripts into Redis. Otherwise the first reply would be that a script is missing.
  for (const fencing of [true, false]) await process.call(`${key}:first`, { fencing }, () => {});
  return { key, watcher, proxy, process, neighbor };
}

type Scene = Awaited<ReturnType<typeof scene>>;

/** Checks that the neighbor gets the lock without waiting for a lock time, and that nothing is left. */
async function isFree(t: ExecutionContext, { key, neighbor, watcher }: Scene): Promise<void> {
  t.is(await neighbor.call(key, LOCK_TIME, () => "in"), "in");
  await until(async () => (await watcher.exists(key, queueOf(key))) === 0);
}

/** Holds the lock until `end` is called. */
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
    const token = fencing ? " with a fencing token" : "";
    test(`a caller gets the lock if the reply to its acquire${token} is lost: ${name}`, async (t) => {
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

  test(`a waiter gets the lock if the reply to its enqueue is lost: ${name}`, async (t) => {
    const here = await scene(t);
    const { key, proxy, process, neighbor } = here;
    const other = await holding(neighbor, key, LOCK_TIME);
    const struck = proxy.strike(2, fate, key); // After the acquire, which is refused.
    const call = process.call(key, LOCK_TIME, () => "result");
    await struck;
    other.end();
    await recover(proxy);
    t.is(await call, "result");
    t.is(await other.call, "first");
    await isFree(t, here);
  });

  test(`a waiter gets the lock if the reply that grants it is lost: ${name}`, async (t) => {
    const here = await scene(t);
    const { key, watcher, proxy, process, neighbor } = here;
    const other = await holding(neighbor, key, LOCK_TIME);
    const call = process.call(key, LOCK_TIME, () => "result");
    await until(async () => (await watcher.exists(queueOf(key))) === 1);
    const struck = proxy.strike(1, fate, key);
    other.end();
    await struck;
    await recover(proxy);
    t.is(await call, "result");
    await isFree(t, here);
  });

  test(`a holder keeps the lock if the reply to a renewal is lost: ${name}`, async (t) => {
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

  test(`a release frees the key even if its reply is lost: ${name}`, async (t) => {
    const here = await scene(t);
    const { proxy, process } = here;
    let struck = Promise.resolve();
    const call = process.call(here.key, LOCK_TIME, () => {
      struck = proxy.strike(1, fate, here.key);
      return "result";
    });
    t.is(await call, "result", "the lost reply does not fail a body that succeeded");
    await struck;
    await isFree(t, here); // Before the network recovers.
    await recover(proxy);
    t.is(await process.call(here.key, LOCK_TIME, () => "again"), "again");
  });

  test(`the next local caller gets the lock if the reply to the release before it is lost: ${name}`, async (t) => {
    const here = await scene(t);
    const { key, proxy, process } = here;
    const first = await holding(process, key, LOCK_TIME);
    // With another lock time, because otherwise the lock would be handed off.
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
  test(`a lock whose grant reply was missed is released after the network's ${recovery}`, async (t) => {
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
