/**
 * Runs many sections, and checks that they leave nothing behind. Three members meet only in Redis, like processes, but live in one process,
 * so that one heap shows all of them.
 *
 *     npm run bench -- soak [--sections <n>]
 *
 * Exits with 1 unless the heap stays flat and nothing is left.
 */
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Redis } from "ioredis";
import { startRedis } from "../test/support/redis-server";
import { SeededRandom } from "../test/support/seeded-random";
import { heapBytes, heapObjects } from "./heap";
import { enter, HELD_KEYS, runSection, type Member } from "./soak-sections";

const MEMBERS = 3;
const CALLERS_EACH = 100;
const INTERVALS = 20;
/** The intervals after which every object that is created only once exists. */
const WARM_UP_INTERVALS = 5;
const LONGEST_MS = 170_000;

/** The limits for growth through compiled code and the like. One leaked object in a hundred sections would be ten times too many. */
const FLAT = { bytesPerSection: 4, objectsPerThousand: 1 };

const WIDTHS = [10, 7, 13, 7];

interface Sample {
  readonly sections: number;
  readonly bytes: number;
  readonly objects: number;
}

const { values: options } = parseArgs({ options: { sections: { type: "string", default: "200000" } } });

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1); // Other callers are still running.
});

async function main(): Promise<void> {
  const requested = Number(options.sections);
  if (!Number.isInteger(requested) || requested < INTERVALS) {
    throw new Error(`Expected --sections to be ${INTERVALS} or more`);
  }
  console.log("  sections  seconds  heap after GC  objects");
  const warnings = new Set<string>();
  process.on("warning", ({ name, message }) => {
    if (name !== "ExperimentalWarning") warnings.add(message); // Our own count of objects causes the experimental warning.
  });
  const resourcesBefore = process.getActiveResourcesInfo();

  const redis = await startRedis();
  const admin = redis.client();
  for (const key of HELD_KEYS) await admin.set(key, "somebody else");
  const clients = Array.from({ length: MEMBERS }, () => redis.client());
  await Promise.all(clients.map((client) => client.ping()));
  const listenersBefore = clients.map(listeners).join(" ");
  const members = clients.map(enter);

  const outcomes = new Map<string, number>();
  const samples = await soak(members, Math.ceil(requested / INTERVALS), outcomes);
  console.log(`\n${[...outcomes].map(([outcome, count]) => `${count} ${outcome}`).join(", ")}\n`);

  await Promise.all(members.map((member) => member.shutdown()));
  await admin.del(...HELD_KEYS);
  const keys = await admin.keys("*");
  const counters = keys.filter((key) => key.startsWith("lockweave:1:fence:"));
  const left = keys.filter((key) => !counters.includes(key));
  const listenersAfter = clients.map(listeners).join(" ");
  await redis.stop();
  await pause(50); // Closed connections release their handles.
  const resources = added(process.getActiveResourcesInfo(), resourcesBefore);
  const settled = samples.slice(WARM_UP_INTERVALS);
  const bytes = perSection(settled, (sample) => sample.bytes);
  const objects = 1_000 * perSection(settled, (sample) => sample.objects);

  const verdicts = [
    verdict(
      bytes <= FLAT.bytesPerSection,
      `the heap grew by ${bytes.toFixed(2)} bytes a section (up to ${FLAT.bytesPerSection} is flat)`,
    ),
    verdict(
      objects <= FLAT.objectsPerThousand,
      `and by ${objects.toFixed(2)} objects in a thousand sections (up to ${FLAT.objectsPerThousand} is flat)`,
    ),
    verdict(left.length === 0, `${left.length} keys left in Redis: ${left.slice(0, 5).join(" ")}`),
    `      beside ${counters.length} counters of fencing tokens, which expire an hour after their last use`,
    verdict(resources.length === 0, `${resources.length} timers and handles left: ${resources.join(" ")}`),
    verdict(
      listenersAfter === listenersBefore,
      `listeners on the clients: ${listenersBefore} before, ${listenersAfter} after`,
    ),
    verdict(warnings.size === 0, `${warnings.size} warnings of the process: ${[...warnings].join("; ")}`),
    verdict(!outcomes.has("lost"), `${outcomes.get("lost") ?? 0} locks lost`),
  ];
  console.log(verdicts.join("\n"));
  const isGood = process.exitCode === undefined;
  console.log(isGood ? "\nFLAT: nothing is left behind" : "\nNOT FLAT, or something is left behind");
}

async function soak(
  members: readonly Member[],
  perInterval: number,
  outcomes: Map<string, number>,
): Promise<Sample[]> {
  const startedAt = performance.now();
  const timeout = setTimeout(() => {
    console.log(`NOT DONE within ${LONGEST_MS / 1_000} s`);
    process.exit(1);
  }, LONGEST_MS);
  const random = new SeededRandom(1);
  const samples: Sample[] = [];
  for (let interval = 1; interval <= INTERVALS; interval += 1) {
    let remaining = perInterval;
    const call = async (member: Member): Promise<void> => {
      while (remaining > 0) {
        remaining -= 1;
        const outcome = await runSection(member, random);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      }
    };
    await Promise.all(members.flatMap((member) => Array.from({ length: CALLERS_EACH }, () => call(member))));
    const objects = heapObjects();
    const sample = { sections: interval * perInterval, bytes: await heapBytes(), objects };
    samples.push(sample);
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
    const mebibytes = `${(sample.bytes / 1_048_576).toFixed(3)} MiB`;
    const columns = [String(sample.sections), seconds, mebibytes, String(objects)];
    console.log(columns.map((text, nth) => text.padStart(WIDTHS[nth] ?? 0)).join("  "));
  }
  clearTimeout(timeout);
  return samples;
}

function verdict(isGood: boolean, line: string): string {
  if (!isGood) process.exitCode = 1;
  return `${isGood ? "ok  " : "FAIL"}  ${line.replace(/: $/, "")}`;
}

function listeners(client: Redis): number {
  return client.eventNames().reduce((count, event) => count + client.listenerCount(event), 0);
}

/** Returns the names that `after` contains more often than `before`. */
function added(after: readonly string[], before: readonly string[]): string[] {
  const known = [...before];
  return after.filter((name) => {
    const at = known.indexOf(name);
    if (at >= 0) known.splice(at, 1);
    return at < 0;
  });
}

/** Returns the slope of the least-squares line through the samples. */
function perSection(samples: readonly Sample[], figure: (sample: Sample) => number): number {
  const mean = (term: (sample: Sample) => number): number =>
    samples.reduce((total, sample) => total + term(sample), 0) / samples.length;
  const sections = mean((sample) => sample.sections);
  const level = mean(figure);
  const covariance = mean((sample) => (sample.sections - sections) * (figure(sample) - level));
  return covariance / mean((sample) => (sample.sections - sections) ** 2);
}
