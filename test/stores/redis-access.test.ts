import { setTimeout as pause } from "node:timers/promises";
import test from "ava";
import type { Redis } from "ioredis";
import { LockMisconfiguredError, errorMessage } from "../../runtime/base/errors";
import { untilListening, storeContract } from "../store-contract";
import {
  release,
  peek,
  newId,
  newKey,
  enqueue,
  placing,
  queued,
  renew,
  renewal,
  request,
  acquire,
  TAKEN,
  acquiredInTurn,
  TIMEOUT_MS,
} from "../store-contract/subject";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { reservedFor } from "../../runtime/stores/value";
import { queueOf } from "../support/auxiliary-keys";
import { startRedis, type RedisServer } from "../support/redis-server";
import { SMALLEST_ACCESS } from "./access";
import { recordEvents } from "./noting-listener";
import { registering } from "./registering";

// Redis users with restricted access, and the errors and warnings if it is too little.

let server: RedisServer;
let admin: Redis;
let least: WholeStore;
let plain: WholeStore;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  least = await storeOf("least", SMALLEST_ACCESS);
  plain = redisStore(server.client());
  await Promise.all([untilListening(least), untilListening(plain)]);
});

test.after.always(async () => {
  await Promise.all([least.close(), plain.close()]);
  await server.stop();
});

/** A store whose Redis user has exactly this access. */
async function storeOf(username: string, access: string): Promise<WholeStore> {
  await admin.call("ACL", "SETUSER", username, "reset", "on", "nopass", ...access.split(" "));
  return redisStore(server.client({ username, password: "any" }));
}

storeContract(registering(test, "under the smallest access: "), () => ({
  store: least,
  elapse: (ms) => pause(ms + 5),
  put: async (key, value, ms) => void (await admin.set(key, value, "PX", ms)),
}));

for (const rule of SMALLEST_ACCESS.split(" ").filter((word) => word.startsWith("+") && word !== "+info")) {
  test.serial(`locks fail or warn if the documented permissions lack ${rule}`, async (t) => {
    const own = await storeOf(`without-${rule.slice(1)}`, SMALLEST_ACCESS.replace(rule, ""));
    t.teardown(() => own.close());
    const events = recordEvents(own);
    const failures: string[] = [];
    const attempt = async (ask: () => Promise<unknown>): Promise<void> => {
      const reply = await ask().catch((error: unknown) => error);
      if (reply instanceof LockMisconfiguredError) failures.push(reply.message);
    };
    const [key, alone, requestId, waiting] = [newKey(), newKey(), newId(), newId()];
    await admin.script("FLUSH");
    await attempt(() => acquire(own, alone, requestId, { fencing: true }));
    await attempt(() => release(own, alone, requestId));
    await attempt(() => acquire(own, key, requestId));
    await acquire(plain, key, requestId); // If the user may not, this acquires the key.
    await attempt(() => renew(own, key, requestId, 2 * 600_000));
    await attempt(() => enqueue(own, key, waiting));
    await attempt(() => own.queue.dequeue(key, waiting, TIMEOUT_MS));
    await attempt(() => enqueue(own, key, waiting));
    await attempt(() => release(own, key, requestId));
    if (rule === "+publish" || rule === "+subscribe") t.regex(await events.warned, /&lockweave:1:\*/);
    else t.true(failures.length > 0);
  });
}

test.serial(
  "a user is refused whose selectors allow the keys of a lock, but not all in one command",
  async (t) => {
    const username = "selecting";
    const rules = ["&*", `~${newKey().slice(0, 4)}*`, "+@all", "(~lockweave:1:* +@all)"];
    await admin.call("ACL", "SETUSER", username, "reset", "on", "nopass", ...rules);
    const own = redisStore(server.client({ username, password: "any" }));
    t.teardown(() => own.close());
    const key = newKey();
    await t.throwsAsync(acquire(own, key, newId()), { instanceOf: LockMisconfiguredError });
    t.is(await admin.exists(key), 0);
  },
);

