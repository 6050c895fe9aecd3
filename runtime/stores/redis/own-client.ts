import { afterIo, systemClock } from "../../base/clock";
import { LockMisconfiguredError } from "../../base/errors";
import { Backoff } from "../connection/backoff";
import type { ClientPort, OwnClient } from "./client-port";
import type { Command } from "./command";
import {
  connectionBroke,
  errorOf,
  isMoved,
  isReply,
  isWrongPassword,
  passing,
  translateError,
} from "./errors";
import { ReadOnlyServer } from "./read-only";
import { SecondConnection } from "./second-connection";
import { Silence } from "./silence";
import { oneOfCluster } from "./states";
import { faultOfTls } from "./tls-options";

/**
 * A client of one library for one server, which has one connection at a time. It connects only when `connect()` is called. It never reconnects by
 * itself, sends no command twice, and queues no command while there is no connection.
 */
export interface SingleConnection {
  readonly port: ClientPort;
  /** The options of `tls.connect()`, if there are any. */
  readonly tls: unknown;
  /** Whether nothing happens until somebody calls `connect()`, as before the first call. */
  readonly isIdle: boolean;
  /** The reason why all commands are rejected now. For example, the user has closed the client that the connection follows. */
  readonly refusal?: Error | undefined;
  /** Makes one attempt to connect. It ends with `ready` or with `ended`, or the connection is idle again. */
  connect(): void;
  /** Closes the connection. Then it has ended. */
  disconnect(): void;
  /** Records that the server may be the wrong one. */
  doubt?(): void;
  /** Whether a command failed with this error because there was no connection, or it broke. */
  isBreak(error: Error): boolean;
  /** Closes the connection for good. */
  close(): void;
}

export interface ConnectionListeners {
  /** An attempt to connect failed, or the connection broke with an error. */
  failed(error: Error): void;
  /** The connection has closed. */
  closed(): void;
  /** There is neither a connection nor an attempt to connect, and there should be one. */
  ended(): void;
  /** No attempt to connect is possible yet. Returns whether a command waits for one. */
  postponed(cause: Error): boolean;
  ready(): void;
}

/** The share of its timeout for which a command waits for a connection. */
const CONNECT_TIME_SHARE = 0.9;

/** A server that accepts a connection and does not answer for this long is given up. The library may allow more time. */
export const HANDSHAKE_MS = 5_000;

export const NO_CONNECTION = "there is no connection to Redis yet";

/** A call that waits for a connection. */
interface PendingCall {
  readonly go: () => void;
  readonly fail: (cause: Error | undefined) => void;
}

/** A client that belongs to the store. It opens its connection again when it breaks, and closes it. */
export class ReconnectingClient implements OwnClient {
  readonly #connection: SingleConnection;
  readonly #backoff: Backoff;
  readonly #silence: Silence;
  readonly #second: SecondConnection;
  readonly #readOnly: ReadOnlyServer;
  readonly #waiting = new Set<PendingCall>();
  #report: (error: Error) => void = () => {};
  #isClosed = false;
  #hasBeenReady = false;
  /** The reason why there is no connection, if it is known. */
  #lastError: Error | undefined;

