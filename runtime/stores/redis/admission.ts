import { afterIo, systemClock } from "../../base/clock";
import { LockMisconfiguredError } from "../../base/errors";
import { NoReplyError } from "../../base/no-reply-error";
import { errorOf, isDenied, isReply, isUnknownCommand, translateError } from "./errors";
import { KeysOnTwoNodesError } from "./cluster/routes";
import { SLOTS } from "./cluster/slots";
import { faultOfProtocol } from "./protocol-fault";
import { eachAlone } from "./executor";
import { assertAllowed, listOf, TOO_FEW } from "./replies";
import { RIGHTS } from "./scripts/rights";
import type { Server } from "./server";
import { oneOfCluster } from "./states";
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
      try {
        await (others ?? this.#share(this.#checkServer(key, until), until));
      } catch (error) {
        // The user may lack permission for the key of another caller, but have permission for this one. So this caller checks again with
        // its own key.
        const mayCheckAgain = error instanceof LockMisconfiguredError || error instanceof CheckTimeoutError;
        if (others === undefined || !mayCheckAgain || systemClock.now() >= until) throw error;
      }
    }
    const leftMs = until - systemClock.now();
    if (leftMs <= 0) throw new CheckTimeoutError(); // The caller has given up, so nothing may acquire a lock for it now.
    return leftMs;
  }

  /**
   * Acquires a lock with `acquire`, once that is allowed. If no check has begun, `checkAndAcquire` does both in one command, so that the first
   * lock waits for one reply only. Its reply may come after the timeout, like that of any command that acquires a lock.
   *
   * @param checkAndAcquire resolves to undefined if this command cannot check the server
   * @param abandon receives the reply of `checkAndAcquire` if it comes after this method rejected with a LockMisconfiguredError
   * @throws {LockMisconfiguredError} if this server or its user cannot do what locks need
   */
  async acquire<Reply>(
    key: string,
    timeoutMs: number,
    checkAndAcquire: (timeoutMs: number) => Promise<Reply | undefined>,
    acquire: (leftMs: number) => Promise<Reply>,
    abandon: (reply: Reply) => void,
  ): Promise<Reply> {
    const until = systemClock.now() + timeoutMs;
    if (this.#current === undefined) {
      const sent = unlessOfCluster(checkAndAcquire(timeoutMs));
      const reached = this.#reach(sent, until);
      const checked = this.#share(
        reached.then((reply) => (reply === undefined ? this.#checkServer(key, until) : undefined)),
        until,
      );
      try {
        const reply = await reached;
        if (reply !== undefined) return reply;
      } catch (error) {
        // A search found the fault while the command was on its way.
        if (error instanceof LockMisconfiguredError)
          sent.then((reply) => reply !== undefined && abandon(reply)).catch(() => {});
        throw error;
      }
      await checked;
    }
    return await acquire(await this.check(key, until - systemClock.now()));
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

  /** Shares a check with other callers until it fails. */
  #share(check: Promise<void>, until: number): Promise<void> {
    const passed = check.then(() => {
      this.hasPassed = true;
    });
    const current = inTime(passed, until);
    this.#current = current;
    current.catch(() => {
      if (this.#current === current) this.#current = undefined;
    });
    return current;
  }

  async #checkServer(key: string, until: number): Promise<void> {
    // Both checks run at the same time, so the first lock waits for one reply only.
    const rights = this.#assertRights(key, until);
    rights.catch(() => {});
    if (this.#server.cluster === undefined) await this.#assertAllSlots(until);
    await rights;
  }

  async #assertAllSlots(until: number): Promise<void> {
    const info = this.#server.transport.send({ name: "info", keys: [], args: ["cluster"] }, leftUntil(until));
    const text = await this.#reach(unlessDenied(info), until);
    if (text === undefined || !/^cluster_enabled:1/m.test(text)) return;
    const nodes = await unlessDenied(
      this.#server.transport.send({ name: "cluster", keys: [], args: ["nodes"] }, leftUntil(until)),
    );
    if (nodes !== undefined && slotsOfMyself(nodes) < SLOTS) {
      throw errorOf(oneOfCluster(this.#server.client.advice.useCluster));
    }
  }

  /**
   * Returns the first reply. If it fails or takes a long time, checks whether the client and the server speak different protocols. Later
   * replies need no such check.
   */
  async #reach<Reply>(first: Promise<Reply>, until: number): Promise<Reply> {
    const reply = await (this.#isReached ? first : this.#unlessFault(first, until));
    this.#isReached = true;
    this.#searching.abort(); // The connection works, so there is no fault to search for.
    return reply;
  }

  /** Returns the reply, unless a fault of the protocol is found before the reply arrives, or soon after it has failed. */
  #unlessFault<Reply>(reply: Promise<Reply>, until: number): Promise<Reply> {
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
        const isExplained = error instanceof LockMisconfiguredError || replyIn(error) !== undefined;
        if (isExplained || isSearching || isTooLate) return reject(error);
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
    const [outcome, command] = listOf(reply);
    assertAllowed(outcome, command);
  }
}

/** The server did not reply to the check in time. */
class CheckTimeoutError extends NoReplyError {
  override readonly name = "CheckTimeoutError";

  constructor() {
    super("no reply from Redis to the check before the first lock");
  }
}

/**
 * Rejects at the deadline. After a block of the process, the check itself rejects first, with a better reason. Its own timers were due earlier,
 * but Node runs all timers of one duration together. So another turn of the event loop passes first.
 */
function inTime(check: Promise<void>, until: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(new CheckTimeoutError());
    const cancel = systemClock.afterInBackground(leftUntil(until), () =>
      afterIo(systemClock, () => afterIo(systemClock, giveUp)),
    );
    check.finally(cancel).then(resolve, reject);
  });
}

function leftUntil(until: number): number {
  return Math.max(until - systemClock.now(), 1);
}

/** The errors of a node of a cluster about keys that it does not serve. */
const OF_CLUSTER_NODE = /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN|CROSSSLOT)\b/;

/** Returns the reply, or undefined if a node of a cluster refused the command. Then a separate check finds out whether it has all keys. */
async function unlessOfCluster<Reply>(reply: Promise<Reply>): Promise<Reply | undefined> {
  try {
    return await reply;
  } catch (error) {
    const refusal = replyIn(error);
    if (refusal !== undefined && OF_CLUSTER_NODE.test(refusal.message)) return undefined;
    throw error;
  }
}

/** Returns the error reply of the server, if the error is one or was translated from one. */
function replyIn(error: unknown): Error | undefined {
  return [error, (error as Error).cause].find(isReply);
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
