import { LockOptionError } from "../../base/errors";
import { formatValue } from "../../base/format-value";

/** The part of a client that the store needs: a `Redis` (one node or Sentinel) or a `Cluster` of ioredis 5 or 6. */
export interface RedisClient {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  /** Returns a section of INFO. Without this method, the store does not check whether the server may evict locks. */
  info?(section: "memory"): Promise<string>;
  duplicate(): RedisSubscriber;
  on(event: string, listener: (error: Error) => void): unknown;
  off(event: string, listener: (error: Error) => void): unknown;
  /** The state of the connection. `"ready"` if commands are sent immediately. */
  readonly status?: string;
  /** True for a `Cluster`. */
  readonly isCluster?: boolean;
  /** Only for a `Cluster`: the addresses of the nodes of each slot, with the master first. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  /** Only for a `Cluster`: returns the connections to its nodes. */
  nodes?(role: "all" | "master"): readonly RedisClient[];
  /** Only for a `Cluster`: asks the nodes which slots each of them serves. */
  refreshSlotsCache?(): void;
  pipeline?(): RedisPipeline;
  readonly options: {
    readonly keyPrefix?: string | undefined;
    readonly db?: number | undefined;
    readonly host?: string | undefined;
    readonly port?: number | undefined;
    readonly enableAutoPipelining?: boolean | undefined;
    /** Only for a `Cluster`: maps the addresses that the nodes report to the addresses at which they can be reached. */
    readonly natMap?: NatMap | undefined;
  };
}

export type NatMap = NatMapper | Readonly<Record<string, ReturnType<NatMapper>>>;
export type NatMapper = (
  address: string,
) => { readonly host: string; readonly port: number } | null | undefined;

/** Commands that are written together. */
interface RedisPipeline {
  call(command: string, ...args: (string | number)[]): unknown;
  exec(): Promise<[error: Error | null, reply: unknown][] | null>;
}

/** A `Redis`. A `Cluster` does not accept these overrides. */
export interface RedisNode extends RedisClient {
  duplicate(overrides?: { readonly autoResubscribe: boolean; readonly keyPrefix?: string }): RedisSubscriber;
}

/** A connection that is duplicated from a client for one purpose. */
export interface OwnConnection extends RedisClient {
  pipeline(): RedisPipeline;
  disconnect(): void;
}

/** A `Redis`, from which such connections are duplicated. */
export interface Duplicable {
  duplicate(overrides: Readonly<Record<string, unknown>>): OwnConnection;
}

export function isCluster(client: RedisClient): boolean {
  return client.isCluster === true;
}

/** The second connection, on which the store receives wake-ups. */
export interface RedisSubscriber {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (channel: string, message: string) => void): unknown;
  disconnect(): void;
}

const CLIENT_METHODS = ["call", "duplicate", "on", "off"] as const;

/** @throws {LockOptionError} if it is not a client of ioredis */
export function assertClient(client: RedisClient, what = "redis"): void {
  if (
    CLIENT_METHODS.every((name) => typeof (client as RedisClient | null | undefined)?.[name] === "function")
  ) {
    if (!MOCK.test(client.constructor.name)) return;
    throw new LockOptionError(
      `Expected \`${what}\` to be a client of a Redis server, got a client of ioredis-mock, which lacks commands that locks need. Fix: in unit tests, call testLocks() from lockweave/testing, or set \`store\` to memoryStore()`,
    );
  }
  const isObject = typeof client === "object" && client !== null;
  const expected = `Expected \`${what}\` to be an ioredis client or a redis:// URL, got`;
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
  'Fix: create an ioredis client with these options, new Redis({ host, port }), or write a URL: "redis://host:6379".';

/** The fix for users of another client: one process may use both clients. */
const BESIDE =
  "Lockweave connects to the same server with ioredis. Fix: npm install ioredis, and pass the URL of that client to configure().";

/** Other clients, recognized by methods that none of the others here has. */
const OTHER_CLIENTS = [
  { name: "node-redis (the package `redis`)", methods: ["sendCommand", "multi"], cure: BESIDE },
  { name: "Valkey GLIDE", methods: ["customCommand"], cure: BESIDE },
  {
    name: "@upstash/redis, which speaks HTTP",
    methods: ["createScript", "multi"],
    cure: "Lockweave uses the Redis protocol, with ioredis. Fix: npm install ioredis, and pass the rediss:// URL from Upstash's console to configure().",
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
