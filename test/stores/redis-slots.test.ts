import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import test, { type ExecutionContext } from "ava";
import { Redis, type Cluster } from "ioredis";
import {
  release,
  listen,
  peek,
  newId,
  newKey,
  enqueue,
  queued,
  renew,
  renewal,
  request,
  acquire,
  TAKEN,
  token,
  TIMEOUT_MS,
} from "../store-contract/subject";
import { UNLIMITED } from "../../runtime/base/limits";
import { MOST_AT_ONCE, type WholeStore, type AcquireRequest } from "../../runtime/stores/port";
import { keyIn, slotOf } from "../../runtime/stores/redis/cluster/slots";
import { redisStore } from "../../runtime/stores/redis/redis";
import { queueOf } from "../support/auxiliary-keys";
import { FleetProcess } from "../support/fleet";
import { openGlideCluster } from "../support/glide";
import { hasOtherClients } from "../support/other-clients";
import { startRedisCluster, type ClusterNode, type RedisCluster } from "../support/redis-cluster";
import { migrateSlot, openSlot } from "../support/reshard";
import { retire } from "../support/retire";
import { until } from "../support/until";
import { untilSubscribedEverywhere, untilSubscribedTo, isSubscribed, keyAt } from "./subscribed-everywhere";
import { recordEvents } from "./noting-listener";

// Slots of a cluster: the number of commands and writes, and locks in slots that migrate.

let cluster: RedisCluster;

test.before(async () => {
  cluster = await startRedisCluster(3, 3);
});

test.after.always(() => cluster.stop());

type ClusterOptions = Parameters<RedisCluster["cluster"]>[0];

async function open(
  t: ExecutionContext,
  options?: ClusterOptions,
): Promise<{ own: WholeStore; client: Cluster }> {
  const client = cluster.cluster(options);
  const own = redisStore(client);
  t.teardown(() => own.close());
  await until(() => client.status === "ready");
  return { own, client };
}

test("slotOf() computes the same slot as the server", async (t) => {
  const node = cluster.client();
  for (const key of [
    "",
    "a",
    "LOCK_pay_A1",
    "{tag}a",
    "a{}b",
    "a{b",
    "a}b{c}d",
    "schlüssel",
    "鑰匙{鎖}",
    "🔒",
  ]) {
    t.is(slotOf(key), await node.cluster("KEYSLOT", key), key);
  }
  for (const slot of [0, 1, 8_191, 16_383]) t.is(slotOf(keyIn(slot)), slot);
});

async function openOverGlide(t: ExecutionContext): Promise<{ readonly own: WholeStore }> {
  const given = await openGlideCluster(cluster);
  const own = redisStore(given);
  t.teardown(async () => {
    await own.close();
    given.glide.close();
  });
  return { own };
}

const GLIDE = "over GLIDE: ";

const LIBRARIES: Record<string, (t: ExecutionContext) => Promise<{ readonly own: WholeStore }>> = {
  "": open,
  ...(hasOtherClients && { [GLIDE]: openOverGlide }),
  async "over node-redis: "(t) {
    const own = redisStore(cluster.nodeRedis());
    t.teardown(() => own.close());
    return { own };
  },
};

test.serial(
  "a reply counts although ioredis redirected a command for another slot of its range meanwhile",
  async (t) => {
    const client = cluster.cluster();
    const own = redisStore(client);
    t.teardown(() => own.close());
    const [key, requestId] = [newKey(), newId()];
    await acquire(own, newKey(), newId()); // The check before the first lock is over.
    const [master, other] = [await cluster.masterOf(key), await cluster.otherMaster(key)];
    const range = client.slots[slotOf(key)] ?? [];
    master.freeze();
    const taken = acquire(own, key, requestId);
    await new Promise(setImmediate); // Now it is written.
    range[0] = `127.0.0.1:${other.port}`; // ioredis does this at MOVED, and all slots of the range share the list.
    master.thaw();
    t.deepEqual(await taken, TAKEN);
    range[0] = `127.0.0.1:${master.port}`;
    t.deepEqual(await release(own, key, requestId), { released: true });
  },
);

