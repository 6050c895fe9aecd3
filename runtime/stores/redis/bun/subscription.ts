import { rooted } from "../../../base/root-context";
import type { Subscription, SubscriptionListeners } from "../client-port";
import type { BunRedis } from "./client";
import { portError } from "./errors";

/** Subscribes a duplicate of the client. */
export function openSubscription(
  client: BunRedis,
  channel: string,
  listeners: SubscriptionListeners,
): Subscription {
  const subscription = new OwnSubscription(listeners);
  void subscription.open(client, channel);
  return subscription;
}

/** A duplicate of a client. When Bun reconnects, it does not subscribe again, so the subscription ends then. */
class OwnSubscription implements Subscription {
  readonly #listeners: SubscriptionListeners;
  #connection: BunRedis | undefined;
  #isClosed = false;

  constructor(listeners: SubscriptionListeners) {
    this.#listeners = listeners;
  }

  async open(client: BunRedis, channel: string): Promise<void> {
    try {
      const connection = await client.duplicate();
      this.#connection = connection;
      if (this.#isClosed) return connection.close();
      const end = rooted(() => this.#end());
      Object.assign(connection, { onclose: end });
      await connection.connect();
      Object.assign(connection, { onconnect: end });
      await connection.subscribe(
        channel,
        rooted((text: string) => this.#listeners.message(text)),
      );
      if (!this.#isClosed) this.#listeners.subscribed();
    } catch (error) {
      if (this.#isClosed) return;
      this.#listeners.failed(portError(error));
      this.#end();
    }
  }

  ping(): Promise<unknown> | undefined {
    return this.#connection?.send("PING", []);
  }

  close(): void {
    this.#isClosed = true;
    this.#connection?.close();
  }

  #end(): void {
    if (this.#isClosed) return;
    this.close();
    this.#listeners.ended();
  }
}
