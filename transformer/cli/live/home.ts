import type { Cluster, Redis } from "ioredis";
import { connectionTo } from "../../../runtime/stores/redis/address";
import { UsageError } from "../../verify/usage-error";

/** Where locks live, looked at from outside. */
export interface Home {
  /** What `configure({ redis })` takes. */
  readonly redis: Redis | Cluster | readonly Redis[];
  /** Of one Redis, it alone; of a cluster or a quorum, each that has locks of its own. */
  masters(): readonly Redis[];
  /** How many of them must answer: all, and of a quorum more than half. */
  needed(): number;
  /** What stands under a name, wherever that is, and for how long yet. */
  read(name: string): Promise<{ readonly value: string | null; readonly leftMs: number }>;
  /** The same for a client with a `keyPrefix`. */
  prefixed(prefix: string): Pick<Home, "redis" | "close">;
  close(): void;
}

/** A look at a server that hangs ends. */
const OPTIONS = { maxRetriesPerRequest: 1, commandTimeout: 5_000, connectTimeout: 5_000 };

/**
 * @param urls one Redis, Sentinel or node of a cluster; or the masters of a quorum
 * @throws {UsageError} when one cannot be reached
 */
export async function openHome(urls: readonly string[]): Promise<Home> {
  const { Redis: Client, Cluster: ClusterClient } = loadIoredis();
  const clients: Redis[] = [];
  const silent: string[] = [];
  let trouble: unknown;
  const close = (): void => {
    for (const client of clients) client.disconnect();
  };
  try {
    for (const url of urls) {
      const { url: plain, options } = connectionTo(url, "--redis");
      const settings = { ...options, ...OPTIONS, lazyConnect: true };
      const client = plain === undefined ? new Client(settings) : new Client(plain, settings);
      clients.push(client);
      client.on("error", (error) => void (trouble ??= error)); // Which tells more than the command that fails.
      await client.connect().catch((error: unknown) => {
        silent.push(`${withoutPassword(url)} cannot be looked at: ${reasonOf(trouble ?? error)}.`);
        if (2 * silent.length >= urls.length) throw error;
        trouble = undefined;
      });
    }
    for (const line of silent) process.stderr.write(`lockweave: ${line} It is done without it.\n`);
    const [first] = clients;
    if (first === undefined)
      throw new UsageError("Expected `--redis <url>`, or REDIS_URL in the environment.");
    if (clients.length > 1 || !(await isInCluster(first)))
      return {
        redis: clients.length > 1 ? clients : first,
        masters: () => clients,
        needed: () => Math.floor(clients.length / 2) + 1,
        read: (name) => readFromAny(clients, name),
        prefixed: (keyPrefix) => {
          const others = clients.map((client) => client.duplicate({ keyPrefix }).on("error", () => {}));
          const [only = first] = others;
          return {
            redis: others.length > 1 ? others : only,
            close: () => others.forEach((client) => client.disconnect()),
          };
        },
        close,
      };
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
      masters: () => cluster.nodes("master"),
      needed: () => cluster.nodes("master").length,
      read: (name) => readFrom(cluster, name),
      prefixed: (keyPrefix) => {
        const other = cluster.duplicate([], { redisOptions: { ...redisOptions, keyPrefix } });
        return { redis: other, close: () => other.disconnect() };
      },
      close: () => cluster.disconnect(),
    };
  } catch (error) {
    close();
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `${urls.map(withoutPassword).join(", ")} cannot be looked at: ${reasonOf(trouble ?? error)}.`,
    );
  }
}

function reasonOf(error: unknown): string {
  const { message, code } = error as { readonly message: string; readonly code?: string };
  return ((message === "" ? code : message) ?? "unknown").replace(/\.+$/, "");
}

async function readFrom(redis: Redis | Cluster, name: string): ReturnType<Home["read"]> {
  const [value, leftMs] = await Promise.all([redis.get(name), redis.pttl(name)]);
  return { value, leftMs };
}

/** Of a quorum: what stands on one of those that answer. */
async function readFromAny(clients: readonly Redis[], name: string): ReturnType<Home["read"]> {
  const settled = await Promise.allSettled(clients.map((client) => readFrom(client, name)));
  const found = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const [first] = found;
  if (first === undefined) throw settled.find((one) => one.status === "rejected")?.reason;
  return found.find(({ value }) => value !== null) ?? first;
}

async function isInCluster(client: Redis): Promise<boolean> {
  return /^cluster_enabled:1/m.test(await client.info("cluster"));
}

export function withoutPassword(url: string): string {
  return url.replace(/\/\/[^@/]*@/, "//");
}

function loadIoredis(): typeof import("ioredis") {
  try {
    return require("ioredis") as typeof import("ioredis");
  } catch {
    throw new UsageError("To look at a Redis takes the package ioredis: `npm install ioredis`.");
  }
}
