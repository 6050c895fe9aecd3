import { systemClock } from "../../clock";
import { LockMisconfiguredError } from "../../errors";
import { errorOf, isDenied, isUnknownCommand, translateError } from "./errors";
import { faultOfProtocol } from "./protocol-fault";
import { eachAlone } from "./many";
import { listOf, TOO_FEW } from "./replies";
import { RIGHTS } from "./scripts/rights";
import type { Server } from "./server";
import { CLIENT_STATES, DENIED } from "./states";

/** A first connection that takes longer may speak another protocol than the server. */
const SUSPICIOUS_MS = 250;
const ALL_SLOTS = 16_384;

/** Looks at a server before the first lock is acquired there: whether it has all keys, and lets us release a lock. */
export class Admission {
  /** Whether locks may be acquired. */
  isOver = false;
  readonly #server: Server;
  #underWay: Promise<void> | undefined;
  #isReached = false;
  #search: Promise<Error | undefined> | undefined;
  readonly #searching = new AbortController();

  constructor(server: Server) {
    this.#server = server;
  }

  /**
   * Resolves to the time that is left, once locks may be acquired.
   *
   * @param key of the lock that is asked for
   * @throws {LockMisconfiguredError} when this server or its user cannot do what locks need
   */
  async check(key: string, timeoutMs: number): Promise<number> {
    const until = systemClock.now() + timeoutMs;
    while (!this.isOver) {
      const others = this.#underWay;
      const looked = others ?? (this.#underWay = this.#look(key, until));
      try {
        await looked;
      } catch (error) {
        if (this.#underWay === looked) this.#underWay = undefined;
        // What the user may not do with the key of another caller may be allowed with this one.
        if (others === undefined || !(error instanceof LockMisconfiguredError)) throw error;
      }
    }
    return Math.max(until - systemClock.now(), 1);
  }

  close(): void {
    this.#searching.abort();
  }

  /** The same for many keys. If the user may not use one of them, only the reply for that key is an error. */
  async checkMany<Request extends { readonly key: string }, Reply>(
    requests: readonly Request[],
    timeoutMs: number,
    send: (requests: readonly Request[], leftMs: number) => Promise<readonly (Reply | Error)[]>,
  ): Promise<readonly (Reply | Error)[]> {
    let leftMs: number;
    try {
      leftMs = await this.check(requests[0]?.key ?? "", timeoutMs);
    } catch (error) {
      if (requests.length === 1 || !isDenied((error as Error).cause)) throw error;
      return await eachAlone(requests, async (request) => {
        const [reply = TOO_FEW] = await send([request], await this.check(request.key, timeoutMs));
        if (reply instanceof Error) throw reply;
        return reply;
      });
    }
    return await send(requests, leftMs);
  }

  async #look(key: string, until: number): Promise<void> {
    const rights = this.#assertRights(key, until); // Both are asked at once: the first lock waits for one reply.
    rights.catch(() => {});
    if (this.#server.cluster === undefined) await this.#assertAllSlots(until);
    await rights;
    this.isOver = true;
  }

  async #assertAllSlots(until: number): Promise<void> {
    const info = await this.#reach(until);
    if (!/^cluster_enabled:1/m.test(info)) return;
    const nodes = await unlessDenied(this.#server.send(leftUntil(until), "cluster", "nodes"));
    if (nodes !== undefined && slotsOfMyself(nodes) < ALL_SLOTS) throw errorOf(CLIENT_STATES.oneOfCluster);
  }

  /** INFO, over the first connection: where that fails, or takes long, it may speak another protocol than the server. */
  async #reach(until: number): Promise<string> {
    const asked = unlessDenied(this.#server.send(leftUntil(until), "info", "cluster"));
    const info = (await (this.#isReached ? asked : this.#unlessFault(asked, until))) ?? "";
    this.#isReached = true;
    this.#searching.abort(); // There is a connection that works.
    return info;
  }

  /** The same as `asked`, unless a fault of the protocol is found before it is answered, or soon after it has failed. */
  #unlessFault(asked: Promise<string | undefined>, until: number): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const searched = async (): Promise<void> => {
        const fault = await this.#faultOfProtocol();
        if (fault !== undefined) reject(fault);
      };
      let isSearching = false;
      const cancel = systemClock.afterInBackground(SUSPICIOUS_MS, () => {
        isSearching = true;
        void searched();
      });
      asked.then(resolve, (error: Error) => {
        if (error instanceof LockMisconfiguredError || isSearching) return reject(error);
        const giveUp = (): void => reject(error);
        void searched().then(giveUp);
        systemClock.afterInBackground(leftUntil(until) / 2, giveUp);
      });
      void asked.then(cancel, cancel);
    });
  }

  /** One search at a time, whose end also later tries wait for. */
  #faultOfProtocol(): Promise<Error | undefined> {
    return (this.#search ??= faultOfProtocol(this.#server.client.options, this.#searching.signal).finally(
      () => {
        this.#search = undefined;
      },
    ));
  }

  async #assertRights(key: string, until: number): Promise<void> {
    const server = this.#server;
    const keys = server.canQueue(key) ? [key, server.queueOf(key), server.holdsOf(key)] : [key];
    const reply = await server.scripts.command(leftUntil(until), "eval", RIGHTS.source, keys.length, ...keys);
    const [isAllowed, denied] = listOf(reply);
    if (Number(isAllowed) === 1) return;
    throw errorOf(DENIED, new Error(`NOPERM in scripts: ${String(denied)}`));
  }
}

function leftUntil(until: number): number {
  return Math.max(until - systemClock.now(), 1);
}

/** Undefined where the user may not ask, or the server does not know. */
async function unlessDenied(asked: Promise<unknown>): Promise<string | undefined> {
  try {
    return String(await asked);
  } catch (error) {
    if (isDenied(error) || isUnknownCommand(error)) return undefined;
    throw translateError(error);
  }
}

/** How many slots CLUSTER NODES says that the node has which was asked. */
function slotsOfMyself(nodes: string): number {
  const line = nodes.split("\n").find((one) => /\bmyself\b/.test(one.split(" ")[2] ?? "")) ?? "";
  let count = 0;
  for (const range of line.trim().split(" ").slice(8)) {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? [];
    if (first !== undefined) count += Number(last) - Number(first) + 1;
  }
  return count;
}
