import { afterUnblocked, systemClock, type CancelTimer } from "../../../base/clock";
import { listenInRoot, rooted, runInPromiseJob } from "../../../base/root-context";
import type {
  OwnConnection,
  OwnConnectionOptions,
  Subscription,
  SubscriptionListeners,
} from "../client-port";
import { HANDSHAKE_MS, NO_CONNECTION } from "../own-client";
import { PLAIN, type CredentialsProvider, type HostAndPort, type NodeRedis } from "./client";
import { ownError, portError } from "./errors";
import { textOf } from "./words";

/** Options that turn off what the user's client does besides sending commands. A cache, for example, would be shared with it. */
const BARE = {
  url: undefined, // node-redis has already copied the parts of the URL to the other options.
  disableOfflineQueue: false,
  commandsQueueMaxLength: undefined,
  commandOptions: PLAIN,
  clientSideCache: undefined,
  emitInvalidate: false,
  maintNotifications: "disabled",
  pingInterval: 0,
  readonly: false,
};

/** The server of a connection. */
export interface Place {
  /** A client with the options of the connection. */
  readonly client: NodeRedis;
  /** The address, if it is not the one of that client. */
  readonly address?: HostAndPort;
}

/** A duplicate of a client, with one connection. It never reconnects, so it sends no command twice. */
export class PrivateConnection {
  /** Resolves when the connection is ready. Rejects if there is none. */
  readonly connected: Promise<void>;
  readonly #client: NodeRedis;
  readonly #connecting = new AbortController();
  #isClosed = false;
  #hasEnded = false;
  /** The error that ended the connection, if there is one. */
  #cause: unknown;

