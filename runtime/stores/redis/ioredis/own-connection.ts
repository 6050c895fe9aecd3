import { afterUnblocked, systemClock, type CancelTimer } from "../../../base/clock";
import { listenInRoot } from "../../../base/root-context";
import type { Connection } from "../address";
import { backoffMs, LONGEST_IN_USE_MS } from "../../connection/backoff";
import { HANDSHAKE_MS, NO_CONNECTION, type ConnectionListeners, type SingleConnection } from "../own-client";
import { CLOSED, CLOSES_FAST } from "./connection";
import { IoredisNode } from "./node";
import { optionsOf } from "./options";
import type { RedisClass } from "./redis-class";

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
  ...CLOSES_FAST,
};

/** A `Redis` that belongs to the store. It connects immediately, unless the URL says otherwise. */
export class IoredisConnection implements SingleConnection {
  readonly port: IoredisNode;
  readonly #ioredis: Ioredis;
  readonly #listeners: ConnectionListeners;
  #cancelHandshake: CancelTimer | undefined;

  constructor(
    Redis: RedisClass,
    connection: Connection,
    listeners: ConnectionListeners,
    shortestTimeLeftMs: () => number,
  ) {
    // After ioredis has tried all sentinels, it waits by itself before the next round, and a caller cannot shorten that.
    const sentinelRetryStrategy = (attempt: number): number =>
      Math.min(backoffMs(attempt - 1, shortestTimeLeftMs(), Math.random()), LONGEST_IN_USE_MS);
    this.#ioredis = new (Redis as IoredisClass)({
      ...optionsOf(connection),
      ...ONE_CONNECTION,
      sentinelRetryStrategy,
    });
    this.port = new IoredisNode(this.#ioredis, ONE_CONNECTION.autoResendUnfulfilledCommands);
    this.#listeners = listeners;
    listenInRoot<[Error]>(this.#ioredis, {
      connect: () => this.#expectReply(),
      error: listeners.failed,
      close: () => {
        this.#cancelHandshake?.();
        listeners.closed();
      },
      end: listeners.ended,
      ready: () => {
        this.#cancelHandshake?.();
        listeners.ready();
      },
    });
  }

  get tls(): unknown {
    return this.#ioredis.options.tls;
  }

  get isIdle(): boolean {
    return this.#ioredis.status === "wait";
  }

  connect(): void {
    this.#ioredis.connect().catch(() => {}); // The error comes as an event, too.
  }

  disconnect(): void {
    this.#ioredis.disconnect(true);
  }

  /** With our options, ioredis rejects with one of these texts if there is no connection, or it breaks. */
  isBreak({ message }: Error): boolean {
    return message === CLOSED || message.includes("enableOfflineQueue");
  }

  close(): void {
    this.#ioredis.disconnect();
  }

  /** ioredis itself limits only the time until the server accepts the connection. */
  #expectReply(): void {
    const before = this.port.bytesRead();
    this.#cancelHandshake = afterUnblocked(systemClock, HANDSHAKE_MS, () => {
      if (this.port.bytesRead() !== before) return this.#expectReply(); // The server may be loading its data.
      this.#listeners.failed(new Error(NO_CONNECTION));
      this.disconnect();
    });
  }
}
