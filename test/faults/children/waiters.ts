import { once, type EventEmitter } from "node:events";
import { Redis } from "ioredis";
import { configure, shutdown, withLock } from "../../../runtime";
import { until } from "../../support/until";
import { report } from "./report";

// A process in which a thousand callers wait in vain, and what is left of them in the process afterwards.

export interface WaitersConfiguration {
  readonly url: string;
  /** One caller for each entry. Somebody else holds all of them. */
  readonly keys: readonly string[];
}

export interface WaitersReport {
  readonly event: "before" | "waited" | "after";
  /** How often each thing that keeps the process alive is there: sockets, timers. */
  readonly resources: Record<string, number>;
  /** How many listen to each event of the client, and of the process. */
  readonly listeners: Record<string, number>;
  /** How often callers ended with what. */
  readonly ends: Record<string, number>;
}

const { url, keys } = JSON.parse(process.argv[2] ?? "") as WaitersConfiguration;
const client = new Redis(url);
configure({ redis: client, logger: { warn: () => {} }, woven: false });

const EMITTERS: readonly EventEmitter[] = [client, process];
const order = once(process.stdin, "data");
void run();

async function run(): Promise<void> {
  // From here on everything is open that waiting opens once.
  await until(async () => {
    await wait(keys.slice(0, 1));
    return String(await client.call("PUBSUB", "CHANNELS")) !== "";
  });
  await isAtRest();
  tell("before", []);
  const waits = keys.map((key) => wait([key]));
  const ends = (await Promise.all(waits)).flat();
  tell("waited", ends);
  await order; // The test looks at Redis meanwhile.
  await isAtRest();
  tell("after", ends);
  await shutdown();
  await client.quit();
  process.stdin.destroy();
}

/** Places are given up without anybody waiting for it: until nothing is in flight any more. */
function isAtRest(): Promise<void> {
  return until(() => !process.getActiveResourcesInfo().includes("Timeout"));
}

async function wait(some: readonly string[]): Promise<string[]> {
  return await Promise.all(
    some.map((key) =>
      withLock(key, { retryTimes: 3, waitTime: "100ms" }, () => {}).then(
        () => "success",
        (error: unknown) => (error instanceof Error && "code" in error ? String(error.code) : String(error)),
      ),
    ),
  );
}

function tell(event: WaitersReport["event"], ends: readonly string[]): void {
  report({
    event,
    resources: counted(process.getActiveResourcesInfo()),
    listeners: counted(
      EMITTERS.flatMap((emitter) =>
        emitter.eventNames().flatMap((name) => emitter.listeners(name).map(() => String(name))),
      ),
    ),
    ends: counted(ends),
  } satisfies WaitersReport);
}

function counted(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names.toSorted()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
