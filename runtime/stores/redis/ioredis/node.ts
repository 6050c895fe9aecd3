import type {
  Address,
  ClientPort,
  OwnConnection,
  OwnConnectionOptions,
  StateListeners,
  Subscription,
  SubscriptionListeners,
} from "../client-port";
import type { SentCommand } from "../blocking-command";
import type { RedisClient } from "../client";
import { wordsOf, type Send } from "../command";
import { ADVICE } from "./advice";
import { faultOfClient } from "./client-state";
import { openOwn, type Duplicable } from "./connection";
import { Database, databaseOf } from "./database";
import { onState } from "./state";
import { openSubscription } from "./subscription";

/** A `Redis` of ioredis: a client of one node, or of the master that sentinels name. */
export class IoredisNode implements ClientPort {
  readonly keyPrefix: string;
  readonly mayResend: boolean;
  readonly advice = ADVICE;
  readonly #client: RedisClient;
  readonly #database: Database;

  constructor(client: RedisClient, mayResend: boolean) {
    this.#client = client;
    this.mayResend = mayResend;
    this.keyPrefix = client.options.keyPrefix ?? "";
    this.#database = new Database(client);
  }

  get database(): number {
    return databaseOf(this.#client);
  }

  get isReady(): boolean {
    return this.#client.status === "ready";
  }

  get address(): Address | undefined {
    return addressIn(this.#client.options);
  }

  /**
   * ioredis queues commands until there is a connection, and sends them even if that connection uses the wrong database. Their replies come
   * after the reply to SELECT, and do not count.
   */
  get fault(): Error | undefined {
    return this.#database.fault;
  }

  readonly send: Send = (command) => this.#client.call(...wordsOf(command));

  explain(error: Error): Error | undefined {
    return faultOfClient(this.#client, error);
  }

  onState(listeners: StateListeners): () => void {
    return onState(this.#client, listeners);
  }

  openSubscription(channel: string, listeners: SubscriptionListeners): Subscription {
    return openSubscription(this.#client, channel, listeners);
  }

  openOwn(options: OwnConnectionOptions): OwnConnection {
    return openOwn(this.#client as RedisClient & Duplicable, this.keyPrefix, options);
  }

  bytesRead(): number | undefined {
    const { stream } = this.#client as { readonly stream?: { readonly bytesRead?: number } | null };
    return stream?.bytesRead;
  }

  firstUnanswered(): SentCommand | undefined {
    const { commandQueue } = this.#client as { readonly commandQueue?: CommandQueue };
    return commandQueue?.peekAt?.(0)?.command;
  }

  close(): void {
    this.#database.close();
  }
}

/** The commands that ioredis has sent, and that have no reply. It is not documented. */
interface CommandQueue {
  readonly peekAt?: (index: number) => { readonly command?: SentCommand } | undefined;
}

interface Destination {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly path?: unknown;
  readonly sentinels?: unknown;
  readonly tls?: unknown;
}

function addressIn(options: Destination): Address | undefined {
  const { host = "localhost", port = 6379, path, sentinels, tls } = options;
  if ((path ?? sentinels ?? null) !== null) return undefined;
  return { host, port, isTls: tls !== undefined && tls !== null && tls !== false };
}
