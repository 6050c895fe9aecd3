/**
 * Measures the cost of a section in each topology: the number of commands, and the time compared with a hand-written lock (`SET NX PX` and
 * a compare-and-delete script) on the same client. The two alternate after each section.
 *
 *     npm run bench -- homes [<sections>]
 */
import { setTimeout as pause } from "node:timers/promises";
import { randomBytes } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import { quorumStore, redisStore, type WholeStore } from "../runtime";
import { FleetProcess } from "../test/support/fleet";
import { startRedisCluster } from "../test/support/redis-cluster";
import { startSentinelGroup } from "../test/support/redis-sentinel";
import { startRedis } from "../test/support/redis-server";

const [sections = 1_000] = process.argv.slice(2).map(Number);

/** A quorum grants no locks until a majority of its masters has run for this long. */
const LONGEST_LOCK_TIME_MS = 10_000;

interface Topology {
  readonly name: string;
  readonly store: WholeStore;
  /** The client for the hand-written lock. A quorum has none, and is compared with the single node. */
  readonly client: Redis | Cluster;
  /** Separate connections to the masters, which read the numbers of commands. */
  readonly masters: readonly Redis[];
}

/** Matches the commands of a section that acquires its lock immediately. */
const COMMANDS = /^cmdstat_(?:set|eval|evalsha):calls=(\d+)/gm;

async function main(): Promise<void> {
  const [one, sentinel, cluster] = [
    await startRedis(),
    await startSentinelGroup(),
    await startRedisCluster(3, 3),
  ];
  const masters = await Promise.all(Array.from({ length: 5 }, () => startRedis()));
  const ofOne = one.client();
  const [ofSentinel, ofCluster] = [sentinel.client(), cluster.cluster()];
  const [primary] = sentinel.servers;
  if (primary === undefined) throw new Error("there is no master behind Sentinel");
  const clients = masters.map((server) => server.client());
  const topologies: readonly Topology[] = [
    { name: "one node", store: redisStore(ofOne), client: ofOne, masters: [one.client()] },
    {
      name: "replicas under Sentinel",
      store: redisStore(ofSentinel),
      client: ofSentinel,
      masters: [primary.client()],
    },
    {
      name: "cluster",
      store: redisStore(ofCluster),
      client: ofCluster,
      masters: cluster.nodes.filter(({ master }) => master === undefined).map(({ admin }) => admin),
    },
    {
      name: "quorum of five",
      store: quorumStore(clients, { longestLockTime: `${LONGEST_LOCK_TIME_MS}ms` }),
      client: ofOne,
      masters: masters.map((server) => server.client()),
    },
  ];
  await pause(LONGEST_LOCK_TIME_MS + 1_000);
  for (const topology of topologies) await measure(topology);
  await Promise.all(topologies.map(({ store }) => store.close?.()));
  await Promise.all([one, sentinel, cluster, ...masters].map((servers) => servers.stop()));
}

async function measure({ name, store, client, masters }: Topology): Promise<void> {
  const process = new FleetProcess({ store });
  const ours = async (n: number): Promise<void> => {
    await process.call(`LOCK_${n}`, { lockTime: "10s" }, () => {});
  };
  const byHand = async (n: number): Promise<void> => {
    const [key, token] = [`LOCK_${n}`, randomBytes(16).toString("hex")];
    await client.set(key, token, "PX", 10_000, "NX");
    await client.eval(COMPARE_AND_DELETE, 1, key, token);
  };
  const [times, rawTimes] = [[] as number[], [] as number[]];
  let commands = 0;
  for (let n = -WARM_UP; n < sections; n += 1) {
    const before = await commandsOf(masters);
    const time = await timed(() => ours(n));
    const sent = (await commandsOf(masters)) - before;
    const rawTime = await timed(() => byHand(n));
    if (n < 0) continue; // The first sections load scripts and open connections.
    commands += sent;
    times.push(time);
    rawTimes.push(rawTime);
  }
  const [time, rawTime] = [quantile(times, 0.5), quantile(rawTimes, 0.5)];
  const each = (commands / sections).toFixed(2);
  console.log(
    `${name}: ${each} commands, ${time.toFixed(2)} ms a section, ${(time / rawTime).toFixed(2)} times the hand-written lock`,
  );
}

const WARM_UP = 20;

const COMPARE_AND_DELETE =
  'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0';

/** Returns the time of a section in milliseconds. */
async function timed(section: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await section();
  return performance.now() - startedAt;
}

async function commandsOf(masters: readonly Redis[]): Promise<number> {
  const stats = await Promise.all(masters.map((master) => master.info("commandstats")));
  return stats
    .flatMap((text) => Array.from(text.matchAll(COMMANDS), ([, calls]) => Number(calls)))
    .reduce((sum, calls) => sum + calls, 0);
}

function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? NaN;
}

void main();
