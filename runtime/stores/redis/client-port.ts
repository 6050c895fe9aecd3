import type { SentCommand } from "./blocking-command";
import type { Connection } from "./address";
import type { Command, Send } from "./command";

/**
 * A client library of Redis, as the store sees it. Each library has one adapter, and only the adapter knows the library. An adapter reports
 * what happens, and adds no policy: pauses, retries, heartbeats, and timeouts are the store's.
 *
 * All commands that an adapter sends get the client's key prefix before each of their `keys`. All errors of an adapter have one form:
 * `isReply()` in errors.ts is true for an error reply of the server, whatever class the library has for it. Listeners run in the root
 * context. The store opens subscriptions and connections in that context, too.
 */
export interface ClientPort {
  /** The prefix that the client adds to each key, or `""`. */
  readonly keyPrefix: string;
  /** The number of the database that the client uses now. */
  readonly database: number;
  /** Whether the library may send a command again if its connection broke before the reply. */
  readonly mayResend: boolean;
  /** Whether the client sends commands immediately. */
  readonly isReady: boolean;
  /** The address of the server. Undefined for a socket file, for Sentinel, and for a cluster. */
  readonly address: Address | undefined;
  /**
   * The reason why nothing may be sent now, and no reply counts: the connection uses the wrong database, where the same key is another lock.
   * Undefined for a library that refuses such a connection itself.
   */
  readonly fault: Error | undefined;
  /** The advice to users of this library about faults that they can prevent. */
  readonly advice: Advice;
  /** A warning about a fault of this version of the library. Ends with a fix. Absent if none is known. */
  readonly hazard?: string | undefined;

  /** Sends a command. Without a connection, the library decides whether the command waits or rejects. */
  readonly send: Send;

  /** Returns why the client can never send a command again, or undefined if it can. `error` is the failure of a command. */
  explain(error: Error): Error | undefined;

  /** Calls `up` when a connection is ready, and `down` when it has closed. Returns a function that removes the listeners. */
  onState(listeners: StateListeners): () => void;

  /**
   * Opens a second connection that receives the messages of a channel. The prefix does not apply to channels. Absent if the library cannot.
   * Then waiters only poll once a second.
   */
  openSubscription?(channel: string, listeners: SubscriptionListeners): Subscription;

  /**
   * Opens a private connection to the client's server. Absent for a cluster, and if the library cannot. Then there is no confirmation by
   * replicas, and no check of a silent connection.
   */
  openOwn?(options: OwnConnectionOptions): OwnConnection;

  /** Returns how many bytes the current connection has received. Absent, or undefined, if the library does not show that. */
  bytesRead?(): number | undefined;

  /** Returns the first command without a reply, each time the same object. Absent, or undefined, if the library does not show that. */
  firstUnanswered?(): SentCommand | undefined;

  /** Present for a client of a cluster. */
  readonly topology?: Topology;

  /** Removes all listeners. A client that the user gave stays open. */
  close(): void;
}

/** A client that can subscribe. */
export type SubscribingPort = ClientPort & Required<Pick<ClientPort, "openSubscription">>;

/** A client of a cluster. */
export interface ClusterPort extends SubscribingPort {
  readonly topology: Topology;
}

