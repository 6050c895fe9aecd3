import { afterIo, systemClock } from "../../base/clock";
import { LockMisconfiguredError } from "../../base/errors";
import { NoReplyError } from "../../base/no-reply-error";
import { errorOf, isDenied, isUnknownCommand, translateError } from "./errors";
import { KeysOnTwoNodesError } from "./cluster/routes";
import { SLOTS } from "./cluster/slots";
import { faultOfProtocol } from "./protocol-fault";
import { eachAlone } from "./executor";
import { listOf, TOO_FEW } from "./replies";
import { RIGHTS } from "./scripts/rights";
import type { Server } from "./server";
import { DENIED, INCOMPLETE, oneOfCluster } from "./states";
import { sendScript } from "./unknown-script";

/** If the first connection takes longer, the client and the server may speak different protocols. */
const SUSPICIOUS_MS = 250;

/** The shortest time in which a search for a fault of the protocol may find one. */
const SEARCH_MS = 10;

/** Checks a server before the first lock is acquired there: whether it serves all keys, and whether its user may release a lock. */
export class Admission {
  /** Whether the check has succeeded, so that locks may be acquired. */
  hasPassed = false;
  readonly #server: Server;
  #current: Promise<void> | undefined;
  #isReached = false;
  #search: Promise<Error | undefined> | undefined;
  readonly #searching = new AbortController();

  constructor(server: Server) {
    this.#server = server;
  }

  /**
   * Resolves to the time that is left, once locks may be acquired. Concurrent callers share one check, which ends with the time of the caller
   * that began it: a server that hangs never replies. Callers with more time then check again.
   *
   * @param key the key of the requested lock
   * @throws {LockMisconfiguredError} if this server or its user cannot do what locks need
   */
  async check(key: string, timeoutMs: number): Promise<number> {
    const until = systemClock.now() + timeoutMs;
    while (!this.hasPassed) {
      const others = this.#current;
      const checked = others ?? (this.#current = inTime(this.#checkServer(key, until), until));
      try {
        await checked;
      } catch (error) {
        if (this.#current === checked) this.#current = undefined;
        // The user may lack permission for the key of another caller, but have permission for this one. So this caller checks again with
        // its own key.
        const mayCheckAgain = error instanceof LockMisconfiguredError || error instanceof CheckTimeoutError;
        if (others === undefined || !mayCheckAgain || systemClock.now() >= until) throw error;
      }
    }
    return Math.max(until - systemClock.now(), 1);
  }

  close(): void {
    this.#searching.abort();
  }

  /** Calls `send` once locks may be acquired. If the user may not use one of the keys, only the reply for that key is an error. */
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

  async #checkServer(key: string, until: number): Promise<void> {
    // Both checks run at the same time, so the first lock waits for one reply only.
    const rights = this.#assertRights(key, until);
    rights.catch(() => {});
    if (this.#server.cluster === undefined) await this.#assertAllSlots(until);
    await rights;
    this.hasPassed = true;
  }

  async #assertAllSlots(until: number): Promise<void> {
    const info = await this.#reach(until);
    if (!/^cluster_enabled:1/m.test(info)) return;
    const nodes = await unlessDenied(
      this.#server.transport.send({ name: "cluster", keys: [], args: ["nodes"] }, leftUntil(until)),
    );
    if (nodes !== undefined && slotsOfMyself(nodes) < SLOTS) {
      throw errorOf(oneOfCluster(this.#server.client.advice.useCluster));
    }
  }

  /**
   * Returns INFO over the first connection. If that fails or takes a long time, checks whether the client and the server speak different
   * protocols.
   */
  async #reach(until: number): Promise<string> {
    const reply = unlessDenied(
      this.#server.transport.send({ name: "info", keys: [], args: ["cluster"] }, leftUntil(until)),
    );
    const info = (await (this.#isReached ? reply : this.#unlessFault(reply, until))) ?? "";
    this.#isReached = true;
    this.#searching.abort(); // The connection works, so there is no fault to search for.
    return info;
  }

  /** Returns the reply, unless a fault of the protocol is found before the reply arrives, or soon after it has failed. */
  #unlessFault(reply: Promise<string | undefined>, until: number): Promise<string | undefined> {
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
      reply.then(resolve, (error: Error) => {
        const isTooLate = leftUntil(until) < SEARCH_MS; // After a search, `inTime` would reject first, with a worse reason.
        if (error instanceof LockMisconfiguredError || isSearching || isTooLate) return reject(error);
        const giveUp = (): void => reject(error);
        void searched().then(giveUp);
        systemClock.afterInBackground(leftUntil(until) / 2, giveUp);
      });
      void reply.then(cancel, cancel);
    });
  }

  /** Searches for a fault of the protocol. There is one search at a time, and later callers wait for the same one. */
  #faultOfProtocol(): Promise<Error | undefined> {
    return (this.#search ??= faultOfProtocol(this.#server.client.address, this.#searching.signal).finally(
      () => {
        this.#search = undefined;
      },
    ));
  }

  async #assertRights(key: string, until: number): Promise<void> {
    const server = this.#server;
    const others = server.canQueue(key) ? [server.queueOf(key), server.holdsOf(key)] : [];
    const ask = (keys: readonly string[], args: readonly string[]): Promise<unknown> =>
      sendScript(server, { name: "evalsha", script: RIGHTS, keys, args }, leftUntil(until));
    const askInParts = (error: unknown): Promise<unknown> => {
      if (!(error instanceof KeysOnTwoNodesError)) throw error;
      return ask(
        [key],
        others.map((name) => server.client.keyPrefix + name),
      );
    };
    const reply = await ask([key, ...others], [])
      .catch(askInParts)
      .catch((error: unknown) => {
        throw translateError(error);
      });
    const [outcome, command] = listOf(reply).map(String);
    if (outcome === "1") return;
    throw outcome === "2"
      ? errorOf(INCOMPLETE, new Error(`unknown command in scripts: ${command}`))
      : errorOf(DENIED, new Error(`NOPERM in scripts: ${command}`));
  }
}

/** The server did not reply to the check in time. */
class CheckTimeoutError extends NoReplyError {
  override readonly name = "CheckTimeoutError";
}

/**
 * Rejects at the deadline. After a block of the process, the check itself rejects first, with a better reason. Its own timers were due earlier,
 * but Node runs all timers of one duration together. So another turn of the event loop passes first.
 */
function inTime(check: Promise<void>, until: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void =>
      reject(new CheckTimeoutError("no reply from Redis to the check before the first lock"));
    const cancel = systemClock.afterInBackground(leftUntil(until), () =>
      afterIo(systemClock, () => afterIo(systemClock, giveUp)),
    );
    check.finally(cancel).then(resolve, reject);
  });
}

function leftUntil(until: number): number {
  return Math.max(until - systemClock.now(), 1);
}

/** Returns the reply as text, or undefined if the user may not run the command or the server does not have it. */
async function unlessDenied(reply: Promise<unknown>): Promise<string | undefined> {
  try {
    return String(await reply);
  } catch (error) {
    if (isDenied(error) || isUnknownCommand(error)) return undefined;
    throw translateError(error);
  }
}

/** Returns the number of slots of the node that replied to CLUSTER NODES. */
function slotsOfMyself(nodes: string): number {
  const line = nodes.split("\n").find((one) => /\bmyself\b/.test(one.split(" ")[2] ?? "")) ?? "";
  let count = 0;
  for (const range of line.trim().split(" ").slice(8)) {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(range) ?? [];
    if (first !== undefined) count += Number(last) - Number(first) + 1;
  }
  return count;
}