test.serial("a shared lock in a migrating slot is refused with a reason", async (t) => {
  const { own } = await open(t);
  const key = newKey();
  const close = await openSlot(cluster, key, await cluster.otherMaster(key));
  await t.throwsAsync(acquire(own, key, newId(), { permits: UNLIMITED }), {
    message: "the keys of the lock are on two nodes while their slot migrates",
  });
  await close();
});

/** Returns how often the nodes have replied TRYAGAIN, because only some keys of a command were there. */
async function triedAgain(): Promise<number> {
  const counts = await Promise.all(
    cluster.nodes.map(async ({ admin }) =>
      /errorstat_TRYAGAIN:count=(\d+)/.exec(await admin.info("errorstats")),
    ),
  );
  return counts.reduce((sum, found) => sum + Number(found?.[1] ?? 0), 0);
}

for (const [title, openOver] of Object.entries(LIBRARIES)) {
  test.serial(
    `${title}locks in a migrating slot can be acquired, renewed, read, revoked, and released`,
    async (t) => {
      const { own } = await openOver(t);
      const key = newKey();
      const [there, gone] = [`{${key}}there`, `{${key}}gone`];
      const requestId = newId();
      await acquire(own, there, requestId);
      const close = await openSlot(cluster, key, await cluster.otherMaster(key));
      for (const name of [there, gone]) {
        if (name === gone) t.deepEqual(await acquire(own, gone, requestId), TAKEN);
        t.like(await acquire(own, name, newId()), { acquired: false, holder: requestId });
        t.deepEqual(await renew(own, name, requestId, 60_000), { renewed: true });
        t.is(await peek(own, name), requestId);
        const [held, other] = [
          { key: name, requestId },
          { key: name, requestId: newId() },
        ];
        t.deepEqual(await own.batch?.releaseMany([held, other], TIMEOUT_MS), [
          { released: true },
          { released: false, holder: undefined },
        ]);
        t.deepEqual(await acquire(own, name, requestId), TAKEN);
        t.true(await own.admin.revoke(held, TIMEOUT_MS));
        t.like(await renew(own, name, requestId, 60_000), { renewed: false });
        t.deepEqual(
          await release(own, name, requestId),
          { released: true },
          "its holder can still release it",
        );
        t.is(await peek(own, name), undefined);
      }
      await close();
    },
  );

  test.serial(`${title}a client whose first lock is in a migrating slot acquires it at once`, async (t) => {
    const key = newKey();
    const close = await openSlot(cluster, key, await cluster.otherMaster(key));
    const before = await triedAgain();
    const { own } = await openOver(t);
    const requestId = newId();
    t.deepEqual(await acquire(own, key, requestId), TAKEN);
    t.true((await triedAgain()) - before <= 1, "a command of several keys is not repeated");
    t.deepEqual(await release(own, key, requestId), { released: true });
    await close();
  });

  test.serial(
    `${title}fencing tokens rise in a migrating slot, and no other caller acquires a held lock`,
    async (t) => {
      const { own } = await openOver(t);
      const key = newKey();
      const tokens: number[] = [];
      const draw = async (): Promise<void> => {
        const requestId = newId();
        tokens.push(token(await acquire(own, key, requestId, { fencing: true })));
        const [renewed] = await own.renew([request(key, requestId, { fencing: true })], TIMEOUT_MS);
        tokens.push(token(renewed));
        t.like(await acquire(own, key, newId(), { fencing: true }), { acquired: false, holder: requestId });
        t.deepEqual(await release(own, key, requestId), { released: true });
      };
      await draw();
      const close = await openSlot(cluster, key, await cluster.otherMaster(key));
      await draw();
      await draw();
      await close();
      await draw();
      t.deepEqual(
        tokens,
        tokens.toSorted((a, b) => a - b),
      );
      t.is(new Set(tokens).size, tokens.length);
    },
  );

  test.serial(
    `${title}a waiter in a migrating slot gets the key when it polls, and leaves nothing behind`,
    async (t) => {
      const { own } = await openOver(t);
      const [key, holder, waiting, requestId] = [newKey(), newId(), newId(), newId()];
      await acquire(own, key, holder);
      await queued(own, key, waiting);
      const [from, to] = [await cluster.masterOf(key), await cluster.otherMaster(key)];
      const close = await openSlot(cluster, key, to);
      await from.admin.call("MIGRATE", "127.0.0.1", to.port, queueOf(key), 0, 5_000);
      t.deepEqual(await release(own, key, holder), { released: true }, "the queue has already migrated");
      t.is(await peek(own, key), undefined);
      t.deepEqual(await enqueue(own, key, waiting, {}, requestId), TAKEN);
      const next = { ...request(key, newId()), ticket: newId() };
      const reply = await own.queue.releaseAndEnqueue({ key, requestId }, next, TIMEOUT_MS);
      // GLIDE itself follows the redirection, because both keys are on the other node by now.
      t.deepEqual(reply, { released: true, next: title === GLIDE ? TAKEN : undefined });
      if (title === GLIDE) await release(own, key, next.requestId);
      await own.queue.dequeue(key, waiting, TIMEOUT_MS);
      const left = await Promise.all(cluster.nodes.map(({ admin }) => admin.keys(`*${key}*`)));
      t.deepEqual(left.flat(), []);
      await close();
    },
  );

  test.serial(
    `${title}a reader that leaves a queue while its slot migrates leaves no entry there`,
    async (t) => {
      const { own } = await openOver(t);
      const [key, holder, reader] = [newKey(), newId(), newId()];
      await acquire(own, key, holder);
      t.like(await enqueue(own, key, reader, { permits: UNLIMITED }), { acquired: false });
      const [from, to] = [await cluster.masterOf(key), await cluster.otherMaster(key)];
      const close = await openSlot(cluster, key, to);
      await from.admin.call("MIGRATE", "127.0.0.1", to.port, key, 0, 5_000);
      await own.queue.dequeue(key, reader, TIMEOUT_MS);
      await close();
      t.deepEqual(await to.admin.zrange(queueOf(key), "0", "-1"), []);
      t.deepEqual(await release(own, key, holder), { released: true });
    },
  );
}