export interface Address {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

export interface StateListeners {
  up?(): void;
  down?(): void;
}

/** The fixes and warnings in terms of this library. */
export interface Advice {
  /** A warning: the connection is dead, and the library keeps it. Ends with a fix. */
  readonly deadRoute: string;
  /** A warning: the connected server has become a replica, and the library stays connected to it. Ends with a fix. */
  readonly demoted: string;
  /** A fix: the server is one node of a cluster, and the client is not a cluster client. */
  readonly useCluster: string;
  /** A fix: how to pass the client so that it can open other connections. Absent if nothing helps. */
  readonly secondConnection?: string;
}

// ---- connections by URL ---------------------------------------------------------------------------------

/** A client library that can connect to an address. */
export interface ClientLibrary {
  /**
   * Creates a client that connects, and reconnects until it is closed.
   *
   * @param what the name of the address in `configure()`, for messages
   * @param shortestTimeLeftMs returns the shortest time left of all leases and waiters. They cannot wait longer for a connection
   * @throws {LockOptionError} if the library cannot read the address
   */
  connect(connection: Connection, what: string, shortestTimeLeftMs: () => number): OwnClient;
}

/** A client that belongs to the store. */
export interface OwnClient {
  readonly port: ClientPort;
  /** Sends the command as soon as there is a connection, and rejects if that takes too long. */
  readonly send: Send;
  /** Calls `report` when an attempt to connect failed, or the connection broke with an error. */
  onTrouble(report: (error: Error) => void): void;
  close(): void;
}

/**
 * The path of commands to a server: a `WatchedClient` around a client that the user gave, a client of our own, or the routes of a cluster. Its errors
 * are those of the client library.
 */
export interface Transport {
  readonly send: Send;
  close(): void;
}

// ---- subscriptions --------------------------------------------------------------------------------------

export interface Subscription {
  /** Asks the server for a sign of life. Undefined if there is no connection, or the ping could go to another server. */
  ping(): Promise<unknown> | undefined;
  close(): void;
}

export interface SubscriptionListeners {
  /** The server confirmed the subscription. Called again after each reconnect of the library: earlier messages may be lost. */
  subscribed(): void;
  message(text: string): void;
  /** The server refused the subscription, or its reply is lost. The library may try again. */
  failed(error: Error): void;
  /** The connection has closed for good. */
  ended(): void;
  /** Only for a sharded channel: the server ended the subscription, because it no longer serves the slot. */
  moved?(): void;
}

// ---- private connections --------------------------------------------------------------------------------

export interface OwnConnectionOptions {
  /**
   * The database of the commands. Without it, the connection only finds out whether the server answers. Then any database will do, and
   * the server may still be loading its data.
   */
  readonly database?: number;
  /** Called once the connection has closed. It never reconnects. */
  readonly onEnd: () => void;
}

export interface OwnConnection {
  /**
   * Sends the commands in one write, as soon as there is a connection, and none of them twice. Resolves to a reply or an error for each.
   * Rejects if the connection uses another database than it should.
   */
  exec(commands: readonly Command[]): Promise<readonly unknown[]>;
  close(): void;
}

// ---- clusters -------------------------------------------------------------------------------------------

/** A master or a replica. There is one object for each connection of the client, so the same node may get a new object. */
export interface ClusterNode {
  /** `host:port`, as the client connects to it. */
  readonly address: string;
  readonly database: number;
}

/** The nodes of a cluster, as the client knows them now. `send` of such a client follows redirections itself. */
export interface Topology {
  /** Returns the address of the slot's master, or undefined if the client does not know it. */
  addressOf(slot: number): string | undefined;
  /** Returns the addresses of the masters of all slots, in order. Empty if the client does not know the slots yet. */
  addresses(): readonly (string | undefined)[];
  masters(): readonly ClusterNode[];
  /** Converts an address that a server named in a redirection into the one that the client connects to. */
  reachable(address: string): string;
  /**
   * Sends commands to this node in one write, in this order, and follows no redirection. Resolves to a reply or an error for each. The error
   * is a {@link ConnectionClosedError} if the connection closed before the reply.
   */
  write(node: ClusterNode, commands: readonly Command[]): Promise<readonly unknown[]>;
  /**
   * Makes the client ask the nodes which slots they serve. Many calls in a short time share a few questions.
   *
   * @param silent a master that does not reply, so that another node must answer
   */
  refresh(silent?: ClusterNode): void;
  /** Subscribes to a sharded channel over a new connection to this node. The connection never reconnects. */
  openSubscription(node: ClusterNode, channel: string, listeners: SubscriptionListeners): Subscription;
  /** Opens a private connection to this node. Absent if the library cannot. */
  openOwn?(node: ClusterNode, options: OwnConnectionOptions): OwnConnection;
  /** Returns a function that removes the listeners. */
  onChange(listeners: TopologyListeners): () => void;
}

export interface TopologyListeners {
  /** The client found another node. */
  nodeAdded(): void;
  /** A node has left the cluster, or the client gave it up. */
  nodeGone(): void;
  /** A connection to a node broke. The library may resend its commands. */
  nodeDown(): void;
  /** The client has asked for the slots. They may be the same as before. */
  refreshed(): void;
}

/** The connection to a node closed before it replied. */
export class ConnectionClosedError extends Error {
  override readonly name = "ConnectionClosedError";
}

/** Whether the client can subscribe. */
export function canSubscribe(client: ClientPort): client is SubscribingPort {
  return client.openSubscription !== undefined;
}

/** Whether it is a client of a cluster. Every such client can subscribe. */
export function isOfCluster(client: ClientPort): client is ClusterPort {
  return client.topology !== undefined;
}
