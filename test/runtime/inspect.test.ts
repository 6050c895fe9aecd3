import test from "ava";
import {
  configure,
  inspect,
  lockKey,
  memoryStore,
  obtain,
  redisStore,
  shutdown,
  withLock,
  type WholeStore,
} from "../../runtime";
import { startRedis, type RedisServer } from "../support/redis-server";
import { replacing } from "../support/flat-store";

// The report of `inspect()` about a lock, on each kind of store.

let server: RedisServer;
test.before(async () => {
  server = await startRedis();
});
test.afterEach.always(() => shutdown({ patience: "0s" }));
test.after.always(() => server.stop());

const STORES: Readonly<Record<string, () => WholeStore>> = {
  memory: () => memoryStore(),
  Redis: () => redisStore(server.client()),
};

for (const [name, open] of Object.entries(STORES)) {
  test.serial(`${name}: inspect() reports a free lock, its holder, and a waiter`, async (t) => {
    configure({ woven: false, store: open() });
    const key = lockKey("inspected", name);
    const free = { key, store: "default", state: "free", holders: [], waiting: 0, waitingHere: 0 } as const;
    t.deepEqual(await inspect(key), free);
    const held = await obtain(key, { lockTime: "20s" });
    const { holders, ...others } = await inspect(key);
    t.deepEqual(others, { key, store: "default", state: "held", waiting: 0, waitingHere: 0 });
    const [holder, another] = holders;
    t.is(another, undefined);
    t.is(holder?.storeValue, held.storeValue);
    t.true((holder?.leftMs ?? 0) > 10_000 && (holder?.leftMs ?? 0) <= 20_001);
    t.true((holder?.here?.heldForMs ?? -1) >= 0);
    const next = withLock(key, {}, () => inspect(key));
    // A waiter behind its own process has no ticket in the store.
    t.like(await inspect(key), { state: "held", waiting: 0, waitingHere: 1 });
    await held.release();
    t.like(await next, { state: "held", waiting: 0, waitingHere: 0 });
    t.deepEqual(await inspect(key), free);
  });

  test.serial(
    `${name}: inspect() lists the readers of a process once, and no holder of a closed key`,
    async (t) => {
      configure({ woven: false, store: open() });
      const key = lockKey("shared", name);
      const [one, other] = [await obtain(key, { mode: "read" }), await obtain(key, { mode: "read" })];
      const { state, holders } = await inspect(key);
      t.is(state, "held");
      t.is(one.storeValue, other.storeValue);
      t.deepEqual(
        holders.map(({ storeValue, count }) => [storeValue, count]),
        [[one.storeValue, 2]],
      );
      await Promise.all([one.release(), other.release()]);
      const closed = lockKey("closed", name);
      await withLock(closed, { lockAtLeast: "20s" }, () => {});
      t.like(await inspect(closed), { state: "closed", holders: [] });
    },
  );
}

test.serial(
  "inspect() reports the value of another program, and rejects a key that is not text",
  async (t) => {
    configure({ woven: false, redis: server.url });
    const client = server.client();
    await client.set("theirs", "whoever", "PX", 20_000);
    const { state, holders } = await inspect("theirs");
    t.is(state, "held");
    t.like(holders[0], { storeValue: "whoever", here: undefined });
    await client.rpush("a list", "x");
    await t.throwsAsync(inspect("a list"), { code: "LOCK_MISCONFIGURED" });
  },
);

test.serial("inspect() reports only the value of the key if the store knows no more", async (t) => {
  const memory = memoryStore();
  const store = replacing(memory, {
    async inspect(key, timeoutMs) {
      const { holds } = await memory.admin.inspect(key, timeoutMs);
      return { holds: holds.map(({ value }) => ({ value, leftMs: undefined })), waiting: undefined };
    },
  });
  configure({ woven: false, store });
  const held = await obtain("k");
  const { holders, ...others } = await inspect("k");
  t.like(others, { state: "held", waiting: undefined });
  t.like(holders[0], { storeValue: held.storeValue, leftMs: undefined });
  await held.release();
});

test.serial("inspect() rejects invalid keys and options", async (t) => {
  configure({ woven: false, store: memoryStore() });
  await t.throwsAsync(inspect(""), { code: "LOCK_BAD_KEY" });
  const options: object = { stores: "x" };
  await t.throwsAsync(inspect("k", options), {
    code: "LOCK_BAD_OPTION",
    message: /inspect\(key, \{ store \}\)/,
  });
  await t.throwsAsync(inspect("k", { store: "nowhere" }), { code: "LOCK_MISCONFIGURED" });
});