test.serial(
  "a batch needs one command per slot and few writes per node, after one script load",
  async (t) => {
    const { own, client } = await open(t);
    await acquire(own, newKey(), newId()); // The commands that a store sends once are not counted.
    const writes = new Map<Redis, number>();
    for (const node of client.nodes("master")) {
      await node.ping();
      const { stream } = node as unknown as { stream: { write: (...args: unknown[]) => unknown } };
      const write = stream.write.bind(stream);
      stream.write = (...args) => {
        writes.set(node, (writes.get(node) ?? 0) + 1);
        return write(...args);
      };
    }
    const commands = async (name: string): Promise<number> => {
      const masters = cluster.nodes.filter(({ master }) => master === undefined);
      const stats = await Promise.all(masters.map(({ admin }) => admin.info("commandstats")));
      return stats
        .map((text) => Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, "m").exec(text)?.[1] ?? 0))
        .reduce((sum, calls) => sum + calls, 0);
    };
    for (const { admin } of cluster.nodes) {
      await admin.script("FLUSH");
      await admin.config("RESETSTAT");
    }
    const holds = Array.from({ length: 200 }, (_, index) => ({
      key: `{${newKey()}}${index}`,
      requestId: newId(),
    })).flatMap(({ key, requestId }) => [
      { key, requestId },
      { key: `${key}, too`, requestId },
    ]);
    const slots = new Set(holds.map(({ key }) => slotOf(key))).size;
    await own.batch?.acquireMany(
      holds.map(({ key, requestId }) => request(key, requestId)),
      TIMEOUT_MS,
    );
    t.is(
      (await commands("evalsha")) + (await commands("set")),
      slots + holds.length,
      "each script sets its keys",
    );
    const before = await commands("evalsha");
    const renewed = await own.renew(
      holds.map(({ key, requestId }) => renewal(key, requestId)),
      TIMEOUT_MS,
    );
    t.true(renewed.every((reply) => "renewed" in reply && reply.renewed));
    t.is((await commands("evalsha")) - before, slots);
    t.true(
      (await own.batch?.releaseMany(holds, TIMEOUT_MS))?.every(
        (reply) => "released" in reply && reply.released,
      ),
    );
    t.is((await commands("evalsha")) - before, 2 * slots);
    t.is(await commands("eval"), 0);
    t.is(await commands("script\\|load"), 3 * 3, "three scripts on three masters");
    t.deepEqual([...writes.values()], [3, 3, 3]);
  },
);

