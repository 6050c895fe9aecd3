import test, { type ExecutionContext } from "ava";
import type { Duration } from "../../runtime/base/duration";
import type { WholeStore } from "../../runtime/stores/port";
import { keyIn } from "../../runtime/stores/redis/cluster/slots";
import { redisStore } from "../../runtime/stores/redis/redis";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";
import { openGlideCluster } from "../support/glide";
import { monotonicMs } from "../support/monotonic";
import { hasOtherClients } from "../support/other-clients";
import { startRedisCluster, type ClusterNode, type RedisCluster } from "../support/redis-cluster";
import { retire } from "../support/retire";
import { isMatrix } from "../support/suites";
import { until } from "../support/until";

// A master of a cluster freezes. It answers nothing, and closes no connection, so nothing tells its clients that a replica took over.

const PATIENT = { lockTime: "10m", retryTimes: 1, waitTime: "4m" } as const;
/** Over two libraries, together a thousand callers. */
const CALLERS_IN_A_PROCESS = 250;
/** A key in a slot of the first master. Keys with this tag are in the same slot. */
const TAG = `{${keyIn(0)}}`;

type Open = (t: ExecutionContext, cluster: RedisCluster) => WholeStore | Promise<WholeStore>;

const OVER_GLIDE: Open = async (t, cluster) => {
  const given = await openGlideCluster(cluster);
  t.teardown(() => given.glide.close());
  return redisStore(given);
};

/** The libraries of each test, by the beginning of its title. */
const LIBRARIES: Readonly<Record<string, readonly Open[]>> = {
  "": [(_, cluster) => redisStore(cluster.cluster()), (_, cluster) => redisStore(cluster.nodeRedis())],
  ...(isMatrix && {
    "over node-redis with few connections: ": [
      (_, cluster) => redisStore(cluster.nodeRedis({ minimizeConnections: true })),
    ] satisfies readonly Open[],
  }),
  ...(hasOtherClients && { "over GLIDE: ": [OVER_GLIDE] }),
};

function openProcess(
  t: ExecutionContext,
  store: WholeStore,
  commandTimeout: Duration = "500ms",
): FleetProcess {
  const process = new FleetProcess({ store, commandTimeout, logger: { warn: () => {} } });
  t.teardown(() => retire(process));
  return process;
}

/** Returns how often clients have asked the nodes that answer for the slots. */
async function questionsTo({ nodes }: RedisCluster): Promise<number> {
  const counts = nodes
    .filter(({ answers }) => answers)
    .map(async ({ admin }) => {
      const stats = await admin.info("commandstats");
      return Number(/^cmdstat_cluster(?:\|slots)?:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
    });
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
}

async function shardChannels({ admin }: ClusterNode): Promise<number> {
  return ((await admin.call("PUBSUB", "SHARDCHANNELS")) as unknown[]).length;
}

/** A lock that one process holds while another one waits for it. */
interface Held {
  readonly hold: Promise<unknown>;
  readonly wait: Promise<unknown>;
  release(): void;
}

async function holdAndWait(holder: FleetProcess, waiter: FleetProcess, key: string): Promise<Held> {
  const [entered, end] = [deferred(), deferred()];
  const hold = holder.call(key, PATIENT, async ({ signal }) => {
    entered.resolve();
    await end.promise;
    return signal.aborted ? "lost" : "kept";
  });
  await entered.promise;
  return { hold, wait: waiter.call(key, PATIENT, () => "in"), release: () => end.resolve() };
}

/** Callers that enter the same lock again and again. They count the bodies. */
class Contest {
  /** How many bodies have run. */
  bodies = 0;
  /** The largest number of bodies that ran at once. */
  most = 0;
  #inside = 0;
  #isOver = false;
  readonly #callers: Promise<void>[];

  constructor(processes: readonly FleetProcess[], key: string) {
    this.#callers = processes.map(async (process) => {
      while (!this.#isOver) await process.call(key, PATIENT, () => this.#body());
    });
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
  }

  async #body(): Promise<void> {
    this.bodies += 1;
    this.#inside += 1;
    this.most = Math.max(this.most, this.#inside);
    await new Promise((resolve) => setTimeout(resolve, 2));
    this.#inside -= 1;
  }
}

