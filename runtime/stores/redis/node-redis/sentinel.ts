import { listenInRoot } from "../../../base/root-context";
import type { HostAndPort, NodeRedis, NodeRedisSentinel } from "./client";
import type { Place } from "./connection";
import type { Source } from "./source";

const sources = new WeakMap<NodeRedisSentinel, SentinelSource>();

/** Returns the source over a client. There is one for each client, with one set of listeners, which stay. */
export function sentinelSourceOf(given: NodeRedisSentinel): SentinelSource {
  const { _self: sentinel = given } = given;
  let source = sources.get(sentinel);
  if (source === undefined) sources.set(sentinel, (source = new SentinelSource(sentinel)));
  return source;
}

/**
 * The master that sentinels name. The client itself repeats a command after READONLY, and after its connection broke. It also gives one
 * connection to several callers only if their commands overlap, so some of them could wait forever. Therefore the store has a connection of
 * its own to the master, and the client only says where the master is.
 */
class SentinelSource implements Source {
  readonly keyPrefix: string;
  readonly name = "sentinel";
  readonly #sentinel: NodeRedisSentinel;
  readonly #listeners = new Set<() => void>();
  #wasReady = false;
  /** A connection to a master, for its options. */
  #example: Promise<NodeRedis> | undefined;
  #search: Promise<unknown> | undefined;

  constructor(sentinel: NodeRedisSentinel) {
    const { _keyPrefix: keyPrefix = "" } = sentinel;
    this.#sentinel = sentinel;
    this.keyPrefix = keyPrefix;
    listenInRoot<[{ readonly type: string }]>(sentinel, {
      "topology-change": ({ type }) => {
        if (type === "MASTER_CHANGE") for (const listener of this.#listeners) listener();
      },
    });
  }

  /** Before its first connection, version 5 would try to execute a command in an endless loop. */
  get isOpen(): boolean {
    this.#wasReady ||= this.#sentinel.isReady;
    return this.#sentinel.isOpen && this.#wasReady;
  }

  async locate(): Promise<Place> {
    const client = await this.#anyMaster();
    const address = this.#sentinel.getMasterNode() ?? (await this.#found());
    return { client, address };
  }

  accepts(role: unknown): boolean {
    return role === "master";
  }

  doubt(): void {
    if (this.isOpen) this.#askSentinels().catch(() => {}); // The caller tries again.
  }

  onMoved(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #anyMaster(): Promise<NodeRedis> {
    if (this.#example === undefined) {
      const example = this.#execute((client) => client);
      this.#example = example;
      example.catch(() => (this.#example = undefined));
    }
    return this.#example;
  }

  #execute(use: (client: NodeRedis) => NodeRedis): Promise<NodeRedis> {
    const { _execute: execute } = this.#sentinel;
    return execute.call(this.#sentinel, false, use);
  }

  async #found(): Promise<HostAndPort> {
    await this.#askSentinels();
    const address = this.#sentinel.getMasterNode();
    if (address === undefined) throw new Error("the sentinels name no master that can be reached");
    return address;
  }

  /** Makes the client ask the sentinels for the master. There is no public method for that, so it gets an error that triggers it. */
  #askSentinels(): Promise<unknown> {
    if (this.#search === undefined) {
      let hasAsked = false;
      const search = this.#execute((client) => {
        if (hasAsked) return client;
        hasAsked = true;
        throw new Error("READONLY");
      });
      this.#search = search.finally(() => (this.#search = undefined));
    }
    return this.#search;
  }
}
