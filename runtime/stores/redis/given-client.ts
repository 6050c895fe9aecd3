import { systemClock } from "../../base/clock";
import { listenInRoot } from "../../base/root-context";
import type { Duplicable, RedisClient } from "./client";
import { faultOfClient } from "./client-state";
import { Database } from "./database";
import { errorOf, isMoved, isReadOnly } from "./errors";
import { SecondConnection } from "./second-connection";
import { bytesReadBy, Silence } from "./silence";
import { CLIENT_STATES } from "./states";

/** A client that belongs to the caller. Reports what is wrong with it, and never changes it. */
export class GivenClient {
  readonly #client: RedisClient;
  readonly #warn: (message: string) => void;
  readonly #database: Database;
  readonly #second: SecondConnection;
  readonly #silence: Silence;
  readonly #stopListening: () => void;
  #hasWarnedOfRoute = false;

  /** @param warn called with a warning, possibly the same one more than once */
  constructor(client: RedisClient, warn: (message: string) => void) {
    this.#client = client;
    this.#warn = warn;
    this.#database = new Database(client);
    this.#second = new SecondConnection(systemClock, client as RedisClient & Duplicable);
    this.#silence = new Silence(
      systemClock,
      () => bytesReadBy(client),
      (isStillSilent) => this.#onSilent(isStillSilent),
    );
    this.#stopListening = listenInRoot(client, { close: () => this.#onClose() });
  }

  /**
   * Sends a command. ioredis queues commands until there is a connection, and sends them even if that connection uses the wrong database.
   * Their replies come after the reply to SELECT, and are ignored.
   */
  call(timeoutMs: number, ...command: [name: string, ...args: (string | number)[]]): Promise<unknown> {
    if (this.#database.fault !== undefined) return Promise.reject(this.#database.fault);
    this.#silence.sent(timeoutMs);
    return this.#client.call(...command).then(this.#onReply, this.#onFailure);
  }

  close(): void {
    this.#stopListening();
    this.#database.close();
    this.#silence.stop();
    this.#second.close();
  }

  readonly #onReply = (reply: unknown): unknown => {
    this.#silence.heard();
    if (this.#database.fault !== undefined) throw this.#database.fault;
    if (isReadOnly(Array.isArray(reply) ? reply[0] : reply)) this.#warn(DEMOTED);
    return reply;
  };

  readonly #onFailure = (thrown: unknown): never => {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    if (error.name === "ReplyError") this.#silence.heard();
    if (this.#database.fault !== undefined) throw this.#database.fault;
    if (isReadOnly(error)) this.#warn(DEMOTED);
    if (isMoved(error)) throw errorOf(CLIENT_STATES.oneOfCluster, error);
    throw faultOfClient(this.#client, error) ?? thrown;
  };

  #onClose(): void {
    this.#silence.reset();
    this.#second.close();
  }

  /** Warns if the route is dead: then a new connection gets an answer. A server that is slow or paused does not answer that one either. */
  #onSilent(isStillSilent: () => boolean): void {
    if (this.#hasWarnedOfRoute || this.#client.status !== "ready") return;
    this.#second.ask(() => {
      if (!isStillSilent()) return;
      this.#hasWarnedOfRoute = true;
      this.#warn(DEAD_ROUTE);
    });
  }
}

const DEAD_ROUTE =
  "Redis answers on a new connection, but not on the client's, so that connection is dead. ioredis keeps it until the operating system closes it, after about 15 minutes. Fix: set socketTimeout in the client's options, such as new Redis({ socketTimeout: 10_000 })";

const DEMOTED =
  'Redis answers READONLY: the client is connected to a replica, which may have been the master before a failover. Fix: make the client reconnect: set reconnectOnError: (error) => error.message.includes("READONLY") in its options';
