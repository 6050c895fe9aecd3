import { runInPromiseJob } from "../../../root-context";
import type { RedisClient } from "../client";
import { faultOfClient } from "../client-state";
import type { Command } from "../many";
import { sourceOf, type Script } from "../scripts/script";
import type { Shards } from "./shards";

/** How many commands are written to a node at once: a server carries out what it has read before it hears others. */
const MOST_IN_A_WRITE = 256;

/** The keys of a script are not in one place while their slot moves: each by itself can be reached. */
export class PartedKeysError extends Error {
  override readonly name = "PartedKeysError";
}

/** A command on its way to a node. */
interface Sending {
  readonly command: Command;
  /** Whether it names one key only. */
  readonly isForOne: boolean;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends commands straight to the masters of their slots, those of one moment in one write: a cluster client writes each
 * by itself, and waits and tries again for a tenth of a second where the keys of a script are parted. What a node does not
 * answer for itself goes by way of the client, which learns the new topology from it.
 */
export class Routes {
  readonly #client: RedisClient;
  readonly #shards: Shards;
  readonly #prefix: string;
  #open = new Map<RedisClient, Sending[]>();
  /** Which scripts each connection has told its server. */
  readonly #told = new WeakMap<RedisClient, Set<string>>();
  readonly #lessons = new Map<string, Promise<unknown>>();

  constructor(client: RedisClient, shards: Shards) {
    this.#client = client;
    this.#shards = shards;
    this.#prefix = client.options.keyPrefix ?? "";
  }

  /** Rejects with {@link PartedKeysError} where more than one key is named, and their slot is on its way. */
  send(...command: Command): Promise<unknown> {
    return new Promise((resolve, reject) => this.#route(command, resolve, reject));
  }

  /** The same for many: the reply to each, or its error. */
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
    else this.#add(node, { command, isForOne: end - first === 1, resolve, reject });
  }

  /** Makes all masters know a script that some of them have forgotten: once, however many ask. */
  teach({ source, sha1 }: Script): Promise<unknown> {
    const underWay = this.#lessons.get(sha1);
    if (underWay !== undefined) return underWay;
    const loads = this.#shards.masters().map((node) => node.call("script", "load", source));
    // Where a user may not load, the script is sent as it is.
    const lesson = Promise.allSettled(loads).finally(() => this.#lessons.delete(sha1));
    this.#lessons.set(sha1, lesson);
    return lesson;
  }

  #add(node: RedisClient, sending: Sending): void {
    if (this.#open.size === 0) runInPromiseJob(this.#flush);
    const others = this.#open.get(node);
    if (others === undefined) this.#open.set(node, [sending]);
    else others.push(sending);
  }

  readonly #flush = (): void => {
    const open = this.#open;
    this.#open = new Map();
    this.#shards.forgetMasters();
    for (const [node, sendings] of open) {
      for (let from = 0; from < sendings.length; from += MOST_IN_A_WRITE) {
        this.#write(node, sendings.slice(from, from + MOST_IN_A_WRITE));
      }
    }
  };

  #write(node: RedisClient, sendings: readonly Sending[]): void {
    const pipeline = node.pipeline?.();
    if (pipeline === undefined) {
      for (const sending of sendings) this.#byClient(sending.command).then(sending.resolve, sending.reject);
      return;
    }
    let lessons = 0;
    for (const { command } of sendings) {
      const source = this.#newTo(node, command);
      if (source !== undefined) lessons += 1;
      if (source !== undefined) pipeline.call("script", "load", source);
    }
    for (const { command } of sendings) pipeline.call(...this.#commandFor(node, command));
    pipeline.exec().then(
      (replies) => {
        sendings.forEach((sending, index) => {
          const [error, reply] = replies?.[lessons + index] ?? NOT_CARRIED_OUT;
          if (error === null) sending.resolve(reply);
          else this.#failed(sending, error);
        });
      },
      (error: unknown) => {
        for (const sending of sendings) this.#failed(sending, error);
      },
    );
  }

