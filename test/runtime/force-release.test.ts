import { once } from "node:events";
import test from "ava";
import {
  LockOptionError,
  configure,
  forceRelease,
  inspect,
  lockKey,
  memoryStore,
  obtain,
  redisStore,
  shutdown,
  tryObtain,
  withLock,
  type WholeStore,
} from "../../runtime";
import { systemClock } from "../../runtime/base/clock";
import { QuorumStore } from "../../runtime/stores/quorum/quorum";
import { memoryMember } from "../stores/quorum/memory-member";
import { but } from "../simulation/tampering";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { postgresStore } from "../../runtime/stores/postgres/postgres-store";
import { portOf } from "../stores/postgres/kinds";
import { startPostgres, type PostgresServer } from "../support/postgres-server";
import { startRedis, type RedisServer } from "../support/redis-server";
import { until } from "../support/until";

// `forceRelease()` and the holders of a lock. Two stores over the same keys stand for two processes: neither
// knows the holders of the other.

/** These tests do not check warnings. */
const QUIET = { woven: false, logger: { warn() {} } };

let server: RedisServer;
let postgres: PostgresServer;
test.before(async () => {
  server = await startRedis();
  postgres = await startPostgres();
  const port = portOf(postgres.url);
  await port.query(migrationSql(), [], 30_000);
  await port.close();
});
test.afterEach.always(() => shutdown({ patience: "0s" }));
test.after.always(async () => {
  await server.stop();
  await postgres.stop();
});

const members = [1, 2, 3].map(() => memoryMember(systemClock));
const memory = memoryStore();
const PAIRS: Readonly<Record<string, () => readonly [WholeStore, WholeStore]>> = {
  memory: () => [memory, but(memory, {})],
  Redis: () => [redisStore(server.client()), redisStore(server.client())],
  PostgreSQL: () => [postgresStore(portOf(postgres.url)), postgresStore(portOf(postgres.url))],
  "a quorum": () => [
    new QuorumStore(members, systemClock, 60_000),
    new QuorumStore(members, systemClock, 60_000),
  ],
};

const THERE = { store: "there" };
const WATCHED = { ...THERE, lockTime: "2s" } as const;

