import { partsOf, TickBatch } from "../../../base/tick-batch";
import type { RedisClient } from "../client";
import { faultOfClient } from "../client-state";
import type { Command } from "../many";
import { sourceOf, type Script } from "../scripts/script";
import type { Shards } from "./shards";

/**
 * The largest number of commands in one write to a node. A server runs all commands that it has read before it reads from other clients.
 */
const MOST_IN_A_WRITE = 256;

/** The keys of a script are on two nodes while their slot migrates. A command with one key can still reach each of them. */
export class PartedKeysError extends Error {
  override readonly name = "PartedKeysError";
}

/** A command on its way to a node. */
interface Sending {
  readonly command: Command;
  /** Whether the command names only one key. */
  readonly hasOneKey: boolean;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface SendingTo {
  readonly node: RedisClient;
  readonly sending: Sending;
}

/**
 * Sends commands directly to the masters of their slots. Commands that are sent together go in one write. A cluster client would write each
 * command separately. It would also retry for a tenth of a second if the keys of a script are on two nodes. If a node does not serve a
 * command itself, the command goes through the client, which then learns the new topology.
 */
export class Routes {
  readonly #client: RedisClient;
  readonly #shards: Shards;
  readonly #prefix: string;
  readonly #open = new TickBatch<SendingTo>((open) => this.#flush(open));
  /** The scripts that were loaded over each connection. */
  readonly #loadedScripts = new WeakMap<RedisClient, Set<string>>();
  readonly #loads = new Map<string, Promise<unknown>>();

  constructor(client: RedisClient, shards: Shards) {
    this.#client = client;
    this.#shards = shards;
    this.#prefix = client.options.keyPrefix ?? "";
  }

