import { afterUnblocked, systemClock, type CancelTimer } from "../../../base/clock";
import { inRoot } from "../../../base/root-context";
import { ConnectionClosedError } from "../client-port";
import type { Command } from "../command";
import { errorOf, isReply } from "../errors";
import { HANDSHAKE_MS, NO_CONNECTION, type ConnectionListeners, type SingleConnection } from "../own-client";
import { PrivateConnection, type Place } from "./connection";
import { ownError, portError } from "./errors";
import { NodeRedisOwnNode } from "./own-node";
import type { Source } from "./source";
import { CLOSED, notConnected } from "./state";
import { textOf } from "./words";

/** The pause between two checks whether the user has connected the client. It has no event for that. */
const CHECK_AGAIN_MS = 50;

/**
 * A connection of the store. If the user gave a client, it does not keep the process alive while no command waits for its reply.
 */
export class NodeRedisConnection implements SingleConnection {
  readonly port: NodeRedisOwnNode;
  readonly #source: Source;
  readonly #listeners: ConnectionListeners;
  readonly #stopListening: () => void;
  #current: PrivateConnection | undefined;
  /** A connection that is not ready yet. */
  #opening: PrivateConnection | undefined;
  /** The server of the last attempt, if it is known. */
  #attempted: Place | undefined;
  #isIdle = true;
  #cancelCheck: CancelTimer | undefined;
  /** The number of commands that have no reply yet. */
  #unanswered = 0;
  #isClosed = false;
  /** Whether the user has connected the client. */
  #wasOpen: boolean;

  constructor(source: Source, listeners: ConnectionListeners) {
    this.#source = source;
    this.#listeners = listeners;
    this.port = new NodeRedisOwnNode(source, (command) => this.#send(command));
    this.#stopListening = source.onMoved(() => {
      this.port.moved();
      this.disconnect();
    });
    this.#wasOpen = source.isOpen;
    if (source.name === undefined) this.connect();
    // The first lock may be acquired while its caller uses the only connection of the client, so the client is asked now.
    else if (source.isOpen) inRoot(() => source.locate()).catch(() => {});
  }

  get tls(): unknown {
    const { socket } = this.#attempted?.client.options ?? {};
    return socket?.tls === true ? socket : undefined;
  }

  get isIdle(): boolean {
    return this.#isIdle;
  }

  get refusal(): Error | undefined {
    const { fault, isOpen } = this.#source;
    return fault ?? (this.#wasOpen && !isOpen ? errorOf(CLOSED) : undefined);
  }

  connect(): void {
    this.#isIdle = !this.#source.isOpen;
    if (this.#isIdle) return this.#checkLater();
    this.#wasOpen = true;
    void inRoot(() => this.#attempt());
  }

  disconnect(): void {
    this.#current?.close();
  }

  doubt(): void {
    this.#source.doubt();
  }

  isBreak(error: Error): boolean {
    return error instanceof ConnectionClosedError;
  }

  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    this.#cancelCheck?.();
    this.#opening?.close();
    this.disconnect();
    this.#source.close?.();
  }

  /** Connects once the user has connected the client, as long as a command waits for that. */
  #checkLater(): void {
    const { name } = this.#source;
    if (name === undefined || !this.#listeners.postponed(errorOf(notConnected(name)))) return;
    this.#cancelCheck ??= systemClock.after(CHECK_AGAIN_MS, () => {
      this.#cancelCheck = undefined;
      if (this.#isIdle) this.connect();
    });
  }

  async #attempt(): Promise<void> {
    this.#attempted = undefined;
    try {
      const place = await inTime(this.#source.locate());
      if (this.#isClosed) return;
      this.#attempted = place;
      const opened = new PrivateConnection(place, undefined, (cause) => this.#onEnd(opened, cause));
      this.#opening = opened;
      await opened.connected;
      await inTime(this.#verified(opened));
      this.#opening = undefined;
      if (!this.#isClosed) this.#onReady(place, opened);
    } catch (error) {
      this.#opening?.close();
      this.#opening = undefined;
      if (!this.#isClosed) this.#onFailedAttempt(portError(error));
    }
  }

  async #verified(connection: PrivateConnection): Promise<void> {
    if (this.#source.accepts === undefined) return;
    // A user without permission for ROLE notices a replica by its first write.
    const reply = await connection.send(["ROLE"]).catch((error: unknown) => {
      if (isReply(portError(error))) return undefined;
      throw error;
    });
    if (Array.isArray(reply) && !this.#source.accepts(reply[0])) {
      throw new Error("the server that the sentinels named is no master yet");
    }
  }

  #onReady(place: Place, connection: PrivateConnection): void {
    this.#current = connection;
    this.#keepAlive(connection, this.#unanswered > 0);
    this.#listeners.ready();
    this.port.connected(place);
  }

  #onFailedAttempt(error: Error): void {
    this.doubt();
    this.#listeners.failed(error);
    this.#ended();
  }

  #onEnd(connection: PrivateConnection, cause: unknown): void {
    if (this.#current !== connection) return;
    this.#current = undefined;
    const error = cause === undefined ? undefined : portError(cause);
    if (error !== undefined && !CLOSED_BY_SOMEBODY.test(error.message)) this.#listeners.failed(error);
    this.#listeners.closed();
    this.port.closed();
    if (!this.#isClosed) this.#ended();
  }

  /** A client that its user has closed is not followed until the next command. */
  #ended(): void {
    if (this.#source.isOpen) this.#listeners.ended();
    else this.#isIdle = true;
  }

  #send(command: Command): Promise<unknown> {
    const connection = this.#current;
    if (connection === undefined) return Promise.reject(new ConnectionClosedError("no connection"));
    if (this.#unanswered === 0) this.#keepAlive(connection, true);
    this.#unanswered += 1;
    return connection.send(textOf(command, this.port.keyPrefix)).then(this.#onReply, this.#onFailure);
  }

  readonly #onReply = (reply: unknown): unknown => {
    this.#settled();
    return reply;
  };

  readonly #onFailure = (thrown: unknown): never => {
    this.#settled();
    throw ownError(thrown);
  };

  #settled(): void {
    this.#unanswered -= 1;
    if (this.#unanswered === 0 && this.#current !== undefined) this.#keepAlive(this.#current, false);
  }

  #keepAlive(connection: PrivateConnection, isNeeded: boolean): void {
    if (this.#source.name !== undefined) connection.keepAlive(isNeeded);
  }
}

/** The errors of node-redis for a connection that the server or we closed. They say nothing about the cause. */
const CLOSED_BY_SOMEBODY = /^(?:Socket closed unexpectedly|Disconnects client)$/;

/** Rejects if the promise takes too long. */
function inTime<Result>(promise: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const cancel = afterUnblocked(systemClock, HANDSHAKE_MS, () => reject(new Error(NO_CONNECTION)));
    promise.finally(cancel).then(resolve, reject);
  });
}