for (const rule of SMALLEST_ACCESS.split(" ").filter((word) => word.startsWith("+") && word !== "+info")) {
  test.serial(`no key outlives its lock if the documented permissions lack ${rule}`, async (t) => {
    const own = await storeOf(`leaves-${rule.slice(1)}`, SMALLEST_ACCESS.replace(rule, ""));
    t.teardown(() => own.close());
    const attempt = async (ask: () => Promise<unknown>): Promise<void> => void (await ask().catch(() => {}));
    const keys = [newKey(), newKey(), newKey(), newKey()] as const;
    const [free, held, shared, joined] = keys;
    await acquire(plain, held, newId());
    for (const permits of [3, Infinity]) {
      await attempt(() => acquire(own, shared, newId(), { permits }));
      await acquire(plain, joined, newId(), { permits: 3 });
      await attempt(() => acquire(own, joined, newId(), { permits }));
      await attempt(() => enqueue(own, joined, newId(), { permits }));
    }
    await attempt(() => acquire(own, free, newId(), { fencing: true }));
    await attempt(() => enqueue(own, held, newId()));
    for (const key of keys) {
      for (const name of await admin.keys(`*${key}*`)) t.not(await admin.pttl(name), -1, name);
    }
  });
}

test("the first lock names a command that only the queue needs, if the user may not run it", async (t) => {
  const timeless = await storeOf("timeless", SMALLEST_ACCESS.replace("+time", ""));
  t.teardown(() => timeless.close());
  await t.throwsAsync(acquire(timeless, newKey(), newId()), {
    instanceOf: LockMisconfiguredError,
    message: /\(NOPERM in scripts: time\)/,
  });
});