  /**
   * @param database the database, or undefined for the one of the client
   * @param onEnd called once. It receives the error that ended the connection, if there is one
   */
  constructor({ client, address }: Place, database: number | undefined, onEnd: (cause: unknown) => void) {
    const { socket, credentialsProvider } = client.options ?? {};
    const connection = client.duplicate({
      ...BARE,
      ...(database !== undefined && { database }),
      ...(credentialsProvider !== undefined && {
        credentialsProvider: endingWith(credentialsProvider, () => this.#hasEnded),
      }),
      socket: {
        ...socket,
        ...address,
        reconnectStrategy: false,
        connectTimeout: 0, // Its timer would also end a connection that is only late because the process was blocked.
        socketTimeout: undefined, // The store checks its connections itself, and only when it needs them.
        signal: this.#connecting.signal,
      },
    });
    this.#client = connection;
    const ended = (cause: unknown): void => {
      if (this.#hasEnded) return;
      this.#hasEnded = true;
      this.#cause = cause;
      this.#destroy(); // Otherwise node-redis would keep it in its list of clients.
      onEnd(cause);
    };
    let cancel: CancelTimer;
    // If the client is destroyed while it connects, node-redis keeps the connection.
    const limit = (ms: number): void => {
      cancel = afterUnblocked(systemClock, ms, () => {
        ended(new Error(NO_CONNECTION));
        this.close();
      });
    };
    listenInRoot(connection, {
      error: ended, // After an error, node-redis may have lost a reply, even if the connection is still open.
      end: () => ended(undefined),
      connect: () => {
        cancel();
        limit(HANDSHAKE_MS);
      },
    });
    limit(socket?.connectTimeout || HANDSHAKE_MS);
    this.connected = connection
      .connect()
      .finally(() => cancel())
      .then(() => void (this.#isClosed && this.#destroy()))
      .catch((error: unknown) => {
        ended(error);
        throw this.#cause ?? error; // The first error says more than the one of a client that was destroyed.
      });
    this.connected.catch(() => {}); // Each command reports its own failure.
  }

  /** Whether commands are sent immediately. */
  get isReady(): boolean {
    return this.#client.isReady;
  }

  /** Sends a command without waiting for the connection. */
  send(words: readonly string[]): Promise<unknown> {
    return this.#client.sendCommand(words, PLAIN);
  }

  async exec(commands: readonly (readonly string[])[]): Promise<readonly unknown[]> {
    await this.connected;
    return await Promise.all(commands.map((words) => this.#client.sendCommand(words, PLAIN).catch(ownError)));
  }

  async subscribeTo(channel: string, listener: (text: string) => void): Promise<void> {
    await this.connected;
    await this.#client.subscribe(channel, rooted(listener));
  }

  async subscribeToSharded(
    channel: string,
    listener: (text: string) => void,
    onMoved: () => void,
  ): Promise<void> {
    // If the client were destroyed while it reads, it would read the same bytes again and again.
    listenInRoot(this.#client, { "sharded-channel-moved": () => runInPromiseJob(onMoved) });
    await this.connected;
    await this.#client.sSubscribe(channel, rooted(listener));
  }

  /** Sets whether the connection keeps the process alive. */
  keepAlive(isNeeded: boolean): void {
    if (isNeeded) this.#client.ref();
    else this.#client.unref();
  }

  /** Without a connection, the ping waits for it. So a server that accepts the connection and never answers counts as dead. */
  async ping(): Promise<unknown> {
    await this.connected;
    return await this.#client.sendCommand(["PING"], PLAIN);
  }

  close(): void {
    this.#isClosed = true;
    this.#connecting.abort();
    this.#destroy();
  }

  #destroy(): void {
    try {
      this.#client.destroy();
    } catch {
      // node-redis 5 throws if the client is closed already.
    }
  }
}

/**
 * Returns the same provider, whose subscriptions end if the connection ended before they began. node-redis keeps such a subscription, and
 * the provider then sends new passwords to a dead client, and reports that it rejects them.
 */
function endingWith(provider: CredentialsProvider, hasEnded: () => boolean): CredentialsProvider {
  if (provider.subscribe === undefined) return provider;
  return {
    type: provider.type,
    onReAuthenticationError: (error) => provider.onReAuthenticationError?.(error),
    async subscribe(listener) {
      const subscribed = await provider.subscribe?.(listener);
      if (hasEnded()) subscribed?.[1].dispose();
      return subscribed;
    },
  };
}

/** @param prefix the prefix of the client's keys */
export function openOwn(
  place: Place,
  prefix: string,
  { database = 0, onEnd }: OwnConnectionOptions,
): OwnConnection {
  const connection = new PrivateConnection(place, database, onEnd);
  return {
    exec: (commands) => connection.exec(commands.map((command) => textOf(command, prefix))),
    close: () => connection.close(),
  };
}

export function openSubscription(
  place: Place,
  channel: string,
  listeners: SubscriptionListeners,
): Subscription {
  const connection = new PrivateConnection(place, undefined, () => listeners.ended());
  return subscriptionOver(
    connection,
    connection.subscribeTo(channel, (text) => listeners.message(text)),
    listeners,
  );
}

export function openShardedSubscription(
  place: Place,
  channel: string,
  listeners: SubscriptionListeners,
): Subscription {
  const connection = new PrivateConnection(place, undefined, () => listeners.ended());
  const subscribed = connection.subscribeToSharded(
    channel,
    (text) => listeners.message(text),
    () => listeners.moved?.(),
  );
  return subscriptionOver(connection, subscribed, listeners);
}

function subscriptionOver(
  connection: PrivateConnection,
  subscribed: Promise<void>,
  listeners: SubscriptionListeners,
): Subscription {
  subscribed.then(
    () => listeners.subscribed(),
    (error: unknown) => listeners.failed(portError(error)),
  );
  return { ping: () => connection.ping(), close: () => connection.close() };
}

/** Returns a subscription that has ended, because no server is known yet. The caller learns that after this call. */
export function noSubscription(listeners: SubscriptionListeners): Subscription {
  runInPromiseJob(() => listeners.ended());
  return { ping: () => undefined, close() {} };
}
