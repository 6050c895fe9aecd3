// Command names are in lower case, as ioredis has them, so it need not convert them.

import { systemClock } from "../../base/clock";
import type {
  ReleaseReply,
  ReleaseRequest,
  Inspection,
  NotReleased,
  NotHeld,
  Renewed,
  RenewReply,
  RenewRequest,
  Acquired,
  AcquireReply,
  AcquireRequest,
} from "../port";
import { isShared } from "../value";
import { askBySlot, chunksOf, unlessParted } from "./cluster/by-slot";
import { isBeforeRedis7, translateError } from "./errors";
import {
  eachAlone,
  idsOf,
  lockTimesOf,
  scriptFor,
  setOf,
  settledOrError,
  single,
  type Command,
} from "./many";
import {
  uncertainRelease,
  RELEASED,
  eachReply,
  eachAcquired,
  holderOf,
  listOf,
  renewReply,
  ACQUIRED,
  TOO_FEW,
  unexpected,
  type Figure,
  type Found,
} from "./replies";
import { CLOSE, RELEASE, RELEASE_ALONE, RELEASE_MANY } from "./scripts/release";
import { INSPECT, PEEK } from "./scripts/peek";
import { RAISE_FENCE } from "./scripts/raise-fence";
import { RENEW, RENEW_WITH_TOKEN } from "./scripts/renew";
import { REVOKE } from "./scripts/revoke";
import { ACQUIRE } from "./scripts/acquire";
import { ACQUIRE_MANY } from "./scripts/acquire-many";
import { DRAW } from "./scripts/token";
import type { Server } from "./server";

/** The holds of one server, for locks that a caller holds alone. */
export class Holding {
  readonly #server: Server;
  #setCanGet = true;

