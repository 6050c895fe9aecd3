import { afterIo, systemClock } from "../../../base/clock";
import { rooted } from "../../../base/root-context";
import type { StateListeners } from "../client-port";
import { errorOf, isReply, translateError } from "../errors";
import { passing, permanent } from "../states";
import type { BunRedis } from "./client";
import { isFinal, portError } from "./errors";

/** The share of its timeout for which a command waits for a connection. */
const CONNECT_TIME_SHARE = 0.9;

const states = new WeakMap<BunRedis, ClientState>();

/** Returns the state of a client. There is one for each client, and its callbacks stay. */
export function stateOf(client: BunRedis): ClientState {
  let state = states.get(client);
  if (state === undefined) states.set(client, (state = new ClientState(client)));
  return state;
}

/**
 * The state of a client's connection. Bun has no callback for a connection that broke, only for the next connection. A quorum must learn of
 * each one, because a server that restarted may have lost its locks.
 */
export class ClientState {
  /** The reason why the client can never send a command again. */
  fault: Error | undefined;
  readonly #client: BunRedis;
  readonly #listeners = new Set<StateListeners>();
  #isUp: boolean;
  /** Whether the client stopped reconnecting: after its `maxRetries`, its `idleTimeout`, or without `autoReconnect`. */
  #hasStopped = false;
  /** Settles when the client is connected, or cannot connect. */
  #connecting: Promise<unknown> | undefined;

  constructor(client: BunRedis) {
    this.#client = client;
    this.#isUp = client.connected;
    callFirst(client, "onconnect", () => this.#up());
    callFirst(client, "onclose", () => this.#ended());
    noteClose(client, () => (this.fault ??= errorOf(CLOSED)));
  }

  /** Calls the listeners when a connection is ready, and when it is known to have closed. Returns a function that removes them. */
  listen(listeners: StateListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  /**
   * Resolves when commands are sent immediately. Rejects if there is no connection in time. Bun would keep commands in a queue, and send
   * them however late.
   */
  ready(timeoutMs: number): Promise<void> {
    if (this.fault !== undefined) return Promise.reject(this.fault);
    this.#connecting ??= this.#connect();
    const connecting = this.#connecting;
    return new Promise((resolve, reject) => {
      const cancel = systemClock.afterInBackground(timeoutMs * CONNECT_TIME_SHARE, () =>
        afterIo(systemClock, () => reject(errorOf(CONNECTING))),
      );
      connecting.then(() => resolve(), reject).finally(cancel);
    });
  }

  /** Records that a command failed. Returns its error in the form of the port. */
  failed(thrown: unknown): Error {
    const error = portError(thrown);
    if (!isReply(error)) this.#down();
    return error;
  }

  /**
   * Sends a command, because a client that is not connected yet connects for its first one. `connect()` would reopen a closed client, so only
   * one that stopped by itself gets it.
   */
  async #connect(): Promise<void> {
    try {
      await (this.#hasStopped ? this.#client.connect() : this.#client.send("PING", []));
    } catch (thrown) {
      const error = this.failed(thrown);
      // The user may have no permission for PING.
      if (this.#client.connected) return;
      // Bun does not connect again after an error reply to AUTH or SELECT.
      if (isReply(error)) throw (this.fault = translateError(error));
      if (isFinal(error) && !this.#hasStopped) this.fault ??= errorOf(CLOSED, error);
      // Otherwise the new connection broke, too, or the client has no queue. Bun connects again, or the next command makes it connect.
      throw this.fault ?? errorOf(CONNECTING, error);
    } finally {
      this.#connecting = undefined;
    }
  }

  #up(): void {
    this.#down(); // The previous connection broke unnoticed.
    this.fault = undefined;
    this.#hasStopped = false;
    this.#isUp = true;
    for (const { up } of this.#listeners) up?.();
  }

  #down(): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    for (const { down } of this.#listeners) down?.();
  }

  #ended(): void {
    this.#hasStopped = this.fault === undefined;
    this.#down();
  }
}

/**
 * Makes Bun call `ours`, and then the callback of the user, even if the user sets that one later. Bun has one callback of each kind, so the
 * property of this client becomes one that keeps the callback of the user.
 */
function callFirst(client: BunRedis, name: "onconnect" | "onclose", ours: () => void): void {
  const inRoot = rooted(ours);
  let theirs = client[name];
  Object.assign(client, {
    [name](this: unknown, ...args: unknown[]) {
      inRoot();
      return theirs?.apply(this, args);
    },
  });
  Object.defineProperty(client, name, {
    configurable: true,
    enumerable: true,
    get: () => theirs,
    set(callback: BunRedis[typeof name]) {
      theirs = callback;
    },
  });
}

/** Calls `onClose` when the user closes the client. `onclose` does not show who closed it. */
function noteClose(client: BunRedis, onClose: () => void): void {
  const close = client.close.bind(client);
  Object.assign(client, {
    close() {
      onClose();
      close();
    },
  });
}

const CLOSED = permanent(
  "the Redis client was closed by close()",
  "call shutdown() before you close the client",
);
const CONNECTING = passing(
  "the Redis client has no connection yet",
  "check its address, and that Redis runs there",
);
