/**
 * What a section costs in each of the homes that locks may have: commands, and time beside a lock that is written by hand
 * (`SET NX PX`, a compare-and-delete script) with the same client. The two are measured in turns.
 *
 *     npm run bench:homes [-- <sections> <turns>]
 */
import { setTimeout as pause } from "node:timers/promises";
import { randomBytes } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import { quorumStore, redisStore, type Store } from "../runtime";
import { FleetProcess } from "../test/support/fleet";
import { startRedisCluster } from "../test/support/redis-cluster";
import { startSentinelGroup } from "../test/support/redis-sentinel";
import { startRedis } from "../test/support/redis-server";

const [sections = 300, turns = 7] = process.argv.slice(2).map(Number);

/** Locks are had from a quorum when a majority of its masters is so old. */
const LONGEST_LOCK_TIME_MS = 10_000;

interface Home {
  readonly name: string;
  readonly store: Store;
  /** For the lock by hand; a quorum has none, and is measured beside the one node. */
  readonly client: Redis | Cluster;
  /** To those who count commands. */
  readonly masters: readonly Redis[];
}

/** Of a section that is given its lock at once. */
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
  const homes: readonly Home[] = [
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
  for (const home of homes) await measure(home);
  await Promise.all(homes.map(({ store }) => store.close()));
  await Promise.all([one, sentinel, cluster, ...masters].map((servers) => servers.stop()));
}

async function measure({ name, store, client, masters }: Home): Promise<void> {
  const process = new FleetProcess({ store });
  const ours = async (n: number): Promise<void> => {
    await process.call(`LOCK_${n}`, { lockTime: "10s" }, () => {});
  };
  const byHand = async (n: number): Promise<void> => {
    const [key, token] = [`LOCK_${n}`, randomBytes(16).toString("hex")];
    await client.set(key, token, "PX", 10_000, "NX");
    await client.eval(COMPARE_AND_DELETE, 1, key, token);
  };
  for (const warmUp of [ours, byHand]) await timed(warmUp);
  const [times, rawTimes] = [[] as number[], [] as number[]];
  let commands = 0;
  for (let turn = 0; turn < turns; turn += 1) {
    const before = await commandsOf(masters);
    times.push(await timed(ours));
    commands += (await commandsOf(masters)) - before;
    rawTimes.push(await timed(byHand));
  }
  const each = (commands / (sections * turns)).toFixed(2);
  const ratios = times.map((time, turn) => time / (rawTimes[turn] ?? NaN));
  const [low, high] = [quantile(ratios, 0.25), quantile(ratios, 0.75)];
  console.log(
    `${name}: ${each} commands, ${quantile(times, 0.5).toFixed(2)} ms a section, ${quantile(ratios, 0.5).toFixed(2)} x by hand (${low.toFixed(2)} to ${high.toFixed(2)})`,
  );
}

const COMPARE_AND_DELETE =
  'if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0';

/** Milliseconds for each. */
async function timed(section: (n: number) => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  for (let n = 0; n < sections; n += 1) await section(n);
  return (performance.now() - startedAt) / sections;
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
