import { systemClock, type CancelTimer } from "../../../base/clock";
import { rooted } from "../../../base/root-context";
import type { Subscription, SubscriptionListeners } from "../client-port";
import { isDenied, isUnknownCommand } from "../errors";
import { execBatch } from "./batch";
import type { GlideCluster, GlideConfig, GlideRoute } from "./client";
import { SecondClient, type Configured } from "./connection";
import { isClosing, portError } from "./errors";
import { endpointOf } from "./slots";

/** The commands of a kind of channel. */
const KINDS = {
  sharded: { subscribe: "ssubscribe", unsubscribe: "sunsubscribe", publish: "spublish" },
  plain: { subscribe: "subscribe", unsubscribe: "unsubscribe", publish: "publish" },
} as const;

type Kind = keyof typeof KINDS;

/** The message by which a subscription finds out whether it receives messages. No wake-up is empty. */
const PROBE = "";
const PROBE_AGAIN_MS = 100;
/** A subscription without a message after this time has failed. GLIDE needs a few seconds for a new connection. */
const CONFIRMED_WITHIN_MS = 5_000;
/** The interval at which GLIDE checks whether its subscriptions are at the right nodes. */
const RECONCILE_MS = 500;

/**
 * Receives messages in a cluster over one client of our own. GLIDE itself moves a subscription to another node, and renews it after a
 * reconnect, but reports neither. So each subscription sends messages to itself.
 */
export class Subscriber {
  readonly #configured: Configured;
  readonly #nodes: () => readonly string[];
  readonly #open = new Map<string, Set<Channel>>();
  #client: SecondClient | undefined;
  /** The addresses of the masters when the client was created. */
  #mastersBefore: readonly string[] = [];
  #isClosed = false;

  /** @param nodes returns the addresses of the cluster's masters */
  constructor(configured: Configured, nodes: () => readonly string[]) {
    this.#configured = configured;
    this.#nodes = nodes;
  }

  open(kind: Kind, name: string, listeners: SubscriptionListeners): Subscription {
    const client = (this.#client ??= this.#connect());
    const channel = new Channel(client, kind, name, listeners, () => this.#forget(channel));
    const others = this.#open.get(name) ?? new Set();
    this.#open.set(name, others.add(channel));
    if (this.#isClosed) channel.close();
    else void channel.begin();
    return channel;
  }

  close(): void {
    this.#isClosed = true;
    for (const channels of this.#open.values()) for (const channel of channels) channel.close();
    this.#client?.close();
  }

  #connect(): SecondClient {
    this.#mastersBefore = this.#nodes();
    const { addresses = [], advancedConfiguration } = this.#configured.config as GlideConfig;
    const receive = ({ channel, message }: Record<"channel" | "message", unknown>): void => {
      for (const one of this.#open.get(String(channel)) ?? []) one.receive(String(message));
    };
    const client = new SecondClient(this.#configured, {
      addresses: [...addresses, ...this.#mastersBefore.map(endpointOf)],
      advancedConfiguration: { ...advancedConfiguration, pubsubReconciliationIntervalMs: RECONCILE_MS },
      pubsubSubscriptions: { channelsAndPatterns: {}, callback: rooted(receive) },
    });
    return client;
  }

  #forget(channel: Channel): void {
    const channels = this.#open.get(channel.name);
    channels?.delete(channel);
    if (channels?.size === 0) {
      this.#open.delete(channel.name);
      if (!this.#isClosed) channel.unsubscribe();
    }
    if (this.#client === channel.client && (channel.isOfDeadClient || this.#isStaleFor(channel))) {
      this.#client.close();
      this.#client = undefined;
    }
  }

  /**
   * Whether another client may receive the messages of the channel. GLIDE keeps subscribing at a master that hangs, also after its replica has
   * taken over. A new client knows the new master.
   */
  #isStaleFor({ isSilent }: Channel): boolean {
    return isSilent && this.#nodes().some((address) => !this.#mastersBefore.includes(address));
  }
}

/** A subscription to one channel. */
class Channel implements Subscription {
  readonly client: SecondClient;
  readonly name: string;
  /** Whether the client could not connect, or GLIDE has closed it. */
  isOfDeadClient = false;
  /** Whether it has failed because no message arrived. */
  isSilent = false;
  readonly #kind: Kind;
  readonly #listeners: SubscriptionListeners;
  readonly #onClosed: () => void;
  readonly #pings = new Set<() => void>();
  /** The time by which a message must arrive. Undefined if none is missing. */
  #dueAt: number | undefined = systemClock.now() + CONFIRMED_WITHIN_MS;
  #cancelProbe: CancelTimer | undefined;
  #isClosed = false;

  constructor(
    client: SecondClient,
    kind: Kind,
    name: string,
    listeners: SubscriptionListeners,
    onClosed: () => void,
  ) {
    this.client = client;
    this.#kind = kind;
    this.name = name;
    this.#listeners = listeners;
    this.#onClosed = onClosed;
  }

  async begin(): Promise<void> {
    try {
      await this.client.opened;
    } catch (thrown) {
      this.isOfDeadClient = true;
      return this.#fail(portError(thrown));
    }
    this.client.send(KINDS[this.#kind].subscribe, this.name).catch(() => {}); // Then no message arrives.
    await this.#probe();
  }

  receive(message: string): void {
    if (this.#isClosed) return;
    if (message !== PROBE) return this.#listeners.message(message);
    for (const answered of this.#pings) answered();
    this.#pings.clear();
    if (this.#dueAt === undefined) return;
    this.#dueAt = undefined;
    this.#listeners.subscribed();
  }

  ping(): Promise<void> {
    return new Promise((resolve) => {
      this.#pings.add(resolve);
      void this.#probe();
    });
  }

  unsubscribe(): void {
    this.client.send(KINDS[this.#kind].unsubscribe, this.name).catch(() => {}); // The client is closing.
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelProbe?.();
    this.#onClosed();
  }

  /** Publishes a message to this channel, again and again while one must arrive. */
  async #probe(): Promise<void> {
    if (this.#isClosed || this.#cancelProbe !== undefined) return;
    try {
      const count = await this.#publish();
      // No subscriber of the shard has the channel. Messages may have been lost.
      if (count === 0 && this.#kind === "sharded") this.#dueAt ??= systemClock.now() + CONFIRMED_WITHIN_MS;
    } catch (thrown) {
      const error = portError(thrown);
      this.isOfDeadClient = isClosing(error);
      if (this.isOfDeadClient || isDenied(error) || isUnknownCommand(error)) return this.#fail(error);
      this.#dueAt ??= systemClock.now() + CONFIRMED_WITHIN_MS;
    }
    if (this.#dueAt === undefined || this.#isClosed) return;
    if (systemClock.now() > this.#dueAt) {
      this.isSilent = true;
      return this.#fail(new Error("the subscription receives no messages"));
    }
    this.#cancelProbe = systemClock.afterInBackground(PROBE_AGAIN_MS, () => {
      this.#cancelProbe = undefined;
      void this.#probe();
    });
  }

  async #publish(): Promise<unknown> {
    const command = { name: KINDS[this.#kind].publish, keys: [], args: [this.name, PROBE] };
    const route: GlideRoute =
      this.#kind === "plain" ? "randomNode" : { type: "primarySlotKey", key: this.name };
    const [reply] = await execBatch((await this.client.opened) as GlideCluster, [command], route);
    if (reply instanceof Error) throw reply;
    return reply;
  }

  #fail(error: Error): void {
    if (this.#isClosed) return;
    this.#listeners.failed(error);
    this.close();
    this.#listeners.ended();
  }
}
