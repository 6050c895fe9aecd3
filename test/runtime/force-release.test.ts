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
  type Store,
} from "../../runtime";
import { systemClock } from "../../runtime/clock";
import { QuorumStore } from "../../runtime/stores/quorum/quorum";
import { memoryMember } from "../stores/quorum/memory-member";
import { but } from "../simulation/tampering";
import { startRedis, type RedisServer } from "../support/redis-server";
import { until } from "../support/until";

// What `forceRelease()` does to those who hold a lock. Two stores over the same keys are two processes: neither knows the
// other's holders.

/** What it warns of is not looked at here. */
const QUIET = { woven: false, logger: { warn() {} } };

let server: RedisServer;
test.before(async () => {
  server = await startRedis();
});
test.afterEach.always(() => shutdown({ patience: "0s" }));
test.after.always(() => server.stop());

const members = [1, 2, 3].map(() => memoryMember(systemClock));
const memory = memoryStore();
const PAIRS: Readonly<Record<string, () => readonly [Store, Store]>> = {
  memory: () => [memory, but(memory, {})],
  Redis: () => [redisStore(server.client()), redisStore(server.client())],
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
    `${name}: a lock that is revoked ends with its body, whose signal tells, and nobody is beside it`,
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
      // Nobody else had the key before its body was done: so nothing was lost.
      await t.notThrowsAsync(lock.release());
      await next;
      t.like(await inspect(k), { state: "free", holders: [] });
    },
  );

  test.serial(`${name}: a lock that is revoked in its own process is lost at once`, async (t) => {
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
    `${name}: a key that is freed at once is another's at once, and its holder is told of the loss`,
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

  test.serial(`${name}: a lock that nobody renews is free when its time is over`, async (t) => {
    twoProcesses();
    const k = key("unwatched");
    const lock = await obtain(k, { ...THERE, lockTime: "300ms", watchdog: false, autoUnlock: false });
    await forceRelease(k);
    t.is(await tryObtain(k), undefined);
    const next = await obtain(k);
    t.is(lock.remaining(), 0);
    await next.release();
  });

  test.serial(`${name}: a key that is closed is freed only by who says now`, async (t) => {
    twoProcesses();
    const k = key("closed");
    await withLock(k, { lockAtLeast: "20s" }, () => {});
    t.deepEqual(await forceRelease(k), []);
    t.is(await tryObtain(k), undefined);
    t.deepEqual(await forceRelease(k, { now: true }), [], "nobody held it");
    t.is((await inspect(k)).state, isQuorum ? (await inspect(k)).state : "free");
  });

  test.serial(`${name}: who has taken the lock since it was looked at keeps it`, async (t) => {
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
    `${name}: of several who hold a lock each is revoked, and has its place until it leaves`,
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

test.serial("a value of another program is refused unchanged, and deleted only with `now`", async (t) => {
  configure({ ...QUIET, redis: server.url });
  const client = server.client();
  const expected = {
    code: "LOCK_BAD_OPTION",
    message: /^theirs holds '.*Fix: forceRelease\(key, \{ now: true \}\)/,
  };
  const ofOurForm = "0123456789abcdef".repeat(2);
  for (const [value, isKept] of [
    ["whoever", true],
    ["whoever", false],
    [ofOurForm, false], // Ours expire.
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
  await client.set("theirs", ofOurForm);
  t.false(await store.revoke?.({ key: "theirs", requestId: ofOurForm }, 5_000), "nor does the script");
  t.is(await client.get("theirs"), ofOurForm);
  await client.rpush("a list of theirs", "x");
  for (const now of [true, false]) {
    await t.throwsAsync(forceRelease("a list of theirs", { now }), { code: "LOCK_MISCONFIGURED" });
  }
});

test.serial("nothing is taken of one who takes the lock meanwhile", async (t) => {
  const inside = memoryStore();
  let beforeRevoking = async (): Promise<void> => {};
  const store = but(inside, {
    async revoke(request, timeoutMs) {
      await beforeRevoking();
      return (await inside.revoke?.(request, timeoutMs)) ?? false;
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

test.serial("a store that cannot revoke says what can be done", async (t) => {
  configure({ ...QUIET, store: but(memoryStore(), { revoke: undefined }) });
  const lock = await obtain("k");
  await t.throwsAsync(forceRelease("k"), { code: "LOCK_BAD_OPTION", message: /now: true/ });
  t.is((await forceRelease("k", { now: true })).length, 1);
  await t.throwsAsync(lock.release(), { code: "LOCK_LOST" });
});

test.serial("what is no key, and no option, is refused", async (t) => {
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

test.serial("a store that does not answer is told", async (t) => {
  const store = but(memoryStore(), { peek: () => Promise.reject(new Error("no route")) });
  configure({ ...QUIET, store });
  await t.throwsAsync(forceRelease("k"), { code: "LOCK_UNREACHABLE", message: /no route/ });
});

test.serial(
  "Redis: a value that is no text cannot be released, and the error says how to delete it",
  async (t) => {
    configure({ ...QUIET, store: redisStore(server.client()) });
    const client = server.client();
    const name = lockKey("forced", "bytes");
    await client.set(name, Buffer.from([0xff, 0xfe, 0x80]), "PX", 60_000);
    await t.throwsAsync(forceRelease(name, { now: true }), {
      instanceOf: LockOptionError,
      message: /holds bytes that are no UTF-8 text.*Fix: .*UNLINK/,
    });
    t.is(await client.exists(name), 1);
  },
);
