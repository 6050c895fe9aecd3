import { LockMisconfiguredError, LockOptionError } from "../errors";
import { shown } from "../shown";

/** What the store needs of a client: an ioredis 5 or 6 `Redis` (one node or Sentinel) or `Cluster`. */
export interface RedisClient {
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  duplicate(): RedisSubscriber;
  on(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
  /** True of a `Cluster`. */
  readonly isCluster?: boolean;
  readonly options: { readonly keyPrefix?: string | undefined };
}

/** A `Redis`: a `Cluster` takes no such override. */
export interface RedisNode extends RedisClient {
  duplicate(overrides?: { readonly autoResubscribe: boolean }): RedisSubscriber;
}

export function isCluster(client: RedisClient): boolean {
  return client.isCluster === true;
}

/** The second connection, on which the store hears that the queue gave it a lock. */
export interface RedisSubscriber {
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (channel: string, message: string) => void): unknown;
  disconnect(): void;
}

const CLIENT_METHODS = ["call", "duplicate", "on", "off"] as const;

/** @throws {LockOptionError} when it is none */
export function assertClient(client: RedisClient): void {
  if (
    CLIENT_METHODS.every((name) => typeof (client as RedisClient | null | undefined)?.[name] === "function")
  ) {
    return;
  }
  // Of an object, such as connection options, only the names: a password may be among the values.
  const isObject = typeof client === "object" && client !== null;
  const got = isObject ? `${kindOf(client)}${shown(Object.keys(client))}` : shown(client);
  throw new LockOptionError(`Expected \`redis\` to be an ioredis client or a redis:// URL, got ${got}`);
}

/** What to say before the names of an object that is no plain one: `URL `, `Map `, ... */
function kindOf(value: object): string {
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return kind === "Object" || kind === "Array" ? "" : `${kind} `;
}

/**
 * A client of our own, which is to be disconnected.
 *
 * @throws {LockOptionError} when `url` is no `redis://` or `rediss://` address
 * @throws {LockMisconfiguredError} when ioredis is not installed
 */
export function connect(url: string): RedisClient & { disconnect(): void } {
  if (!/^rediss?:\/\//.test(url)) {
    throw new LockOptionError(
      `Expected \`redis\` to be an ioredis client or a redis:// URL, got ${withoutPassword(url)}`,
    );
  }
  const { Redis } = loadIoredis();
  if (typeof Redis !== "function") {
    throw new LockMisconfiguredError(
      "A Redis URL needs ioredis 5 or 6, and an older one is installed: npm install ioredis@latest",
    );
  }
  let client: InstanceType<typeof Redis>;
  try {
    client = new Redis(url, { retryStrategy: (attempt) => Math.min(attempt * 50, 200) });
  } catch {
    // Not with the error as the cause: the whole URL, and so the password, is among its properties.
    throw new LockOptionError(`Expected \`redis\` to be a URL that can be read, got ${withoutPassword(url)}`);
  }
  client.on("error", () => {}); // Each command tells its own failure.
  return client;
}

function withoutPassword(url: string): string {
  return JSON.stringify(url.replace(/^.*@/s, "***@"));
}

function loadIoredis(): typeof import("ioredis") {
  try {
    return require("ioredis") as typeof import("ioredis");
  } catch (error) {
    throw new LockMisconfiguredError("A Redis URL needs the package ioredis: npm install ioredis", {
      cause: error,
    });
  }
}
