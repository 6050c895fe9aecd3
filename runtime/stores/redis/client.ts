import { LockOptionError } from "../../errors";
import { formatValue } from "../../format-value";

/** What the store needs of a client: an ioredis 5 or 6 `Redis` (one node or Sentinel) or `Cluster`. */
export interface RedisClient {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  /** Asked for a section of what the server tells about itself; without it, that is not looked at. */
  info?(section: "memory"): Promise<string>;
  duplicate(): RedisSubscriber;
  on(event: string, listener: (error: Error) => void): unknown;
  off(event: string, listener: (error: Error) => void): unknown;
  /** Where its connection stands: `"ready"` when commands are sent at once. */
  readonly status?: string;
  /** True of a `Cluster`. */
  readonly isCluster?: boolean;
  /** Of a `Cluster`: for each slot the addresses of its nodes, the master's first. */
  readonly slots?: readonly (readonly string[] | undefined)[];
  /** Of a `Cluster`: the connections to its nodes. */
  nodes?(role: "all" | "master"): readonly RedisClient[];
  /** Of a `Cluster`: asks the nodes which of them has which slots. */
  refreshSlotsCache?(): void;
  pipeline?(): RedisPipeline;
  readonly options: {
    readonly keyPrefix?: string | undefined;
    readonly db?: number | undefined;
    readonly host?: string | undefined;
    readonly port?: number | undefined;
    readonly enableAutoPipelining?: boolean | undefined;
    /** Of a `Cluster`: where the nodes are, by the addresses that they give. */
    readonly natMap?: NatMap | undefined;
  };
}

export type NatMap = NatMapper | Readonly<Record<string, ReturnType<NatMapper>>>;
export type NatMapper = (
  address: string,
) => { readonly host: string; readonly port: number } | null | undefined;

/** Commands that are written at once. */
interface RedisPipeline {
  call(command: string, ...args: (string | number)[]): unknown;
  exec(): Promise<[error: Error | null, reply: unknown][] | null>;
}

/** A `Redis`: a `Cluster` takes no such override. */
export interface RedisNode extends RedisClient {
  duplicate(overrides?: { readonly autoResubscribe: boolean; readonly keyPrefix?: string }): RedisSubscriber;
}

/** A connection that is made like a client's for one use. */
export interface OwnConnection extends RedisClient {
  pipeline(): RedisPipeline;
  disconnect(): void;
}

/** A `Redis`, of which such connections can be made. */
export interface Duplicable {
  duplicate(overrides: Readonly<Record<string, unknown>>): OwnConnection;
}

export function isCluster(client: RedisClient): boolean {
  return client.isCluster === true;
}

/** The second connection, on which the store hears that the queue reserved a lock for it. */
export interface RedisSubscriber {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (channel: string, message: string) => void): unknown;
  disconnect(): void;
}

const CLIENT_METHODS = ["call", "duplicate", "on", "off"] as const;

/** @throws {LockOptionError} when it is none */
export function assertClient(client: RedisClient, what = "redis"): void {
  if (
    CLIENT_METHODS.every((name) => typeof (client as RedisClient | null | undefined)?.[name] === "function")
  ) {
    if (!MOCK.test(client.constructor.name)) return;
    throw new LockOptionError(
      `Expected \`${what}\` to be a client of a Redis, got one of ioredis-mock, which does not run what locks need. Fix: in unit tests give memoryStore() as \`store\`, or call testLocks() of lockweave/testing`,
    );
  }
  const isObject = typeof client === "object" && client !== null;
  const expected = `Expected \`${what}\` to be an ioredis client or a redis:// URL, got`;
  const other = isObject ? OTHER_CLIENTS.find(({ methods }) => hasAll(client, methods)) : undefined;
  if (other !== undefined) throw new LockOptionError(`${expected} a client of ${other.name}. ${other.cure}`);
  // Of an object, such as connection options, only the names: a password may be among the values.
  const got = isObject ? `${kindOf(client)}${formatValue(Object.keys(client))}` : formatValue(client);
  const cure =
    isObject && CONNECTION_OPTIONS.some((name) => Object.hasOwn(client, name)) ? `. ${OF_OPTIONS}` : "";
  throw new LockOptionError(`${expected} ${got}${cure}`);
}

/** How the classes of ioredis-mock are called. */
const MOCK = /^_?RedisMock$/;

/** Of ioredis, by which it finds a server. */
const CONNECTION_OPTIONS = ["host", "port", "path", "sentinels"] as const;
const OF_OPTIONS =
  'Make a client of such options, new Redis({ host, port }) of ioredis, or write a URL: "redis://host:6379".';

/** They may stand beside each other. */
const BESIDE =
  "Lockweave speaks to the same server by ioredis, beside it: npm install ioredis, and give the URL that you give to that client.";

/** By methods that of these only it has. */
const OTHER_CLIENTS = [
  { name: "node-redis (the package `redis`)", methods: ["sendCommand", "multi"], cure: BESIDE },
  { name: "Valkey GLIDE", methods: ["customCommand"], cure: BESIDE },
  {
    name: "@upstash/redis, which speaks HTTP",
    methods: ["createScript", "multi"],
    cure: "Lockweave speaks the Redis protocol, by ioredis: npm install ioredis, and give the rediss:// URL that Upstash's console shows.",
  },
] as const;

function hasAll(client: object, methods: readonly string[]): boolean {
  return methods.every((name) => typeof (client as Record<string, unknown>)[name] === "function");
}

/** What to say before the names of an object that is no plain one: `URL `, `Map `, ... */
function kindOf(value: object): string {
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return kind === "Object" || kind === "Array" ? "" : `${kind} `;
}
