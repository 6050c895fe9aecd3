/**
 * Locks in a cluster of three masters and three replicas: what 10,000 held locks cost, and what a slot that migrates
 * does to a lock that nobody waits for, beside one written by hand that has one key.
 *
 *     npm run bench:cluster [-- --of <folder>] [--only held|migration]
 *
 * `--of` measures another checkout that has been built there: what a change costs.
 */
import { Socket } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Cluster, Redis } from "ioredis";
import type * as Lockweave from "../runtime";
import { startRedisCluster, type RedisCluster } from "../test/support/redis-cluster";
import { migrateSlot, openSlot } from "../test/support/reshard";

const LOCKS = 10_000;
const AT_ONCE = 2_500;
const LOCK_TIME_MS = 30_000;
const KEYS_IN_SLOT = 60_000;
const OPEN_FOR_MS = 2_000;

const { values: options } = parseArgs({
  options: { of: { type: "string" }, only: { type: "string" } },
});

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});

async function main(): Promise<void> {
  const checkout = resolve(options.of ?? join(__dirname, ".."));
  const runtime = require(join(checkout, "dist/runtime")) as typeof Lockweave;
  const servers = await startRedisCluster(3, 3);
  try {
    if (options.only !== "migration") await hold(runtime, servers);
    if (options.only !== "held") await migrate(runtime, servers);
  } finally {
    await servers.stop();
  }
}

// ---- many held locks ------------------------------------------------------------------------------------

async function hold({ configure, obtain, shutdown }: typeof Lockweave, servers: RedisCluster): Promise<void> {
  const redis = servers.cluster();
  await redis.ping();
  const storeOf: { renewAll?: () => Promise<void> } = {};
  configure({
    redis,
    woven: false,
    commandTimeout: "10s",
    defaults: { lockTime: `${LOCK_TIME_MS}ms` },
    logger: { warn: () => {} },
  });
  const writes = countWrites();
  const held: Lockweave.HeldLock[] = [];
  const measured = async (name: string, work: () => Promise<void>): Promise<void> => {
    await resetStats(servers);
    writes.reset();
    const [cpu, startedAt] = [process.cpuUsage(), performance.now()];
    await work();
    const tookMs = performance.now() - startedAt;
    const { user, system } = process.cpuUsage(cpu);
    const calls = await statsOf(servers);
    const most = writes.mostToOneOf(servers.nodes.map(({ port }) => port));
    console.log(
      `${name.padEnd(8)} ${((user + system) / 1_000).toFixed(0).padStart(6)} ms CPU of the client, ${tookMs.toFixed(0).padStart(6)} ms, at most ${most} writes to a node; ${calls}`,
    );
  };
  await measured("take", async () => {
    for (let from = 0; from < LOCKS; from += AT_ONCE) {
      const keys = Array.from({ length: AT_ONCE }, (_, index) => `LOCK_held_${from + index}`);
      held.push(...(await Promise.all(keys.map((key) => obtain(key)))));
    }
  });
  const store = runtimeStore(
    redis,
    require(join(resolve(options.of ?? join(__dirname, "..")), "dist/runtime")),
  );
  storeOf.renewAll = async () => {
    const requests = held.map(({ key, requestId }) => ({
      key,
      requestId,
      lockTimeMs: LOCK_TIME_MS,
      fencing: false,
    }));
    const replies = await store.renew(requests, 10_000);
    const renewed = replies.filter((reply) => "renewed" in reply && reply.renewed).length;
    if (renewed !== LOCKS) throw new Error(`${renewed} of ${LOCKS} were renewed`);
  };
  for (let round = 0; round < 4; round += 1) await measured("renew", storeOf.renewAll);
  await measured("release", async () => {
    await Promise.all(held.map((lock) => lock.release()));
  });
  await store.close();
  await shutdown();
  redis.disconnect();
  const left = await Promise.all(
    servers.nodes.filter(({ master }) => master === undefined).map(({ admin }) => admin.dbsize()),
  );
  console.log(`left behind: ${left.join(" + ")} keys`);
}

function runtimeStore(redis: Cluster, { redisStore }: typeof Lockweave): Lockweave.Store {
  return redisStore(redis);
}

