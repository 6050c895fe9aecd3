import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import type { Redis } from "ioredis";
import { LockMisconfiguredError, errorMessage } from "../../runtime/errors";
import { hearing, storeContract } from "../../runtime/stores/contract";
import {
  drop,
  look,
  newId,
  newKey,
  place,
  placing,
  queued,
  renew,
  renewal,
  request,
  take,
  TAKEN,
  takenInTurn,
  TIMEOUT_MS,
} from "../../runtime/stores/contract/subject";
import type { Store } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { reservedFor } from "../../runtime/stores/value";
import { queueOf } from "../support/beside";
import { startRedis, type RedisServer } from "../support/redis-server";
import { SMALLEST_ACCESS } from "./access";
import { noting } from "./noting-listener";
import { registering } from "./registering";

// What Redis lets its users do, and what is told when that is too little.

let server: RedisServer;
let admin: Redis;
let least: Store;
let plain: Store;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  least = await storeOf("least", SMALLEST_ACCESS);
  plain = redisStore(server.client());
  await Promise.all([hearing(least), hearing(plain)]);
});

test.after.always(async () => {
  await Promise.all([least.close(), plain.close()]);
  await server.stop();
});

/** A store of a user who may do this and no more. */
async function storeOf(username: string, access: string): Promise<Store> {
  await admin.call("ACL", "SETUSER", username, "reset", "on", "nopass", ...access.split(" "));
  return redisStore(server.client({ username, password: "any" }));
}

storeContract(registering(test, "under the smallest access: "), () => ({
  store: least,
  elapse: (ms) => pause(ms + 5),
  put: async (key, value, ms) => void (await admin.set(key, value, "PX", ms)),
}));

for (const rule of SMALLEST_ACCESS.split(" ").filter((word) => word.startsWith("+") && word !== "+info")) {
  test.serial(`of the smallest access, ${rule} is not left out without being missed`, async (t) => {
    const own = await storeOf(`without-${rule.slice(1)}`, SMALLEST_ACCESS.replace(rule, ""));
    t.teardown(() => own.close());
    const told = noting(own);
    const failures: string[] = [];
    const attempt = async (ask: () => Promise<unknown>): Promise<void> => {
      const reply = await ask().catch((error: unknown) => error);
      if (reply instanceof LockMisconfiguredError) failures.push(reply.message);
    };
    const [key, alone, requestId, waiting] = [newKey(), newKey(), newId(), newId()];
    await admin.script("FLUSH");
    await attempt(() => take(own, alone, requestId, { fencing: true }));
    await attempt(() => drop(own, alone, requestId));
    await attempt(() => take(own, key, requestId));
    await take(plain, key, requestId); // Where it may not.
    await attempt(() => renew(own, key, requestId, 2 * 600_000));
    await attempt(() => place(own, key, waiting));
    await attempt(() => own.dequeue(key, waiting, TIMEOUT_MS));
    await attempt(() => place(own, key, waiting));
    await attempt(() => drop(own, key, requestId));
    if (rule === "+publish" || rule === "+subscribe") t.regex(await told.warned, /&lockweave:2:\*/);
    else t.true(failures.length > 0);
  });
}

