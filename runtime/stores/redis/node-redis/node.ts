import type {
  Address,
  ClientPort,
  OwnConnection,
  OwnConnectionOptions,
  StateListeners,
  Subscription,
  SubscriptionListeners,
} from "../client-port";
import type { Command, Send } from "../command";
import { errorOf } from "../errors";
import { permanent } from "../states";
import { ADVICE, ENDS_WHEN_IDLE, endsWhenIdle } from "./advice";
import { PLAIN, type NodeRedis } from "./client";
import { openOwn, openSubscription } from "./connection";
import { portError } from "./errors";
import { stateOf } from "./state";
import { textOf } from "./words";

/** A client of node-redis for one node, from `createClient()`. */
export class NodeRedisNode implements ClientPort {
  readonly keyPrefix: string;
  readonly mayResend = false;
  readonly advice = ADVICE;
  readonly hazard: string | undefined;
  readonly #client: NodeRedis;
  readonly #state: ReturnType<typeof stateOf>;

  constructor(given: NodeRedis) {
    const { _self: client = given } = given;
    this.#client = client;
    this.#state = stateOf(this.#client);
    this.keyPrefix = this.#client.options?.keyPrefix ?? "";
    this.hazard = endsWhenIdle(client.options) ? ENDS_WHEN_IDLE : undefined;
  }

  /** node-redis itself rejects a connection that cannot select the database. */
  get fault(): Error | undefined {
    return this.#state.replies.fault;
  }

  /** A `select()` at run time is not visible. */
  get database(): number {
    return this.#client.options?.database ?? 0;
  }

  get isReady(): boolean {
    return this.#client.isReady;
  }

  get address(): Address | undefined {
    const { host = "localhost", port = 6379, path, tls = false } = this.#client.options?.socket ?? {};
    return path === undefined ? { host, port, isTls: tls } : undefined;
  }

  readonly send: Send = (command, timeoutMs) =>
    this.#client.isReady
      ? this.#sendNow(command)
      : this.#state.ready(timeoutMs).then(() => this.#sendNow(command));

  #sendNow(command: Command): Promise<unknown> {
    return this.#client
      .sendCommand(textOf(command, this.keyPrefix), PLAIN)
      .then(this.#onReply, this.#onError);
  }

  readonly #onReply = (reply: unknown): unknown => this.#state.replies.verify(reply);

  readonly #onError = async (thrown: unknown): Promise<never> => {
    await this.#state.replies.verify(undefined);
    throw portError(thrown);
  };

  explain(error: Error): Error | undefined {
    if (this.#client.isPubSubActive && SUBSCRIBER_ONLY.test(error.message)) return errorOf(SUBSCRIBER, error);
    return this.#state.fault(error);
  }

  onState(listeners: StateListeners): () => void {
    return this.#state.listen(listeners);
  }

  openSubscription(channel: string, listeners: SubscriptionListeners): Subscription {
    return openSubscription({ client: this.#client }, channel, listeners);
  }

  openOwn(options: OwnConnectionOptions): OwnConnection {
    return openOwn({ client: this.#client }, this.keyPrefix, options);
  }

  close(): void {} // The state of the client keeps its listeners.
}

const SUBSCRIBER_ONLY = /only \(P\|S\)SUBSCRIBE/;
const SUBSCRIBER = permanent(
  "the Redis client has subscriptions, and with RESP: 2 it cannot send lock commands",
  "give Lockweave its own client, such as client.duplicate()",
);
