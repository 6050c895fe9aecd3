/** A client that the user gives to Lockweave, and closes. */
export type GivenClient = QuorumClient | ValkeyGlide | ValkeyGlideClient;

/** A client that can be a master of a quorum, because it reports each reconnect. */
export type QuorumClient = RedisClient | NodeRedisClient | BunRedisClient;

/** The part of a client that the store needs: a `Redis` (one node or Sentinel) or a `Cluster` of ioredis 5 or 6, or of iovalkey. */
export interface RedisClient {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
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

/**
 * A client of node-redis 5 or 6 (the package `redis`). It has no exact type here, because TypeScript reads this file even in applications
 * without node-redis.
 */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  sendCommand(...args: never[]): Promise<unknown>;
  withTypeMapping(...args: never[]): unknown;
  on(...args: never[]): unknown;
}

/**
 * A client of Valkey GLIDE 2 (the package `@valkey/valkey-glide`) from `GlideClient.createClient()`, or from
 * `GlideClusterClient.createClient()`, which also needs its configuration. It has no exact type here, because TypeScript reads this file even in
 * applications without GLIDE.
 */
export interface ValkeyGlideClient {
  customCommand(...args: never[]): Promise<unknown>;
  getPubSubMessage(...args: never[]): Promise<unknown>;
}

/** A client of Valkey GLIDE and its configuration. */
export interface ValkeyGlide {
  readonly glide: ValkeyGlideClient;
  /**
   * The argument of `createClient()`. Lockweave opens other connections with it, for wake-ups and for `replicas`. Without it, Lockweave rejects
   * a client of a cluster, and waiters notice a free lock only by polling once a second.
   */
  readonly config?: object | undefined;
}

/**
 * No value has this type. It makes TypeScript say why a client is rejected. Each of these types shares more members with one client than the
 * others that `configure({ redis })` takes. So the compiler compares the two, and reports the text below.
 */
export type UnsupportedClient = UnsupportedUpstash | UnsupportedNodeRedis;

interface UnsupportedUpstash {
  readonly createScript: UpstashAdvice;
  readonly pipeline: UpstashAdvice;
  readonly multi: UpstashAdvice;
  readonly json: UpstashAdvice;
  readonly hset: UpstashAdvice;
  readonly zadd: UpstashAdvice;
  readonly sadd: UpstashAdvice;
  readonly lpush: UpstashAdvice;
  readonly bitop: UpstashAdvice;
}

type UpstashAdvice =
  "@upstash/redis speaks HTTP, and locks need the Redis protocol. Pass the URL from Upstash's console: rediss://default:<password>@<endpoint>:6379";

/** A client of node-redis 4. */
interface UnsupportedNodeRedis {
  readonly v4: NodeRedisAdvice;
  readonly executeIsolated: NodeRedisAdvice;
  readonly multiExecutor: NodeRedisAdvice;
  readonly MULTI: NodeRedisAdvice;
  readonly EVAL: NodeRedisAdvice;
  readonly GET: NodeRedisAdvice;
  readonly SET: NodeRedisAdvice;
  readonly HSET: NodeRedisAdvice;
  readonly SADD: NodeRedisAdvice;
  readonly ZADD: NodeRedisAdvice;
}

type NodeRedisAdvice =
  "Lockweave accepts clients of ioredis, iovalkey, node-redis 5 and later, Valkey GLIDE, and Bun. Fix: npm install redis@latest";

/** Bun's built-in `RedisClient`. It has no exact type here, because TypeScript reads this file even in applications without Bun. */
export interface BunRedisClient {
  readonly connected: boolean;
  readonly bufferedAmount: number;
  send(...args: never[]): Promise<unknown>;
  duplicate(): Promise<unknown>;
}

export type NatMap = NatMapper | Readonly<Record<string, ReturnType<NatMapper>>>;
export type NatMapper = (
  address: string,
) => { readonly host: string; readonly port: number } | null | undefined;

/** Commands that are written together. */
export interface RedisPipeline {
  call(command: string, ...args: (string | number)[]): unknown;
  exec(): Promise<[error: Error | null, reply: unknown][] | null>;
}

/** The second connection, on which the store receives wake-ups. */
export interface RedisSubscriber {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (channel: string, message: string) => void): unknown;
  disconnect(): void;
}
