import { UsageError } from "../../terminal/usage-error";
import { printError, safe } from "../../terminal/printer";
import { loadClients } from "./client-library";
import { errorMessage } from "../port/errors";
import { addressOf } from "./address";
import type { Client, Prefixed, Server } from "./server";

/** The Redis servers that store the locks. */
export interface Servers {
  /** The addresses of the servers without passwords. */
  readonly names: readonly string[];
  /** Returns the single Redis, or each master of a cluster or a quorum. */
  masters(): readonly Server[];
  /** Returns how many masters must answer: all of them, or a majority of a quorum. */
  needed(): number;
  /** Reads the beginning of a value from the server that stores the key, and the remaining lifetime of the key. */
  read(
    name: string,
    maxBytes: number,
  ): Promise<{ readonly value: string | undefined; readonly leftMs: number }>;
  /** Connects to the same servers with a `keyPrefix`, for `configure({ redis })`. */
  prefixed(prefix: string): Promise<PrefixedClients>;
  close(): void;
}

interface PrefixedClients {
  readonly redis: Prefixed["redis"] | readonly Prefixed["redis"][];
  close(): void;
}

/**
 * Connects to the servers.
 *
 * @param urls one Redis, Sentinel, or cluster node, or the masters of a quorum
 * @throws {UsageError} if a server cannot be reached, or, for a quorum, if a majority cannot be reached
 */
export async function openServers(urls: readonly string[]): Promise<Servers> {
  const addresses = urls.map((url) => addressOf(url));
  const open = loadClients(addresses.some(({ connection }) => connection.sentinels !== undefined));
  const names = addresses.map(({ name }) => name);
  const clients: Client[] = [];
  const unreachable: string[] = [];
  let current: Client | undefined;
  const close = (): void => {
    for (const client of clients) client.close();
  };
  try {
    for (const { name, connection } of addresses) {
      const client = open(connection);
      clients.push(client);
      current = client;
      try {
        await client.connect();
      } catch (error) {
        unreachable.push(`Cannot read ${name}: ${errorMessage(client.trouble ?? error)}.`);
        if (2 * unreachable.length >= urls.length) throw error;
      }
    }
    printError(...unreachable.map((line) => safe`lockweave: ${line} Lockweave reads the other masters.`));
    const [first] = clients;
    if (first === undefined) throw new UsageError("Expected `--redis <url>`.");
    current = first;
    if (clients.length > 1 || !(await isInCluster(first))) return serversOf(clients, names, close);
    const cluster = await first.openCluster();
    close();
    return {
      names,
      masters: () => cluster.masters(),
      needed: () => cluster.masters().length,
      read: (name, maxBytes) => readFrom(cluster, name, maxBytes),
      prefixed: (prefix) => cluster.prefixed(prefix),
      close: () => cluster.close(),
    };
  } catch (error) {
    close();
    if (error instanceof UsageError) throw error;
    throw new UsageError(`Cannot read ${names.join(", ")}: ${errorMessage(current?.trouble ?? error)}.`);
  }
}

/** Returns one Redis, or the masters of a quorum. */
function serversOf(clients: readonly Client[], names: readonly string[], close: () => void): Servers {
  return {
    names,
    masters: () => clients,
    needed: () => Math.floor(clients.length / 2) + 1,
    read: (name, maxBytes) => readFromAny(clients, name, maxBytes),
    async prefixed(prefix) {
      const others = await Promise.all(clients.map((client) => client.prefixed(prefix)));
      const [only, ...more] = others.map(({ redis }) => redis);
      return {
        redis: only === undefined || more.length > 0 ? others.map(({ redis }) => redis) : only,
        close: () => others.forEach((other) => other.close()),
      };
    },
    close,
  };
}

async function readFrom(
  server: Pick<Server, "send">,
  name: string,
  maxBytes: number,
): ReturnType<Servers["read"]> {
  const [value, leftMs] = await Promise.all([
    server.send("getrange", name, 0, maxBytes - 1),
    server.send("pttl", name),
  ]);
  return { value: value === "" ? undefined : String(value), leftMs: Number(leftMs) };
}

/** Returns the value from any master of a quorum that answers and has one. */
async function readFromAny(
  servers: readonly Server[],
  name: string,
  maxBytes: number,
): ReturnType<Servers["read"]> {
  const settled = await Promise.allSettled(servers.map((server) => readFrom(server, name, maxBytes)));
  const found = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const [first] = found;
  if (first === undefined) throw settled.find((one) => one.status === "rejected")?.reason;
  return found.find(({ value }) => value !== undefined) ?? first;
}

async function isInCluster(server: Server): Promise<boolean> {
  return /^cluster_enabled:1/m.test(String(await server.send("info", "cluster")));
}