  /** Sends a command. Rejects with {@link PartedKeysError} if the command names more than one key and their slot is migrating. */
  send(...command: Command): Promise<unknown> {
    return new Promise((resolve, reject) => this.#route(command, resolve, reject));
  }

  /** Sends many commands. Resolves to a reply or an error for each. */
  sendAll(commands: readonly Command[]): Promise<readonly unknown[]> {
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
        this.#route(command, settle, settle);
      });
    });
  }

  #route(command: Command, resolve: Sending["resolve"], reject: Sending["reject"]): void {
    const [first, end] = keysIn(command);
    const slot = this.#shards.slotOf(String(command[first]));
    const node = this.#shards.masterAt(this.#shards.addressOf(slot));
    if (node === undefined) this.#byClient(command).then(resolve, reject);
    else this.#add(node, { command, hasOneKey: end - first === 1, resolve, reject });
  }

  /** Loads a script on all masters, because some of them do not have it. Concurrent calls share one load. */
  load({ source, sha1 }: Script): Promise<unknown> {
    const current = this.#loads.get(sha1);
    if (current !== undefined) return current;
    const replies = this.#shards.masters().map((node) => node.call("script", "load", source));
    // If the user may not run SCRIPT LOAD, the caller sends the source of the script.
    const load = Promise.allSettled(replies).finally(() => this.#loads.delete(sha1));
    this.#loads.set(sha1, load);
    return load;
  }

  #add(node: RedisClient, sending: Sending): void {
    this.#open.add({ node, sending }, true);
  }

  #flush(open: readonly SendingTo[]): void {
    this.#shards.forgetMasters();
    const byNode = new Map<RedisClient, Sending[]>();
    for (const { node, sending } of open) {
      const others = byNode.get(node);
      if (others === undefined) byNode.set(node, [sending]);
      else others.push(sending);
    }
    for (const [node, sendings] of byNode) {
      for (const some of partsOf(sendings, MOST_IN_A_WRITE)) this.#write(node, some);
    }
  }

  #write(node: RedisClient, sendings: readonly Sending[]): void {
    const pipeline = node.pipeline?.();
    if (pipeline === undefined) {
      for (const sending of sendings) this.#byClient(sending.command).then(sending.resolve, sending.reject);
      return;
    }
    let loadCount = 0;
    for (const { command } of sendings) {
      const source = this.#scriptNewTo(node, command);
      if (source !== undefined) loadCount += 1;
      if (source !== undefined) pipeline.call("script", "load", source);
    }
    for (const { command } of sendings) pipeline.call(...this.#commandFor(node, command));
    pipeline.exec().then(
      (replies) => {
        sendings.forEach((sending, index) => {
          const [error, reply] = replies?.[loadCount + index] ?? NOT_RUN;
          if (error === null) sending.resolve(reply);
          else this.#onError(sending, error);
        });
      },
      (error: unknown) => {
        for (const sending of sendings) this.#onError(sending, error);
      },
    );
  }

  /** Returns the source of a script to load before the command. So no burst of commands reaches a server that does not have the script. */
  #scriptNewTo(node: RedisClient, [name, sha1]: Command): string | undefined {
    if (name !== "evalsha") return undefined;
    let loaded = this.#loadedScripts.get(node);
    if (loaded === undefined) this.#loadedScripts.set(node, (loaded = new Set()));
    if (loaded.has(String(sha1))) return undefined;
    loaded.add(String(sha1));
    return sourceOf(String(sha1));
  }

  /** Adds the key prefix of the cluster client, if the connection to the node does not add it. */
  #commandFor(node: RedisClient, command: Command): Command {
    if (this.#prefix === "" || node.options.keyPrefix === this.#prefix) return command;
    const [name, ...args] = command;
    const [first, end] = keysIn(command);
    return [
      name,
      ...args.map((arg, index) => (index + 1 >= first && index + 1 < end ? this.#prefix + arg : arg)),
    ];
  }

  #onError(sending: Sending, error: unknown): void {
    const { command, hasOneKey, resolve, reject } = sending;
    const { message } = error instanceof Error ? error : { message: "" };
    const [kind, , address] = message.split(" ");
    if (!hasOneKey && (kind === "ASK" || kind === "TRYAGAIN")) {
      return reject(new PartedKeysError(message, { cause: error }));
    }
    if (kind === "MOVED") {
      this.#shards.moved(); // The node that the client asks for its slots may not know of the move yet.
      this.#client.refreshSlotsCache?.();
    }
    if (kind === "ASK" || kind === "MOVED") return this.#redirect(sending, kind, address);
    // The second text is the error of ioredis for a connection that broke.
    const isForClient = kind === "CLUSTERDOWN" || message === "Connection is closed.";
    if (!isForClient) return reject(error);
    this.#byClient(command).then(resolve, reject);
  }

  /**
   * Sends the command to the node that the error named. The slot is there, or is moving there. If addresses are mapped, the client itself
   * does not find that node, and asks random nodes.
   */
  #redirect({ command, resolve, reject }: Sending, kind: "ASK" | "MOVED", address: string | undefined): void {
    const node = this.#shards.masterNamed(address);
    const pipeline = node?.pipeline?.();
    if (node === undefined || pipeline === undefined) {
      return void this.#byClient(command).then(resolve, reject);
    }
    if (kind === "ASK") pipeline.call("asking");
    pipeline.call(...this.#commandFor(node, command));
    pipeline.exec().then((replies) => {
      const [error, reply] = replies?.at(-1) ?? NOT_RUN;
      if (error === null) resolve(reply);
      else if (/^(MOVED|ASK|CLUSTERDOWN|Connection is closed)/.test(error.message)) {
        this.#byClient(command).then(resolve, reject);
      } else reject(error);
    }, reject);
  }

  /** Sends the command through the client, which finds the node. */
  async #byClient(command: Command): Promise<unknown> {
    try {
      return await this.#sendByClient(command);
    } catch (error) {
      throw (error instanceof Error && faultOfClient(this.#client, error)) || error;
    }
  }

  /**
   * With auto-pipelining, some versions of ioredis mistake the first argument of a command for its key. In an explicit pipeline, they do
   * not.
   */
  async #sendByClient(command: Command): Promise<unknown> {
    const pipeline = this.#client.options.enableAutoPipelining === true && this.#client.pipeline?.();
    if (pipeline === false || pipeline === undefined) return await this.#client.call(...command);
    pipeline.call(...command);
    const [error, reply] = (await pipeline.exec())?.[0] ?? NOT_RUN;
    if (error !== null) throw error;
    return reply;
  }
}

const NOT_RUN: [error: Error, reply: unknown] = [new Error("Redis did not run the pipeline"), undefined];

/** Returns where the keys of a command begin and end. */
function keysIn(command: Command): [first: number, end: number] {
  const [name, , count] = command;
  return name === "evalsha" || name === "eval" ? [3, 3 + Number(count)] : [1, 2];
}