test("every method throws LockMisconfiguredError if the user may not run a command", async (t) => {
  const shut = await storeOf("reader", "~* &* +@read +@connection +info");
  t.teardown(() => shut.close());
  const expected = {
    instanceOf: LockMisconfiguredError,
    message: /the Redis user lacks permission for a command or a key that locks need \(NOPERM/,
  };
  const [key, requestId] = [newKey(), newId()];
  await t.throwsAsync(acquire(shut, key, requestId), expected);
  await t.throwsAsync(acquire(shut, key, requestId, { fencing: true }), expected);
  await t.throwsAsync(release(shut, key, requestId), expected);
  await t.throwsAsync(enqueue(shut, key, newId()), expected);
  await t.throwsAsync(shut.queue.dequeue(key, newId(), TIMEOUT_MS), expected);
  await t.throwsAsync(
    shut.queue.releaseAndEnqueue({ key, requestId }, placing(key, newId()), TIMEOUT_MS),
    expected,
  );
  t.true((await renew(shut, key, requestId, 1_000)) instanceof LockMisconfiguredError);
  t.true((await peek(shut, key)) instanceof LockMisconfiguredError);
});

test("a renewal and a release without read access report the missing access, not another holder", async (t) => {
  const [key, requestId] = [newKey(), newId()];
  await acquire(plain, key, requestId);
  const blind = await storeOf("blind", "~* &* +@all -get -mget");
  t.teardown(() => blind.close());
  const denied = (reply: unknown): void => {
    t.true(reply instanceof LockMisconfiguredError, String(reply));
  };
  denied(await renew(blind, key, requestId, 1_000));
  denied((await blind.renew([{ ...renewal(key, requestId), fencing: true }], TIMEOUT_MS))[0]);
  denied(await release(blind, key, requestId).catch((error: unknown) => error));
  denied(
    (
      await blind.batch?.releaseMany([{ key, requestId }], TIMEOUT_MS).catch((error: unknown) => [error])
    )?.[0],
  );
  const next = blind.queue.releaseAndEnqueue({ key, requestId }, placing(key, newId()), TIMEOUT_MS);
  denied(await next.catch((error: unknown) => error));
  denied(await peek(blind, key));
  t.is(await peek(plain, key), requestId, "nothing has changed");
});

test("commands for many keys reject only the keys that the user may not access", async (t) => {
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
  check(await partly.batch?.acquireMany(requests, TIMEOUT_MS), TAKEN);
  check(await partly.renew(requests, TIMEOUT_MS), { renewed: true });
  check(await partly.peek(keys, TIMEOUT_MS), ids[0]);
  const places = keys.map((key) => placing(key, newId()));
  const [placed, refused] = (await partly.batch?.enqueueMany?.(places, TIMEOUT_MS)) ?? [];
  t.like(placed, { acquired: false, holder: ids[0] });
  t.true(refused instanceof LockMisconfiguredError);
  check(await partly.batch?.releaseMany(requests, TIMEOUT_MS), { released: true });
});

// ---- channels -------------------------------------------------------------------------------------------

test("a user without access to channels is warned once, waits by polling, and keeps its position", async (t) => {
  const deaf = await storeOf("deaf", "~* resetchannels +@all");
  t.teardown(() => deaf.close());
  const events = recordEvents(deaf);
  const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
  await acquire(plain, key, holder);
  await queued(deaf, newKey(), newId()).catch(() => {}); // A waiter makes the store subscribe.
  t.regex(await events.warned, /ACL SETUSER <user> &lockweave:1:\*/);
  await queued(deaf, key, first);
  await queued(plain, key, second);
  t.deepEqual(await release(plain, key, holder), { released: true });
  t.is(await peek(plain, key), reservedFor(first));
  const requestId = await acquiredInTurn(deaf, key, first);
  t.deepEqual(
    await release(deaf, key, requestId),
    { released: true },
    "a user that may not publish still passes the key on",
  );
  t.is(await peek(plain, key), reservedFor(second));
  t.is(events.warnings.length, 1);
});

test("a waiter that is denied its channel late keeps its position and leaves nothing in the queue", async (t) => {
  const deaf = await storeOf("deaf-later", "~* resetchannels +@all");
  t.teardown(() => deaf.close());
  const events = recordEvents(deaf);
  const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
  await acquire(plain, key, holder);
  await queued(deaf, key, first); // With an inbox, because the store does not know yet.
  await queued(plain, key, second);
  await events.warned;
  await queued(deaf, key, first);
  t.deepEqual(await release(plain, key, holder), { released: true });
  t.is(await peek(plain, key), reservedFor(first));
  const requestId = await acquiredInTurn(deaf, key, first);
  t.deepEqual(await release(deaf, key, requestId), { released: true });
  t.is(await peek(plain, key), reservedFor(second));
});

test("a waiter that is denied its channel late blocks nobody after it has left", async (t) => {
  const deaf = await storeOf("deaf-and-gone", "~* resetchannels +@all");
  t.teardown(() => deaf.close());
  const events = recordEvents(deaf);
  const [key, holder, gone, next] = [newKey(), newId(), newId(), newId()];
  await acquire(deaf, key, holder);
  await queued(deaf, key, gone);
  await events.warned;
  await queued(plain, key, next);
  await deaf.queue.dequeue(key, gone, TIMEOUT_MS);
  t.deepEqual(await release(deaf, key, holder), { released: true });
  t.is(await peek(plain, key), reservedFor(next));
});

test("a user that may not publish releases its lock, and gets a warning with the fix", async (t) => {
  const mute = await storeOf("mute", "~* resetchannels +@all");
  t.teardown(() => mute.close());
  const [key, requestId, alone] = [newKey(), newId(), newKey()];
  for (const name of [key, alone]) await acquire(mute, name, requestId);
  const events = recordEvents(mute);
  t.deepEqual(await release(mute, alone, requestId), { released: true });
  t.deepEqual(events.warnings, [], "no warning if nobody waits");
  const waiting = newId();
  await queued(plain, key, waiting);
  t.deepEqual(await release(mute, key, requestId), { released: true });
  t.regex(await events.warned, /ACL SETUSER <user> &lockweave:1:\*/);
  await acquiredInTurn(plain, key, waiting);
  const late = recordEvents(mute);
  t.regex(await late.warned, /lockweave/, "a later listener gets the warning as well");
});

test("a user that may not publish releases several locks, and gets a warning", async (t) => {
  const mute = await storeOf("mute", "~* resetchannels +@all");
  t.teardown(() => mute.close());
  const events = recordEvents(mute);
  const [key, requestId, waiting] = [newKey(), newId(), newId()];
  await acquire(mute, key, requestId);
  await queued(plain, key, waiting);
  t.deepEqual(await mute.batch?.releaseMany([{ key, requestId }], TIMEOUT_MS), [{ released: true }]);
  t.regex(await events.warned, /ACL SETUSER <user> &lockweave:1:\*/);
  await acquiredInTurn(plain, key, waiting);
});

test("a user that may not delete gets an error only for the key that needs a delete", async (t) => {
  const keeping = await storeOf("keeping", "~* &* +@all -del");
  t.teardown(() => keeping.close());
  const [key, other, requestId] = [newKey(), newKey(), newId()];
  for (const name of [key, other]) await acquire(plain, name, requestId);
  await queued(plain, other, newId());
  await admin.set(queueOf(key), "no queue");
  const dropped = [key, other].map((name) => ({ key: name, requestId }));
  const [refused, ...others] = (await keeping.batch?.releaseMany(dropped, TIMEOUT_MS)) ?? [];
  t.true(refused instanceof LockMisconfiguredError, errorMessage(refused));
  t.deepEqual(others, [{ released: true }]);
});

test("a user that may not publish passes on a reservation, and gets a warning", async (t) => {
  const mute = await storeOf("mute", "~* resetchannels +@all");
  t.teardown(() => mute.close());
  const events = recordEvents(mute);
  const [key, holder, first] = [newKey(), newId(), newId()];
  await acquire(plain, key, holder);
  for (const waiting of [first, newId()]) await queued(plain, key, waiting);
  await release(plain, key, holder);
  t.is(await peek(plain, key), reservedFor(first));
  await mute.queue.dequeue(key, first, TIMEOUT_MS);
  t.regex(await events.warned, /ACL SETUSER <user> &lockweave:1:\*/);
});

// ---- eviction -------------------------------------------------------------------------------------------

test("warns once about a Redis that evicts keys, and never about one that does not", async (t) => {
  const evicting = await startRedis("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru");
  t.teardown(evicting.stop);
  const own = redisStore(evicting.client());
  t.teardown(() => own.close());
  const events = recordEvents(own);
  t.regex(
    await events.warned,
    /maxmemory-policy allkeys-lru.*If it evicts a held lock, a second caller can acquire it/,
  );
  await evicting.client().call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await events.reconnected;
  await acquire(own, newKey(), newId());
  t.is(events.warnings.length, 1);
  for (const settings of [
    ["--maxmemory", "0", "--maxmemory-policy", "allkeys-lru"],
    ["--maxmemory", "100mb", "--maxmemory-policy", "noeviction"],
  ]) {
    const keeping = await startRedis(...settings);
    t.teardown(keeping.stop);
    const quiet = redisStore(keeping.client());
    t.teardown(() => quiet.close());
    const heard = recordEvents(quiet);
    await untilListening(quiet);
    t.deepEqual(heard.warnings, []);
  }
});

test("does not warn about eviction if the user may not read the settings", async (t) => {
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
  const events = recordEvents(own);
  await untilListening(own);
  t.deepEqual(events.warnings, []);
});

// ---- several tenants ------------------------------------------------------------------------------------

test("tenants with their own prefix and user cannot access each other's locks", async (t) => {
  const access = (tenant: string): string =>
    SMALLEST_ACCESS.replaceAll("~", `~${tenant}:`).replace("&lockweave:1:*", "&lockweave:1:inbox:*");
  const stores = await Promise.all(
    ["tenant-a", "tenant-b"].map(async (tenant) => {
      await admin.call("ACL", "SETUSER", tenant, "reset", "on", "nopass", ...access(tenant).split(" "));
      return redisStore(server.client({ username: tenant, password: "any", keyPrefix: `${tenant}:` }));
    }),
  );
  const key = newKey();
  for (const store of stores) {
    const [holder, waiting] = [newId(), newId()];
    t.deepEqual(await acquire(store, key, holder), TAKEN);
    await queued(store, key, waiting);
    t.deepEqual(await release(store, key, holder), { released: true });
    await acquiredInTurn(store, key, waiting, { fencing: true });
  }
  const intruder = redisStore(
    server.client({ username: "tenant-a", password: "any", keyPrefix: "tenant-b:" }),
  );
  await t.throwsAsync(acquire(intruder, key, newId()), { instanceOf: LockMisconfiguredError });
  for (const store of [...stores, intruder]) await store.close();
});
