import type { RedisClientType } from "redis";
import { optionsOf } from "../../../runtime/stores/redis/node-redis/options";
import { UsageError } from "../../terminal/usage-error";
import { TIMEOUT_MS, type Client, type OpenClient, type Server, type Words } from "./server";

type NodeRedis = RedisClientType;
type Options = ReturnType<typeof optionsOf>;

/** Options of each command, so that a string is text, and node-redis itself sets no timeout. */
const PLAIN = { typeMapping: {}, timeout: undefined } as unknown as Parameters<NodeRedis["sendCommand"]>[1];

/** Returns a function that creates clients of node-redis. */
export function clientsOfNodeRedis(createClient: (options: object) => unknown): OpenClient {
  const create = createClient as (options: object) => NodeRedis;
  return (connection) => clientOf(create, optionsOf(connection, "--redis"));
}

function clientOf(create: (options: object) => NodeRedis, options: Options): Client {
  let isConnected = false;
  let trouble: unknown;
  // The first connection is not retried. A later connection is, until the command ends.
  const reconnectStrategy = (retries: number): number | false =>
    isConnected ? Math.min((retries + 1) * 100, 1_000) : false;
  const open = (keyPrefix: string): NodeRedis =>
    create({
      ...options,
      ...(keyPrefix !== "" && { keyPrefix }),
      socket: { ...options.socket, connectTimeout: TIMEOUT_MS, reconnectStrategy },
    });
  const client = open("");
  client.on("error", (error) => void (trouble ??= error));
  return {
    ...serverOf(client),
    redis: client,
    get trouble() {
      return trouble;
    },
    async connect() {
      await inTime(client.connect());
      isConnected = true;
    },
    async prefixed(prefix) {
      const other = open(prefix);
      other.on("error", () => {});
      await inTime(other.connect());
      return { redis: other, close: () => destroy(other) };
    },
    openCluster() {
      throw new UsageError(
        "This Redis is a node of a cluster, which this command can read only with ioredis. Fix: run `npm install ioredis`.",
      );
    },
    close: () => destroy(client),
  };
}

function serverOf(client: NodeRedis): Server {
  const send = (...words: Words): Promise<unknown> => inTime(client.sendCommand(words.map(String), PLAIN));
  return {
    send,
    sendAll: (commands) =>
      Promise.all(commands.map((words) => send(...words).catch((error: unknown) => error))),
  };
}

function destroy(client: NodeRedis): void {
  try {
    client.destroy();
  } catch {
    // node-redis 5 throws if the client is closed already.
  }
}

/** Rejects if the promise does not settle in time. */
async function inTime<Value>(promise: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("the server does not answer")), TIMEOUT_MS);
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
