import test, { type ExecutionContext } from "ava";
import type { Redis } from "ioredis";
import { newId, newKey, placing, renewal, request, TIMEOUT_MS } from "../store-contract/subject";
import { MOST_DEAD_AT_ONCE, type WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { commandsDuring } from "../support/monitor";
import { startRedis, type RedisServer } from "../support/redis-server";

// Counts the Redis commands inside each script, with MONITOR, as the number of holders and waiters grows.

let server: RedisServer;
let admin: Redis;
let store: WholeStore;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  store = redisStore(server.client());
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

/** Commands that the store sends at any time to keep its connections alive. */
const UPKEEP: ReadonlySet<string> = new Set(["hello", "client", "info", "ping"]);

/** Returns the names of the commands in order, and asserts that every range has a limit. */
function namesOf(t: ExecutionContext, commands: readonly (readonly string[])[]): readonly string[] {
  const ofCaller = commands.filter(([command = ""]) => !UPKEEP.has(command.toLowerCase()));
  return ofCaller.map(([command = "", ...args]) => {
    const name = command.toLowerCase();
    if (name.endsWith("rangebyscore")) t.true(args.includes("LIMIT"), `${name} ${args.join(" ")}`);
    if (name === "zrevrange") t.deepEqual(args.slice(1, 3), ["0", "0"]);
    t.false(["zrange", "smembers", "hgetall", "keys", "scan"].includes(name), name);
    return name;
  });
}

async function fill(count: number, put: (n: number) => Promise<unknown>): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => put(n)));
}

/** The Redis commands that each command of a caller needs with this many holders and waiters. */
async function costs(
  t: ExecutionContext,
  permits: number,
  holders: number,
  waiters: number,
): Promise<Readonly<Record<string, readonly string[]>>> {
  const [key, own, other, place] = [newKey(), newId(), newId(), newId()];
  const how = { permits, lockTimeMs: 60_000 };
  await store.acquire(request(key, own, how), TIMEOUT_MS);
  await fill(holders, () => store.acquire(request(key, newId(), how), TIMEOUT_MS));
  const counted: Record<string, readonly string[]> = {};
  const count = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    counted[name] = namesOf(t, await commandsDuring(admin, work));
  };
  await count("join", () => store.acquire(request(key, other, how), TIMEOUT_MS));
  await fill(waiters, () => store.queue.enqueue(placing(key, newId(), { permits: 1 }), TIMEOUT_MS));
  await count("refused", () => store.acquire(request(key, newId(), how), TIMEOUT_MS));
  await count("wait", () => store.queue.enqueue(placing(key, place, how), TIMEOUT_MS));
  await count("wait on", () => store.queue.enqueue(placing(key, place, how), TIMEOUT_MS));
  await count("give up", () => store.queue.dequeue(key, place, TIMEOUT_MS));
  await count("renew", () => store.renew([{ ...renewal(key, own, 60_000), permits }], TIMEOUT_MS));
  await count("peek", () => store.peek([key], TIMEOUT_MS));
  await count("release", () => store.release({ key, requestId: other, permits }, TIMEOUT_MS));
  await count("revoke", async () => await store.admin.revoke({ key, requestId: own }, TIMEOUT_MS));
  return counted;
}

for (const [who, permits, many] of [
  ["readers", Infinity, 1_500],
  ["callers with permits", 1_000, 900],
] as const) {
  test.serial(
    `each command of ${who} costs the same with many holders and waiters as with few`,
    async (t) => {
      await costs(t, permits, 1, 1); // Loads the scripts, and subscribes.
      const few = await costs(t, permits, 10, 10);
      t.deepEqual(await costs(t, permits, many, 1_500), few);
      t.true(Math.max(...Object.values(few).map(({ length }) => length)) < 40);
    },
  );
}

/** For each dead waiter, a command reads its position and its deadline, reads the latest deadline, and removes it. */
const MOST_PER_DEAD = 5;

for (const permits of [1, 5, Infinity]) {
  test.serial(`dead waiters are removed in bounded steps by callers with ${permits} permits`, async (t) => {
    const [key, last] = [newKey(), newId()];
    const queue = `lockweave:1:queue:{${key}}`;
    const dead = 5_000;
    await store.acquire(request(key, newId(), { lockTimeMs: 60_000 }), TIMEOUT_MS);
    await fill(dead, () => store.queue.enqueue(placing(key, newId(), { permits }), TIMEOUT_MS));
    const members = await admin.zrange(queue, "-inf", "(0", "BYSCORE");
    const pipeline = admin.pipeline();
    for (const member of members) if (member.startsWith("-")) pipeline.zadd(queue, -2, member); // A deadline in 1970.
    await pipeline.exec();
    await store.queue.enqueue(placing(key, last, { permits }), TIMEOUT_MS);
    const before = await admin.zcard(queue);
    const commands = await commandsDuring(admin, () =>
      store.queue.enqueue(placing(key, last, { permits }), TIMEOUT_MS),
    );
    const membersOfEach = permits === Infinity ? 3 : 2;
    t.is(before - (await admin.zcard(queue)), membersOfEach * MOST_DEAD_AT_ONCE);
    t.true(commands.length <= MOST_PER_DEAD * MOST_DEAD_AT_ONCE + 40, `${commands.length} commands`);
    namesOf(t, commands);
  });
}

for (const [who, permits] of [
  ["reader", Infinity],
  ["caller with permits", 3],
] as const) {
  test.serial(`the holds of a revoked ${who} keep their time to live`, async (t) => {
    const [key, requestId] = [newKey(), newId()];
    await store.acquire(request(key, requestId, { permits, lockTimeMs: 60_000 }), TIMEOUT_MS);
    t.true(await store.admin.revoke({ key, requestId }, TIMEOUT_MS));
    const [holds = ""] = await admin.keys(`lockweave:1:holds*${key}*`);
    t.true((await admin.pttl(holds)) > 0);
  });
}