  /**
   * @param open creates the connection. It calls the listeners in the root context
   * @param shortestTimeLeftMs returns the shortest time left of all leases and waiters. They cannot wait longer for a connection
   */
  constructor(open: (listeners: ConnectionListeners) => SingleConnection, shortestTimeLeftMs: () => number) {
    this.#backoff = new Backoff(systemClock, shortestTimeLeftMs);
    this.#readOnly = new ReadOnlyServer(new Backoff(systemClock, shortestTimeLeftMs), () => {
      this.#connection.doubt?.();
      this.#reconnect();
    });
    this.#connection = open({
      failed: (error) => this.#onError(error),
      closed: () => this.#onClose(),
      ended: () => this.#connectLater(),
      postponed: (cause) => this.#onPostponed(cause),
      ready: () => this.#onReady(),
    });
    this.#second = new SecondConnection(systemClock, this.port);
    this.#silence = new Silence(
      systemClock,
      () => this.port.bytesRead?.(),
      (isStillSilent) => this.#onSilent(isStillSilent),
    );
  }

  get port(): ClientPort {
    return this.#connection.port;
  }

  send(command: Command, timeoutMs: number): Promise<unknown> {
    const isReady = this.port.isReady && this.port.fault === undefined;
    if (isReady) return this.#sendNow(command, timeoutMs);
    return this.#ready(timeoutMs).then(() => this.#sendNow(command, timeoutMs));
  }

  onTrouble(report: (error: Error) => void): void {
    this.#report = report;
  }

  close(): void {
    this.#isClosed = true;
    this.#backoff.stop();
    this.#readOnly.stop();
    this.#silence.stop();
    this.#second.close();
    this.#connection.close();
    this.#failAll(closed());
  }

  #onReady(): void {
    if (this.port.fault !== undefined) return this.#connection.disconnect();
    this.#lastError = undefined;
    this.#hasBeenReady = true;
    this.#backoff.connected();
    this.#readOnly.connected();
    for (const { go } of this.#waiting) go();
  }

  #onError(error: Error): void {
    this.#lastError = this.#explained(error);
    this.#failAll();
    this.#report(this.#lastError);
  }

  #onClose(): void {
    this.#silence.reset();
    this.#second.close();
    this.#failAll();
  }

  #onPostponed(cause: Error): boolean {
    if (this.#waiting.size === 0) return false;
    this.#lastError = cause;
    return true;
  }

  #connectLater(): void {
    if (!this.#isClosed) this.#backoff.schedule(() => this.#connection.connect());
  }

  #reconnect(): void {
    if (this.port.isReady) this.#connection.disconnect();
  }

  /**
   * Reconnects if the route is dead. A server that is slow or paused does not answer another connection either, and then nothing changes.
   */
  #onSilent(isStillSilent: () => boolean): void {
    if (!this.port.isReady) return;
    this.#second.ask(() => {
      if (isStillSilent()) this.#reconnect();
    });
  }

  #explained(error: Error): Error {
    const explained = translateError(error);
    // A password that has worked may be about to change. A password that never worked is wrong.
    if (this.#hasBeenReady && isWrongPassword(error)) return passing(explained);
    return this.#hasBeenReady ? explained : (faultOfTls(this.#connection.tls) ?? explained);
  }

  #ready(timeoutMs: number): Promise<void> {
    if (this.#isClosed) return Promise.reject(closed());
    const { refusal } = this.#connection;
    if (refusal !== undefined) {
      this.#connection.disconnect();
      return Promise.reject(refusal);
    }
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
        afterIo(systemClock, () => waiting.fail(this.#lastError ?? new Error(NO_CONNECTION))),
      );
      this.#waiting.add(waiting);
    });
    this.#backoff.hurry(timeoutMs);
    // This comes after the timer is set, because the first attempt loads modules, which takes a long time on a busy machine.
    if (this.#connection.isIdle) this.#connection.connect();
    return ready;
  }

  #failAll(cause = this.#lastError): void {
    for (const { fail } of this.#waiting) fail(cause);
  }

  #sendNow(command: Command, timeoutMs: number): Promise<unknown> {
    this.#silence.sent(timeoutMs);
    return this.port.send(command, timeoutMs).then(this.#onReply, this.#onFailure);
  }

  readonly #onReply = (reply: unknown): unknown => {
    this.#silence.heard();
    this.#readOnly.check(Array.isArray(reply) ? reply[0] : reply);
    return reply;
  };

  readonly #onFailure = (thrown: unknown): never => {
    if (isReply(thrown)) {
      this.#silence.heard();
      if (isMoved(thrown)) throw errorOf(oneOfCluster(this.port.advice.useCluster), thrown);
      throw this.#readOnly.check(thrown) ?? thrown;
    }
    if (thrown instanceof Error && this.#connection.isBreak(thrown)) {
      throw connectionBroke(this.#lastError);
    }
    throw thrown;
  };
}

function closed(): Error {
  return new Error("the store was closed");
}
