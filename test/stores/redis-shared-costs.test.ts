import test, { type ExecutionContext } from "ava";
import type { Redis } from "ioredis";
import { newId, newKey, placing, renewal, request, TIMEOUT_MS } from "../../runtime/stores/contract/subject";
import { MOST_DEAD_AT_ONCE, type Store } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { commandsDuring } from "../support/monitor";
import { startRedis, type RedisServer } from "../support/redis-server";

// What each command costs Redis while holders and waiters grow: counted, not timed. MONITOR shows what the scripts call.

let server: RedisServer;
let admin: Redis;
let store: Store;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  store = redisStore(server.client());
});

test.after.always(async () => {
  await store.close();
  await server.stop();
});

/** What keeps the connections of the store alive at times of its own. */
const UPKEEP: ReadonlySet<string> = new Set(["hello", "client", "info", "ping"]);

/** The names of the commands in their order. Ranges must be limited, whatever the set contains. */
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

/** What each command of a caller costs beside so many holders and waiters. */
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
  const told: Record<string, readonly string[]> = {};
  const count = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    told[name] = namesOf(t, await commandsDuring(admin, work));
  };
  await count("join", () => store.acquire(request(key, other, how), TIMEOUT_MS));
  await fill(waiters, () => store.enqueue(placing(key, newId(), { permits: 1 }), TIMEOUT_MS));
  await count("refused", () => store.acquire(request(key, newId(), how), TIMEOUT_MS));
  await count("wait", () => store.enqueue(placing(key, place, how), TIMEOUT_MS));
  await count("wait on", () => store.enqueue(placing(key, place, how), TIMEOUT_MS));
  await count("give up", () => store.dequeue(key, place, TIMEOUT_MS));
  await count("renew", () => store.renew([{ ...renewal(key, own, 60_000), permits }], TIMEOUT_MS));
  await count("look", () => store.peek([key], TIMEOUT_MS));
  await count("leave", () => store.release({ key, requestId: other, permits }, TIMEOUT_MS));
  await count("revoke", async () => await store.revoke?.({ key, requestId: own }, TIMEOUT_MS));
  return told;
}

for (const [who, permits, many] of [
  ["readers", Infinity, 1_500],
  ["callers with permits", 1_000, 900],
] as const) {
  test.serial(
    `each command of ${who} costs Redis as much beside many holders and waiters as beside few`,
    async (t) => {
      await costs(t, permits, 1, 1); // Loads the scripts, and subscribes.
      const few = await costs(t, permits, 10, 10);
      t.deepEqual(await costs(t, permits, many, 1_500), few);
      t.true(Math.max(...Object.values(few).map(({ length }) => length)) < 40);
    },
  );
}

/** Of each dead waiter a command looks at the turn and the deadline, at the latest deadline, and removes it. */
const MOST_PER_DEAD = 5;

for (const permits of [1, 5, Infinity]) {
  test.serial(`dead waiters are removed in bounded steps by callers with ${permits} permits`, async (t) => {
    const [key, last] = [newKey(), newId()];
    const queue = `lockweave:2:queue:{${key}}`;
    const dead = 5_000;
    await store.acquire(request(key, newId(), { lockTimeMs: 60_000 }), TIMEOUT_MS);
    await fill(dead, () => store.enqueue(placing(key, newId(), { permits }), TIMEOUT_MS));
    const members = await admin.zrange(queue, "-inf", "(0", "BYSCORE");
    const pipeline = admin.pipeline();
    for (const member of members) if (member.startsWith("-")) pipeline.zadd(queue, -2, member); // Until 1970.
    await pipeline.exec();
    await store.enqueue(placing(key, last, { permits }), TIMEOUT_MS);
    const before = await admin.zcard(queue);
    const commands = await commandsDuring(admin, () =>
      store.enqueue(placing(key, last, { permits }), TIMEOUT_MS),
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
    t.true(await store.revoke?.({ key, requestId }, TIMEOUT_MS));
    const [holds = ""] = await admin.keys(`lockweave:2:holds*${key}*`);
    t.true((await admin.pttl(holds)) > 0);
  });
}
