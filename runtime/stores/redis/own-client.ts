import { systemClock } from "../../clock";
import { LockMisconfiguredError, LockOptionError } from "../../errors";
import type { RedisClient } from "./client";
import { Database } from "./database";
import { wrapped } from "./errors";

type Ioredis = InstanceType<(typeof import("ioredis"))["Redis"]>;

/**
 * An ioredis client neither sends again what has no reply when the connection breaks, nor keeps what is asked for while
 * there is none: that would be an order of messages that nobody here controls. And what has no reply rejects when the
 * connection breaks. (With no retry, since ioredis otherwise forgets such commands, and they never settle.)
 */
const NO_SECOND_SENDING = {
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  retryStrategy: (attempt: number): number => Math.min(attempt * 50, 200),
};

/** What is asked for before there is a connection waits for it so much of the time that the reply may take. */
const SHARE_FOR_CONNECTING = 0.9;

interface Waiting {
  readonly go: () => void;
  readonly fail: (cause: Error | undefined) => void;
}

/** A connection of the store's own to a Redis, which it closes itself. */
export class OwnClient {
  readonly client: RedisClient;
  readonly #ioredis: Ioredis;
  readonly #database: Database;
  readonly #waiting = new Set<Waiting>();
  /** Why there is no connection, as far as it is known. */
  #lastError: Error | undefined;

  /**
   * @throws {LockOptionError} when `url` is no `redis://` or `rediss://` address
   * @throws {LockMisconfiguredError} when ioredis is not installed, or too old
   */
  constructor(url: string) {
    const ioredis = connect(url);
    this.client = ioredis;
    this.#ioredis = ioredis;
    this.#database = new Database(ioredis);
    ioredis.on("error", (error) => {
      this.#lastError = wrapped(error);
      this.#failAll();
    });
    ioredis.on("close", () => this.#failAll());
    ioredis.on("ready", () => {
      if (this.#database.fault !== undefined) return ioredis.disconnect(true);
      this.#lastError = undefined;
      for (const { go } of this.#waiting) go();
    });
  }

  /** Sends it as soon as there is a connection, if that is in time. */
  call(withinMs: number, ...command: [name: string, ...args: (string | number)[]]): Promise<unknown> {
    const isThere = this.#ioredis.status === "ready" && this.#database.fault === undefined;
    if (isThere) return this.#callNow(command);
    return this.#ready(withinMs).then(() => this.#callNow(command));
  }

  /** Calls `tell` each time that there is no connection, or is none any more, with the reason. */
  onTrouble(tell: (error: Error) => void): void {
    this.#ioredis.on("error", (error) => tell(wrapped(error)));
  }

  close(): void {
    this.#ioredis.disconnect();
    this.#failAll();
  }

  #ready(withinMs: number): Promise<void> {
    if (this.#ioredis.status === "wait") this.#ioredis.connect().catch(() => {});
    return new Promise((resolve, reject) => {
      const settle = (how: () => void): void => {
        cancel();
        this.#waiting.delete(waiting);
        how();
      };
      const waiting: Waiting = {
        go: () => settle(resolve),
        fail: (cause) => settle(() => reject(cause ?? new Error("Redis closed the connection"))),
      };
      const cancel = systemClock.afterInBackground(withinMs * SHARE_FOR_CONNECTING, () =>
        waiting.fail(this.#lastError ?? new Error("there is no connection to Redis yet")),
      );
      this.#waiting.add(waiting);
    });
  }

  #failAll(): void {
    for (const { fail } of this.#waiting) fail(this.#lastError);
  }

  #callNow(command: [name: string, ...args: (string | number)[]]): Promise<unknown> {
    return this.#ioredis.call(...command).catch((error: unknown) => {
      const { name = "", message = "" } = error instanceof Error ? error : {};
      // What our options make of a connection that breaks, in ioredis' words.
      if (name !== "MaxRetriesPerRequestError" && !message.includes("enableOfflineQueue")) throw error;
      throw new Error("the connection to Redis broke", { cause: this.#lastError });
    });
  }
}

function connect(url: string): Ioredis {
  assertUrl(url);
  const Redis = loadRedis();
  let client: Ioredis;
  try {
    client = new Redis(url, NO_SECOND_SENDING);
  } catch {
    throw unreadable(url); // Not with the error as the cause: the whole URL, and so the password, is in it.
  }
  Object.assign(client.options, NO_SECOND_SENDING); // What stands in the URL would have precedence.
  return client;
}

function loadRedis(): (typeof import("ioredis"))["Redis"] {
  let ioredis: Partial<typeof import("ioredis")>;
  try {
    ioredis = require("ioredis") as typeof import("ioredis");
  } catch (error) {
    throw new LockMisconfiguredError("A Redis URL needs the package ioredis: npm install ioredis", {
      cause: error,
    });
  }
  if (typeof ioredis.Redis === "function") return ioredis.Redis;
  throw new LockMisconfiguredError(
    "A Redis URL needs ioredis 5.4 or later, and an older one is installed: npm install ioredis@latest",
  );
}

function assertUrl(url: string): void {
  if (!/^rediss?:\/\//.test(url)) {
    throw new LockOptionError(
      `Expected \`redis\` to be an ioredis client or a redis:// URL, got ${withoutSecrets(url)}`,
    );
  }
  let path: string;
  try {
    path = new URL(url).pathname;
  } catch {
    throw unreadable(url);
  }
  // A `/` in a password ends the host: what comes after it, with the rest of the password, is no database.
  if (!/^\/?\d*$/.test(path)) throw unreadable(url);
}

function unreadable(url: string): LockOptionError {
  return new LockOptionError(
    `Expected \`redis\` to be a URL that can be read, such as redis://user:password@host:6379/0, got ${withoutSecrets(url)}. Write \`@\`, \`/\`, \`?\`, \`#\` and \`%\` in a password as encodeURIComponent() does.`,
  );
}

/** Of a URL that cannot be read nobody knows where the password stands: only what can be none is shown. */
function withoutSecrets(url: string): string {
  if (/^[\w.-]+(:\d{1,5})?$/.test(url) && !url.includes("_")) return JSON.stringify(url);
  return JSON.stringify(/^[a-z][a-z0-9+.-]*:\/\//i.exec(url)?.[0] ?? "").replace(/"$/, '***"');
}
