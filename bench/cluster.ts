/**
 * Measures locks in a cluster of three masters and three replicas. The first part acquires, renews, and releases 10,000 locks, and compares
 * the cost with hand-written locks and with the same renewals prepared in advance. The second part measures what a migrating slot does to a
 * lock without waiters, and compares it with a hand-written lock of one key.
 *
 *     npm run bench -- cluster [--of <folder>] [--only held|migration]
 *
 * `--of` measures another checkout that has been built, which shows the cost of a change.
 */
import { randomUUID } from "node:crypto";
import { Socket } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Cluster, Redis } from "ioredis";
import type * as Lockweave from "../runtime";
import { slotOf } from "../runtime/stores/redis/cluster/slots";
import { startRedisCluster, type RedisCluster } from "../test/support/redis-cluster";
import { migrateSlot, openSlot } from "../test/support/reshard";
import { quartiles } from "./quantiles";

const LOCKS = 10_000;
const AT_ONCE = 2_500;
const TURNS = 7;
const LOCK_TIME_MS = 30_000;
const KEPT_MS = 600_000;
/** The same number as in Lockweave. */
const IN_A_WRITE = 256;
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

interface Hold {
  readonly key: string;
  readonly requestId: string;
}

/** The steps that are measured for a contestant, each for all locks. */
interface Contestant {
  acquire?(): Promise<void>;
  renew(): Promise<void>;
  release?(): Promise<void>;
}

const STEPS = ["acquire", "renew", "release"] as const;

async function hold(runtime: typeof Lockweave, servers: RedisCluster): Promise<void> {
  const redis = servers.cluster();
  await redis.ping();
  const store = runtime.redisStore(redis);
  const contestants: Record<string, Contestant> = {
    lockweave: withLockweave(runtime, redis, store),
    "by hand, one command for each key": byHand(redis),
    "the same renewals, prepared": await preparedRenewals(redis),
  };
  const writes = countWrites();
  const cpuMs = new Map<string, number[]>();
  const seen = new Map<string, string>();
  const measure = async (turn: number, name: string, step: (typeof STEPS)[number]): Promise<void> => {
    await resetStats(servers);
    writes.reset();
    const [cpu, startedAt] = [process.cpuUsage(), performance.now()];
    await contestants[name]?.[step]?.();
    const tookMs = performance.now() - startedAt;
    const { user, system } = process.cpuUsage(cpu);
    const ms = (user + system) / 1_000;
    const sent = `at most ${writes.mostToOneOf(servers.nodes.map(({ port }) => port))} writes to a node; ${await statsOf(servers)}`;
    if (turn === 0) {
      console.log(
        `the first time, ${name}, ${step}: ${ms.toFixed(0)} ms CPU of the client, ${tookMs.toFixed(0)} ms, ${sent}`,
      );
      return;
    }
    const what = `${step.padEnd(7)} ${name}`;
    cpuMs.set(what, [...(cpuMs.get(what) ?? []), ms]);
    seen.set(what, sent);
  };
  for (let turn = 0; turn <= TURNS; turn += 1) {
    for (const [name, contestant] of Object.entries(contestants)) {
      for (const step of STEPS) if (contestant[step] !== undefined) await measure(turn, name, step);
    }
  }
  console.log(`\n${LOCKS} locks, CPU of the client, medians of ${TURNS} turns:`);
  for (const step of STEPS) {
    const measured = [...cpuMs].filter(([what]) => what.startsWith(step));
    const ownMs = quartiles(measured[0]?.[1] ?? []).median;
    for (const [what, all] of measured) {
      const { low, median, high } = quartiles(all);
      console.log(
        `${what}: ${median.toFixed(0)} ms (${low.toFixed(0)} to ${high.toFixed(0)}), lockweave takes ${(ownMs / median).toFixed(2)} times as much; ${seen.get(what)}`,
      );
    }
  }
  await store.close();
  await runtime.shutdown();
  redis.disconnect();
  const left = await Promise.all(
    servers.nodes.filter(({ master }) => master === undefined).map(({ admin }) => admin.dbsize()),
  );
  const ready = LOCKS; // The prepared holds are renewed, but not released.
  console.log(`left behind: ${left.reduce((sum, count) => sum + count, 0) - ready} keys`);
}

function withLockweave(
  { configure, obtain }: typeof Lockweave,
  redis: Cluster,
  store: Lockweave.Store,
): Contestant {
  configure({
    redis,
    woven: false,
    commandTimeout: "10s",
    defaults: { lockTime: `${LOCK_TIME_MS}ms` },
    logger: { warn: () => {} },
  });
  let held: Lockweave.HeldLock[] = [];
  return {
    async acquire() {
      held = [];
      await someAtATime(keysOf("held"), async (keys) => {
        held.push(...(await Promise.all(keys.map((key) => obtain(key)))));
      });
    },
    async renew() {
      const requests = held.map(({ key, requestId }) => ({
        key,
        requestId,
        lockTimeMs: LOCK_TIME_MS,
        fencing: false,
      }));
      const replies = await store.renew(requests, 10_000);
      expectAll(replies, (reply) => "renewed" in reply && reply.renewed);
    },
    async release() {
      await Promise.all(held.map((lock) => lock.release()));
    },
  };
}

