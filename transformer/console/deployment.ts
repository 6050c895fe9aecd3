import type { Cluster, Redis } from "ioredis";
import { UsageError } from "../terminal/usage-error";
import { printError, safe } from "../terminal/printer";
import { addressOf, errorMessage } from "./errors";

/** The Redis servers that store the locks, as the live commands see them. */
export interface Deployment {
  /** The clients, in the form that `configure({ redis })` accepts. */
  readonly redis: Redis | Cluster | readonly Redis[];
  /** The addresses of the servers without passwords. */
  readonly names: readonly string[];
  /** Returns the single Redis, or each master of a cluster or a quorum. */
  masters(): readonly Redis[];
  /** Returns how many masters must answer: all of them, or a majority of a quorum. */
  needed(): number;
  /** Reads the beginning of a value from the server that stores the key, and the remaining lifetime of the key. */
  read(
    name: string,
    maxBytes: number,
  ): Promise<{ readonly value: string | undefined; readonly leftMs: number }>;
  /** Connects to the same servers with a `keyPrefix`. */
  prefixed(prefix: string): Pick<Deployment, "redis" | "close">;
  close(): void;
}

const OPTIONS = {
  // Ends the command if a server hangs.
  maxRetriesPerRequest: 1,
  commandTimeout: 5_000,
  connectTimeout: 5_000,
  // The ready check is off because ioredis would print the server's reply to it unescaped.
  enableReadyCheck: false,
};

/**
 * Connects to the servers.
 *
 * @param urls one Redis, Sentinel, or cluster node, or the masters of a quorum
 * @throws {UsageError} if a server cannot be reached, or, for a quorum, if a majority cannot be reached
 */
export async function openDeployment(urls: readonly string[]): Promise<Deployment> {
  const { Redis: Client, Cluster: ClusterClient } = loadIoredis();
  const addresses = urls.map((url) => addressOf(url));
  const names = addresses.map(({ name }) => name);
  const clients: Redis[] = [];
  const unreachable: string[] = [];
  let connectionError: unknown;
  const close = (): void => {
    for (const client of clients) client.disconnect();
  };
  try {
    for (const { name, connection } of addresses) {
      let isConnected = false;
      const settings = {
        ...connection.options,
        ...OPTIONS,
        lazyConnect: true,
        // The first connection does not wait for missing sentinels. A later connection retries until the command ends.
        sentinelRetryStrategy: (attempt: number): number | null =>
          isConnected ? Math.min(attempt * 100, 1_000) : null,
      };
      const client =
        connection.url === undefined ? new Client(settings) : new Client(connection.url, settings);
      clients.push(client);
      // This error says more than the error of the command that fails because of it.
      client.on("error", (error) => void (connectionError ??= error));
      try {
        await client.connect();
        isConnected = true;
      } catch (error) {
        unreachable.push(`Cannot read ${name}: ${errorMessage(connectionError ?? error)}.`);
        if (2 * unreachable.length >= urls.length) throw error;
        connectionError = undefined;
      }
    }
    printError(...unreachable.map((line) => safe`lockweave: ${line} Lockweave reads the other masters.`));
    const [first] = clients;
    if (first === undefined)
      throw new UsageError("Expected `--redis <url>`, or REDIS_URL in the environment.");
    if (clients.length > 1 || !(await isInCluster(first))) return deploymentOf(clients, names, close);
    const { host = "localhost", port = 6379, username, password, tls } = first.options;
    const redisOptions = { ...OPTIONS, username, password, tls };
    const cluster = new ClusterClient([{ host, port }], { redisOptions });
    cluster.on("error", () => {});
    const isReady = new Promise<void>((resolve, reject) => {
      cluster.once("ready", resolve);
      cluster.once("end", () => reject(new Error("the cluster cannot be reached")));
    });
    await isReady;
    close();
    return {
      redis: cluster,
      names,
      masters: () => cluster.nodes("master"),
      needed: () => cluster.nodes("master").length,
      read: (name, maxBytes) => readFrom(cluster, name, maxBytes),
      prefixed: (keyPrefix) => {
        const other = cluster.duplicate([], { redisOptions: { ...redisOptions, keyPrefix } });
        return { redis: other, close: () => other.disconnect() };
      },
      close: () => cluster.disconnect(),
    };
  } catch (error) {
    close();
    if (error instanceof UsageError) throw error;
    throw new UsageError(`Cannot read ${names.join(", ")}: ${errorMessage(connectionError ?? error)}.`);
  }
}

/** Returns the deployment of one Redis, or of the masters of a quorum. */
function deploymentOf(clients: readonly Redis[], names: readonly string[], close: () => void): Deployment {
  const several = (all: readonly Redis[]): Deployment["redis"] => {
    const [only] = all;
    return all.length > 1 || only === undefined ? all : only;
  };
  return {
    redis: several(clients),
    names,
    masters: () => clients,
    needed: () => Math.floor(clients.length / 2) + 1,
    read: (name, maxBytes) => readFromAny(clients, name, maxBytes),
    prefixed: (keyPrefix) => {
      const others = clients.map((client) => client.duplicate({ keyPrefix }).on("error", () => {}));
      return { redis: several(others), close: () => others.forEach((client) => client.disconnect()) };
    },
    close,
  };
}

async function readFrom(
  redis: Redis | Cluster,
  name: string,
  maxBytes: number,
): ReturnType<Deployment["read"]> {
  const [value, leftMs] = await Promise.all([redis.getrange(name, 0, maxBytes - 1), redis.pttl(name)]);
  return { value: value === "" ? undefined : value, leftMs };
}

/** Returns the value from any master of a quorum that answers and has one. */
async function readFromAny(
  clients: readonly Redis[],
  name: string,
  maxBytes: number,
): ReturnType<Deployment["read"]> {
  const settled = await Promise.allSettled(clients.map((client) => readFrom(client, name, maxBytes)));
  const found = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const [first] = found;
  if (first === undefined) throw settled.find((one) => one.status === "rejected")?.reason;
  return found.find(({ value }) => value !== undefined) ?? first;
}

async function isInCluster(client: Redis): Promise<boolean> {
  return /^cluster_enabled:1/m.test(await client.info("cluster"));
}

function loadIoredis(): typeof import("ioredis") {
  try {
    return require("ioredis") as typeof import("ioredis");
  } catch {
    throw new UsageError("The package ioredis is missing. Fix: `npm install ioredis`.");
  }
}