  /** The script that goes ahead of the command, so that no burst meets a server which does not know it. */
  #newTo(node: RedisClient, [name, sha1]: Command): string | undefined {
    if (name !== "evalsha") return undefined;
    let told = this.#told.get(node);
    if (told === undefined) this.#told.set(node, (told = new Set()));
    if (told.has(String(sha1))) return undefined;
    told.add(String(sha1));
    return sourceOf(String(sha1));
  }

  /** The node's own connection may not have the prefix that the cluster client puts before keys. */
  #commandFor(node: RedisClient, command: Command): Command {
    if (this.#prefix === "" || node.options.keyPrefix === this.#prefix) return command;
    const [name, ...args] = command;
    const [first, end] = keysIn(command);
    return [
      name,
      ...args.map((arg, index) => (index + 1 >= first && index + 1 < end ? this.#prefix + arg : arg)),
    ];
  }

  #failed(sending: Sending, error: unknown): void {
    const { command, isForOne, resolve, reject } = sending;
    const { message } = error instanceof Error ? error : { message: "" };
    const [kind, , address] = message.split(" ");
    if (!isForOne && (kind === "ASK" || kind === "TRYAGAIN")) {
      return reject(new PartedKeysError(message, { cause: error }));
    }
    if (kind === "MOVED") {
      this.#shards.moved(); // Whoever the client asks next may not have heard of it yet.
      this.#client.refreshSlotsCache?.();
    }
    if (kind === "ASK" || kind === "MOVED") return this.#sendOn(sending, kind, address);
    // In the client's own words, of a connection that broke.
    const isForClient = kind === "CLUSTERDOWN" || message === "Connection is closed.";
    if (!isForClient) return reject(error);
    this.#byClient(command).then(resolve, reject);
  }

  /**
   * To the node that was named: the slot is on its way to it, or there. Where addresses are mapped, the client itself does
   * not find that node, and asks others at random.
   */
  #sendOn({ command, resolve, reject }: Sending, kind: "ASK" | "MOVED", address: string | undefined): void {
    const node = this.#shards.masterNamed(address);
    const pipeline = node?.pipeline?.();
    if (node === undefined || pipeline === undefined) {
      return void this.#byClient(command).then(resolve, reject);
    }
    if (kind === "ASK") pipeline.call("asking");
    pipeline.call(...this.#commandFor(node, command));
    pipeline.exec().then((replies) => {
      const [error, reply] = replies?.at(-1) ?? NOT_CARRIED_OUT;
      if (error === null) resolve(reply);
      else if (/^(MOVED|ASK|CLUSTERDOWN|Connection is closed)/.test(error.message)) {
        this.#byClient(command).then(resolve, reject);
      } else reject(error);
    }, reject);
  }

  /**
   * The client finds the way. With its auto-pipelining, some versions of ioredis take the first argument for the key: not
   * in a pipeline of one's own.
   */
  async #byClient(command: Command): Promise<unknown> {
    try {
      return await this.#sendByClient(command);
    } catch (error) {
      throw (error instanceof Error && faultOfClient(this.#client, error)) || error;
    }
  }

  async #sendByClient(command: Command): Promise<unknown> {
    const pipeline = this.#client.options.enableAutoPipelining === true && this.#client.pipeline?.();
    if (pipeline === false || pipeline === undefined) return await this.#client.call(...command);
    pipeline.call(...command);
    const [error, reply] = (await pipeline.exec())?.[0] ?? NOT_CARRIED_OUT;
    if (error !== null) throw error;
    return reply;
  }
}

const NOT_CARRIED_OUT: [error: Error, reply: unknown] = [
  new Error("Redis did not run the pipeline"),
  undefined,
];

/** Where the keys of a command of ours begin and end. */
function keysIn(command: Command): [first: number, end: number] {
  const [name, , count] = command;
  return name === "evalsha" || name === "eval" ? [3, 3 + Number(count)] : [1, 2];
}
