/**
 * Measures the cost of a section whose lock a replica must confirm, compared with the same section without replicas, and with hand-written
 * SET, DEL, and WAIT. They alternate.
 *
 *     npm run bench -- replicas [<sections> <turns>]
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { redisStore } from "../runtime";
import { FleetProcess } from "../test/support/fleet";
import { startRedis } from "../test/support/redis-server";
import { until } from "../test/support/until";

const [sections = 500, turns = 9] = process.argv.slice(2).map(Number);
const CALLERS = 50;
const DROP = `return redis.call("GET", KEYS[1]) == ARGV[1] and redis.call("DEL", KEYS[1]) or 0`;

type Section = (key: string) => Promise<unknown>;

async function byHand(client: Redis, key: string, replicas: number): Promise<void> {
  const id = randomUUID();
  // Sends both commands in one write. For a hand-written lock with one caller, one connection is enough.
  const commands = client.pipeline().set(key, id, "PX", 10_000, "NX");
  if (replicas > 0) commands.call("WAIT", replicas, 1_000);
  const [, waited] = (await commands.exec()) ?? [];
  if (replicas > 0 && Number(waited?.[1]) < replicas) throw new Error("the replica has not confirmed it");
  await client.eval(DROP, 1, key, id);
}

async function main(): Promise<void> {
  const master = await startRedis("--repl-diskless-sync-delay", "0");
  const replica = await startRedis("--replicaof", "127.0.0.1", String(master.port));
  const client = master.client();
  await until(async () => (await client.call("WAIT", 1, 10)) === 1);
  const store = redisStore(master.client());
  const process = new FleetProcess({ store, commandTimeout: "5s" });
  const ways: Record<string, Section> = {
    "by hand": (key) => byHand(client, key, 0),
    "by hand, with WAIT": (key) => byHand(client, key, 1),
    "a tag": (key) => process.call(key, {}, () => {}),
    "a tag with replicas=1": (key) => process.call(key, { replicas: 1 }, () => {}),
  };
  for (const callers of [1, CALLERS]) {
    const times = new Map(Object.keys(ways).map((name) => [name, [] as number[]]));
    for (let turn = -1; turn < turns; turn += 1) {
      for (const [name, section] of Object.entries(ways)) {
        const startedAt = performance.now();
        await Promise.all(
          Array.from({ length: callers }, async (_, caller) => {
            for (let n = 0; n < sections / callers; n += 1) await section(`LOCK_${caller}_${n}`);
          }),
        );
        if (turn >= 0) times.get(name)?.push((performance.now() - startedAt) / sections);
      }
    }
    const without = quantile(times.get("a tag") ?? [], 0.5);
    for (const [name, all] of times) {
      const [low, median, high] = [0.25, 0.5, 0.75].map((share) => quantile(all, share));
      const figures = `${median?.toFixed(3)} ms a section (${low?.toFixed(3)} to ${high?.toFixed(3)})`;
      const ratio = ((median ?? NaN) / without).toFixed(2);
      console.log(`${callers} callers, ${name}: ${figures}, ${ratio} of a tag without replicas`);
    }
  }
  await store.close();
  await Promise.all([master.stop(), replica.stop()]);
}

function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? NaN;
}

void main();
