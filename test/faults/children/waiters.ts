import { once, type EventEmitter } from "node:events";
import { Redis } from "ioredis";
import { configure, shutdown, withLock } from "../../../runtime";
import { until } from "../../support/until";
import { report } from "./report";

// A process in which a thousand callers wait in vain. It reports what they leave in the process.

export interface WaitersConfiguration {
  readonly url: string;
  /** One caller for each entry. Another program holds all of them. */
  readonly keys: readonly string[];
}

export interface WaitersReport {
  readonly event: "before" | "waited" | "after";
  /** The number of resources of each kind that keep the process alive, such as sockets and timers. */
  readonly resources: Record<string, number>;
  /** The number of listeners for each event of the client and of the process. */
  readonly listeners: Record<string, number>;
  /** The number of calls by their outcome. */
  readonly ends: Record<string, number>;
}

const { url, keys } = JSON.parse(process.argv[2] ?? "") as WaitersConfiguration;
const client = new Redis(url);
configure({ redis: client, logger: { warn: () => {} }, woven: false });

const EMITTERS: readonly EventEmitter[] = [client, process];
const order = once(process.stdin, "data");
void run();

async function run(): Promise<void> {
  // Now everything is open that the first wait opens.
  await until(async () => {
    await wait(keys.slice(0, 1));
    return String(await client.call("PUBSUB", "CHANNELS")) !== "";
  });
  await isAtRest();
  reportState("before", []);
  const waits = keys.map((key) => wait([key]));
  const ends = (await Promise.all(waits)).flat();
  reportState("waited", ends);
  await order; // The test looks at Redis meanwhile.
  await isAtRest();
  reportState("after", ends);
  await shutdown();
  await client.quit();
  process.stdin.destroy();
}

/** Waits until nothing is in flight. Nobody awaits the commands that leave the queue. */
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

function reportState(event: WaitersReport["event"], ends: readonly string[]): void {
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
