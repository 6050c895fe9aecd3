/** The client that `createClient()` returns, as far as the adapter uses it. */
export interface NodeRedis {
  /** True from `connect()` until the client is closed or stops reconnecting. */
  readonly isOpen: boolean;
  /** Whether commands are sent immediately. */
  readonly isReady: boolean;
  readonly isPubSubActive: boolean;
  readonly options?: NodeRedisOptions;
  /** The client itself, if this object is a view of it with other command options. Only the client itself may get listeners. */
  readonly _self?: NodeRedis;
  connect(): Promise<unknown>;
  sendCommand(words: readonly string[], options?: CommandOptions): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  sSubscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  duplicate(overrides: Readonly<Record<string, unknown>>): NodeRedis;
  destroy(): void;
  /** While the socket is not referenced, it does not keep the process alive. */
  ref(): void;
  unref(): void;
  on(event: string | symbol, listener: (...args: never[]) => void): unknown;
}

/** The pool that `createClientPool()` returns, as far as the adapter uses it. */
export interface NodeRedisPool {
  readonly isOpen: boolean;
  readonly isClosing: boolean;
  readonly _self?: NodeRedisPool;
  readonly _keyPrefix?: string;
  /** Calls `use` with a connection of the pool that nobody else uses. */
  execute<Result>(use: (client: NodeRedis) => Result): Promise<Awaited<Result>>;
}

/** The client that `createSentinel()` returns, as far as the adapter uses it. */
export interface NodeRedisSentinel {
  readonly isOpen: boolean;
  /** Before version 6.3, it stays true while the client looks for another master. */
  readonly isReady: boolean;
  readonly _self?: NodeRedisSentinel;
  readonly _keyPrefix?: string;
  /** Returns the address of the master, or undefined if there is no connection to it. */
  getMasterNode(): HostAndPort | undefined;
  /**
   * Calls `use` with a connection to the master. If `use` rejects with READONLY, the client asks the sentinels for the master, and calls `use`
   * again.
   */
  readonly _execute: (
    this: NodeRedisSentinel,
    isReadonly: false,
    use: (client: NodeRedis) => NodeRedis,
  ) => Promise<NodeRedis>;
  on(event: string, listener: (...args: never[]) => void): unknown;
}

/** The client that `createCluster()` returns, as far as the adapter uses it. */
export interface NodeRedisCluster {
  readonly isOpen: boolean;
  readonly _self?: NodeRedisCluster;
  readonly _keyPrefix?: string;
  readonly _options?: { readonly defaults?: NodeRedisOptions };
  /** The master of each slot. The client replaces the list whenever it has asked for the slots. */
  readonly slots: ({ readonly master: NodeRedisMaster } | undefined)[];
  readonly masters: readonly NodeRedisMaster[];
  /** Returns the connection to a node, once there is one. */
  nodeClient(node: NodeRedisMaster): NodeRedis | Promise<NodeRedis>;
  sendCommand(
    firstKey: string,
    isReadonly: false,
    words: readonly string[],
    options?: CommandOptions & { readonly abortSignal: AbortSignal },
  ): Promise<unknown>;
}

/** A master of a cluster. */
export interface NodeRedisMaster {
  /** `host:port`, as the nodes name it. */
  readonly address: string;
  readonly client?: NodeRedis | undefined;
}

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

export interface NodeRedisOptions {
  readonly RESP?: 2 | 3;
  readonly username?: string;
  readonly password?: string;
  readonly database?: number;
  readonly name?: string;
  readonly keyPrefix?: string;
  readonly credentialsProvider?: CredentialsProvider;
  readonly pingInterval?: number;
  readonly socket?: {
    readonly host?: string;
    readonly port?: number;
    readonly path?: string;
    readonly tls?: boolean;
    readonly family?: number;
    readonly connectTimeout?: number;
    readonly socketTimeout?: number;
    readonly reconnectStrategy?: unknown;
  };
}

/** Gives node-redis its password. Only a provider whose passwords change has `subscribe`. */
export interface CredentialsProvider {
  readonly type: string;
  subscribe?(listener: unknown): Promise<CredentialsSubscription | undefined>;
  onReAuthenticationError?(error: Error): void;
}

type CredentialsSubscription = readonly [credentials: unknown, subscription: { dispose(): void }];

interface CommandOptions {
  readonly typeMapping: object;
  readonly timeout: undefined;
}

/**
 * The options of each of our commands. Without them, the user's own type mapping would change the replies. Without a timeout, a command
 * costs a third: node-redis makes an `AbortSignal` for each timeout, and the store has its own timeouts.
 */
export const PLAIN: CommandOptions = { typeMapping: {}, timeout: undefined };
