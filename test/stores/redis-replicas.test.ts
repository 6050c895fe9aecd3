import test, { type ExecutionContext } from "ava";
import type { Redis } from "ioredis";
import { LockOptionError } from "../../runtime";
import type { Duration } from "../../runtime/base/duration";
import { newId, newKey, TIMEOUT_MS } from "../store-contract/subject";
import { memoryStore } from "../../runtime/stores/memory";
import type { WholeStore } from "../../runtime/stores/port";
import { quorumStore } from "../../runtime/stores/quorum/quorum-store";
import { redisStore } from "../../runtime/stores/redis/redis";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { startRedis, type RedisServer } from "../support/redis-server";
import { retire } from "../support/retire";
import { startTcpProxy } from "../support/tcp-proxy";
import { until } from "../support/until";

// A master with one replica. Some tests suspend the replica.

let master: RedisServer;
let replica: RedisServer;
let admin: Redis;

test.before(async () => {
  master = await startRedis("--repl-diskless-sync-delay", "0");
  replica = await startRedis("--replicaof", "127.0.0.1", String(master.port));
  admin = master.client();
  await until(async () => (await admin.call("WAIT", 1, 10)) === 1);
});

test.after.always(async () => {
  await master.stop();
  await replica.stop();
});

/** Suspends the replica until the end of the test or until `resume()`. */
function hang(t: ExecutionContext): { resume(): void } {
  process.kill(replica.pid, "SIGSTOP");
  const resume = (): void => void process.kill(replica.pid, "SIGCONT");
  t.teardown(resume);
  return { resume };
}

function openStore(t: ExecutionContext): WholeStore {
  const store = redisStore(master.client());
  t.teardown(() => store.close());
  return store;
}

function openProcess(t: ExecutionContext, commandTimeout: Duration = "300ms"): FleetProcess {
  const store = redisStore(master.client());
  const process = new FleetProcess({ store, commandTimeout, logger: { warn: () => {} } });
  t.teardown(() => retire(process));
  return process;
}

async function callsOf(command: string): Promise<number> {
  const stats = await admin.info("commandstats");
  return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, "m").exec(stats)?.[1] ?? 0);
}

/** The number of connections since the master started. */
async function connectionsMade(): Promise<number> {
  return Number(/^total_connections_received:(\d+)/m.exec(await admin.info("stats"))?.[1]);
}

const request = (key: string) => ({ key, requestId: newId(), lockTimeMs: 10_000, fencing: false });

test.serial("a lock with replicas is on the replica when acquire() resolves", async (t) => {
  const store = openStore(t);
  const there = replica.client();
  for (const fencing of [false, true]) {
    const one = { ...request(newKey()), fencing, replicas: 1 };
    t.like(await store.acquire(one, TIMEOUT_MS), { acquired: true });
    t.is(await there.get(one.key), one.requestId);
    await store.release(one, TIMEOUT_MS);
  }
});

test.serial("the replica confirms a lock in a database that was selected at run time", async (t) => {
  const client = master.client();
  const store = redisStore(client);
  t.teardown(() => store.close());
  for (const db of [3, 5]) {
    await client.select(db);
    const one = { ...request(newKey()), replicas: 1 };
    t.deepEqual(await store.acquire(one, TIMEOUT_MS), { acquired: true });
    t.is(await replica.client({ db }).get(one.key), one.requestId);
    t.deepEqual(await store.renew([one], TIMEOUT_MS), [{ renewed: true }]);
  }
});

test.serial("acquire() throws if the replica does not confirm the lock", async (t) => {
  hang(t);
  const store = openStore(t);
  const one = { ...request(newKey()), replicas: 1 };
  await t.throwsAsync(store.acquire(one, 300), {
    message: /0 of 1 replicas confirmed|replicas did not answer in time/,
  });
  t.like(await store.release(one, TIMEOUT_MS), { released: true });
});

test.serial("a renewal reports a lost hold although the replica confirms", async (t) => {
  const store = openStore(t);
  const one = { ...request(newKey()), replicas: 1 };
  t.deepEqual(await store.renew([one], TIMEOUT_MS), [{ renewed: false, holder: undefined }] as never);
  await admin.set(one.key, "somebody", "PX", 10_000);
  t.deepEqual(await store.renew([one], TIMEOUT_MS), [{ renewed: false, holder: "somebody" }] as never);
});

test.serial("concurrent requests share WAIT commands for their replicas", async (t) => {
  const store = openStore(t);
  const before = await callsOf("wait");
  const many = Array.from({ length: 100 }, () => ({ ...request(newKey()), replicas: 1 }));
  const replies = await Promise.all(many.map((one) => store.acquire(one, 5_000)));
  t.true(replies.every(({ acquired }) => acquired));
  const taking = (await callsOf("wait")) - before;
  t.true(taking <= 30, `${taking} times`);
  t.true((await store.renew(many, 5_000)).every((reply) => "renewed" in reply && reply.renewed));
  t.is((await callsOf("wait")) - before - taking, 1);
  await Promise.all(many.map((one) => store.release(one, 5_000)));
});

