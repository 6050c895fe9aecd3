import { partsOf, TickBatch } from "../../../base/tick-batch";
import { ConnectionClosedError, type ClusterNode, type ClusterPort } from "../client-port";
import type { Command } from "../command";
import type { Script } from "../scripts/script";
import { areOnTwoNodes, ASKING, isReplaced, REPLACED } from "./master-of-key";
import type { Shards } from "./shards";
import { SilentMasters } from "./silent-masters";

/**
 * The largest number of commands in one write to a node. A server runs all commands that it has read before it reads from other clients.
 */
const MOST_IN_A_WRITE = 256;

/** The keys of a script are on two nodes while their slot migrates. A command with one key can still reach each of them. */
export class KeysOnTwoNodesError extends Error {
  override readonly name = "KeysOnTwoNodesError";

  constructor(options: { readonly cause: unknown }) {
    super("the keys of the lock are on two nodes while their slot migrates", options);
  }
}

/** A command on its way to a node. */
interface Sending {
  readonly command: Command;
  /** The slot of its keys. */
  readonly slot: number;
  /** The owner of the slot when the command was sent. */
  readonly owner: string | undefined;
  readonly timeoutMs: number;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface SendingTo {
  readonly node: ClusterNode;
  readonly sending: Sending;
}

/**
 * Sends commands directly to the masters of their slots. Commands that are sent together go in one write. A cluster client would write each
 * command separately. It would also retry for a tenth of a second if the keys of a script are on two nodes. If a node does not serve a
 * command itself, the command goes through the client, which then learns the new topology.
 */
export class Routes {
  readonly #client: ClusterPort;
  readonly #shards: Shards;
  readonly #silent: SilentMasters;
  readonly #open = new TickBatch<SendingTo>((open) => this.#flush(open));
  /** The scripts that were loaded over each connection. */
  readonly #loadedScripts = new WeakMap<ClusterNode, Set<string>>();
  readonly #loads = new WeakMap<ClusterNode, Map<string, Promise<unknown>>>();

  /** @param shortestTimeLeftMs returns the shortest time left of all leases and waiters */
  constructor(client: ClusterPort, shards: Shards, shortestTimeLeftMs: () => number) {
    this.#client = client;
    this.#shards = shards;
    this.#silent = new SilentMasters((node) => client.topology.refresh(node), shortestTimeLeftMs);
  }

  close(): void {
    this.#silent.close();
  }

  /** Sends a command. Rejects with {@link KeysOnTwoNodesError} if the command names more than one key and their slot is migrating. */
  send(command: Command, timeoutMs: number): Promise<unknown> {
    const slot = this.#slotOf(command);
    const owner = this.#shards.ownerOf(slot);
    return new Promise((resolve, reject) =>
      this.#route({ command, slot, owner, timeoutMs, resolve, reject }),
    );
  }

  /** Sends many commands. Resolves to a reply or an error for each. */
  sendAll(commands: readonly Command[], timeoutMs: number): Promise<readonly unknown[]> {
    const replies: unknown[] = commands.map(() => undefined);
    let left = commands.length;
    if (left === 0) return Promise.resolve(replies);
    return new Promise((resolve) => {
      commands.forEach((command, index) => {
        const settle = (reply: unknown): void => {
          replies[index] = reply;
          left -= 1;
          if (left === 0) resolve(replies);
        };
        const slot = this.#slotOf(command);
        const owner = this.#shards.ownerOf(slot);
        this.#route({ command, slot, owner, timeoutMs, resolve: settle, reject: settle });
      });
    });
  }

  #route(sending: Sending): void {
    const node = this.#masterOf(sending.slot);
    if (node === undefined) this.#byClient(sending);
    else this.#add(node, sending);
  }

  /**
   * Loads a script on the master of the key, because that does not have it. Concurrent callers share one load. They never wait for other
   * masters, because one of those may hang.
   */
  async load({ source, sha1 }: Script, key: string): Promise<void> {
    const node = this.#masterOf(this.#shards.slotOf(key));
    if (node === undefined) return;
    const ofNode = this.#loads.get(node) ?? new Map<string, Promise<unknown>>();
    this.#loads.set(node, ofNode);
    let load = ofNode.get(sha1);
    if (load === undefined) {
      load = this.#client.topology.write(node, [loadOf(source)]).finally(() => ofNode.delete(sha1));
      ofNode.set(sha1, load);
    }
    // If the user may not run SCRIPT LOAD, the caller sends the source of the script.
    await load.catch(() => {});
  }

