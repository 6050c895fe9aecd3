import test from "ava";
import type { Redis } from "ioredis";
import type { WholeStore } from "../../runtime/stores/port";
import { redisStore } from "../../runtime/stores/redis/redis";
import { Arena, type Contender } from "../support/arena";
import { fenceOf, queueOf } from "../support/auxiliary-keys";
import { FleetProcess } from "../support/fleet";
import { openGlide } from "../support/glide";
import { hasOtherClients } from "../support/other-clients";
import { startRedis, type RedisServer } from "../support/redis-server";
import { retire } from "../support/retire";
import { judge } from "../support/sections";
import { until } from "../support/until";
import type { LibraryName } from "./children/callers";

// Processes with different client libraries that contend for one key.

let server: RedisServer;
let admin: Redis;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
});

test.after.always(() => server.stop());

/** Several processes are compiled as they start, and may get no CPU for a long time. */
const STARTED_BY_MS = 180_000;

/** So long that no lock is lost, however slow the machine is. */
const LOCK_TIME_MS = 20_000;

const LIBRARIES: readonly LibraryName[] = [
  "ioredis",
  "node-redis",
  ...(hasOtherClients ? (["glide"] as const) : []),
];
const NAMES = hasOtherClients ? "ioredis, node-redis, and GLIDE" : "ioredis and node-redis";

/** Each round kills the connections of each process in each way. */
const ROUNDS = 3;

/** Kills the connections of a kind, except the one of this command. */
async function killAll(kind: "normal" | "pubsub"): Promise<void> {
  await admin.call("CLIENT", "KILL", "TYPE", kind);
}

/** Ways to kill connections while the processes run. */
const KILLS: readonly ((victim: Contender) => Promise<unknown>)[] = [
  async ({ proxy }) => proxy.reset(),
  () => killAll("normal"),
  () => killAll("pubsub"),
];

test.serial(
  `processes on ${NAMES} enter one at a time while their connections are killed, and no call hangs`,
  async (t) => {
    t.timeout(STARTED_BY_MS);
    const key = "LOCK_mixed";
    const arena = new Arena(server, { key, callers: 4, lockTimeMs: LOCK_TIME_MS, restMs: 0 });
    t.teardown(() => arena.clear());
    const contenders = await Promise.all(LIBRARIES.map((library) => arena.add({ library })));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const kill of KILLS) {
        for (const victim of contenders) {
          const before = contenders.map(({ sections }) => sections.size);
          await kill(victim);
          await until(() => contenders.every(({ sections }, nth) => sections.size > (before[nth] ?? NaN)));
        }
      }
    }
    t.deepEqual(
      await arena.end(),
      LIBRARIES.map(() => "0"),
    );
    t.true(
      contenders.every(({ hasEnded }) => hasEnded),
      "a call hangs",
    );
    const { sections, overlaps, unannounced, fallenTokens } = judge(arena.sections);
    t.log(`${sections} sections, ${overlaps} overlaps, failures: ${JSON.stringify(arena.failures)}`);
    t.is(overlaps, 0, unannounced.join("\n"));
    t.deepEqual(fallenTokens, [], "Redis granted the lock in another order");
    t.deepEqual(arena.failures, []);
    t.deepEqual(await admin.keys(`*${key}*`), [fenceOf(key)]);
  },
);

test.serial(
  `waiters on ${NAMES} get the lock in the order in which they came, even if their connections are killed`,
  async (t) => {
    const key = "LOCK_in_order";
    const process = async (store: WholeStore): Promise<FleetProcess> => {
      const made = new FleetProcess({ store, commandTimeout: "500ms", logger: { warn: () => {} } });
      t.teardown(() => retire(made));
      return made;
    };
    const stores: Record<LibraryName, () => Promise<WholeStore>> = {
      ioredis: async () => redisStore(server.client()),
      async "node-redis"() {
        const client = server.nodeRedis();
        await client.connect();
        return redisStore(client);
      },
      async glide() {
        const given = await openGlide(server.port);
        t.teardown(() => given.glide.close());
        return redisStore(given);
      },
    };
    const holder = await process(await stores.ioredis());
    const waiters: FleetProcess[] = [];
    for (const library of [...LIBRARIES, ...LIBRARIES]) waiters.push(await process(await stores[library]()));
    const subscribers = async (): Promise<number> => {
      const inboxes = (await admin.pubsub("CHANNELS", "lockweave:1:inbox:*")) as string[];
      return inboxes.length;
    };
    /** The other members of the queue begin with a dash: they are the deadlines of its waiters. */
    const waiting = async (): Promise<number> =>
      (await admin.zrange(queueOf(key), "0", "-1")).filter((member) => !member.startsWith("-")).length;
    const connections = async (): Promise<number> =>
      Number(/(?<=total_connections_received:)\d+/.exec(await admin.info("stats"))?.[0]);
    const entered: number[] = [];
    const calls: Promise<void>[] = [];
    await holder.call(key, {}, async () => {
      for (const [nth, waiter] of waiters.entries()) {
        calls.push(waiter.call(key, { waitTime: "1m" }, () => void entered.push(nth)));
        await until(async () => (await waiting()) === nth + 1);
      }
      await until(async () => (await subscribers()) >= waiters.length);
      const before = await connections();
      await killAll("pubsub");
      await killAll("normal");
      await until(
        async () =>
          (await connections()) >= before + 2 * waiters.length && (await subscribers()) >= waiters.length,
      );
    });
    await Promise.all(calls);
    t.deepEqual(entered, [...waiters.keys()]);
  },
);