test.serial("a lock that the replica does not confirm is released when the wait budget ends", async (t) => {
  hang(t);
  const process = openProcess(t);
  // On a busy machine, the last command may time out before the master reports that no replica has confirmed.
  await until(async () => {
    const key = newKey();
    const options = { replicas: 1, waitTime: "800ms", retryTimes: 1 } as const;
    const error = await t.throwsAsync(process.call(key, options, () => t.fail()));
    t.like(error, { code: "LOCK_UNREACHABLE" });
    await until(async () => (await admin.exists(key)) === 0);
    return /0 of 1 replicas confirmed/.test(error?.message ?? "");
  });
});

test.serial("a waiter retries within its budget until the replica confirms", async (t) => {
  const { resume } = hang(t);
  const before = await callsOf("wait");
  const call = openProcess(t).call(newKey(), { replicas: 1, waitTime: "20s" }, () => "in");
  await until(async () => (await callsOf("wait")) > before);
  resume();
  t.is(await call, "in");
});

test.serial("a renewal that the replica does not confirm does not extend the lock", async (t) => {
  const process = openProcess(t);
  const key = newKey();
  const call = process.call(key, { replicas: 1, lockTime: "3s" }, async (lock) => {
    hang(t);
    const aborted = deferred();
    lock.signal.addEventListener("abort", () => aborted.resolve());
    await aborted.promise;
    // The master has extended the key, so it is still held there.
    t.true((await admin.pttl(key)) > 0);
  });
  t.like(await t.throwsAsync(call), { code: "LOCK_LOST" });
});

test.serial("a held lock is renewed and confirmed if Redis is out of memory", async (t) => {
  const store = openStore(t);
  const one = { ...request(newKey()), replicas: 1 };
  t.deepEqual(await store.acquire(one, TIMEOUT_MS), { acquired: true });
  t.teardown(() => admin.config("SET", "maxmemory", "0"));
  await admin.config("SET", "maxmemory", "1");
  t.deepEqual(await store.renew([one], TIMEOUT_MS), [{ renewed: true }]);
});

test.serial("a hand-off in the process waits for the replica", async (t) => {
  const process = openProcess(t);
  const there = replica.client();
  const key = newKey();
  const seen = await Promise.all(
    [1, 2, 3].map(() =>
      process.call(key, { replicas: 1 }, async (lock) => [await there.get(key), lock.storeValue]),
    ),
  );
  for (const [stored, value] of seen as string[][]) t.is(stored, value);
});

test.serial("a holder without replicas does not hand off to a waiter with replicas", async (t) => {
  const process = openProcess(t);
  const key = newKey();
  const { resume } = hang(t);
  const entered = deferred();
  const leave = deferred();
  const first = process.call(key, {}, async () => {
    entered.resolve();
    await leave.promise;
  });
  await entered.promise;
  let isIn = false;
  const second = process.call(key, { replicas: 1, waitTime: "20s" }, async () => void (isIn = true));
  const before = await callsOf("wait");
  leave.resolve();
  await first;
  await until(async () => (await callsOf("wait")) > before);
  t.false(isIn);
  resume();
  await second;
  t.true(isIn);
});

test.serial("a reentrant lock is entered again with replicas only after they confirm", async (t) => {
  const [patient, process] = [openProcess(t, "20s"), openProcess(t)];
  const key = newKey();
  const inner = { replicas: 1, reentrant: true } as const;
  t.is(await patient.call(key, { reentrant: true }, () => patient.call(key, inner, () => "in")), "in");
  hang(t);
  const call = process.call(key, { reentrant: true }, () => process.call(key, inner, () => t.fail()));
  t.like(await t.throwsAsync(call), { code: "LOCK_UNREACHABLE" });
});

test.serial("a user that may not use WAIT gets an error immediately, and leaves no key", async (t) => {
  await admin.call("ACL", "SETUSER", "unheard", "reset", "on", "nopass", "~*", "&*", "+@all", "-wait");
  const own = redisStore(master.client({ username: "unheard", password: "any" }));
  t.teardown(() => own.close());
  const key = newKey();
  const process = new FleetProcess({ store: own, logger: { warn: () => {} } });
  const call = process.call(key, { replicas: 1, waitTime: "20s" }, () => t.fail());
  const error = await t.throwsAsync(call, { message: /NOPERM.*wait/ });
  t.like(error, { code: "LOCK_MISCONFIGURED" });
  t.is(await admin.exists(key), 0, "the key is already deleted");
});

test.serial("a renewal without replicas does not wait for a late replica", async (t) => {
  const proxy = await startTcpProxy(master.port);
  const own = redisStore(master.client({ port: proxy.port }));
  t.teardown(async () => {
    await own.close();
    await proxy.stop();
  });
  const [plain, late] = [request(newKey()), { ...request(newKey()), replicas: 1 }];
  t.like(await own.acquire(plain, TIMEOUT_MS), { acquired: true });
  t.like(await own.acquire(late, TIMEOUT_MS), { acquired: true });
  void proxy.strike(1, "silence", late.key);
  // Timers run in the order in which they are due. The margin allows for a busy machine that starts one of them late.
  const timeoutMs = 6_000;
  const timeIsUp = new Promise<"too late">((resolve) => setTimeout(resolve, 0.95 * timeoutMs, "too late"));
  const replies = await Promise.race([own.renew([plain, late], timeoutMs), timeIsUp]);
  t.deepEqual(replies[0], { renewed: true });
  t.true(replies[1] instanceof Error);
});