/** Counts what is written to each port. */
function countWrites(): { reset(): void; mostToOneOf(ports: readonly number[]): number } {
  const counts = new Map<number, number>();
  const count = (socket: Socket): void => {
    const port = socket.remotePort ?? 0;
    counts.set(port, (counts.get(port) ?? 0) + 1);
  };
  const prototype = Socket.prototype;
  const { write } = prototype;
  prototype.write = function (this: Socket, ...args: Parameters<typeof write>) {
    count(this);
    return write.apply(this, args);
  } as typeof write;
  return {
    reset: () => counts.clear(),
    mostToOneOf: (ports) => Math.max(...ports.map((port) => counts.get(port) ?? 0)),
  };
}

const COMMANDS = ["set", "evalsha", "eval", "script|load"];

async function resetStats(servers: RedisCluster): Promise<void> {
  for (const { admin } of servers.nodes) await admin.config("RESETSTAT");
}

/** Commands that clients sent to the masters, those inside scripts left out where they are none of ours. */
async function statsOf(servers: RedisCluster): Promise<string> {
  const totals = new Map<string, number>();
  for (const { admin, master } of servers.nodes) {
    if (master !== undefined) continue;
    const text = await admin.info("commandstats");
    for (const name of COMMANDS) {
      const calls = new RegExp(
        `^cmdstat_${name.replace("|", "\\|")}:calls=(\\d+).*?(?:failed_calls=(\\d+))?\\r?$`,
        "m",
      );
      totals.set(name, (totals.get(name) ?? 0) + Number(calls.exec(text)?.[1] ?? 0));
    }
  }
  return [...totals].map(([name, calls]) => `${calls} ${name.toUpperCase()}`).join(", ");
}

// ---- a slot that migrates -------------------------------------------------------------------------------

async function migrate(
  { configure, withLock, shutdown }: typeof Lockweave,
  servers: RedisCluster,
): Promise<void> {
  const redis = servers.cluster();
  await redis.ping();
  configure({ redis, woven: false, logger: { warn: () => {} } });
  const tag = "{migrating}";
  const [from, to] = [await servers.masterOf(tag), await servers.otherMaster(tag)];
  await fill(from.admin, tag);
  const contestants = {
    raw: (turn: number) => rawSection(redis, `${tag}raw:${turn}`),
    lockweave: (turn: number) => withLock(`${tag}lock:${turn}`, {}, () => {}),
    "lockweave, with fencing": (turn: number) =>
      withLock(`${tag}fenced:${turn}`, { fencing: true }, () => {}),
  };
  const during = async (name: string, work: () => Promise<void>): Promise<void> => {
    const ended = new AbortController();
    const loops = Object.entries(contestants).map(async ([contestant, section]) => {
      const errors = new Map<string, number>();
      let [worstMs, sections] = [0, 0];
      for (; !ended.signal.aborted; sections += 1) {
        const startedAt = performance.now();
        await section(sections).catch((error: Error) => {
          errors.set(error.message, (errors.get(error.message) ?? 0) + 1);
        });
        worstMs = Math.max(worstMs, performance.now() - startedAt);
        await pause(1);
      }
      const failed = [...errors].map(([message, count]) => `\n    ${count} x ${message}`).join("");
      return `  ${contestant}: worst ${worstMs.toFixed(1)} ms of ${sections} sections${failed}`;
    });
    const startedAt = performance.now();
    await work();
    const tookMs = performance.now() - startedAt;
    ended.abort();
    console.log(`${name}, ${tookMs.toFixed(0)} ms:\n${(await Promise.all(loops)).join("\n")}`);
  };
  await during("no migration", () => pause(1_000));
  await during(`a slot of ${KEYS_IN_SLOT} keys migrates`, () => migrateSlot(servers, tag, to));
  await during("a slot that was left open", async () => {
    const close = await openSlot(servers, tag, await servers.otherMaster(tag));
    await pause(OPEN_FOR_MS);
    await close();
  });
  await shutdown();
  redis.disconnect();
}

async function fill(admin: Redis, tag: string): Promise<void> {
  for (let from = 0; from < KEYS_IN_SLOT; from += 1_000) {
    const pipeline = admin.pipeline();
    for (let index = from; index < from + 1_000; index += 1)
      pipeline.set(`${tag}filler:${index}`, "x".repeat(50));
    await pipeline.exec();
  }
}

let tokens = 0;

/** What one would write by hand. */
async function rawSection(redis: Cluster, key: string): Promise<void> {
  const token = String((tokens += 1));
  if ((await redis.set(key, token, "PX", LOCK_TIME_MS, "NX")) !== "OK") throw new Error("taken");
  const script =
    'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0';
  if ((await redis.eval(script, 1, key, token)) !== 1) throw new Error("not released");
}
