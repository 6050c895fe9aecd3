import test, { type ExecutionContext } from "ava";
import type { WholeStore } from "../../runtime/stores/port";
import type { LibraryName } from "../../runtime/stores/redis/address";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { fenceOf } from "../support/auxiliary-keys";
import { URL_LIBRARIES } from "../support/client-libraries";
import { Crowd } from "../support/crowd";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { monotonicMs } from "../support/monotonic";
import type { RedisServer } from "../support/redis-server";
import { startSentinelGroup, type SentinelGroup } from "../support/redis-sentinel";
import { retire } from "../support/retire";
import { judge } from "../support/sections";
import { inRounds } from "../support/suites";
import { until } from "../support/until";

// A master and its replica under Sentinel, which promotes the replica. Each lock is on both servers before it counts, so no
// failover loses one.

/** `SENTINEL_ROUNDS=20` plays each scenario 20 times. */
const ROUNDS = Number(process.env["SENTINEL_ROUNDS"] ?? 1);
const KEY = "LOCK_guarded";

let group: SentinelGroup;
/** The running servers, the master first. */
let servers: [master: RedisServer, replica: RedisServer];

test.before(async () => {
  group = await startSentinelGroup(1, 3);
  const [master, replica] = group.servers;
  if (master === undefined || replica === undefined) throw new Error("the master or the replica is missing");
  servers = [master, replica];
});

test.after.always(() => group.stop());

/** Waits until the replica is the master. */
async function succeeded(): Promise<void> {
  const [, replica] = servers;
  const admin = replica.client();
  await until(async () => (await group.masterPort()) === replica.port);
  await until(async () => (await admin.role())[0] === "master");
  await group.calm();
}

/** Waits until the old master follows the new one, and swaps their roles. */
async function follows(follower: RedisServer): Promise<void> {
  const [, master] = servers;
  const admin = follower.client();
  await until(async () => (await admin.role())[3] === "connected");
  servers = [master, follower];
}

/** Cuts the replica off from the master. The clients of the master do not notice. */
async function cut(): Promise<void> {
  const [master, replica] = servers;
  await master.client().call("ACL", "SETUSER", "default", "-psync", "-sync");
  await master.client().call("CLIENT", "KILL", "TYPE", "replica");
  const admin = replica.client();
  await until(async () => {
    const [role, , , link] = await admin.role();
    return role === "slave" && link !== "connected";
  });
}

async function kill(): Promise<void> {
  const [master] = servers;
  await group.alert();
  await master.stop();
  await succeeded();
  await follows(await group.restart(master));
}

const SCENARIOS: Record<string, (crowd: Crowd) => Promise<void>> = {
  "the master is killed": kill,
  async "the master hangs until the replica is promoted"() {
    const [master, replica] = servers;
    await group.alert();
    process.kill(master.pid, "SIGSTOP");
    await succeeded();
    // A caller with a command in flight still gets an answer, which must not count.
    process.kill(master.pid, "SIGCONT");
    const admin = master.client();
    // Sentinel does the same some seconds later.
    await admin.replicaof("127.0.0.1", replica.port);
    await admin.call("CLIENT", "KILL", "TYPE", "normal");
    await follows(master);
  },
  async "the replica is cut off, and then the master is killed"(crowd) {
    await cut();
    // The master alone grants no lock.
    await crowd.comesToRest();
    await kill();
  },
};

async function servesMore(crowd: Crowd): Promise<void> {
  const before = numberOf(crowd);
  await until(() => numberOf(crowd) > before + 50);
}

function numberOf({ sections }: Crowd): number {
  return sections.get(KEY)?.length ?? 0;
}

function openProcess(t: ExecutionContext, store: WholeStore): FleetProcess {
  const own = new FleetProcess({ store, commandTimeout: "500ms", logger: { warn: () => {} } });
  t.teardown(() => retire(own));
  return own;
}

/** Opens a store over a client that the test gave. */
const CLIENTS: Readonly<Record<LibraryName, () => WholeStore>> = {
  ioredis: () => redisStore(group.client()),
  redis: () => redisStore(group.nodeRedis()),
};

for (const { title, name: library, at } of URL_LIBRARIES) {
  const openOver = CLIENTS[library];
  // The matrix runs the tests over each library. `npm test` must stay short.
  if (title !== "" && process.env["SENTINEL_ROUNDS"] === undefined) continue;
  inRounds("SENTINEL_ROUNDS")(
    `${title}no two bodies ever trust the same lock with replicas at once, whatever fails in a Sentinel group`,
    async (t) => {
      t.timeout(60_000 + ROUNDS * 90_000);
      let opened = 0;
      const open = (): WholeStore => ((opened += 1) % 2 === 0 ? redisStoreAt(at(group.url)) : openOver());
      const crowd = new Crowd(open, [KEY], true, { replicas: 1 });
      t.teardown(() => crowd.end());
      await crowd.progresses();
      for (const [name, strike] of Object.entries(SCENARIOS)) {
        const [before, startedAt] = [numberOf(crowd), monotonicMs()];
        for (let round = 0; round < ROUNDS; round += 1) {
          await strike(crowd);
          await servesMore(crowd);
        }
        const tookMs = Math.round(monotonicMs() - startedAt);
        t.log(`${name}, ${ROUNDS} times: ${numberOf(crowd) - before} sections in ${tookMs} ms`);
      }
      await crowd.end();
      const { unannounced, fallenTokens } = judge(crowd.sections.get(KEY) ?? []);
      t.deepEqual(unannounced, []);
      t.deepEqual(fallenTokens, []);
      t.log(`failures: ${JSON.stringify([...crowd.failures])}`);
      const admin = servers[0].client();
      await until(async () => (await admin.keys("*")).every((key) => key === fenceOf(KEY)));
    },
  );

  test.serial(
    `${title}a lock that only the master held is lost at its failover, and one with replicas is not granted`,
    async (t) => {
      t.timeout(300_000);
      const [holder, other] = [openProcess(t, openOver()), openProcess(t, openOver())];
      t.is(await holder.call("LOCK_lost", { replicas: 1 }, () => "in"), "in");
      await cut();
      const aborted = deferred();
      const entered = deferred();
      const lost = holder.call("LOCK_lost", { lockTime: "60s" }, async (lock) => {
        lock.signal.addEventListener("abort", () => aborted.resolve());
        entered.resolve();
        await aborted.promise;
      });
      const isLost = t.throwsAsync(lost);
      await entered.promise;
      const options = { replicas: 1, waitTime: "1s", retryTimes: 1 } as const;
      const refused = await t.throwsAsync(other.call("LOCK_refused", options, () => t.fail()));
      t.regex(
        refused?.message ?? "",
        /0 of 1 replicas confirmed|replicas did not answer in time|no reply from the store/,
      );
      await kill();
      await aborted.promise;
      t.like(await isLost, { code: "LOCK_LOST" });
      t.is(await other.call("LOCK_lost", { replicas: 1, waitTime: "20s" }, () => "in"), "in");
    },
  );
}
