import { once, type EventEmitter } from "node:events";
import { Redis } from "ioredis";
import { Pool } from "pg";
import { configure, shutdown, withLock, type Configuration } from "../../../runtime";
import type { ServerTarget } from "../../support/lock-server";
import { until } from "../../support/until";
import { report } from "./report";

// A process in which a thousand callers wait and never get the lock. It reports what they leave in the process.

export interface WaitersConfiguration {
  readonly target: ServerTarget;
  /** The number of connections that the process has while callers wait. */
  readonly connections: number;
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

/** The client of the application, which the process passes to `configure()`. */
interface Application {
  readonly client: EventEmitter;
  readonly options: Configuration;
  /** Returns the number of connections of this process. */
  connections(): Promise<number>;
  end(): Promise<unknown>;
}

const { target, keys, connections } = JSON.parse(process.argv[2] ?? "") as WaitersConfiguration;
const application = "redis" in target ? overRedis(target.redis) : overPostgres(target.postgres);
configure({ ...application.options, logger: { warn: () => {} }, woven: false });

const EMITTERS: readonly EventEmitter[] = [application.client, process];
const order = once(process.stdin, "data");
void run();

function overRedis(url: string): Application {
  const client = new Redis(url);
  return {
    client,
    options: { redis: client },
    // One connection belongs to the test.
    connections: async () =>
      String(await client.call("CLIENT", "LIST"))
        .trim()
        .split("\n").length - 1,
    end: () => client.quit(),
  };
}

function overPostgres(url: string): Application {
  const client = new Pool({ connectionString: url, max: 1, idleTimeoutMillis: 0 });
  return {
    client,
    options: { postgres: client },
    async connections() {
      const text = "SELECT FROM pg_stat_activity WHERE backend_type = 'client backend'";
      return ((await client.query(text)).rowCount ?? NaN) - 1;
    },
    end: () => client.end(),
  };
}

async function run(): Promise<void> {
  // Now everything is open that the first waits open: one waiter, and two locks at once.
  await until(async () => {
    const locks = ["LOCK_first", "LOCK_second"].map((key) => withLock(key, () => {}));
    await Promise.all([wait(keys.slice(0, 1)), ...locks]);
    return (await application.connections()) === connections;
  });
  await isAtRest();
  reportState("before", []);
  const waits = keys.map((key) => wait([key]));
  const ends = (await Promise.all(waits)).flat();
  reportState("waited", ends);
  await order; // The test looks at the server meanwhile.
  await isAtRest();
  reportState("after", ends);
  await shutdown();
  await application.end();
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
