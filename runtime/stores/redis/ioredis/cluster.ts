import { systemClock } from "../../../base/clock";
import type { ClusterPort, StateListeners, Subscription, SubscriptionListeners } from "../client-port";
import type { RedisClient } from "../client";
import { mayPass, PAUSE_MS, sendToMaster } from "../cluster/master-of-key";
import { wordsOf, type Command, type Send } from "../command";
import { ADVICE } from "./advice";
import { faultOfClient } from "./client-state";
import { exec } from "./connection";
import { onState } from "./state";
import { openSubscription } from "./subscription";
import { IoredisTopology } from "./topology";

/** A `Cluster` of ioredis. */
export class IoredisCluster implements ClusterPort {
  readonly keyPrefix: string;
  /** Cluster nodes have their own database number, and the client has none. */
  readonly database = 0;
  readonly mayResend = true;
  readonly address = undefined;
  readonly fault = undefined;
  readonly advice = ADVICE;
  readonly topology: IoredisTopology;
  readonly #client: RedisClient;

  constructor(client: RedisClient) {
    this.#client = client;
    this.keyPrefix = client.options.keyPrefix ?? "";
    this.topology = new IoredisTopology(client);
  }

  get isReady(): boolean {
    return this.#client.status === "ready";
  }

  /**
   * Sends a command to the master of its key. ioredis itself would send it to a replica if it has no connection to any master. That replica
   * runs a script until it writes, so the script could read old data. ioredis would not look for the master either.
   */
  readonly send: Send = async (command, timeoutMs) => {
    const dueAt = systemClock.now() + timeoutMs;
    for (let left = this.#maxRedirections; ; left -= 1) {
      if (!this.isReady) return await this.#queue(command);
      const reply = await sendToMaster(this, command);
      if (!(reply instanceof Error)) return reply;
      const isLast = left <= 0 || systemClock.now() + PAUSE_MS > dueAt;
      if (isLast || !mayPass(reply, command)) throw reply;
      this.topology.refresh();
      await new Promise<void>((resolve) => systemClock.after(PAUSE_MS, resolve));
    }
  };

  /** The number of times that the client of the user repeats a command for such a reason. */
  get #maxRedirections(): number {
    const { maxRedirections = 16 } = this.#client.options as { readonly maxRedirections?: number };
    return maxRedirections;
  }

  /**
   * Lets the client send the command once it is connected. With auto-pipelining, some versions of ioredis mistake the first argument of a
   * command for its key. In an explicit pipeline, they do not.
   */
  #queue(command: Command): Promise<unknown> {
    const pipeline = this.#client.options.enableAutoPipelining === true && this.#client.pipeline?.();
    return pipeline === false || pipeline === undefined
      ? this.#client.call(...wordsOf(command))
      : onlyOne(exec(pipeline, [command], ""));
  }

  explain(error: Error): Error | undefined {
    return faultOfClient(this.#client, error);
  }

  onState(listeners: StateListeners): () => void {
    return onState(this.#client, listeners);
  }

  openSubscription(channel: string, listeners: SubscriptionListeners): Subscription {
    return openSubscription(this.#client, channel, listeners);
  }

  close(): void {
    this.topology.close();
  }
}

async function onlyOne(replies: Promise<readonly unknown[]>): Promise<unknown> {
  const [reply] = await replies;
  if (reply instanceof Error) throw reply;
  return reply;
}
