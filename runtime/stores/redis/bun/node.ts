import type {
  Address,
  ClientPort,
  StateListeners,
  Subscription,
  SubscriptionListeners,
} from "../client-port";
import { wordsOf, type Command, type Send } from "../command";
import { ADVICE } from "./advice";
import type { BunRedis } from "./client";
import { stateOf, type ClientState } from "./state";
import { openSubscription } from "./subscription";

/**
 * Bun's `RedisClient`. It shows neither its address nor its options. So the adapter cannot open a connection that never reconnects, which
 * the confirmation by replicas needs.
 */
export class BunNode implements ClientPort {
  readonly keyPrefix = "";
  /** Not visible. Only the confirmation by replicas needs it. */
  readonly database = 0;
  /** The client rejects the commands of a broken connection. Nothing documents that, so the store does not rely on it. */
  readonly mayResend = true;
  readonly address: Address | undefined = undefined;
  /** Bun itself rejects a connection that cannot select the database. */
  readonly fault = undefined;
  readonly advice = ADVICE;
  readonly #client: BunRedis;
  readonly #state: ClientState;

  constructor(client: BunRedis) {
    this.#client = client;
    this.#state = stateOf(client);
  }

  get isReady(): boolean {
    return this.#client.connected;
  }

  readonly send: Send = (command, timeoutMs) =>
    this.#client.connected
      ? this.#sendNow(command)
      : this.#state.ready(timeoutMs).then(() => this.#sendNow(command));

  #sendNow(command: Command): Promise<unknown> {
    const [name, ...args] = wordsOf(command);
    return this.#client.send(name, args.map(String)).catch(this.#onError);
  }

  readonly #onError = (thrown: unknown): never => {
    throw this.#state.failed(thrown);
  };

  explain(): Error | undefined {
    return this.#state.fault;
  }

  onState(listeners: StateListeners): () => void {
    return this.#state.listen(listeners);
  }

  openSubscription(channel: string, listeners: SubscriptionListeners): Subscription {
    return openSubscription(this.#client, channel, listeners);
  }

  close(): void {} // The state of the client keeps its callbacks.
}