test.serial(
  "a process acquires and releases all keys of a slot in one command, however many it has",
  async (t) => {
    const { own } = await open(t);
    const process = new FleetProcess({ store: own, commandTimeout: "20s", logger: { warn: () => {} } });
    // The two keys of a slot are further apart than the batch size without a cluster.
    const tags = Array.from({ length: MOST_AT_ONCE + 50 }, newKey);
    const keys = ["first", "second"].flatMap((name) => tags.map((tag) => `{${tag}}${name}`));
    const slots = new Set(keys.map(slotOf)).size;
    const evaluations = async (): Promise<number> => {
      const masters = cluster.nodes.filter(({ master }) => master === undefined);
      const stats = await Promise.all(masters.map((node) => node.info("commandstats", "cmdstat_evalsha")));
      return stats.reduce((sum, stat = "calls=0") => sum + Number(/calls=(\d+)/.exec(stat)?.[1]), 0);
    };
    await acquire(own, newKey(), newId()); // The commands that a store sends once are not counted.
    const before = await evaluations();
    const locks = keys.map((key) => process.lock(key, { lockTime: "60s" }));
    t.true((await Promise.all(locks.map((lock) => lock.acquire()))).every(Boolean));
    t.is((await evaluations()) - before, slots);
    await Promise.all(locks.map((lock) => lock.release()));
    t.is((await evaluations()) - before, 2 * slots);
    await retire(process);
  },
);

test.serial(
  "a waiter keeps its position when the slot moves to another master, without a duplicate entry",
  async (t) => {
    const { own, client } = await open(t);
    const [key, holder, first, second] = [newKey(), newId(), newId(), newId()];
    await untilSubscribedEverywhere(own, cluster); // This puts the inbox into a slot that does not move.
    await acquire(own, key, holder);
    for (const waiting of [first, second]) await queued(own, key, waiting);
    const entries = async (): Promise<string[]> =>
      (await client.zrange(queueOf(key), 0, "+inf", "BYSCORE")).map((entry) => entry.slice(0, 32));
    t.deepEqual(await entries(), [first, second]);
    const to = await cluster.otherMaster(key);
    await migrateSlot(cluster, key, to);
    await until(async () => {
      await queued(own, key, second);
      return client.slots[slotOf(key)]?.[0] === `127.0.0.1:${to.port}`;
    });
    for (const waiting of [second, first]) await queued(own, key, waiting);
    t.deepEqual(await entries(), [first, second]);
    for (const waiting of [first, second]) await own.queue.dequeue(key, waiting, TIMEOUT_MS);
    t.deepEqual(await entries(), []);
  },
);

test.serial(
  "a lock whose slot has moved, and migrates again, is released in commands of one key",
  async (t) => {
    const { own } = await open(t);
    const [key, requestId] = [newKey(), newId()];
    await acquire(own, key, requestId); // Now the client knows the first master of the slot.
    const from = await cluster.masterOf(key);
    const [to, next] = cluster.nodes.filter((node) => node.master === undefined && node !== from);
    if (to === undefined || next === undefined) throw new Error("the cluster has fewer than three masters");
    await migrateSlot(cluster, key, to);
    const close = await openSlot(cluster, key, next);
    t.deepEqual(await release(own, key, requestId), { released: true });
    await close();
  },
);

test.serial("concurrent callers load a script only once after the server has lost it", async (t) => {
  const { own } = await open(t);
  const keys = Array.from({ length: 50 }, newKey);
  await Promise.all(keys.map((key) => acquire(own, key, newId(), { fencing: true })));
  for (const { admin } of cluster.nodes) {
    await admin.script("FLUSH");
    await admin.config("RESETSTAT");
  }
  const replies = await Promise.all(keys.map((key) => acquire(own, key, newId(), { fencing: true })));
  t.true(replies.every(({ acquired }) => !acquired));
  const stats = await Promise.all(cluster.nodes.map(({ admin }) => admin.info("commandstats")));
  t.false(stats.some((text) => text.includes("cmdstat_eval:")));
});

