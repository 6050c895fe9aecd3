import { LockOptionError } from "../../base/errors";
import { formatValue } from "../../base/format-value";
import { expectedRedis, type LibraryName } from "./address";
import { isBunRedis, portOfBunRedis } from "./bun/given";
import type { GivenClient, RedisClient } from "./client";
import type { ClientPort, OwnClient } from "./client-port";
import { isGlide, lackOfGlide, portOfGlide, serversOfGlide } from "./glide/given";
import { portOfIoredis, serversOfIoredis } from "./ioredis/given";
import { loadIoredis } from "./ioredis/load";
import { isNodeRedis, openBeside, portOfNodeRedis, serversOfNodeRedis } from "./node-redis/given";
import { loadNodeRedis } from "./node-redis/load";

// The only file that knows which client libraries there are. It recognizes a client by its methods, because it may come from another copy of
// its library than ours.

/** Whether the client may have a method `acquire()`, as stores do. A Sentinel client of node-redis has one. */
export function mayLookLikeStore(client: unknown): boolean {
  return isNodeRedis(client);
}

/** The servers that a client connects to. */
export type Servers = "one node" | "sentinels" | "cluster";

/** @param client a client that {@link assertClient} accepts */
export function serversOf(client: GivenClient): Servers {
  if (isGlide(client)) return serversOfGlide(client);
  if (isBunRedis(client)) return "one node";
  return isNodeRedis(client) ? serversOfNodeRedis(client) : serversOfIoredis(client);
}

/** Returns the library of a client that may reconnect unseen, or undefined for other clients. GLIDE has no event for a reconnect. */
export function libraryWithUnseenReconnects(client: GivenClient): "Valkey GLIDE" | undefined {
  return isGlide(client) ? "Valkey GLIDE" : undefined;
}

/**
 * Returns the adapter for a client.
 *
 * @param client a client that {@link assertClient} accepts, and for which {@link openOwnBeside} returns undefined
 */
export function portOf(client: GivenClient): ClientPort {
  if (isGlide(client)) return portOfGlide(client);
  if (isBunRedis(client)) return portOfBunRedis(client);
  return isNodeRedis(client) ? portOfNodeRedis(client) : portOfIoredis(client);
}

/**
 * Opens a separate connection of the store for a client that cannot keep commands in order, such as a pool. Returns undefined for other clients.
 *
 * @param client a client that {@link assertClient} accepts
 * @param shortestTimeLeftMs returns the shortest time left of all leases and waiters. They cannot wait longer for a connection
 */
export function openOwnBeside(client: GivenClient, shortestTimeLeftMs: () => number): OwnClient | undefined {
  return isNodeRedis(client) ? openBeside(client, shortestTimeLeftMs) : undefined;
}

/** Functions that load the client libraries for URLs. They return undefined if the library is too old, and throw if it cannot be loaded. */
export const LOADERS = {
  ioredis: loadIoredis,
  redis: loadNodeRedis,
} as const satisfies Readonly<Record<LibraryName, () => unknown>>;

const CLIENT_METHODS = ["call", "duplicate", "on", "off"] as const;

/** @throws {LockOptionError} if it is not a client of a supported library */
export function assertClient(client: GivenClient, what = "redis"): void {
  const expected = `${expectedRedis(what)}, got`;
  if (isNodeRedis(client) || isBunRedis(client)) return;
  if (isGlide(client)) {
    const lack = lackOfGlide(client);
    if (lack !== undefined) throw new LockOptionError(`${expected} ${lack}`);
    return;
  }
  if (
    CLIENT_METHODS.every((name) => typeof (client as RedisClient | null | undefined)?.[name] === "function")
  ) {
    if (!MOCK.test(client.constructor.name)) return;
    throw new LockOptionError(
      `Expected \`${what}\` to be a client of a Redis server, got a client of ioredis-mock, which lacks commands that locks need. Fix: in unit tests, call testLocks() from lockweave/testing, or set \`store\` to memoryStore()`,
    );
  }
  const isObject = typeof client === "object" && client !== null;
  const other = isObject ? OTHER_CLIENTS.find(({ methods }) => hasAll(client, methods)) : undefined;
  if (other !== undefined) throw new LockOptionError(`${expected} a client of ${other.name}. ${other.cure}`);
  // For an object, such as connection options, the message shows only the names, because a value may be a password.
  const got = isObject ? `${kindOf(client)}${formatValue(Object.keys(client))}` : formatValue(client);
  const cure =
    isObject && CONNECTION_OPTIONS.some((name) => Object.hasOwn(client, name)) ? `. ${OF_OPTIONS}` : "";
  throw new LockOptionError(`${expected} ${got}${cure}`);
}

/** The class names of ioredis-mock. */
const MOCK = /^_?RedisMock$/;

/** The options of ioredis that name a server. */
const CONNECTION_OPTIONS = ["host", "port", "path", "sentinels"] as const;
const OF_OPTIONS =
  'Fix: create an ioredis client with these options, new Redis({ host, port }), or write a URL: "redis://host:6379"';

/** Other clients, recognized by methods that none of the others here has. */
const OTHER_CLIENTS = [
  {
    name: "node-redis 4 or earlier (the package `redis`), or of its legacy()",
    methods: ["sendCommand", "multi"],
    cure: "Fix: npm install redis@latest, and pass what createClient() returns",
  },
  {
    name: "@upstash/redis, which speaks HTTP",
    methods: ["createScript", "multi"],
    cure: "Lockweave uses the Redis protocol. Fix: npm install ioredis, or npm install redis, and pass the URL from Upstash's console to configure(): rediss://default:<password>@<endpoint>:6379",
  },
] as const;

function hasAll(client: object, methods: readonly string[]): boolean {
  return methods.every((name) => typeof (client as Record<string, unknown>)[name] === "function");
}

/** Returns the text to show before the names of an object that is not a plain object or an array: `URL `, `Map `, ... */
function kindOf(value: object): string {
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return kind === "Object" || kind === "Array" ? "" : `${kind} `;
}