  constructor(server: Server) {
    this.#server = server;
  }

  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    const { key, requestId, lockTimeMs, fencing } = request;
    if (fencing || !this.#setCanGet) return this.#acquireByScript(request, timeoutMs);
    const breaksBefore = this.#server.breaks;
    // One command that changes nothing if it runs twice, and that returns the value that it found.
    return this.#server.send(timeoutMs, "set", key, requestId, "PX", lockTimeMs, "NX", "GET").then(
      (holder) => {
        if (holder === "QUEUED") throw unexpected(holder); // The client is in a transaction, whose EXEC may still run the command.
        return this.#acquireReply(holder as string | null, breaksBefore);
      },
      (error: unknown) => {
        if (!isBeforeRedis7(error)) throw translateError(error);
        this.#setCanGet = false;
        return this.#acquireByScript(request, timeoutMs);
      },
    );
  }

  #acquireByScript(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    const { key, requestId, lockTimeMs, fencing } = request;
    const keys = fencing ? [key, this.#server.fenceOf(key)] : [key];
    const breaksBefore = this.#server.breaks;
    const acquired = this.#server.scripts.run(ACQUIRE, keys, [requestId, lockTimeMs], timeoutMs, (reply) => {
      const [isAcquired, detail] = listOf(reply) as [Figure, (string | null)?];
      if (Number(isAcquired) === 1) return this.acquired(breaksBefore, fencing, detail);
      return this.#acquireReply(detail ?? "", breaksBefore);
    });
    return this.#server.cluster !== undefined
      ? unlessParted(acquired, (ms) => this.#acquireThenDraw(request, ms), timeoutMs)
      : acquired;
  }

  /** For a slot that is migrating: draws the token after the key was acquired. The lock counts once a later renewal has confirmed it. */
  async #acquireThenDraw(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    const startedAt = systemClock.now();
    const reply = await this.acquire({ ...request, fencing: false }, timeoutMs);
    if (!reply.acquired) return reply;
    const renewal = await this.#drawAndRenew(request, startedAt, timeoutMs);
    if (!renewal.renewed) return { acquired: false, holder: renewal.holder, freeInMs: undefined };
    return {
      ...reply,
      ...(renewal.fencingToken === undefined ? {} : { fencingToken: renewal.fencingToken }),
      acquired: true,
    };
  }

  async acquireMany(
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    const cluster = this.#server.cluster;
    if (cluster === undefined) return await this.#acquireTogether(requests, timeoutMs);
    if (!this.#setCanGet) return await eachAlone(requests, (one) => this.acquire(one, timeoutMs));
    const breaksBefore = this.#server.breaks;
    return await askBySlot(cluster, requests, {
      command: (some) => single(some, setOf) ?? scriptFor(ACQUIRE_MANY, some),
      read: (reply, some) =>
        (some.length === 1 && !Array.isArray(reply) ? [reply] : eachAcquired(reply, some.length)).map(
          (found) =>
            found instanceof Error
              ? translateError(found)
              : this.#acquireReply(found as string | null, breaksBefore),
        ),
      again: (some) => eachAlone(some, (one) => this.acquire(one, timeoutMs)),
    });
  }

  async #acquireTogether(
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    const alone = (request: AcquireRequest): Promise<AcquireReply> =>
      this.#acquireByScript(request, timeoutMs);
    if (!this.#setCanGet) return await eachAlone(requests, alone);
    const keys = requests.map(({ key }) => key);
    const args = [idsOf(requests), ...lockTimesOf(requests)];
    const breaksBefore = this.#server.breaks;
    const read = (reply: unknown): readonly unknown[] => eachAcquired(reply, requests.length);
    const replies = await this.#server.scripts.runMany(ACQUIRE_MANY, keys, args, timeoutMs, read);
    if (replies === "each alone") return await eachAlone(requests, (one) => this.acquire(one, timeoutMs));
    if (replies.some(isBeforeRedis7)) {
      this.#setCanGet = false;
      return await eachAlone(requests, alone);
    }
    return (replies as (string | null | Error)[]).map((reply) =>
      reply instanceof Error ? translateError(reply) : this.#acquireReply(reply, breaksBefore),
    );
  }

  /** @param found the value of the key before the command */
  #acquireReply(found: string | null, breaksBefore: number): AcquireReply {
    if (found === null) return this.acquired(breaksBefore, false, undefined);
    return { acquired: false, holder: found, freeInMs: undefined };
  }

  acquired(breaksBefore: number, fencing: boolean, token: string | null | undefined): Acquired {
    const mayComeAgain = this.#server.breaks !== breaksBefore;
    if (!fencing && !mayComeAgain) return ACQUIRED;
    return {
      acquired: true,
      ...(mayComeAgain && { mayComeAgain }),
      ...(fencing && { fencingToken: Number(token) }),
    };
  }

  async renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    const plain = requests.filter(({ fencing }) => !fencing);
    const replies = new Map<RenewRequest, RenewReply>();
    const note = (some: readonly RenewRequest[], someReplies: readonly RenewReply[]): void =>
      some.forEach((request, index) => replies.set(request, someReplies[index] ?? TOO_FEW));
    // A failure of some requests says nothing about the others, which may go to another node.
    await Promise.all([
      this.#renewPlain(plain, timeoutMs).then((plainReplies) => note(plain, plainReplies)),
      ...requests
        .filter(({ fencing }) => fencing)
        .map(async (request) => {
          const reply = await this.#renewWithToken(request, timeoutMs).catch((error: Error) => error);
          note([request], [reply]);
        }),
    ]);
    return requests.map((request) => replies.get(request) ?? TOO_FEW);
  }

  async #renewPlain(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    if (this.#server.cluster !== undefined) {
      return await askBySlot(this.#server.cluster, requests, {
        command: (some) => scriptFor(RENEW, some),
        read: (reply, some) => eachReply(reply, some.length).map(renewReply),
        again: async (some) =>
          await this.#renewMany(some, timeoutMs).catch((error: Error) => some.map(() => error)),
      });
    }
    const chunks = chunksOf(requests, ({ key }) => key, undefined).map((chunk) =>
      this.#renewMany(chunk, timeoutMs).catch((error: Error) => chunk.map(() => error)),
    );
    return (await Promise.all(chunks)).flat();
  }

  async #renewMany(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    const keys = requests.map(({ key }) => key);
    const args = [idsOf(requests), ...lockTimesOf(requests)];
    const read = (reply: unknown): readonly unknown[] => eachReply(reply, requests.length);
    const replies = await this.#server.scripts.runMany(RENEW, keys, args, timeoutMs, read);
    if (replies !== "each alone") return replies.map(renewReply);
    const alone = requests.map(
      async (request) => (await this.#renewMany([request], timeoutMs))[0] ?? TOO_FEW,
    );
    return (await Promise.allSettled(alone)).map(settledOrError);
  }

  #renewWithToken(request: RenewRequest, timeoutMs: number): Promise<RenewReply> {
    const { key, requestId, lockTimeMs } = request;
    const keys = [key, this.#server.fenceOf(key)];
    const args = [requestId, lockTimeMs];
    const renewed = this.#server.scripts.run(RENEW_WITH_TOKEN, keys, args, timeoutMs, (reply): RenewReply => {
      const [isRenewed, detail = null] = listOf(reply) as [Figure, (string | null | Error)?];
      if (Number(isRenewed) === 1) return { renewed: true, fencingToken: Number(detail) };
      return renewReply([detail]);
    });
    return this.#server.cluster !== undefined
      ? unlessParted(renewed, (ms) => this.#renewThenDraw(request, ms), timeoutMs)
      : renewed;
  }

  async #renewThenDraw(request: RenewRequest, timeoutMs: number): Promise<RenewReply> {
    const startedAt = systemClock.now();
    const [reply = TOO_FEW] = await this.#renewMany([request], timeoutMs);
    if (reply instanceof Error) throw reply;
    return reply.renewed ? await this.#drawAndRenew(request, startedAt, timeoutMs) : reply;
  }

  /**
   * Draws a token for a hold that existed after `startedAt`, and then renews the hold. If the reply comes before the lock time can be over,
   * nobody else held the key in between, so nobody has a larger token.
   */
  async #drawAndRenew(
    request: RenewRequest,
    startedAt: number,
    timeoutMs: number,
  ): Promise<Renewed | NotHeld> {
    const { key, lockTimeMs } = request;
    const leftMs = (): number => timeoutMs - (systemClock.now() - startedAt);
    const fencingToken = await this.#server.scripts.run(
      DRAW,
      [this.#server.fenceOf(key)],
      [lockTimeMs],
      leftMs(),
      Number,
    );
    const [reply = TOO_FEW] = await this.#renewMany([request], leftMs());
    if (reply instanceof Error) throw reply;
    if (!reply.renewed) return reply;
    if (systemClock.now() - startedAt > lockTimeMs * DRAW_TIME_SHARE) {
      throw new Error("the slot of the key is migrating, and drawing a fencing token took too long");
    }
    return { renewed: true, fencingToken };
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    const { key, requestId, cooldownMs } = request;
    const breaksBefore = this.#server.breaks;
    const read = (reply: unknown): ReleaseReply => {
      const result = this.#releaseReply(reply, breaksBefore);
      if (result instanceof Error) throw result;
      return result;
    };
    if (cooldownMs !== undefined)
      return this.#server.scripts.run(CLOSE, [key], [requestId, cooldownMs], timeoutMs, read);
    const releaseAlone = (ms: number): Promise<ReleaseReply> =>
      this.#server.scripts.run(RELEASE_ALONE, [key], [requestId], ms, read);
    if (!this.#server.canQueue(key)) return releaseAlone(timeoutMs);
    const released = this.#server.scripts.run(
      RELEASE,
      [key, this.#server.queueOf(key)],
      [requestId, this.#server.publishCountsAll],
      timeoutMs,
      read,
    );
    // While the slot migrates, no waiter is notified. Waiters find the free key when they ask again.
    return this.#server.cluster !== undefined ? unlessParted(released, releaseAlone, timeoutMs) : released;
  }

  async releaseMany(
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]> {
    if (!requests.every(canGoInBatch))
      return await eachAlone(requests, (one) => this.release(one, timeoutMs));
    const cluster = this.#server.cluster;
    if (cluster === undefined) return await this.#releaseTogether(requests, timeoutMs);
    const breaksBefore = this.#server.breaks;
    const queued = requests.filter(({ key }) => this.#server.canQueue(key));
    const others = requests.filter(({ key }) => !this.#server.canQueue(key));
    const [replies, alone] = await Promise.all([
      askBySlot(cluster, queued, {
        command: (some) => this.#releaseCommand(some),
        read: (reply, some) =>
          (some.length === 1 ? [reply] : eachReply(reply, some.length)).map((one) =>
            this.#releaseReply(one, breaksBefore),
          ),
        again: (some) => eachAlone(some, (one) => this.release(one, timeoutMs)),
      }),
      eachAlone(others, (one) => this.release(one, timeoutMs)),
    ]);
    const repliesByRequest = new Map([
      ...queued.map((request, index) => [request, replies[index] ?? TOO_FEW] as const),
      ...others.map((request, index) => [request, alone[index] ?? TOO_FEW] as const),
    ]);
    return requests.map((request) => repliesByRequest.get(request) ?? TOO_FEW);
  }

  #releaseCommand(requests: readonly ReleaseRequest[]): Command {
    const queues = requests.map(({ key }) => this.#server.queueOf(key));
    return scriptFor(requests.length === 1 ? RELEASE : RELEASE_MANY, requests, queues, [
      this.#server.publishCountsAll,
    ]);
  }

  async #releaseTogether(
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]> {
    const breaksBefore = this.#server.breaks;
    const keys = requests.map(({ key }) => key);
    const queues = keys.map((key) => this.#server.queueOf(key));
    const args = [idsOf(requests), this.#server.publishCountsAll];
    const read = (reply: unknown): readonly unknown[] => eachReply(reply, requests.length);
    const replies = await this.#server.scripts.runMany(
      RELEASE_MANY,
      [...keys, ...queues],
      args,
      timeoutMs,
      read,
    );
    if (replies === "each alone") return await eachAlone(requests, (one) => this.release(one, timeoutMs));
    return replies.map((reply) => this.#releaseReply(reply, breaksBefore));
  }

  #releaseReply(reply: unknown, breaksBefore: number): ReleaseReply | Error {
    if (reply instanceof Error) return translateError(reply);
    if (!Array.isArray(reply)) {
      const outcome = Number(reply);
      if (outcome === 2) this.#server.warnOfDeniedChannels();
      return outcome === 1 || outcome === 2 ? RELEASED : unexpected(reply);
    }
    return this.notReleased((reply as unknown as Found)[0], breaksBefore);
  }

  /** If the connection broke, the client may have sent the command twice. The first one may have released the hold. */
  notReleased(found: Found[0], breaksBefore: number): NotReleased | Error {
    if (this.#server.breaks !== breaksBefore) return uncertainRelease();
    const holder = holderOf(found);
    return holder instanceof Error ? holder : { released: false, holder };
  }

  revoke({ key, requestId }: ReleaseRequest, timeoutMs: number): Promise<boolean | "shared"> {
    return this.#server.scripts.run(REVOKE, [key], [requestId], timeoutMs, (reply) => {
      if (Number(reply) === 1) return true;
      const holder = holderOf((listOf(reply) as unknown as Found)[0]);
      if (holder instanceof Error) throw holder;
      return holder !== undefined && isShared(holder) && "shared";
    });
  }

  async peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    const chunks = chunksOf(
      keys.map((key, index) => ({ key, index })),
      ({ key }) => key,
      this.#server.cluster?.shards,
    );
    const values: (string | Error | undefined)[] = keys.map(() => TOO_FEW);
    await Promise.all(
      chunks.map(async (chunk) => {
        const chunkValues = await this.#peekChunk(
          chunk.map(({ key }) => key),
          timeoutMs,
        );
        chunk.forEach(({ index }, nth) => (values[index] = chunkValues[nth]));
      }),
    );
    return values;
  }

  async #peekChunk(
    keys: readonly string[],
    timeoutMs: number,
  ): Promise<readonly (string | Error | undefined)[]> {
    try {
      const replies = await this.#server.scripts.runMany(PEEK, keys, [], timeoutMs, listOf);
      if (replies !== "each alone") return (replies as Found[0][]).map(holderOf);
    } catch (error) {
      return keys.map(() => translateError(error));
    }
    return (await Promise.all(keys.map((key) => this.#peekChunk([key], timeoutMs)))).flat();
  }

  async inspect(key: string, timeoutMs: number): Promise<Inspection> {
    const inspected = (keys: string[], ms: number): Promise<Inspection> =>
      this.#server.scripts.run(INSPECT, keys, [], ms, (reply) => inspectionOf(listOf(reply)));
    if (!this.#server.canQueue(key)) return await inspected([key], timeoutMs);
    const all = inspected([key, this.#server.queueOf(key)], timeoutMs);
    return await (this.#server.cluster === undefined
      ? all
      : unlessParted(all, (ms) => inspected([key], ms), timeoutMs));
  }

  /** Makes all later tokens of the key larger than this one, and larger than the tokens that its holder counts up from it. */
  async raiseFence(key: string, token: number, lockTimeMs: number, timeoutMs: number): Promise<void> {
    await this.#server.scripts.run(
      RAISE_FENCE,
      [this.#server.fenceOf(key)],
      [token, lockTimeMs],
      timeoutMs,
      () => {},
    );
  }
}

/** The share of the lock time within which a token must be drawn, if it is drawn after the key was acquired. */
const DRAW_TIME_SHARE = 0.9;

/**
 * Whether the request can be part of a batch. A script for many keys expects IDs of 32 characters, and IDs of other programs may be longer
 * or shorter.
 */
function canGoInBatch({ requestId, cooldownMs }: ReleaseRequest): boolean {
  return cooldownMs === undefined && requestId.length === 32;
}

function inspectionOf(reply: readonly unknown[]): Inspection {
  const [value, left, waiting] = reply as [string | null | undefined, Figure, Figure];
  const holds = typeof value === "string" ? [{ value, leftMs: Number(left) }] : [];
  return { holds, waiting: Number(waiting) };
}