const RENEW = `return redis.call("GET", KEYS[1]) == ARGV[1] and redis.call("PEXPIRE", KEYS[1], ARGV[2]) or 0`;
const DROP = `return redis.call("GET", KEYS[1]) == ARGV[1] and redis.call("DEL", KEYS[1]) or 0`;

/** Returns the hand-written contestant. The cluster client sends one command for each key, and caches the scripts. */
function byHand(redis: Cluster): Contestant {
  redis.defineCommand("renewByHand", { numberOfKeys: 1, lua: RENEW });
  redis.defineCommand("dropByHand", { numberOfKeys: 1, lua: DROP });
  const client = redis as Cluster & {
    renewByHand(key: string, requestId: string, ms: number): Promise<number>;
    dropByHand(key: string, requestId: string): Promise<number>;
  };
  const holds = holdsOf("by-hand");
  return {
    async acquire() {
      await someAtATime(holds, async (some) => {
        const replies = await Promise.all(
          some.map(({ key, requestId }) => client.set(key, requestId, "PX", LOCK_TIME_MS, "NX")),
        );
        expectAll(replies, (reply) => reply === "OK");
      });
    },
    async renew() {
      const replies = await Promise.all(
        holds.map(({ key, requestId }) => client.renewByHand(key, requestId, LOCK_TIME_MS)),
      );
      expectAll(replies, (reply) => reply === 1);
    },
    async release() {
      const replies = await Promise.all(holds.map(({ key, requestId }) => client.dropByHand(key, requestId)));
      expectAll(replies, (reply) => reply === 1);
    },
  };
}

/**
 * Returns the lower bound: the commands that Lockweave sends for these renewals, prepared in advance, and sent to the masters in ioredis
 * pipelines. Any further cost is Lockweave's own.
 */
async function preparedRenewals(redis: Cluster): Promise<Contestant> {
  const holds = holdsOf("ready-made");
  const sha1 = String(await redis.nodes("master")[0]?.script("LOAD", RENEW_ALL));
  for (const node of redis.nodes("master")) await node.script("LOAD", RENEW_ALL);
  await someAtATime(holds, async (some) => {
    await Promise.all(some.map(({ key, requestId }) => redis.set(key, requestId, "PX", KEPT_MS, "NX")));
  });
  const bySlot = new Map<number, Hold[]>();
  for (const one of holds) {
    const slot = slotOf(one.key);
    bySlot.set(slot, [...(bySlot.get(slot) ?? []), one]);
  }
  const nodes = redis.nodes("master").map((node) => {
    const { host, port } = node.options;
    const own = [...bySlot].filter(([slot]) => redis.slots[slot]?.[0] === `${host}:${port}`);
    const commands = own.map(([, some]) => {
      const ids = some.map(({ requestId }) => requestId).join("");
      const keys = some.map(({ key }) => key);
      return [sha1, keys.length].concat(keys, ids, KEPT_MS);
    });
    return { node, commands };
  });
  return {
    async renew() {
      const results = await Promise.all(
        nodes.flatMap(({ node, commands }) => {
          const writes: Promise<[Error | null, unknown][] | null>[] = [];
          for (let from = 0; from < commands.length; from += IN_A_WRITE) {
            const pipeline = node.pipeline();
            for (const args of commands.slice(from, from + IN_A_WRITE)) pipeline.call("evalsha", ...args);
            writes.push(pipeline.exec());
          }
          return writes;
        }),
      );
      const replies = results.flatMap((some) => some ?? []);
      expectAll(replies, ([error, reply]) => error === null && Number(reply) > 0);
    },
  };
}

/** Returns how many of the keys were renewed. */
const RENEW_ALL = `
local renewed = 0
for index, key in ipairs(KEYS) do
  if redis.call("GET", key) == string.sub(ARGV[1], 32 * index - 31, 32 * index) then
    renewed = renewed + redis.call("PEXPIRE", key, ARGV[2])
  end
end
return renewed`;

function keysOf(prefix: string): string[] {
  return Array.from({ length: LOCKS }, (_, index) => `LOCK_${prefix}_${index}`);
}

function holdsOf(prefix: string): Hold[] {
  return keysOf(prefix).map((key) => ({ key, requestId: randomUUID().replaceAll("-", "") }));
}

async function someAtATime<Item>(all: readonly Item[], run: (some: Item[]) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) await run(all.slice(from, from + AT_ONCE));
}

function expectAll<Reply>(replies: readonly Reply[], isWell: (reply: Reply) => boolean): void {
  const count = replies.filter(isWell).length;
  if (count !== replies.length)
    throw new Error(`only ${count} of ${replies.length} replies were as expected`);
}

/** Counts the writes to each port. */
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

/** Returns the numbers of commands that the masters ran, for the commands that locks use. */
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
  const during = async (name: string, run: () => Promise<void>): Promise<void> => {
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
    await run();
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

/** A hand-written section under a lock. */
async function rawSection(redis: Cluster, key: string): Promise<void> {
  const token = String((tokens += 1));
  if ((await redis.set(key, token, "PX", LOCK_TIME_MS, "NX")) !== "OK") throw new Error("taken");
  const script =
    'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0';
  if ((await redis.eval(script, 1, key, token)) !== 1) throw new Error("not released");
}
