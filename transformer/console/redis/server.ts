import type { Configuration } from "../../../runtime/index";
import type { Connection } from "../../../runtime/stores/redis/address";

export type Words = readonly [name: string, ...args: (string | number)[]];

/** A Redis server, or one master, as the live commands read it. */
export interface Server {
  send(...words: Words): Promise<unknown>;
  /** Sends the commands in one write. Resolves to a reply or an error for each. */
  sendAll(commands: readonly Words[]): Promise<readonly unknown[]>;
}

/** A client, in the form that `configure({ redis })` accepts. */
type RedisClient = Extract<NonNullable<Configuration["redis"]>, { on(...args: never[]): unknown }>;

/** A client of one server, or of the master that sentinels name. */
export interface Client extends Server {
  readonly redis: RedisClient;
  /** The first error of the connection. It says more than the error of a command that fails because of it. */
  readonly trouble: unknown;
  /** Rejects if the server cannot be reached. */
  connect(): Promise<void>;
  /** Opens another client, which adds this prefix to its keys. */
  prefixed(prefix: string): Promise<Prefixed>;
  /** Connects to the cluster of which the server is a node. */
  openCluster(): Promise<Cluster>;
  close(): void;
}

/** A client for `configure({ redis })`. */
export interface Prefixed {
  readonly redis: RedisClient;
  close(): void;
}

export interface Cluster {
  readonly redis: RedisClient;
  masters(): readonly Server[];
  /** Sends a command, whose first argument is a key, to the master that has the key. */
  send(...words: Words): Promise<unknown>;
  prefixed(prefix: string): Promise<Prefixed>;
  close(): void;
}

/** Creates a client of a library. It does not connect yet. */
export type OpenClient = (connection: Connection) => Client;

/** The time after which a command or an attempt to connect fails. */
export const TIMEOUT_MS = 5_000;