test.serial("listeners are notified when a slot moves, and get wake-ups from the new master", async (t) => {
  const { own } = await open(t);
  await untilSubscribedEverywhere(own, cluster);
  const [key, holder, waiting] = [newKey(), newId(), newId()];
  await acquire(own, key, holder);
  const events = recordEvents(own);
  const master = await cluster.otherMaster(key);
  await migrateSlot(cluster, key, master);
  t.is(await peek(own, key), holder);
  await events.reconnected;
  const ear = listen(own, waiting);
  await until(async () => {
    await queued(own, key, waiting); // Polls like a waiter, because the client may not know the new master yet.
    return await isSubscribed(master, queueOf(key), waiting);
  });
  await release(own, key, holder);
  await ear.woken;
});

test.serial(
  "waiters for other keys of a master still get wake-ups after the slot of the first key moves",
  async (t) => {
    const { own } = await open(t);
    const first = newKey();
    const master = await cluster.masterOf(first);
    const key = await keyAt(cluster, master);
    await untilSubscribedTo(own, cluster, first);
    const [holder, waiting] = [newId(), newId()];
    await acquire(own, key, holder);
    const ear = listen(own, waiting);
    await queued(own, key, waiting);
    await migrateSlot(cluster, first, await cluster.otherMaster(first));
    await until(async () => {
      await queued(own, key, waiting); // Polls like a waiter. No command goes to the slot that has moved.
      return await isSubscribed(master, queueOf(key), waiting);
    });
    t.deepEqual(await release(own, key, holder), { released: true });
    await ear.woken;
  },
);

test.serial("wake-ups come from the master of the lock, and are not sent to other shards", async (t) => {
  const { own } = await open(t);
  const key = newKey();
  await untilSubscribedTo(own, cluster, key);
  // Counts sent messages, because earlier ones may not have arrived yet.
  const sent = async (kind: "publish" | "publishshard", { admin }: ClusterNode): Promise<number> => {
    const stats = await admin.cluster("INFO");
    return Number(new RegExp(`^cluster_stats_messages_${kind}_sent:(\\d+)`, "m").exec(stats)?.[1] ?? 0);
  };
  const master = await cluster.masterOf(key);
  const others = cluster.nodes.filter((node) => node !== master);
  const toAll = (): Promise<number[]> => Promise.all(cluster.nodes.map((node) => sent("publish", node)));
  const byOthers = (): Promise<number[]> => Promise.all(others.map((node) => sent("publishshard", node)));
  const before = [await toAll(), await byOthers()] as const;
  let holder = newId();
  await acquire(own, key, holder);
  for (let turn = 0; turn < 20; turn += 1) {
    const [waiting, requestId] = [newId(), newId()];
    const ear = listen(own, waiting);
    await queued(own, key, waiting);
    await release(own, key, holder);
    await ear.woken;
    t.deepEqual(await enqueue(own, key, waiting, {}, requestId), TAKEN);
    holder = requestId;
  }
  await release(own, key, holder);
  t.deepEqual(await toAll(), before[0]);
  t.deepEqual(await byOthers(), before[1]);
});

function mapped(): NonNullable<ClusterOptions> {
  const addresses = cluster.nodes.map(({ port }) => [`127.0.0.1:${port}`, { host: "localhost", port }]);
  return { natMap: Object.fromEntries(addresses) };
}

test.serial("a moved slot is found at its new master immediately if addresses are mapped", async (t) => {
  const { own } = await open(t, mapped());
  const [target, ...sources] = cluster.nodes.filter(({ master }) => master === undefined);
  if (target === undefined) throw new Error("the cluster has no master");
  const keys = await Promise.all([...sources, ...sources].map((from) => keyAt(cluster, from)));
  for (const key of keys) await acquire(own, key, key);
  for (const key of keys) await migrateSlot(cluster, key, target);
  for (const { admin } of cluster.nodes) {
    await admin.script("FLUSH"); // So the new master does not know the script either.
    await admin.config("RESETSTAT");
  }
  t.deepEqual(await Promise.all(keys.map((key) => peek(own, key))), keys);
  // Only the script counts: the client also subscribes to shard channels, which may meet a moved slot at any time.
  const stats = await Promise.all(cluster.nodes.map((node) => node.info("commandstats", "cmdstat_evalsha")));
  const total = (name: string): number =>
    stats.reduce((sum, stat = "") => sum + Number(new RegExp(`${name}=(\\d+)`).exec(stat)?.[1] ?? 0), 0);
  t.is(total("rejected_calls"), keys.length);
  t.is(total("failed_calls"), 0);
});

