import { systemClock } from "../../clock";
import { LockMisconfiguredError } from "../../errors";
import { listenInRoot } from "../../root-context";
import { connectionTo, unreadable, type RedisAddress } from "./address";
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
  #isClosed = false;
  /** Why there is no connection, as far as it is known. */
  #lastError: Error | undefined;

  /**
   * @throws {LockOptionError} when the address cannot be read
   * @throws {LockMisconfiguredError} when ioredis is not installed, or too old
   */
  constructor(address: RedisAddress, what: string) {
    const ioredis = connect(address, what);
    this.client = ioredis;
    this.#ioredis = ioredis;
    this.#database = new Database(ioredis);
    listenInRoot(this.client, {
      error: (error) => {
        this.#lastError = wrapped(error);
        this.#failAll();
      },
      close: () => this.#failAll(),
      end: () => this.#begin(),
      ready: () => {
        if (this.#database.fault !== undefined) return ioredis.disconnect(true);
        this.#lastError = undefined;
        for (const { go } of this.#waiting) go();
      },
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
    listenInRoot(this.client, { error: (error) => tell(wrapped(error)) });
  }

  close(): void {
    this.#isClosed = true;
    this.#ioredis.disconnect();
    this.#failAll();
  }

  /** ioredis ends for good where it hears of a new master while it looks for one. */
  #begin(): void {
    if (!this.#isClosed) this.#ioredis.connect().catch(() => {});
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

function connect(address: RedisAddress, what: string): Ioredis {
  const { url, options } = connectionTo(address, what);
  const Redis = loadRedis();
  const all = { ...options, ...NO_SECOND_SENDING };
  let client: Ioredis;
  try {
    client = url === undefined ? new Redis(all) : new Redis(url, all);
  } catch (error) {
    if (url === undefined) throw error;
    throw unreadable(url, what); // Not with the error as the cause: the whole URL, and so the password, is in it.
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
