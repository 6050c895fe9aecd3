import { systemClock } from "../../base/clock";
import type {
  AcquireReply,
  AcquireRequest,
  Inspection,
  NotHeld,
  ReleaseReply,
  ReleaseRequest,
  Renewed,
  RenewReply,
  RenewRequest,
} from "../port";
import { isShared } from "../value";
import { idsOf, lockTimesOf, type Argument } from "./command";
import { lockOnly, type Executor, type Keyed, type Operation } from "./executor";
import {
  acquired,
  assertAllowed,
  eachAcquired,
  eachReply,
  holderIn,
  holderOf,
  isOne,
  listOf,
  releaseReply,
  renewReply,
  tokenIn,
  unexpected,
  type Figure,
  type Found,
} from "./replies";
import { ACQUIRE } from "./scripts/acquire";
import { ACQUIRE_MANY } from "./scripts/acquire-many";
import { INSPECT, PEEK } from "./scripts/peek";
import { RAISE_FENCE } from "./scripts/raise-fence";
import { CLOSE, RELEASE, RELEASE_ALONE, RELEASE_MANY } from "./scripts/release";
import { RENEW, RENEW_WITH_TOKEN } from "./scripts/renew";
import { REVOKE } from "./scripts/revoke";
import { CHECK_AND_ACQUIRE } from "./scripts/rights";
import { DRAW } from "./scripts/token";
import type { Server } from "./server";

interface FenceRequest extends Keyed {
  readonly token: number;
  readonly lockTimeMs: number;
}

/** The commands for holds of callers that hold a key alone. Each field is an {@link Operation}. The header of its script describes it. */
export class ExclusiveCommands {
  readonly #server: Server;
  readonly #executor: Executor;
  /** Whether SET can return the value that it found, as in Redis 7 and later. */
  #setCanGet = true;

  constructor(server: Server, executor: Executor) {
    this.#server = server;
    this.#executor = executor;
  }

  // ---- acquire ----------------------------------------------------------------------------------------

  acquire(request: AcquireRequest): Operation<AcquireRequest, AcquireReply> {
    return request.fencing || !this.#setCanGet ? this.#acquireByScript : this.#acquireBySet;
  }