  #slotOf({ keys: [key = ""] }: Command): number {
    return this.#shards.slotOf(key);
  }

  #masterOf(slot: number): ClusterNode | undefined {
    return this.#shards.masterAt(this.#shards.addressOf(slot));
  }

  #add(node: ClusterNode, sending: Sending): void {
    this.#open.add({ node, sending }, true);
  }

  #flush(open: readonly SendingTo[]): void {
    this.#shards.forgetMasters();
    const byNode = new Map<ClusterNode, Sending[]>();
    for (const { node, sending } of open) {
      const others = byNode.get(node);
      if (others === undefined) byNode.set(node, [sending]);
      else others.push(sending);
    }
    for (const [node, sendings] of byNode) {
      for (const some of partsOf(sendings, MOST_IN_A_WRITE)) this.#write(node, some);
    }
  }

  #write(node: ClusterNode, sendings: readonly Sending[]): void {
    const commands: Command[] = [];
    for (const { command } of sendings) {
      const source = this.#scriptNewTo(node, command);
      if (source !== undefined) commands.push(loadOf(source));
    }
    const loadCount = commands.length;
    for (const { command } of sendings) commands.push(command);
    this.#silent.sent(node);
    this.#client.topology.write(node, commands).then(
      (replies) => {
        this.#silent.settled(node);
        sendings.forEach((sending, index) => {
          const reply = replies[loadCount + index];
          if (reply instanceof Error) this.#onError(sending, reply);
          else if (isReplaced(node, this.#shards.ownerOf(sending.slot), sending.owner))
            sending.reject(new Error(REPLACED));
          else sending.resolve(reply);
        });
      },
      (error: unknown) => {
        this.#silent.settled(node);
        for (const sending of sendings) this.#onError(sending, error);
      },
    );
  }

  /** Returns the source of a script to load before the command. So no burst of commands reaches a server that does not have the script. */
  #scriptNewTo(node: ClusterNode, { name, script }: Command): string | undefined {
    if (name !== "evalsha" || script === undefined) return undefined;
    let loaded = this.#loadedScripts.get(node);
    if (loaded === undefined) this.#loadedScripts.set(node, (loaded = new Set()));
    if (loaded.has(script.sha1)) return undefined;
    loaded.add(script.sha1);
    return script.source;
  }

  #onError(sending: Sending, error: unknown): void {
    const { command, reject } = sending;
    const { message } = error instanceof Error ? error : { message: "" };
    const [kind, , address] = message.split(" ");
    if (areOnTwoNodes(command, error)) return reject(new KeysOnTwoNodesError({ cause: error }));
    if (kind === "MOVED") {
      this.#shards.moved(); // The node that the client asks for its slots may not know of the move yet.
      this.#client.topology.refresh();
    }
    if (kind === "ASK" || kind === "MOVED") return this.#redirect(sending, kind, address);
    const isForClient = kind === "CLUSTERDOWN" || error instanceof ConnectionClosedError;
    if (!isForClient) return reject(error);
    this.#byClient(sending);
  }

  /**
   * Sends the command to the node that the error named. The slot is there, or is moving there. If addresses are mapped, the client itself
   * does not find that node, and asks random nodes.
   */
  #redirect(sending: Sending, kind: "ASK" | "MOVED", address: string | undefined): void {
    const { command, slot, resolve, reject } = sending;
    const node = this.#shards.masterNamed(address);
    if (node === undefined) return this.#byClient(sending);
    const owner = this.#shards.ownerOf(slot);
    const commands = kind === "ASK" ? [ASKING, command] : [command];
    const source = this.#scriptNewTo(node, command);
    if (source !== undefined) commands.unshift(loadOf(source));
    this.#client.topology.write(node, commands).then((replies) => {
      const reply = replies.at(-1);
      if (!(reply instanceof Error)) {
        if (isReplaced(node, this.#shards.ownerOf(slot), owner)) reject(new Error(REPLACED));
        else resolve(reply);
      } else if (reply instanceof ConnectionClosedError || /^(MOVED|ASK|CLUSTERDOWN)/.test(reply.message)) {
        this.#byClient(sending);
      } else reject(areOnTwoNodes(command, reply) ? new KeysOnTwoNodesError({ cause: reply }) : reply);
    }, reject);
  }

  /** Sends the command through the client, which finds the node. */
  #byClient({ command, timeoutMs, resolve, reject }: Sending): void {
    this.#client.send(command, timeoutMs).then(resolve, (error: unknown) => {
      if (areOnTwoNodes(command, error)) reject(new KeysOnTwoNodesError({ cause: error }));
      else reject((error instanceof Error && this.#client.explain(error)) || error);
    });
  }
}

function loadOf(source: string): Command {
  return { name: "script", keys: [], args: ["load", source] };
}
