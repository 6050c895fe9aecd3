import { listenInRoot } from "../../../base/root-context";
import type { Subscription, SubscriptionListeners } from "../client-port";
import type { RedisClient, RedisSubscriber } from "../client";
import { CLOSES_FAST } from "./connection";
import { isCluster } from "./state";

/** A `Redis`. A `Cluster` does not accept these overrides. */
interface Duplicable extends RedisClient {
  duplicate(
    overrides?: typeof CLOSES_FAST & {
      readonly autoResubscribe: boolean;
      readonly keyPrefix?: string;
    },
  ): RedisSubscriber;
}

/** Subscribes over a duplicate of the client, which reconnects as the client does. */
export function openSubscription(
  client: RedisClient,
  channel: string,
  listeners: SubscriptionListeners,
): Subscription {
  const isOfCluster = isCluster(client);
  const redis: Duplicable = client;
  // We subscribe ourselves on each "ready". With `autoResubscribe`, a `Redis` would subscribe, too, but nobody would handle its failure.
  const subscriber = isOfCluster
    ? redis.duplicate()
    : redis.duplicate({ ...CLOSES_FAST, autoResubscribe: false });
  let isDisconnected = false;
  const subscribe = (): void => {
    subscriber.subscribe(channel).then(
      () => listeners.subscribed(),
      (error: Error) => listeners.failed(error),
    );
  };
  listenInRoot(subscriber, {
    error() {}, // Waiters that receive no wake-up still ask again in time.
    message: (_channel, text) => listeners.message(text),
    end() {
      // With Sentinel, ioredis would keep the connections of its failover detector. After `close()`, the timer of this call would delay the
      // end of the process.
      if (!isOfCluster && !isDisconnected) subscriber.disconnect();
      listeners.ended();
    },
    ready: subscribe,
    // A `Cluster` subscribes on a node of its choice, and does not report that choice. It only reports new nodes.
    ...(isOfCluster && { "+node": subscribe }),
  });
  subscriber.subscribe(channel).catch(() => {}); // A client with `lazyConnect` connects now.
  return {
    // A `Cluster` would ping any node, and not the one on which it is subscribed.
    ping: () => (isOfCluster ? undefined : subscriber.call("ping")),
    close() {
      const { status } = subscriber as { readonly status?: string };
      isDisconnected = status === "ready"; // Otherwise a failover detector may still begin.
      subscriber.disconnect();
    },
  };
}

/** Subscribes to a sharded channel over a duplicate of the connection to a node. */
export function openShardedSubscription(
  node: Duplicable,
  channel: string,
  listeners: SubscriptionListeners,
): Subscription {
  const subscriber = node.duplicate({ ...CLOSES_FAST, autoResubscribe: false, keyPrefix: "" });
  let isDisconnected = false;
  listenInRoot(subscriber, {
    close() {
      if (!isDisconnected) subscriber.disconnect(); // It would reconnect by itself, without our subscription.
      listeners.ended();
    },
    smessage: (_channel, text) => listeners.message(text),
    // The server ends the subscription when the slot moves. ioredis 6 reports that with this event, and earlier versions with an error.
    moved: () => listeners.moved?.(),
    error(error: unknown) {
      if (isUnaskedReply(error)) listeners.moved?.();
    },
  });
  subscriber.call("ssubscribe", channel).then(
    () => listeners.subscribed(),
    (error: Error) => listeners.failed(error),
  );
  return {
    ping: () => subscriber.call("ping"),
    close() {
      isDisconnected = true; // The timer of a second call would delay the end of the process.
      subscriber.disconnect();
    },
  };
}

/**
 * Whether ioredis reports a message of the server that it did not expect. Versions before 6 do so when the server ends a sharded
 * subscription.
 */
function isUnaskedReply(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("Command queue state error");
}
