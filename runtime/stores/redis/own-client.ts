import { afterIo, systemClock } from "../../clock";
import { LockMisconfiguredError } from "../../errors";
import { listenInRoot } from "../../root-context";
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
 * An ioredis client neither sends again what has no reply when the connection breaks, nor keeps what is asked for while
 * there is none: that would be an order of messages that nobody here controls. It never reconnects by itself either: each
 * attempt comes from a backoff timer of ours.
 */
const ONE_CONNECTION = {
  autoResendUnfulfilledCommands: false,
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  retryStrategy: (): null => null,
  reconnectOnError: null,
  // A route that is dead takes no farewell.
  disconnectTimeout: 50,
};

/** What is asked for before there is a connection waits for it so much of the time that the reply may take. */
const SHARE_FOR_CONNECTING = 0.9;

interface Waiting {
  readonly go: () => void;
  readonly fail: (cause: Error | undefined) => void;
}

/** A connection of the store's own to a Redis, which it makes anew when it breaks, and closes itself. */
export class OwnClient {
  readonly client: RedisClient;
  readonly #ioredis: Ioredis;
  readonly #database: Database;
  readonly #backoff: Backoff;
  readonly #silence: Silence;
  readonly #second: SecondConnection;
  readonly #readOnly: ReadOnlyServer;
  readonly #waiting = new Set<Waiting>();
  #isClosed = false;
  #hasBeenReady = false;
  /** Why there is no connection, as far as it is known. */
  #lastError: Error | undefined;

  /**
   * @param shortestLeaseMs the shortest time left of a held lease: its renewal cannot wait for long
   * @throws {LockOptionError} when ioredis cannot read the address
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

  /** Sends it as soon as there is a connection, if that is in time. */
  call(timeoutMs: number, ...command: [name: string, ...args: (string | number)[]]): Promise<unknown> {
    const isThere = this.#ioredis.status === "ready" && this.#database.fault === undefined;
    if (isThere) return this.#callNow(timeoutMs, command);
    return this.#ready(timeoutMs).then(() => this.#callNow(timeoutMs, command));
  }

  /** Calls `tell` each time that there is no connection, or is none any more, with the reason. */
  onTrouble(tell: (error: Error) => void): void {
    listenInRoot(this.client, { error: () => this.#lastError && tell(this.#lastError) });
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

  /** The route may be dead. A server that is slow or paused answers nobody else either: then the connection stays. */
  #onSilent(isStillSilent: () => boolean): void {
    if (this.#ioredis.status !== "ready") return;
    this.#second.ask(() => {
      if (isStillSilent()) this.#reconnect();
    });
  }

  #explained(error: Error): Error {
    const explained = translateError(error);
    // A password may be about to change. One that never worked is wrong.
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
      const waiting: Waiting = {
        go: () => settle(resolve),
        fail: (cause) => settle(() => reject(cause ?? new Error("Redis closed the connection"))),
      };
      const cancel = systemClock.afterInBackground(timeoutMs * SHARE_FOR_CONNECTING, () =>
        afterIo(systemClock, () =>
          waiting.fail(this.#lastError ?? new Error("there is no connection to Redis yet")),
        ),
      );
      this.#waiting.add(waiting);
    });
    // After the timer is set: the first call to connect() loads modules, which takes long on a busy machine.
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
    // What our options make of a connection that breaks, in ioredis' words.
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
  // Between two rounds of all sentinels ioredis waits by itself.
  const sentinelRetryStrategy = (attempt: number): number =>
    backoffMs(attempt - 1, shortestLeaseMs(), Math.random());
  const fixed = { ...ONE_CONNECTION, sentinelRetryStrategy };
  const all = { ...options, ...fixed };
  let client: Ioredis;
  try {
    client = url === undefined ? new Redis(all) : new Redis(url, all);
  } catch (error) {
    if (url === undefined) throw error;
    throw unreadable(url, what); // Not with the error as the cause: the whole URL, and so the password, is in it.
  }
  Object.assign(client.options, fixed); // What stands in the URL would have precedence.
  return client;
}