for (const [name, pair] of Object.entries(PAIRS)) {
  const isQuorum = name === "a quorum";
  const key = (what: string): string => lockKey("forced", name, what);

  function twoProcesses(): void {
    const [store, there] = pair();
    configure({ ...QUIET, store, stores: { there } });
  }

  test.serial(
    `${name}: a revoked holder's signal aborts, and the waiter gets the lock after its body`,
    async (t) => {
      twoProcesses();
      const k = key("body");
      const lock = await obtain(k, WATCHED);
      let isInside = true;
      const next = withLock(k, {}, () => t.false(isInside));
      await until(async () => (await inspect(k)).waitingHere === 1);
      const [taken, another] = await forceRelease(k);
      t.is(another, undefined);
      t.like(taken, { isRevoked: false, here: undefined });
      if (!lock.signal.aborted) await once(lock.signal, "abort");
      t.regex(String(lock.signal.reason), /forceRelease\(\) revoked it/);
      t.throws(() => lock.assertHeld(), { code: "LOCK_LOST" });
      t.like((await inspect(k)).holders, [{ isRevoked: true }]);
      isInside = false;
      // The body ended before another caller got the key, so the release succeeds.
      await t.notThrowsAsync(lock.release());
      await next;
      t.like(await inspect(k), { state: "free", holders: [] });
    },
  );

  test.serial(`${name}: forceRelease() in the holder's process ends the lock immediately`, async (t) => {
    twoProcesses();
    const k = key("here");
    const lock = await obtain(k, { lockTime: "20s" });
    const { signal } = lock;
    t.like(await forceRelease(k), [{ storeValue: lock.storeValue, here: { site: undefined } }]);
    t.true(signal.aborted);
    t.is(lock.remaining(), 0);
    t.is(await tryObtain(k), undefined);
    t.is((await forceRelease(k)).length, 1, "again");
    await t.notThrowsAsync(lock.release());
    const after = await tryObtain(k);
    t.truthy(after);
    await after?.release();
  });

  test.serial(
    `${name}: forceRelease() with \`now\` frees the key immediately, and the holder loses the lock`,
    async (t) => {
      twoProcesses();
      const k = key("now");
      const lock = await obtain(k, WATCHED);
      t.like(await forceRelease(k, { now: true }), [{ storeValue: lock.storeValue }]);
      const other = await tryObtain(k);
      t.truthy(other);
      await once(lock.signal, "abort");
      t.true((other?.remaining() ?? 0) > 0);
      await t.throwsAsync(lock.release(), { code: "LOCK_LOST" });
      await other?.release();
      t.deepEqual(await forceRelease(k), [], "nobody holds it");
      t.deepEqual(await forceRelease(k, { now: true }), []);
    },
  );

  test.serial(`${name}: forceRelease() with \`now\` also frees a revoked lock`, async (t) => {
    twoProcesses();
    const k = key("revoked first");
    const lock = await obtain(k, WATCHED);
    t.is((await forceRelease(k)).length, 1);
    t.like(await forceRelease(k, { now: true }), [{ isRevoked: true }]);
    const other = await tryObtain(k);
    t.truthy(other);
    await lock.release().catch(() => {});
    t.true((other?.remaining() ?? 0) > 0);
    await other?.release();
  });

  test.serial(`${name}: a revoked lock without a watchdog becomes free when it expires`, async (t) => {
    twoProcesses();
    const k = key("unwatched");
    const lock = await obtain(k, { ...THERE, lockTime: "2s", watchdog: false, autoUnlock: false });
    await forceRelease(k);
    t.is(await tryObtain(k), undefined);
    const next = await obtain(k);
    t.is(lock.remaining(), 0);
    await next.release();
  });

  test.serial(`${name}: only forceRelease() with \`now\` frees a closed key`, async (t) => {
    twoProcesses();
    const k = key("closed");
    await withLock(k, { lockAtLeast: "20s" }, () => {});
    t.deepEqual(await forceRelease(k), []);
    t.is(await tryObtain(k), undefined);
    t.deepEqual(await forceRelease(k, { now: true }), [], "nobody held it");
    t.is((await inspect(k)).state, "free");
  });

  test.serial(`${name}: forceRelease() with \`from\` revokes only the listed holders`, async (t) => {
    twoProcesses();
    const k = key("from");
    const first = await obtain(k, THERE);
    const from = (await inspect(k)).holders.map(({ storeValue }) => storeValue);
    await first.release();
    const second = await obtain(k, THERE);
    for (const now of [false, true]) t.deepEqual(await forceRelease(k, { from, now }), []);
    t.like(await inspect(k), { state: "held", holders: [{ isRevoked: false }] });
    const [own = ""] = (await inspect(k)).holders.map(({ storeValue }) => storeValue);
    t.like(await forceRelease(k, { from: [...from, own] }), [{ storeValue: own }]);
    t.like(await inspect(k), { state: "held", holders: [{ isRevoked: true }] });
    await second.release().catch(() => {});
  });

  if (isQuorum) continue;

  test.serial(
    `${name}: forceRelease() revokes every reader, and each keeps its hold until it releases it`,
    async (t) => {
      twoProcesses();
      const k = key("several");
      const readers = await Promise.all([THERE, {}].map((where) => obtain(k, { ...where, mode: "read" })));
      t.is((await forceRelease(k)).length, 2);
      t.deepEqual(
        (await inspect(k)).holders.map(({ isRevoked }) => isRevoked),
        [true, true],
      );
      t.is(await tryObtain(k), undefined);
      await readers[0]?.release();
      t.is(await tryObtain(k), undefined);
      await readers[1]?.release();
      t.like(await inspect(k), { state: "free" });
    },
  );
}

