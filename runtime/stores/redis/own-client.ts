import { afterIo, systemClock } from "../../base/clock";
import { LockMisconfiguredError } from "../../base/errors";
import { listenInRoot } from "../../base/root-context";
import { unreadable, type Connection } from "./address";
import { Backoff, backoffMs } from "./backoff";
import type { RedisClient } from "./client";
import { Database } from "./database";
import { errorOf, isMoved, isWrongPassword, passing, translateError } from "./errors";
import { ReadOnlyServer } from "./read-only";
import type { RedisClass } from "./redis-class";
import { SecondConnection } from "./second-connection";
import { bytesReadBy, Silence } from "./silence";
import { CLIENT_STATES } from "./states";
import { faultOfTls } from "./tls-options";

type IoredisClass = (typeof import("ioredis"))["Redis"];
type Ioredis = InstanceType<IoredisClass>;

/**
 * Options that turn off what ioredis does by itself. When the connection breaks, it must not resend commands that have no reply. While
 * there is no connection, it must not queue commands. Otherwise, we would not control the order of messages. It does not reconnect by
 * itself either: each attempt comes from our backoff timer.
 */
const ONE_CONNECTION = {
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  retryStrategy: (): null => null,
  reconnectOnError: null,
  // On a dead route, the server does not answer when ioredis closes the connection. So ioredis waits for that only briefly.
  disconnectTimeout: 50,
};

/** The share of its timeout for which a command waits for a connection. */
const CONNECT_TIME_SHARE = 0.9;

/** A call that waits for a connection. */
interface PendingCall {
  readonly go: () => void;
  readonly fail: (cause: Error | undefined) => void;
}

/** A connection to a Redis that belongs to the store. The store opens it again when it breaks, and closes it. */
export class OwnClient {
  readonly client: RedisClient;
  readonly #ioredis: Ioredis;
  readonly #database: Database;
  readonly #backoff: Backoff;
  readonly #silence: Silence;
  readonly #second: SecondConnection;
  readonly #readOnly: ReadOnlyServer;
  readonly #waiting = new Set<PendingCall>();
  #isClosed = false;
  #hasBeenReady = false;
  /** Why there is no connection, if that is known. */
  #lastError: Error | undefined;

