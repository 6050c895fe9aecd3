import { systemClock } from "../../../base/clock";
import { slotOf } from "../cluster/slots";
import { PLAIN, type NodeRedisCluster, type NodeRedisMaster } from "./client";

/** A search must not wait longer for a node that does not answer. */
const SEARCH_MS = 500;

/** A script that changes nothing. */
const NO_OP = "return 1";

/**
 * Makes a cluster client ask its nodes for the slots. The client has no public method for this. It asks by itself only if a node answers that
 * it does not serve a slot. So the search sends a command to a node that can answer like that.
 */
export class SlotSearch {
  readonly #cluster: NodeRedisCluster;
  /** The nodes that have not answered, each with its turn. The one that was asked first is asked again first. */
  readonly #silent = new WeakMap<NodeRedisMaster, number>();
  #turns = 0;
  #current: Promise<void> | undefined;

  constructor(cluster: NodeRedisCluster) {
    this.#cluster = cluster;
  }

  /** Records that the master of the key does not answer, so that the next search asks another node. */
  avoidMasterOf(key: string): void {
    const master = this.#cluster.slots[slotOf(key)]?.master;
    if (master !== undefined) this.#noteSilence(master);
  }

  /** Resolves when the client has asked, or it takes too long. Never rejects. There is one search at a time. */
  find(key: string): Promise<void> {
    this.#current ??= this.#search(key).finally(() => (this.#current = undefined));
    return this.#current;
  }

  async #search(key: string): Promise<void> {
    const { slots } = this.#cluster;
    const slot = slotOf(key);
    const shard = slots[slot];
    const asked = this.#nodeToAsk(shard?.master);
    if (asked === undefined) return;
    // A master that cannot answer is replaced for a moment, so another node answers for it.
    const detour = { ...shard, master: asked };
    slots[slot] = detour;
    await this.#ask(asked, key);
    // The node has redirected the client, which may now wait for a master that does not answer.
    if (this.#cluster.slots !== slots) this.#silent.delete(asked);
    if (this.#cluster.slots === slots && slots[slot] === detour) slots[slot] = shard;
  }

  /** Resolves when the client has the answer, or it takes too long. Never rejects. */
  #ask(node: NodeRedisMaster, key: string): Promise<void> {
    this.#noteSilence(node);
    return new Promise((resolve) => {
      const answered = (): void => {
        this.#silent.delete(node);
        resolve(); // After an error, the caller tries again.
      };
      // The signal only stops a command that node-redis has not sent yet.
      const options = { ...PLAIN, abortSignal: AbortSignal.timeout(SEARCH_MS) };
      this.#cluster.sendCommand(key, false, ["EVAL", NO_OP, "1", key], options).then(answered, answered);
      systemClock.afterInBackground(SEARCH_MS, resolve);
    });
  }

  /** Records that a node has not answered yet. Other nodes are asked before it. */
  #noteSilence(node: NodeRedisMaster): void {
    this.#turns += 1;
    this.#silent.set(node, this.#turns);
  }

  #nodeToAsk(master: NodeRedisMaster | undefined): NodeRedisMaster | undefined {
    const { masters } = this.#cluster;
    const known = master === undefined ? masters : [master, ...masters];
    const ready = known.filter(({ client }) => client?.isReady === true);
    // With the option `minimizeConnections`, the client has no connection to a node that it never used, and opens it now.
    const unused = known.filter(({ client }) => client === undefined);
    const turnOf = (node: NodeRedisMaster): number => this.#silent.get(node) ?? 0;
    return [...ready, ...unused].reduce<NodeRedisMaster | undefined>(
      (best, node) => (best === undefined || turnOf(node) < turnOf(best) ? node : best),
      undefined,
    );
  }
}