test.serial("forceRelease() deletes a value of another program only with `now`", async (t) => {
  configure({ ...QUIET, redis: server.url });
  const client = server.client();
  const expected = {
    code: "LOCK_BAD_OPTION",
    message:
      /^theirs holds '.*Fix: if its writer no longer runs, delete it with forceRelease\(key, \{ now: true \}\)/,
  };
  const requestIdForm = "0123456789abcdef".repeat(2);
  for (const [value, isKept] of [
    ["whoever", true],
    ["whoever", false],
    [requestIdForm, false], // Without an expiry, it is not a hold of Lockweave.
    [`shared:${"x".repeat(32)}@${Date.now() + 60_000}/3`, true],
  ] as const) {
    await (isKept ? client.set("theirs", value, "PX", 20_000) : client.set("theirs", value));
    await t.throwsAsync(forceRelease("theirs"), expected);
    t.is(await client.get("theirs"), value);
    t.is((await client.pttl("theirs")) > 0, isKept);
    t.is((await forceRelease("theirs", { now: true })).length, 1);
    t.is(await client.get("theirs"), null);
  }
  const store = redisStore(client);
  await client.set("theirs", requestIdForm);
  t.false(
    await store.admin.revoke({ key: "theirs", requestId: requestIdForm }, 5_000),
    "the script does not revoke it either",
  );
  t.is(await client.get("theirs"), requestIdForm);
  await client.rpush("a list of theirs", "x");
  for (const now of [true, false]) {
    await t.throwsAsync(forceRelease("a list of theirs", { now }), { code: "LOCK_MISCONFIGURED" });
  }
});

test.serial("forceRelease() does not revoke a holder that acquires the lock during the call", async (t) => {
  const inside = memoryStore();
  let beforeRevoking = async (): Promise<void> => {};
  const store = but(inside, {
    async revoke(request, timeoutMs) {
      await beforeRevoking();
      return (await inside.admin.revoke(request, timeoutMs)) ?? false;
    },
    async release(request, timeoutMs) {
      await beforeRevoking();
      return await inside.release(request, timeoutMs);
    },
  });
  configure({ ...QUIET, store, stores: { there: inside } });
  for (const now of [true, false]) {
    const first = await obtain("k", THERE);
    beforeRevoking = async () => {
      beforeRevoking = async () => {};
      await first.release();
      second = await obtain("k", THERE);
    };
    let second = first;
    t.deepEqual(await forceRelease("k", { now }), []);
    t.is((await inspect("k")).holders[0]?.isRevoked, false);
    t.not(second, first);
    await second.release();
  }
});

test.serial("inspect() and forceRelease() name the store and the group that it lacks", async (t) => {
  const payments = { ...but(memoryStore(), {}), admin: undefined };
  configure({ ...QUIET, store: memoryStore(), stores: { payments } });
  const lock = await obtain("k", { store: "payments" });
  const lacksAdmin = {
    code: "LOCK_MISCONFIGURED",
    message: /^k in payments: the store `payments` has no `admin` group, .*Fix: give the store `admin`/,
  };
  await t.throwsAsync(inspect("k", { store: "payments" }), lacksAdmin);
  for (const now of [false, true])
    await t.throwsAsync(forceRelease("k", { store: "payments", now }), lacksAdmin);
  await lock.release();
});

test.serial("forceRelease() rejects invalid keys and options", async (t) => {
  configure({ ...QUIET, store: memoryStore() });
  await t.throwsAsync(forceRelease(""), { code: "LOCK_BAD_KEY" });
  for (const options of [{ Now: true }, { now: "yes" }, { from: "one" }, { from: [1] }, true]) {
    await t.throwsAsync(forceRelease("k", options as object), {
      code: "LOCK_BAD_OPTION",
      message: /forceRelease\(key, \{ now: true, from: \[storeValue\], store \}\)/,
    });
  }
  await t.throwsAsync(forceRelease("k", { store: "nowhere" }), { code: "LOCK_MISCONFIGURED" });
});

test.serial("forceRelease() throws LOCK_UNREACHABLE if the store does not reply", async (t) => {
  const store = but(memoryStore(), { inspect: () => Promise.reject(new Error("no route")) });
  configure({ ...QUIET, store });
  await t.throwsAsync(forceRelease("k"), { code: "LOCK_UNREACHABLE", message: /no route/ });
});

test.serial(
  "Redis: forceRelease() rejects a value that is not UTF-8, and says how to delete it",
  async (t) => {
    configure({ ...QUIET, store: redisStore(server.client()) });
    const client = server.client();
    const name = lockKey("forced", "bytes");
    await client.set(name, Buffer.from([0xff, 0xfe, 0x80]), "PX", 60_000);
    await t.throwsAsync(forceRelease(name, { now: true }), {
      instanceOf: LockOptionError,
      message: /holds bytes that are not UTF-8 text.*Fix: .*UNLINK/,
    });
    t.is(await client.exists(name), 1);
  },
);
