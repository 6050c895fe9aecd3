import { runInPromiseJob } from "../../../base/root-context";
import {
  ConnectionClosedError,
  type Address,
  type ClientPort,
  type OwnConnection,
  type OwnConnectionOptions,
  type StateListeners,
  type Subscription,
  type SubscriptionListeners,
} from "../client-port";
import type { Send } from "../command";
import { ADVICE, ENDS_WHEN_IDLE, endsWhenIdle } from "./advice";
import { noSubscription, openOwn, openSubscription, type Place } from "./connection";
import type { Source } from "./source";

/** A server over a connection that belongs to the store. */
export class NodeRedisOwnNode implements ClientPort {
  readonly keyPrefix: string;
  /** node-redis never sends a command again over the same connection. */
  readonly mayResend = false;
  readonly fault = undefined;
  readonly advice = ADVICE;
  readonly hazard: string | undefined;
  readonly send: Send;
  readonly #source: Source;
  readonly #listeners = new Set<StateListeners>();
  /** Closes each subscription and each private connection. */
  readonly #others = new Set<() => void>();
  #place: Place | undefined;
  #isConnected = false;

  constructor(source: Source, send: Send) {
    this.#source = source;
    this.#place = source.place;
    this.keyPrefix = source.keyPrefix;
    this.hazard = endsWhenIdle(source.place?.client.options) ? ENDS_WHEN_IDLE : undefined;
    this.send = send;
  }

  get database(): number {
    return this.#place?.client.options?.database ?? 0;
  }

  get isReady(): boolean {
    return this.#isConnected && this.#source.isOpen;
  }

  /** The address of the server, unless sentinels name it. */
  get address(): Address | undefined {
    if (this.#place === undefined || this.#place.address !== undefined) return undefined;
    const { host = "localhost", port = 6379, path, tls = false } = this.#place.client.options?.socket ?? {};
    return path === undefined ? { host, port, isTls: tls } : undefined;
  }

  explain(): undefined {}

  /** Records that there is a connection. */
  connected(place: Place): void {
    const before = this.#place;
    this.#place = place;
    // Since the last call of `moved()`, connections may have been opened to the server before.
    if (before !== undefined && !isSame(before, place)) this.moved();
    this.#isConnected = true;
    for (const { up } of this.#listeners) up?.();
  }

  /** Records that the connection has closed. */
  closed(): void {
    if (!this.#isConnected) return;
    this.#isConnected = false;
    for (const { down } of this.#listeners) down?.();
  }

  /** Closes the other connections to the server, because it may be another one now. */
  moved(): void {
    for (const close of this.#others) close();
  }

  onState(listeners: StateListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  openSubscription(channel: string, listeners: SubscriptionListeners): Subscription {
    if (this.#place === undefined) return noSubscription(listeners);
    const subscription = openSubscription(this.#place, channel, {
      ...listeners,
      subscribed: () => listeners.subscribed(),
      message: (text) => listeners.message(text),
      failed: (error) => listeners.failed(error),
      ended: () => {
        this.#others.delete(close);
        listeners.ended();
      },
    });
    const close = (): void => subscription.close();
    this.#others.add(close);
    return subscription;
  }

  openOwn({ database, onEnd }: OwnConnectionOptions): OwnConnection {
    if (this.#place === undefined) {
      runInPromiseJob(onEnd);
      return {
        exec: () => Promise.reject(new ConnectionClosedError("the server is not known yet")),
        close() {},
      };
    }
    const ended = (): void => {
      this.#others.delete(close);
      onEnd();
    };
    const options = { ...(database !== undefined && { database }), onEnd: ended };
    const connection = openOwn(this.#place, this.keyPrefix, options);
    const close = (): void => connection.close();
    this.#others.add(close);
    return connection;
  }

  close(): void {}
}

function isSame({ address: one }: Place, { address: other }: Place): boolean {
  return one?.host === other?.host && one?.port === other?.port;
}
