import { systemClock } from "../../../base/clock";
import { inRoot } from "../../../base/root-context";
import type { ClusterPort, StateListeners, Subscription, SubscriptionListeners } from "../client-port";
import { mayPass, PAUSE_MS } from "../cluster/master-of-key";
import type { Send } from "../command";
import { CLUSTER_ADVICE } from "./advice";
import type { GlideCluster, GlideConfig } from "./client";
import { GlideTopology } from "./topology";

/** A client from `GlideClusterClient.createClient()`, with its configuration. */
export class GlideClusterPort implements ClusterPort {
  readonly keyPrefix = ""; // GLIDE has no prefixes.
  readonly database: number;
  /** GLIDE itself repeats no command of a batch, but commands go through `send` again if the connection to a node broke. */
  readonly mayResend = true;
  readonly address = undefined;
  readonly fault = undefined; // GLIDE itself rejects a connection that cannot select the database.
  readonly advice = CLUSTER_ADVICE;
  readonly topology: GlideTopology;
  readonly #listeners = new Set<StateListeners>();
  #wasReady = false;

  constructor(glide: GlideCluster, config: GlideConfig) {
    this.database = config.databaseId ?? 0;
    this.topology = new GlideTopology(glide, config, () => this.#onKnown());
  }

  get isReady(): boolean {
    return this.topology.isKnown;
  }

  /** Sends a command to the master of its key. GLIDE itself gives up while it cannot reach that node, for example during a failover. */
  readonly send: Send = async (command, timeoutMs) => {
    const dueAt = systemClock.now() + timeoutMs;
    for (;;) {
      const reply = await this.topology.sendAlone(command);
      if (!(reply instanceof Error)) return reply;
      if (!mayPass(reply, command) || systemClock.now() + PAUSE_MS > dueAt) throw reply;
      await new Promise<void>((resolve) => systemClock.after(PAUSE_MS, resolve));
    }
  };

  explain(): undefined {
    return undefined; // The topology itself explains errors.
  }

  onState(listeners: StateListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  openSubscription(channel: string, listeners: SubscriptionListeners): Subscription {
    return this.topology.openPlainSubscription(channel, listeners);
  }

  close(): void {
    this.#listeners.clear();
    this.topology.close();
  }

  #onKnown(): void {
    if (this.#wasReady || !this.isReady) return;
    this.#wasReady = true;
    inRoot(() => {
      for (const { up } of this.#listeners) up?.();
    });
  }
}