  /**
   * @param shortestLeaseMs returns the shortest time left of all leases. Their renewals cannot wait longer for a connection
   * @throws {LockOptionError} if ioredis cannot read the address
   */
  constructor(Redis: RedisClass, connection: Connection, what: string, shortestLeaseMs: () => number) {
    const ioredis = connect(Redis, connection, what, shortestLeaseMs);
    this.client = ioredis;
    this.#ioredis = ioredis;
    this.#database = new Database(ioredis);
    this.#backoff = new Backoff(systemClock, shortestLeaseMs);
    this.#second = new SecondConnection(systemClock, ioredis);
    this.#silence = new Silence(
      systemClock,
      () => bytesReadBy(ioredis),
      (isStillSilent) => this.#onSilent(isStillSilent),
    );
    this.#readOnly = new ReadOnlyServer(new Backoff(systemClock, shortestLeaseMs), () => this.#reconnect());
    listenInRoot(this.client, {
      error: (error) => {
        this.#lastError = this.#explained(error);
        this.#failAll();
      },
      close: () => {
        this.#silence.reset();
        this.#second.close();
        this.#failAll();
      },
      end: () => this.#connectLater(),
      ready: () => this.#onReady(),
    });
  }

  /** Sends the command as soon as there is a connection, and rejects if that takes too long. */
  call(timeoutMs: number, ...command: [name: string, ...args: (string | number)[]]): Promise<unknown> {
    const isReady = this.#ioredis.status === "ready" && this.#database.fault === undefined;
    if (isReady) return this.#callNow(timeoutMs, command);
    return this.#ready(timeoutMs).then(() => this.#callNow(timeoutMs, command));
  }

  /** Calls `report` each time the client emits an error: an attempt to connect failed, or the connection broke with an error. */
  onTrouble(report: (error: Error) => void): void {
    listenInRoot(this.client, { error: () => this.#lastError && report(this.#lastError) });
  }

  close(): void {
    this.#isClosed = true;
    this.#backoff.stop();
    this.#readOnly.stop();
    this.#silence.stop();
    this.#second.close();
    this.#ioredis.disconnect();
    this.#failAll();
  }

  #onReady(): void {
    if (this.#database.fault !== undefined) return this.#ioredis.disconnect(true);
    this.#lastError = undefined;
    this.#hasBeenReady = true;
    this.#backoff.connected();
    this.#readOnly.connected();
    for (const { go } of this.#waiting) go();
  }

  #connectLater(): void {
    if (!this.#isClosed) this.#backoff.schedule(() => void this.#ioredis.connect().catch(() => {}));
  }

  #reconnect(): void {
    if (this.#ioredis.status === "ready") this.#ioredis.disconnect(true);
  }

  /**
   * Reconnects if the route is dead. A server that is slow or paused does not answer another connection either, and then nothing changes.
   */
  #onSilent(isStillSilent: () => boolean): void {
    if (this.#ioredis.status !== "ready") return;
    this.#second.ask(() => {
      if (isStillSilent()) this.#reconnect();
    });
  }

  #explained(error: Error): Error {
    const explained = translateError(error);
    // A password that has worked may be about to change. A password that never worked is wrong.
    if (this.#hasBeenReady && isWrongPassword(error)) return passing(explained);
    return this.#hasBeenReady ? explained : (faultOfTls(this.#ioredis.options.tls) ?? explained);
  }

  #ready(timeoutMs: number): Promise<void> {
    // A permanent error rejects immediately, though attempts to connect continue.
    if (this.#lastError instanceof LockMisconfiguredError) return Promise.reject(this.#lastError);
    const ready = new Promise<void>((resolve, reject) => {
      const settle = (how: () => void): void => {
        cancel();
        this.#waiting.delete(waiting);
        how();
      };
      const waiting: PendingCall = {
        go: () => settle(resolve),
        fail: (cause) => settle(() => reject(cause ?? new Error("Redis closed the connection"))),
      };
      const cancel = systemClock.afterInBackground(timeoutMs * CONNECT_TIME_SHARE, () =>
        afterIo(systemClock, () =>
          waiting.fail(this.#lastError ?? new Error("there is no connection to Redis yet")),
        ),
      );
      this.#waiting.add(waiting);
    });
    // This comes after the timer is set, because the first call to connect() loads modules, which takes a long time on a busy machine.
    if (this.#ioredis.status === "wait") this.#ioredis.connect().catch(() => {});
    return ready;
  }

  #failAll(): void {
    for (const { fail } of this.#waiting) fail(this.#lastError);
  }

  #callNow(timeoutMs: number, command: [name: string, ...args: (string | number)[]]): Promise<unknown> {
    this.#silence.sent(timeoutMs);
    return this.#ioredis.call(...command).then(this.#onReply, this.#onFailure);
  }

  readonly #onReply = (reply: unknown): unknown => {
    this.#silence.heard();
    this.#readOnly.look(Array.isArray(reply) ? reply[0] : reply);
    return reply;
  };

  readonly #onFailure = (thrown: unknown): never => {
    const { name = "", message = "" } = thrown instanceof Error ? thrown : {};
    if (name === "ReplyError") {
      this.#silence.heard();
      if (isMoved(thrown)) throw errorOf(CLIENT_STATES.oneOfCluster, thrown);
      throw this.#readOnly.look(thrown) ?? thrown;
    }
    // With our options, ioredis rejects with one of these texts if the connection breaks.
    if (message === "Connection is closed." || message.includes("enableOfflineQueue")) {
      throw new Error("the connection to Redis broke", { cause: this.#lastError });
    }
    throw thrown;
  };
}

function connect(
  given: RedisClass,
  { url, options }: Connection,
  what: string,
  shortestLeaseMs: () => number,
): Ioredis {
  const Redis = given as IoredisClass;
  // After ioredis has tried all sentinels, it waits by itself before the next round.
  const sentinelRetryStrategy = (attempt: number): number =>
    backoffMs(attempt - 1, shortestLeaseMs(), Math.random());
  const fixed = { ...ONE_CONNECTION, sentinelRetryStrategy };
  const all = { ...options, ...fixed };
  let client: Ioredis;
  try {
    client = url === undefined ? new Redis(all) : new Redis(url, all);
  } catch (error) {
    if (url === undefined) throw error;
    throw unreadable(url, what); // The error must not be the cause: it contains the whole URL, and so the password.
  }
  Object.assign(client.options, fixed); // Without this, options in the URL would have precedence.
  return client;
}