for (const [title, libraries] of Object.entries(LIBRARIES)) {
  test(`${title}locks of a frozen master's shard work again after its failover, and no second body runs after the thaw`, async (t) => {
    const cluster = await startRedisCluster(3, 3);
    t.teardown(() => cluster.stop());
    const [master, , , replica] = cluster.nodes;
    if (master === undefined || replica === undefined) throw new Error("the cluster has too few nodes");
    const processes: FleetProcess[] = [];
    const held: Held[] = [];
    for (const [nth, open] of libraries.entries()) {
      const holder = openProcess(t, await open(t, cluster));
      const waiter = openProcess(t, await open(t, cluster));
      processes.push(holder, waiter);
      held.push(await holdAndWait(holder, waiter, `${TAG}held:${nth}`));
    }
    // On a busy machine, a holder may have waited, too.
    await until(async () => (await shardChannels(master)) >= libraries.length);
    await master.admin.set(`${TAG}last`, "written after all locks");
    await master.admin.wait(1, 0);
    const questions = await questionsTo(cluster);

    await cluster.setFailovers(true);
    master.freeze();
    const contest = new Contest(processes, `${TAG}contested`);
    const callers = processes.flatMap((process, nth) =>
      Array.from({ length: CALLERS_IN_A_PROCESS }, (_, caller) =>
        process.call(`${TAG}${nth}:${caller}`, PATIENT, () => {}),
      ),
    );
    await until(async () => (await replica.info("replication", "role")) === "master");
    const promotedAt = monotonicMs();
    await cluster.setFailovers(false);
    await Promise.all(callers);
    t.log(`${callers.length} callers: ${Math.round(monotonicMs() - promotedAt)} ms after the failover`);
    const asked = (await questionsTo(cluster)) - questions;
    t.log(`${asked} questions for the slots`);
    t.true(asked < callers.length / 4, `${asked} questions for the slots`);
    await until(async () => (await shardChannels(replica)) === processes.length);
    for (const { release } of held) release();
    t.deepEqual(
      await Promise.all(held.map(({ hold }) => hold)),
      libraries.map(() => "kept"),
    );
    t.deepEqual(
      await Promise.all(held.map(({ wait }) => wait)),
      libraries.map(() => "in"),
    );

    const before = contest.bodies;
    t.true(before > 0);
    master.thaw();
    await until(async () => (await master.info("replication", "role")) === "slave");
    await until(() => contest.bodies > before + 100);
    await contest.end();
    t.is(contest.most, 1);
  });
}

for (const [title, isRedirected] of Object.entries({
  "a grant of a master that was replaced while it was frozen": false,
  "a grant of such a master to which another one redirected the command": true,
})) {
  test(`${title} lets no second body run`, async (t) => {
    const cluster = await startRedisCluster(3, 3);
    t.teardown(() => cluster.stop());
    const [master, other, , replica] = cluster.nodes;
    if (master === undefined || other === undefined || replica === undefined)
      throw new Error("the cluster has too few nodes");
    const client = cluster.cluster();
    const waiter = openProcess(t, redisStore(client));
    const holder = openProcess(t, redisStore(cluster.cluster()));
    await waiter.call(`${TAG}first`, PATIENT, () => {}); // Now it is connected.
    const connection = client.nodes("master").find(({ options }) => options.port === master.port);
    const [entered, end] = [deferred(), deferred()];
    const hold = holder.call(`${TAG}key`, PATIENT, async () => {
      entered.resolve();
      await end.promise;
    });
    await entered.promise;
    await master.admin.wait(1, 0);

    // The master has lost the hold when it freezes, and its replica has it. So the master grants the key to the waiter when it runs again.
    replica.freeze();
    await master.admin.call("CLIENT", "KILL", "TYPE", "replica");
    await master.admin.del(`${TAG}key`);
    master.freeze();
    replica.thaw();
    await cluster.setFailovers(true);
    let bodies = 0;
    if (isRedirected) client.slots[0] = [`127.0.0.1:${other.port}`];
    const wait = waiter.call(`${TAG}key`, PATIENT, () => (bodies += 1));
    // The client closes its connection to the former master only later.
    await until(() => client.slots[0]?.[0] === `127.0.0.1:${replica.port}`);
    await cluster.setFailovers(false);
    master.thaw();
    await until(() => connection?.status === "end");
    t.is(bodies, 0);
    end.resolve();
    await hold;
    await wait;
    t.is(bodies, 1);
  });
}

for (const [title, [open]] of Object.entries(LIBRARIES)) {
  if (open === undefined) continue;

  test(`${title}a process whose first lock finds a frozen master acquires it after the failover`, async (t) => {
    const cluster = await startRedisCluster(3, 3);
    t.teardown(() => cluster.stop());
    const [master] = cluster.nodes;
    if (master === undefined) throw new Error("the cluster has no node");
    const store = await open(t, cluster);
    const process = openProcess(t, store);
    await until(() => store.state?.() === "up");
    await cluster.setFailovers(true);
    master.freeze();
    t.is(await process.call(`${TAG}first`, PATIENT, () => "in"), "in");
  });

  test(`${title}a frozen master does not keep other masters from reloading their scripts`, async (t) => {
    const cluster = await startRedisCluster(2);
    t.teardown(() => cluster.stop());
    const [master, other] = cluster.nodes;
    if (master === undefined || other === undefined) throw new Error("the cluster has too few nodes");
    for (const { admin } of cluster.nodes) await admin.config("SET", "cluster-require-full-coverage", "no");
    // A command that waited for the frozen master would end neither in its own time nor in that of the call.
    const process = openProcess(t, await open(t, cluster), "10m");
    const key = `{${keyIn(16_383)}}other`;
    t.is(await process.call(`${TAG}one`, PATIENT, () => "in"), "in");
    t.is(await process.call(key, PATIENT, () => "in"), "in");
    master.freeze();
    await other.admin.script("FLUSH");
    t.is(await process.call(key, { ...PATIENT, waitTime: "20s" }, () => "in"), "in");
  });
}
