import test, { type ExecutionContext } from "ava";
import type { Store } from "../../runtime/stores/port";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { fenceOf } from "../support/beside";
import { Crowd } from "../support/crowd";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { monotonicMs } from "../support/monotonic";
import type { RedisServer } from "../support/redis-server";
import { startSentinelGroup, type SentinelGroup } from "../support/redis-sentinel";
import { retire } from "../support/retire";
import { judge } from "../support/sections";
import { until } from "../support/until";

// A master and its one replica under Sentinel, which puts the replica in the master's place. Each lock is at both of them
// before it counts, so that no fail-over loses one.

/** `SENTINEL_ROUNDS=20` plays all scenarios so often each. */
const ROUNDS = Number(process.env["SENTINEL_ROUNDS"] ?? 1);
const KEY = "LOCK_guarded";

let group: SentinelGroup;
/** Those that run, the master first. */
let servers: [master: RedisServer, replica: RedisServer];

test.before(async () => {
  group = await startSentinelGroup(1, 3);
  const [master, replica] = group.servers;
  if (master === undefined || replica === undefined) throw new Error("there are not both");
  servers = [master, replica];
});

test.after.always(() => group.stop());

/** The replica is the master by now. */
async function succeeded(): Promise<void> {
  const [, replica] = servers;
  const admin = replica.client();
  await until(async () => (await group.masterPort()) === replica.port);
  await until(async () => (await admin.role())[0] === "master");
  await group.calm();
}

/** Both are as before, the other way round. */
async function follows(follower: RedisServer): Promise<void> {
  const [, master] = servers;
  const admin = follower.client();
  await until(async () => (await admin.role())[3] === "connected");
  servers = [master, follower];
}

/** The replica hears nothing more of the master, whose clients hear nothing of that. */
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
  async "the master hangs until another is in its place"() {
    const [master, replica] = servers;
    await group.alert();
    process.kill(master.pid, "SIGSTOP");
    await succeeded();
    // Whoever has a command on its way to it still gets an answer, and must not believe it.
    process.kill(master.pid, "SIGCONT");
    const admin = master.client();
    // As Sentinel does it, some seconds later.
    await admin.replicaof("127.0.0.1", replica.port);
    await admin.call("CLIENT", "KILL", "TYPE", "normal");
    await follows(master);
  },
  async "the replica hears nothing more, and then the master is killed"(crowd) {
    await cut();
    // Nobody is given the lock by the master alone.
    await crowd.isAtRest();
    await kill();
  },
};

async function goesOnAsEver(crowd: Crowd): Promise<void> {
  const before = numberOf(crowd);
  await until(() => numberOf(crowd) > before + 50);
}

function numberOf({ sections }: Crowd): number {
  return sections.get(KEY)?.length ?? 0;
}

test.serial(
  "whatever befalls a group under Sentinel, no two bodies believe at one time that a lock with replicas is theirs",
  async (t) => {
    t.timeout(60_000 + ROUNDS * 90_000);
    let opened = 0;
    const open = (): Store =>
      (opened += 1) % 2 === 0 ? redisStore(group.client()) : redisStoreAt(group.url);
    const crowd = new Crowd(open, [KEY], true, { replicas: 1 });
    t.teardown(() => crowd.end());
    await crowd.goesOn();
    for (const [name, strike] of Object.entries(SCENARIOS)) {
      const [before, startedAt] = [numberOf(crowd), monotonicMs()];
      for (let round = 0; round < ROUNDS; round += 1) {
        await strike(crowd);
        await goesOnAsEver(crowd);
      }
      const tookMs = Math.round(monotonicMs() - startedAt);
      t.log(`${name}, ${ROUNDS} times: ${numberOf(crowd) - before} sections in ${tookMs} ms`);
    }
    await crowd.end();
    const { unannounced, tokensThatFell } = judge(crowd.sections.get(KEY) ?? []);
    t.deepEqual(unannounced, []);
    t.deepEqual(tokensThatFell, []);
    t.log(`failures: ${JSON.stringify([...crowd.failures])}`);
    const admin = servers[0].client();
    await until(async () => (await admin.keys("*")).every((key) => key === fenceOf(KEY)));
  },
);

function openProcess(t: ExecutionContext): FleetProcess {
  const store = redisStore(group.client());
  const own = new FleetProcess({ store, commandTimeout: "500ms", logger: { warn: () => {} } });
  t.teardown(() => retire(own));
  return own;
}

test.serial(
  "a lock that the replica never had is lost with the master, and its holder is told long before its time is over; with replicas it is refused",
  async (t) => {
    t.timeout(300_000);
    const [holder, other] = [openProcess(t), openProcess(t)];
    t.is(await holder.call("LOCK_lost", { replicas: 1 }, () => "in"), "in");
    await cut();
    const told = deferred();
    const entered = deferred();
    const lost = holder.call("LOCK_lost", { lockTime: "60s" }, async (lock) => {
      lock.signal.addEventListener("abort", () => told.resolve());
      entered.resolve();
      await told.promise;
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
    await told.promise;
    t.like(await isLost, { code: "LOCK_LOST" });
    t.is(await other.call("LOCK_lost", { replicas: 1, waitTime: "20s" }, () => "in"), "in");
  },
);