test("a user who may not run a command is a misconfiguration, and told so by each method", async (t) => {
  const shut = await storeOf("reader", "~* &* +@read +@connection +info");
  t.teardown(() => shut.close());
  const expected = {
    instanceOf: LockMisconfiguredError,
    message: /the Redis user may not run a command that locks need, or not on this key \(NOPERM/,
  };
  const [key, requestId] = [newKey(), newId()];
  await t.throwsAsync(take(shut, key, requestId), expected);
  await t.throwsAsync(take(shut, key, requestId, { fencing: true }), expected);
  await t.throwsAsync(drop(shut, key, requestId), expected);
  await t.throwsAsync(place(shut, key, newId()), expected);
  await t.throwsAsync(shut.dequeue(key, newId(), TIMEOUT_MS), expected);
  await t.throwsAsync(
    shut.releaseAndEnqueue({ key, requestId }, placing(key, newId()), TIMEOUT_MS),
    expected,
  );
  t.true((await renew(shut, key, requestId, 1_000)) instanceof LockMisconfiguredError);
  t.true((await look(shut, key)) instanceof LockMisconfiguredError);
});

test("without the right to read, a renewal and a drop say so, and not that the lock is another's", async (t) => {
  const [key, requestId] = [newKey(), newId()];
  await take(plain, key, requestId);
  const blind = await storeOf("blind", "~* &* +@all -get -mget");
  t.teardown(() => blind.close());
  const denied = (reply: unknown): void => {
    t.true(reply instanceof LockMisconfiguredError, String(reply));
  };
  denied(await renew(blind, key, requestId, 1_000));
  denied((await blind.renew([{ ...renewal(key, requestId), fencing: true }], TIMEOUT_MS))[0]);
  denied(await drop(blind, key, requestId).catch((error: unknown) => error));
  denied(
    (await blind.releaseMany?.([{ key, requestId }], TIMEOUT_MS).catch((error: unknown) => [error]))?.[0],
  );
  const next = blind.releaseAndEnqueue({ key, requestId }, placing(key, newId()), TIMEOUT_MS);
  denied(await next.catch((error: unknown) => error));
  denied(await look(blind, key));
  t.is(await look(plain, key), requestId, "and nothing was changed");
});

test("of many keys, only the ones that the user may not use are refused for it", async (t) => {
  const partly = await storeOf("partly", SMALLEST_ACCESS);
  t.teardown(() => partly.close());
  const [mine, other] = [newKey(), `not_mine_${newId()}`];
  const ids = [newId(), newId()];
  const keys = [mine, other];
  const requests = keys.map((key, index) => request(key, ids[index] ?? ""));
  const check = (replies: readonly unknown[] | undefined, first: unknown): void => {
    t.deepEqual(replies?.[0], first);
    t.true(replies?.[1] instanceof LockMisconfiguredError, String(replies?.[1]));
  };
  check(await partly.acquireMany?.(requests, TIMEOUT_MS), TAKEN);
  check(await partly.renew(requests, TIMEOUT_MS), { renewed: true });
  check(await partly.peek(keys, TIMEOUT_MS), ids[0]);
  const places = keys.map((key) => placing(key, newId()));
  const [placed, refused] = (await partly.enqueueMany?.(places, TIMEOUT_MS)) ?? [];
  t.like(placed, { acquired: false, holder: ids[0] });
  t.true(refused instanceof LockMisconfiguredError);
  check(await partly.releaseMany?.(requests, TIMEOUT_MS), { released: true });
});

// ---- channels -------------------------------------------------------------------------------------------

test("who may use no channel is told once, waits by looking, and is passed by nobody for it", async (t) => {
  const deaf = await storeOf("deaf", "~* resetchannels +@all");
  t.teardown(() => deaf.close());
  const told = noting(deaf);
  const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
  await take(plain, key, holder);
  await queued(deaf, newKey(), newId()).catch(() => {}); // Somebody waits, and the inbox is opened.
  t.regex(await told.warned, /ACL SETUSER <user> &lockweave:2:\*/);
  await queued(deaf, key, first);
  await queued(plain, key, second);
  t.deepEqual(await drop(plain, key, holder), { released: true });
  t.is(await look(plain, key), reservedFor(first));
  const requestId = await takenInTurn(deaf, key, first);
  t.deepEqual(await drop(deaf, key, requestId), { released: true }, "nor does who may not publish keep it");
  t.is(await look(plain, key), reservedFor(second));
  t.is(told.warnings.length, 1);
});

test("who learns while it waits that it may use no channel keeps its turn, and leaves nothing in the queue", async (t) => {
  const deaf = await storeOf("deaf-later", "~* resetchannels +@all");
  t.teardown(() => deaf.close());
  const told = noting(deaf);
  const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
  await take(plain, key, holder);
  await queued(deaf, key, first); // With an inbox, as far as it knows.
  await queued(plain, key, second);
  await told.warned;
  await queued(deaf, key, first);
  t.deepEqual(await drop(plain, key, holder), { released: true });
  t.is(await look(plain, key), reservedFor(first));
  const requestId = await takenInTurn(deaf, key, first);
  t.deepEqual(await drop(deaf, key, requestId), { released: true });
  t.is(await look(plain, key), reservedFor(second));
});

test("who learns while it waits that it may use no channel is in nobody's way when it has left", async (t) => {
  const deaf = await storeOf("deaf-and-gone", "~* resetchannels +@all");
  t.teardown(() => deaf.close());
  const told = noting(deaf);
  const [key, holder, gone, next] = [newKey(), newId(), newId(), newId()];
  await take(deaf, key, holder);
  await queued(deaf, key, gone);
  await told.warned;
  await queued(plain, key, next);
  await deaf.dequeue(key, gone, TIMEOUT_MS);
  t.deepEqual(await drop(deaf, key, holder), { released: true });
  t.is(await look(plain, key), reservedFor(next));
});

test("who may not publish drops all the same, and is told how the others would hear of it", async (t) => {
  const mute = await storeOf("mute", "~* resetchannels +@all");
  t.teardown(() => mute.close());
  const [key, requestId, alone] = [newKey(), newId(), newKey()];
  for (const name of [key, alone]) await take(mute, name, requestId);
  const told = noting(mute);
  t.deepEqual(await drop(mute, alone, requestId), { released: true });
  t.deepEqual(told.warnings, [], "where nobody waits, nobody has to hear");
  const waiting = newId();
  await queued(plain, key, waiting);
  t.deepEqual(await drop(mute, key, requestId), { released: true });
  t.regex(await told.warned, /ACL SETUSER <user> &lockweave:2:\*/);
  await takenInTurn(plain, key, waiting);
  const late = noting(mute);
  t.regex(await late.warned, /lockweave/, "who listens later is told, too");
});

test("who may not publish drops several all the same, and is told, too", async (t) => {
  const mute = await storeOf("mute", "~* resetchannels +@all");
  t.teardown(() => mute.close());
  const told = noting(mute);
  const [key, requestId, waiting] = [newKey(), newId(), newId()];
  await take(mute, key, requestId);
  await queued(plain, key, waiting);
  t.deepEqual(await mute.releaseMany?.([{ key, requestId }], TIMEOUT_MS), [{ released: true }]);
  t.regex(await told.warned, /ACL SETUSER <user> &lockweave:2:\*/);
  await takenInTurn(plain, key, waiting);
});

test("who may not delete is told so of the one key among several that it would have to", async (t) => {
  const keeping = await storeOf("keeping", "~* &* +@all -del");
  t.teardown(() => keeping.close());
  const [key, other, requestId] = [newKey(), newKey(), newId()];
  for (const name of [key, other]) await take(plain, name, requestId);
  await queued(plain, other, newId());
  await admin.set(queueOf(key), "no queue");
  const dropped = [key, other].map((name) => ({ key: name, requestId }));
  const [refused, ...others] = (await keeping.releaseMany?.(dropped, TIMEOUT_MS)) ?? [];
  t.true(refused instanceof LockMisconfiguredError, errorMessage(refused));
  t.deepEqual(others, [{ released: true }]);
});

test("who may not publish passes on what was reserved all the same, and is told, too", async (t) => {
  const mute = await storeOf("mute", "~* resetchannels +@all");
  t.teardown(() => mute.close());
  const told = noting(mute);
  const [key, holder, first] = [newKey(), newId(), newId()];
  await take(plain, key, holder);
  for (const waiting of [first, newId()]) await queued(plain, key, waiting);
  await drop(plain, key, holder);
  t.is(await look(plain, key), reservedFor(first));
  await mute.dequeue(key, first, TIMEOUT_MS);
  t.regex(await told.warned, /ACL SETUSER <user> &lockweave:2:\*/);
});

// ---- eviction -------------------------------------------------------------------------------------------

test("a Redis that evicts keys is warned of once, and one that does not is not", async (t) => {
  const evicting = await startRedis("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru");
  t.teardown(evicting.stop);
  const own = redisStore(evicting.client());
  t.teardown(() => own.close());
  const told = noting(own);
  t.regex(await told.warned, /maxmemory-policy allkeys-lru.*a lock that is held may be among them/);
  await evicting.client().call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await told.reconnected;
  await take(own, newKey(), newId());
  t.is(told.warnings.length, 1);
  for (const settings of [
    ["--maxmemory", "0", "--maxmemory-policy", "allkeys-lru"],
    ["--maxmemory", "100mb", "--maxmemory-policy", "noeviction"],
  ]) {
    const keeping = await startRedis(...settings);
    t.teardown(keeping.stop);
    const quiet = redisStore(keeping.client());
    t.teardown(() => quiet.close());
    const heard = noting(quiet);
    await hearing(quiet);
    t.deepEqual(heard.warnings, []);
  }
});

test("who may not ask how Redis is set up is told nothing of it", async (t) => {
  const evicting = await startRedis("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru");
  t.teardown(evicting.stop);
  const root = evicting.client();
  await root.call(
    "ACL",
    "SETUSER",
    "uninformed",
    "on",
    "nopass",
    ...SMALLEST_ACCESS.replace(" +info", "").split(" "),
  );
  const own = redisStore(
    evicting.client({ username: "uninformed", password: "any", enableReadyCheck: false }),
  );
  t.teardown(() => own.close());
  const told = noting(own);
  await hearing(own);
  t.deepEqual(told.warnings, []);
});

// ---- several tenants ------------------------------------------------------------------------------------

test("with a prefix and a user each, tenants use their locks, and cannot reach those of others", async (t) => {
  const access = (tenant: string): string =>
    SMALLEST_ACCESS.replaceAll("~", `~${tenant}:`).replace("&lockweave:2:*", "&lockweave:2:inbox:*");
  const stores = await Promise.all(
    ["tenant-a", "tenant-b"].map(async (tenant) => {
      await admin.call("ACL", "SETUSER", tenant, "reset", "on", "nopass", ...access(tenant).split(" "));
      return redisStore(server.client({ username: tenant, password: "any", keyPrefix: `${tenant}:` }));
    }),
  );
  const key = newKey();
  for (const store of stores) {
    const [holder, waiting] = [newId(), newId()];
    t.deepEqual(await take(store, key, holder), TAKEN);
    await queued(store, key, waiting);
    t.deepEqual(await drop(store, key, holder), { released: true });
    await takenInTurn(store, key, waiting, { fencing: true });
  }
  const intruder = redisStore(
    server.client({ username: "tenant-a", password: "any", keyPrefix: "tenant-b:" }),
  );
  await t.throwsAsync(take(intruder, key, newId()), { instanceOf: LockMisconfiguredError });
  for (const store of [...stores, intruder]) await store.close();
});
