import type {
  ClientPort,
  OwnConnection,
  OwnConnectionOptions,
  StateListeners,
  Subscription,
  SubscriptionListeners,
} from "../client-port";
import type { Command, Send } from "../command";
import { isReply } from "../errors";
import type { Script } from "../scripts/script";
import { ADVICE } from "./advice";
import { AS_BYTES, type Glide, type GlideConfig } from "./client";
import { openOwn, openSubscription, type Configured } from "./connection";
import { faultOf, isClosing, isOverLimit, portError } from "./errors";
import { InFlight } from "./in-flight";
import { readReply } from "./scripts";
import { GlideState } from "./state";
import { textOf } from "./words";

const PING: Command = { name: "ping", keys: [], args: [] };
const CHECK_TIMEOUT_MS = 1_000;

/** A client of Valkey GLIDE for one node, from `GlideClient.createClient()`, without its configuration. So it opens no second connection. */
export class GlideNode implements ClientPort {
  readonly keyPrefix = ""; // GLIDE has no prefixes.
  readonly database: number = 0;
  readonly mayResend = true;
  readonly address = undefined;
  readonly fault = undefined; // GLIDE itself rejects a connection that cannot select the database.
  readonly advice = ADVICE;
  protected readonly glide: Glide;
  readonly #state = new GlideState(() => this.send(PING, CHECK_TIMEOUT_MS));
  readonly #inFlight: InFlight;
  readonly #sent = new Set<Script>();

  /** @param limit the `inflightRequestsLimit` of the client, if it is known */
  constructor(glide: Glide, limit?: number) {
    this.glide = glide;
    this.#inFlight = new InFlight(limit);
  }

  get isReady(): boolean {
    return this.#state.isUp;
  }

  readonly send: Send = (command, timeoutMs) =>
    this.#inFlight
      .run(() => this.glide.customCommand(this.#wordsOf(command), AS_BYTES), timeoutMs)
      .then(this.#onReply, this.#onError);

  /** Sends the source of a script the first time, because GLIDE logs a warning for each error reply, such as NOSCRIPT. */
  #wordsOf(command: Command): string[] {
    const { name, script } = command;
    const isNew = script !== undefined && !this.#sent.has(script);
    if (isNew) this.#sent.add(script);
    return textOf(isNew && name === "evalsha" ? { ...command, name: "eval" } : command);
  }

  readonly #onReply = (reply: unknown): unknown => {
    this.#state.heard();
    return readReply(reply);
  };

  readonly #onError = (thrown: unknown): never => {
    const error = portError(thrown);
    if (isReply(error)) this.#state.heard();
    else if (!isClosing(error) && !isOverLimit(error)) this.#state.failed();
    throw error;
  };

  explain(error: Error): Error | undefined {
    return faultOf(error);
  }

  onState(listeners: StateListeners): () => void {
    return this.#state.listen(listeners);
  }

  close(): void {
    this.#state.close();
  }
}

/** A client of Valkey GLIDE for one node, with its configuration. So it can open other connections. */
export class ConfiguredGlideNode extends GlideNode {
  override readonly database: number;
  readonly #configured: Configured;

  constructor(configured: Configured) {
    const { databaseId = 0, inflightRequestsLimit } = configured.config as GlideConfig;
    super(configured.glide, inflightRequestsLimit);
    this.#configured = configured;
    this.database = databaseId;
  }

  openSubscription(channel: string, listeners: SubscriptionListeners): Subscription {
    return openSubscription(this.#configured, channel, listeners, (state) => this.onState(state));
  }

  openOwn(options: OwnConnectionOptions): OwnConnection {
    return openOwn(this.#configured, options);
  }
}
