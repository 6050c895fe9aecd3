import { errorMonitor } from "node:events";
import { LockMisconfiguredError } from "../../../base/errors";
import { listenInRoot, rooted } from "../../../base/root-context";
import type { StateListeners } from "../client-port";
import { errorOf, isWrongPassword, passing as mayPass, translateError } from "../errors";
import { passing, permanent, type State } from "../states";
import { faultOfTls } from "../tls-options";
import { ENDED_IDLE, endsWhenIdle } from "./advice";
import type { NodeRedis } from "./client";
import { PendingSends } from "./pending-sends";
import { ReplyOrder } from "./reply-order";

const states = new WeakMap<NodeRedis, ClientState>();

/**
 * Returns the state of a client. There is one for each client, with one set of listeners, which stay.
 *
 * @param sendsLocks whether commands of locks are sent over the client. Then its replies are checked after an error
 */
export function stateOf(client: NodeRedis, sendsLocks = true): ClientState {
  let state = states.get(client);
  if (state === undefined) states.set(client, (state = new ClientState(client, sendsLocks)));
  return state;
}

/**
 * The state of a client's connection. node-redis has no event for a connection that closes, and does not show whether a client was ever
 * connected. A command that waits in its queue is sent however late, so commands wait here.
 *
 * Its listeners are never removed. `createClient()` returns an object whose prototype is the real emitter, and both count their listeners
 * separately. When one of these counts reaches 0, Node drops all listeners, also those of the user.
 */
class ClientState {
  readonly replies: ReplyOrder;
  readonly #client: NodeRedis;
  readonly #sendsLocks: boolean;
  readonly #listeners = new Set<StateListeners>();
  readonly #pending = new PendingSends();
  /** Whether somebody has called `connect()`. */
  #wasOpen: boolean;
  #wasReady: boolean;
  #isUp: boolean;
  /** Whether the user has closed the client. */
  #isClosed = false;
  /** The reason why there is no connection, if it is known. */
  #lastError: Error | undefined;

  constructor(client: NodeRedis, sendsLocks: boolean) {
    this.#client = client;
    this.#sendsLocks = sendsLocks;
    this.replies = new ReplyOrder(client);
    this.#wasOpen = client.isOpen;
    this.#wasReady = client.isReady;
    this.#isUp = client.isReady;
    listenInRoot<[]>(client, {
      connect: () => this.#opened(),
      ready: () => this.#up(),
      reconnecting: () => this.#down(),
      end: () => this.#ended(),
    });
    // A listener for "error" would hide errors from a user who has none. Node ends their process, and says why.
    client.on(
      errorMonitor,
      rooted((error: Error) => this.#failed(error)),
    );
  }

  /** Calls the listeners when a connection is ready, and when it has closed. Returns a function that removes them. */
  listen(listeners: StateListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  /** Resolves when commands are sent immediately. Rejects if there is no connection in time. */
  ready(timeoutMs: number): Promise<void> {
    const fault = this.fault() ?? this.#lastError;
    // A permanent error rejects immediately, though node-redis may continue its attempts to connect.
    if (fault instanceof LockMisconfiguredError) return Promise.reject(fault);
    return this.#pending.add(timeoutMs, () => this.#lastError ?? errorOf(this.#missing));
  }

  /** Returns why the client can never send a command again, or undefined if it can. */
  fault(cause = this.#lastError): Error | undefined {
    if (this.#client.isOpen || !this.#wasOpen) return undefined;
    if (cause instanceof LockMisconfiguredError) return cause;
    // A client that close() or quit() is closing stays ready until it has its last reply.
    if (this.#isClosed || this.#client.isReady) return errorOf(CLOSED, cause);
    return errorOf(endsWhenIdle(this.#client.options) ? ENDED_IDLE : GAVE_UP, cause);
  }

  get #missing(): State {
    return this.#client.isOpen ? CONNECTING : notConnected("client");
  }

  #opened(): void {
    this.#wasOpen = true;
    this.#isClosed = false;
  }

  #up(): void {
    this.#opened();
    this.#wasReady = true;
    this.#isUp = true;
    this.#lastError = undefined;
    this.replies.reset();
    this.#pending.go();
    for (const { up } of this.#listeners) up?.();
  }

  #down(): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    this.replies.reset();
    for (const { down } of this.#listeners) down?.();
  }

  #ended(): void {
    this.#isClosed = true;
    this.#down();
    this.#pending.fail(errorOf(CLOSED));
  }

  #failed(error: Error): void {
    if (this.#client.isReady) {
      if (this.#sendsLocks) this.replies.doubt(error);
      return;
    }
    this.#wasOpen = true;
    this.#lastError = this.#explained(error);
    this.#down();
    this.#pending.fail(this.#lastError);
  }

  #explained(error: Error): Error {
    const explained = translateError(error);
    // A password that has worked may be about to change. A password that never worked is wrong.
    if (this.#wasReady) return isWrongPassword(error) ? mayPass(explained) : explained;
    const { socket } = this.#client.options ?? {};
    return (socket?.tls === true ? faultOfTls(socket) : undefined) ?? explained;
  }
}

export const CLOSED = permanent(
  "the Redis client was closed by close(), quit(), or destroy()",
  "call shutdown() before you close the client",
);
/** @param name what the user calls this kind of client */
export function notConnected(name: "client" | "pool" | "sentinel" | "cluster"): State {
  return passing("the Redis client is not connected", `call \`await ${name}.connect()\` at startup`);
}
const GAVE_UP = permanent(
  "the Redis client stopped reconnecting",
  "change its socket.reconnectStrategy to always return a number, and create a new client",
);
export const CONNECTING = passing(
  "the Redis client has no connection yet",
  "check its address, and that Redis runs there",
);
