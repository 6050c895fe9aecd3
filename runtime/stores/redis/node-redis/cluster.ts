import { systemClock, type CancelTimer } from "../../../base/clock";
import { LockMisconfiguredError } from "../../../base/errors";
import type { ClusterPort, StateListeners, Subscription, SubscriptionListeners } from "../client-port";
import { mayPass, PAUSE_MS, sendToMaster } from "../cluster/master-of-key";
import type { Command, Send } from "../command";
import { errorOf, isMoved } from "../errors";
import { ADVICE, CLUSTER_OF_VERSION_5, ENDS_WHEN_IDLE, endsWhenIdle } from "./advice";
import type { NodeRedisCluster } from "./client";
import { isOfVersion5 } from "./client-source";
import { noSubscription, openSubscription } from "./connection";
import { PendingSends } from "./pending-sends";
import { CLOSED, CONNECTING, notConnected } from "./state";
import { NodeRedisTopology } from "./topology";

/** The number of times that a command is sent, if its node is not reachable, or does not serve its slot. */
const MOST_ATTEMPTS = 16;

/** The pause between two checks whether the user has connected the client. Before version 5.9, it has no event for that. */
const CHECK_AGAIN_MS = 50;

/** A client that `createCluster()` made. */
export class NodeRedisClusterPort implements ClusterPort {
  readonly keyPrefix: string;
  readonly database = 0;
  /** node-redis itself never does, but commands go through `send` again if the connection to a node broke. */
  readonly mayResend = true;
  readonly address = undefined;
  /** Each node has its own connection, and `topology` rejects the commands of one whose replies are in doubt. */
  readonly fault = undefined;
  readonly advice = ADVICE;
  readonly hazard: string | undefined;
  readonly topology: NodeRedisTopology;
  readonly #client: NodeRedisCluster;
  readonly #listeners = new Set<StateListeners>();
  readonly #pending = new PendingSends();
  #cancelCheck: CancelTimer | undefined;
  #wasReady: boolean;
  #isUp: boolean;

  constructor(given: NodeRedisCluster) {
    const { _self: client = given, _keyPrefix: keyPrefix = "" } = given;
    const { _options: options } = client;
    this.#client = client;
    this.keyPrefix = keyPrefix;
    if (isOfVersion5(given)) this.hazard = CLUSTER_OF_VERSION_5;
    else if (endsWhenIdle(options?.defaults)) this.hazard = ENDS_WHEN_IDLE;
    this.#wasReady = this.isReady;
    this.#isUp = this.isReady;
    this.topology = new NodeRedisTopology(client, this.keyPrefix, () => this.#onKnown());
  }

  get isReady(): boolean {
    return this.#client.isOpen && this.#client.masters.length > 0;
  }

  /**
   * Sends a command to the node of its first key, and follows redirections. `sendCommand()` of the client would queue a command for a node
   * without a connection, and never look for another node. Since version 6, it sends some commands to all nodes.
   */
  readonly send: Send = async (command, timeoutMs) => {
    const startedAt = systemClock.now();
    if (!this.isReady) await this.#ready(timeoutMs);
    for (let attempt = 1; ; attempt += 1) {
      const reply = await sendToMaster(this, command);
      if (!(reply instanceof Error)) return reply;
      const isLate = systemClock.now() + PAUSE_MS > startedAt + timeoutMs;
      if (!mayPass(reply, command) || attempt === MOST_ATTEMPTS || isLate) throw reply;
      await this.#recover(command, reply);
    }
  };

  explain(error: Error): Error | undefined {
    if (error instanceof LockMisconfiguredError) return error;
    return this.#isClosed ? errorOf(CLOSED, error) : undefined;
  }

  onState(listeners: StateListeners): () => void {
    this.#listeners.add(listeners);
    return () => this.#listeners.delete(listeners);
  }

  openSubscription(channel: string, listeners: SubscriptionListeners): Subscription {
    const [node] = this.topology.masters();
    if (node === undefined) return noSubscription(listeners);
    return openSubscription({ client: node.client }, channel, listeners);
  }

  close(): void {
    this.topology.close();
    this.#cancelCheck?.();
    this.#pending.fail(new Error("the store was closed"));
  }

  /** Whether the user has closed the client. */
  get #isClosed(): boolean {
    return this.#wasReady && !this.#client.isOpen;
  }

  async #recover({ keys: [key] }: Command, error: Error): Promise<void> {
    const isKnown = error.message.startsWith("TRYAGAIN") || error.message.startsWith("CLUSTERDOWN");
    if (!isKnown && key !== undefined) await this.topology.find(this.keyPrefix + key);
    if (!isMoved(error)) await new Promise<void>((resolve) => systemClock.after(PAUSE_MS, resolve));
  }

  // ---- before the client is connected -----------------------------------------------------------------

  /** Resolves when the client is connected, in the order of the calls. */
  #ready(timeoutMs: number): Promise<void> {
    this.#isUp = false;
    if (this.#isClosed) return Promise.reject(errorOf(CLOSED));
    this.#checkLater();
    return this.#pending.add(timeoutMs, () =>
      errorOf(this.#client.isOpen ? CONNECTING : notConnected("cluster")),
    );
  }

  #checkLater(): void {
    this.#cancelCheck ??= systemClock.after(CHECK_AGAIN_MS, () => {
      this.#cancelCheck = undefined;
      if (this.isReady) this.#pending.go();
      else if (!this.#pending.isEmpty) this.#checkLater();
    });
  }

  #onKnown(): void {
    this.#wasReady = true;
    if (this.#isUp) return;
    this.#isUp = true;
    for (const { up } of this.#listeners) up?.();
  }
}