  /** One command without a script. It changes nothing if it runs twice, and returns the value that it found. */
  readonly #acquireBySet: Operation<AcquireRequest, AcquireReply> = {
    keys: lockOnly,
    one: { run: "set", args: ({ requestId, lockTimeMs }) => [requestId, "PX", lockTimeMs, "NX", "GET"] },
    many: { run: ACQUIRE_MANY, args: idsAndLockTimes, each: eachAcquired },
    read: (found, _request, mayHaveRunTwice) => {
      if (found === null) return acquired(mayHaveRunTwice);
      // "QUEUED": the client is in a transaction, whose EXEC may still run the command.
      if (typeof found !== "string" || found === "QUEUED") throw unexpected(found);
      return { acquired: false, holder: found, freeInMs: undefined };
    },
    beforeRedis7: (request, timeoutMs) => {
      this.#setCanGet = false;
      return this.#executor.one(this.#acquireByScript, request, timeoutMs);
    },
  };

  /** Resolves to undefined if the server must be checked by other commands. */
  readonly checkAndAcquire: Operation<AcquireRequest, AcquireReply | undefined> = {
    keys: ({ key }) => [...this.#keysOf(key), this.#server.holdsOf(key)],
    one: { run: CHECK_AND_ACQUIRE, args: ({ requestId, lockTimeMs }) => [requestId, lockTimeMs] },
    read: (reply, request, mayHaveRunTwice) => {
      const [outcome, detail] = listOf(reply) as [Figure, unknown?];
      if (Number(outcome) === 3) return undefined;
      assertAllowed(outcome, detail);
      return this.#acquireBySet.read(detail, request, mayHaveRunTwice);
    },
  };

  readonly #acquireByScript: Operation<AcquireRequest, AcquireReply> = {
    keys: ({ key, fencing }) => (fencing ? [key, this.#server.fenceOf(key)] : [key]),
    one: { run: ACQUIRE, args: ({ requestId, lockTimeMs }) => [requestId, lockTimeMs] },
    read: (reply, { fencing }, mayHaveRunTwice) => {
      const [isAcquired, detail] = listOf(reply) as [Figure, string?];
      if (Number(isAcquired) === 1) return acquired(mayHaveRunTwice, fencing ? tokenIn(detail) : undefined);
      return { acquired: false, holder: detail ?? "", freeInMs: undefined };
    },
    inParts: (request, timeoutMs) => this.#acquireThenDraw(request, timeoutMs),
  };

  /** Draws the token after the key was acquired. The lock counts once a later renewal has confirmed it. */
  async #acquireThenDraw(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    const startedAt = systemClock.now();
    const plain = { ...request, fencing: false };
    const reply = await this.#executor.one(this.acquire(plain), plain, timeoutMs);
    if (!reply.acquired) return reply;
    const renewal = await this.#drawAndRenew(request, startedAt, timeoutMs);
    if (!renewal.renewed) return { acquired: false, holder: renewal.holder, freeInMs: undefined };
    return { ...reply, fencingToken: renewal.fencingToken };
  }

  // ---- renew ------------------------------------------------------------------------------------------

  renew({ fencing }: RenewRequest): Operation<RenewRequest, RenewReply> {
    return fencing ? this.#renewWithToken : this.#renewPlain;
  }

  readonly #renewPlain: Operation<RenewRequest, Renewed | NotHeld> = {
    keys: lockOnly,
    many: { run: RENEW, args: idsAndLockTimes, each: eachReply },
    read: renewReply,
  };

  readonly #renewWithToken: Operation<RenewRequest, Renewed | NotHeld> = {
    keys: ({ key }) => [key, this.#server.fenceOf(key)],
    one: { run: RENEW_WITH_TOKEN, args: ({ requestId, lockTimeMs }) => [requestId, lockTimeMs] },
    read: (reply) => {
      const [isRenewed, detail = null] = listOf(reply) as [Figure, Found?];
      if (Number(isRenewed) === 1) return { renewed: true, fencingToken: tokenIn(detail) };
      return { renewed: false, holder: holderOf(detail) };
    },
    inParts: async (request, timeoutMs) => {
      const startedAt = systemClock.now();
      const reply = await this.#executor.one(this.#renewPlain, request, timeoutMs);
      return reply.renewed ? await this.#drawAndRenew(request, startedAt, timeoutMs) : reply;
    },
  };

  /**
   * Draws a token for a hold that existed after `startedAt`, and then renews the hold. If the reply comes before the lock time can be over,
   * nobody else held the key in between, so nobody has a larger token.
   */
  async #drawAndRenew(
    request: RenewRequest,
    startedAt: number,
    timeoutMs: number,
  ): Promise<Required<Pick<Renewed, "renewed" | "fencingToken">> | NotHeld> {
    const leftMs = (): number => timeoutMs - (systemClock.now() - startedAt);
    const fencingToken = await this.#executor.one(this.#draw, request, leftMs());
    const reply = await this.#executor.one(this.#renewPlain, request, leftMs());
    if (!reply.renewed) return reply;
    if (systemClock.now() - startedAt > request.lockTimeMs * DRAW_TIME_SHARE) {
      throw new Error("the slot of the key is migrating, and drawing a fencing token took too long");
    }
    return { renewed: true, fencingToken };
  }

  readonly #draw: Operation<RenewRequest, number> = {
    keys: ({ key }) => [this.#server.fenceOf(key)],
    one: { run: DRAW, args: ({ lockTimeMs }) => [lockTimeMs] },
    read: tokenIn,
  };

  readonly raiseFence: Operation<FenceRequest, void> = {
    keys: ({ key }) => [this.#server.fenceOf(key)],
    one: { run: RAISE_FENCE, args: ({ token, lockTimeMs }) => [token, lockTimeMs] },
    read: () => {},
  };

  // ---- release ----------------------------------------------------------------------------------------

  release({ cooldownMs }: ReleaseRequest): Operation<ReleaseRequest, ReleaseReply> {
    return cooldownMs === undefined ? this.#releaseToQueue : this.#close;
  }

  readonly #releaseToQueue: Operation<ReleaseRequest, ReleaseReply> = {
    keys: ({ key }) => this.#keysOf(key),
    one: { run: RELEASE, args: ({ requestId }) => [requestId, this.#server.publishCountsAll] },
    many: {
      run: RELEASE_MANY,
      args: (requests) => [idsOf(requests), this.#server.publishCountsAll],
      // The script expects IDs of 32 characters. IDs of other programs may be longer or shorter.
      fits: ({ requestId }) => requestId.length === 32,
      each: eachReply,
    },
    read: (reply, _request, mayHaveRunTwice) => releaseReply(reply, mayHaveRunTwice, this.#server),
    withoutQueue: (...request) => this.#executor.one(this.releaseAlone, ...request),
    // No waiter is notified. Waiters find the free key when they ask again.
    inParts: (...request) => this.#executor.one(this.releaseAlone, ...request),
  };

  /** Ends a hold or a reservation, and frees the key. */
  readonly releaseAlone: Operation<ReleaseRequest, ReleaseReply> = {
    keys: lockOnly,
    one: { run: RELEASE_ALONE, args: ({ requestId }) => [requestId] },
    read: this.#releaseToQueue.read,
  };

  readonly #close: Operation<ReleaseRequest, ReleaseReply> = {
    keys: lockOnly,
    one: { run: CLOSE, args: ({ requestId, cooldownMs = 0 }) => [requestId, cooldownMs] },
    read: this.#releaseToQueue.read,
  };

  /** The reply is `"shared"` if the key is shared. */
  readonly revoke: Operation<ReleaseRequest, boolean | "shared"> = {
    keys: lockOnly,
    one: { run: REVOKE, args: ({ requestId }) => [requestId] },
    read: (reply) => {
      if (isOne(reply)) return true;
      const holder = holderIn(reply);
      return holder !== undefined && isShared(holder) && "shared";
    },
  };

  // ---- read -------------------------------------------------------------------------------------------

  readonly peek: Operation<Keyed, string | undefined> = {
    keys: lockOnly,
    // Each reply may be an error that `holderOf` reads.
    many: { run: PEEK, args: nothing, each: (reply) => listOf(reply).map((found) => [found]) },
    read: holderIn,
  };

  readonly inspect: Operation<Keyed, Inspection> = {
    keys: ({ key }) => this.#keysOf(key),
    one: { run: INSPECT, args: nothing },
    read: (reply) => {
      const [value, left, waiting] = listOf(reply) as [string | null | undefined, Figure, Figure];
      const holds = typeof value === "string" ? [{ value, leftMs: Number(left) }] : [];
      return { holds, waiting: Number(waiting) };
    },
    withoutQueue: (...request) => this.#executor.one(this.#inspectAlone, ...request),
    inParts: (...request) => this.#executor.one(this.#inspectAlone, ...request),
  };

  readonly #inspectAlone: Operation<Keyed, Inspection> = {
    keys: lockOnly,
    one: { run: INSPECT, args: nothing },
    read: this.inspect.read,
  };

  #keysOf(key: string): string[] {
    return [key, this.#server.queueOf(key)];
  }
}

/** The share of the lock time within which a token must be drawn, if it is drawn after the key was acquired. */
const DRAW_TIME_SHARE = 0.9;

export function nothing(): readonly Argument[] {
  return [];
}

export function idsAndLockTimes(requests: readonly AcquireRequest[]): readonly Argument[] {
  return [idsOf(requests), ...lockTimesOf(requests)];
}