for (const [name, options] of Object.entries<() => NonNullable<ClusterOptions>>({
  "reads from replicas": () => ({ scaleReads: "slave" }),
  "mapped addresses": mapped,
  "auto-pipelining": () => ({ enableAutoPipelining: true }),
  "a prefix": () => ({ keyPrefix: "shop:" }),
})) {
  test.serial(
    `many locks are acquired, renewed, and released with ${name}, even in a migrating slot`,
    async (t) => {
      const { own } = await open(t, options());
      const tag = newKey();
      const holds = Array.from({ length: 40 }, (_, index) => ({
        key: index % 2 === 0 ? newKey() : `{${tag}}${index}`,
        requestId: newId(),
      }));
      const taken = await Promise.all(holds.map(({ key, requestId }) => acquire(own, key, requestId)));
      t.true(taken.every((reply) => reply.acquired));
      const prefix = options().keyPrefix ?? "";
      const close = await openSlot(
        cluster,
        `${prefix}{${tag}}`,
        await cluster.otherMaster(`${prefix}{${tag}}`),
      );
      const requests = holds.map(({ key, requestId }) => renewal(key, requestId));
      for (let round = 0; round < 2; round += 1) {
        t.deepEqual(
          await own.renew(requests, TIMEOUT_MS),
          requests.map(() => ({ renewed: true })),
        );
        if (round === 0) await close();
      }
      const dropped = await own.batch?.releaseMany(holds, TIMEOUT_MS);
      t.deepEqual(
        dropped,
        holds.map(() => ({ released: true })),
      );
    },
  );
}

test.serial("replicas confirm locks on all masters, even in a migrating slot", async (t) => {
  const { own } = await open(t);
  const confirmed = (key: string): AcquireRequest => ({ ...request(key, newId()), replicas: 1 });
  const many = Array.from({ length: 60 }, () => confirmed(newKey()));
  const within = 5_000;
  t.true((await Promise.all(many.map((one) => own.acquire(one, within)))).every(({ acquired }) => acquired));
  const replies = await own.renew(many, within);
  t.true(replies.every((reply) => "renewed" in reply && reply.renewed));
  await Promise.all(many.map((one) => own.release(one, within)));

  const tag = newKey();
  const [there, gone] = [confirmed(`{${tag}}there`), confirmed(`{${tag}}gone`)];
  await own.acquire(there, within);
  const close = await openSlot(cluster, tag, await cluster.otherMaster(tag));
  t.like(await own.acquire(gone, within), { acquired: true });
  t.deepEqual(await own.renew([there, gone], within), [{ renewed: true }, { renewed: true }]);
  await close();
  t.deepEqual(await own.renew([there, gone], within), [{ renewed: true }, { renewed: true }]);
  const missing = { ...there, requestId: newId() };
  t.deepEqual(await own.renew([missing], within), [{ renewed: false, holder: there.requestId }]);
  const [tooFew] = await own.renew([{ ...there, replicas: 2 }], 400);
  t.regex(
    tooFew instanceof Error ? tooFew.message : "",
    /1 of 2 replicas confirmed|replicas did not answer in time/,
  );
});

test("over node-redis: a cluster client warns once if its version may mix up replies", async (t) => {
  const client = cluster.nodeRedis();
  const warnings: string[] = [];
  const process = new FleetProcess({
    store: redisStore(client),
    logger: { warn: (line) => void warnings.push(line) },
  });
  t.teardown(() => retire(process));
  for (const key of [newKey(), newKey()])
    t.is(await process.call(key, { retryTimes: 1, waitTime: "1m" }, () => "in"), "in");
  const { version } = JSON.parse(await readFile(packageOfNodeRedis(), "utf8")) as {
    readonly version: string;
  };
  const expected = version.startsWith("5.") ? 1 : 0; // The matrix runs this test over version 5, too.
  t.is(warnings.filter((line) => line.includes("npm install redis@6")).length, expected, warnings.join("\n"));
});

function packageOfNodeRedis(): string {
  return join(dirname(require.resolve("redis")), "../package.json");
}