test.serial("a short timeout does not end another caller's wait for the same replica", async (t) => {
  const store = openStore(t);
  const hasty = { ...request(newKey()), replicas: 1 };
  const patient = { ...request(newKey()), replicas: 1 };
  for (const one of [hasty, patient]) t.like(await store.acquire(one, TIMEOUT_MS), { acquired: true });
  const { resume } = hang(t);
  const before = await callsOf("wait");
  const patientReply = store.renew([patient], 60_000);
  const [hastyReply] = await store.renew([hasty], 300);
  t.true(hastyReply instanceof Error);
  resume();
  t.deepEqual(await patientReply, [{ renewed: true }]);
  // Not earlier: a busy master may answer INFO before it reads the WAIT, which is on another connection.
  t.is(await callsOf("wait"), before + 1, "both share one WAIT");
});

test.serial("a renewal does not wait for the replicas of an earlier acquisition", async (t) => {
  const store = openStore(t);
  const held = { ...request(newKey()), replicas: 1 };
  const other = { ...request(newKey()), replicas: 1 };
  t.like(await store.acquire(held, TIMEOUT_MS), { acquired: true });
  const { resume } = hang(t);
  const before = await callsOf("wait");
  const taken = store.acquire(other, 60_000);
  await until(async () => (await callsOf("wait")) === before + 1);
  const renewed = store.renew([held], 60_000);
  await until(async () => (await callsOf("wait")) === before + 2);
  resume();
  t.like(await taken, { acquired: true });
  t.deepEqual(await renewed, [{ renewed: true }]);
});

test.serial("locks with replicas work after SCRIPT FLUSH", async (t) => {
  const store = openStore(t);
  for (let round = 0; round < 5; round += 1) {
    const many = Array.from({ length: 3 }, () => ({ ...request(newKey()), replicas: 1 }));
    await admin.script("FLUSH");
    for (const reply of await Promise.all(many.map((one) => store.acquire(one, TIMEOUT_MS))))
      t.like(reply, { acquired: true });
    await admin.script("FLUSH");
    t.deepEqual(
      await store.renew(many, TIMEOUT_MS),
      many.map(() => ({ renewed: true })),
    );
  }
});

test.serial("a closed store rejects pending requests, and opens no connection for them", async (t) => {
  const client = master.client();
  const store = redisStore(client);
  const one = { ...request(newKey()), replicas: 1 };
  t.like(await store.acquire({ ...one, replicas: 0 }, TIMEOUT_MS), { acquired: true });
  const before = await connectionsMade();
  const renewed = store.renew([one], TIMEOUT_MS);
  await store.close();
  t.deepEqual(
    (await renewed).map((reply) => (reply instanceof Error ? reply.message : reply)),
    ["the store is closed"],
  );
  const refused = await t.throwsAsync(store.acquire({ ...one, key: newKey(), replicas: 2 }, TIMEOUT_MS));
  t.is(refused?.message, "the store is closed");
  await client.ping();
  t.is(await connectionsMade(), before);
});

test.serial("locks with replicas work with min-replicas-to-write, and report NOREPLICAS", async (t) => {
  const key = newKey();
  await admin.config("SET", "min-replicas-to-write", "2");
  t.teardown(() => admin.config("SET", "min-replicas-to-write", "0"));
  const options = { replicas: 1, waitTime: "300ms", retryTimes: 1 } as const;
  const process = openProcess(t);
  // On a busy machine, Redis may not reply within the short timeout.
  await until(async () => {
    const error = await t.throwsAsync(process.call(key, options, () => t.fail()));
    return /NOREPLICAS/.test(error?.message ?? "");
  });
  await admin.config("SET", "min-replicas-to-write", "1");
  t.is(await openProcess(t).call(key, { replicas: 1, waitTime: "20s" }, () => "in"), "in");
});

test("a memory store ignores replicas", async (t) => {
  const process = new FleetProcess({ store: memoryStore(), defaults: { replicas: 1 } });
  t.is(await process.call("a", { replicas: 2 }, () => "in"), "in");
});

test("a quorum store rejects replicas in its defaults and at the call", async (t) => {
  const urls = [1, 2, 3].map((database) => `redis://127.0.0.1:1/${database}`);
  const quorum = quorumStore(urls);
  t.teardown(() => quorum.close());
  t.throws(() => new FleetProcess({ store: quorum, defaults: { replicas: 1 } }), {
    instanceOf: LockOptionError,
    message: /replicas=1 needs .* This store has no replicas/,
  });
  const { locker } = new FleetProcess({ store: quorum });
  t.throws(() => locker.callSites.find({ replicas: 1 }, undefined, []), { instanceOf: LockOptionError });
});
