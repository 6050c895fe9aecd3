import { LockMisconfiguredError } from "../../base/errors";
import { UNLIMITED } from "../../base/limits";
import type {
  ReleaseReply,
  ReleaseRequest,
  InspectedHold,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  Acquired,
  AcquireReply,
  AcquireRequest,
} from "../port";
import { permitsDiffer } from "../value";
import { chunksOf } from "./cluster/by-slot";
import { translateError } from "./errors";
import { eachAlone, idsOf } from "./many";
import type { Tickets } from "./tickets";
import {
  uncertainRelease,
  RELEASED,
  holderOf,
  listOf,
  notAcquired,
  TOO_FEW,
  unexpected,
  type Figure,
  type Found,
} from "./replies";
import type { Script } from "./scripts/script";
import {
  RELEASE_SHARES,
  INSPECT_SHARES,
  ENQUEUE_TO_SHARE_MANY,
  RENEW_SHARES,
  REVOKE_SHARE,
  SHARE_MANY,
} from "./scripts/share";
import { PERMITS_UNIT } from "./scripts/shares";
import type { Server } from "./server";

type Argument = string | number;

/** Shared locks. See `scripts/shares.ts` for the layout of their data. */
export class Sharing {
  readonly #server: Server;
  readonly #tickets: Tickets;

  constructor(server: Server, tickets: Tickets) {
    this.#server = server;
    this.#tickets = tickets;
  }

  acquireMany(requests: readonly AcquireRequest[], timeoutMs: number): Promise<(AcquireReply | Error)[]> {
    const breaksBefore = this.#server.breaks;
    return this.#each(SHARE_MANY, requests, acquireArgsOf, timeoutMs, (reply, request) =>
      this.#acquireReply(listOf(reply), request, breaksBefore),
    );
  }

  enqueueMany(requests: readonly EnqueueRequest[], timeoutMs: number): Promise<(AcquireReply | Error)[]> {
    const breaksBefore = this.#server.breaks;
    const inboxOf = ({ key }: EnqueueRequest): string => this.#server.inbox.addressFor(key);
    const argsOf = (request: EnqueueRequest): Argument[] => {
      const { ticket } = request;
      const inbox = inboxOf(request);
      const [before = "-"] = this.#tickets.formerInbox(ticket, inbox);
      return [...acquireArgsOf(request), ticket, inbox, this.#server.publishCountsAll, before];
    };
    return this.#each(ENQUEUE_TO_SHARE_MANY, requests, argsOf, timeoutMs, (reply, request) => {
      const result = this.#acquireReply(listOf(reply), request, breaksBefore);
      if (result.acquired) this.#tickets.dequeued(request.ticket);
      else this.#tickets.enqueued(request.ticket, inboxOf(request));
      return result;
    });
  }

  #acquireReply(reply: readonly unknown[], request: AcquireRequest, breaksBefore: number): AcquireReply {
    if (Number(reply[0]) !== 1) {
      const [, found, left = -1, isDenied, isLast] = reply as [Figure, Found[0], Figure?, Figure?, Figure?];
      if (Number(isDenied) === 1) this.#server.warnOfDeniedChannels();
      if (found instanceof Error) throw translateError(found);
      const refused = notAcquired(found ?? undefined, Number(left));
      return Number(isLast) === 1 ? { ...refused, isLast: true } : refused;
    }
    const [, count, limit, somebodyWaits, isDenied] = (reply as readonly Figure[]).map(Number);
    if (isDenied === 1) this.#server.warnOfDeniedChannels();
    const { permits = 1 } = request;
    if (limit !== 0 && limit !== undefined)
      this.#server.warn(permitsDiffer(request.key, permits, limit), `permits ${permits} ${limit}`);
    const acquired: Acquired = {
      acquired: true,
      ...(this.#server.breaks !== breaksBefore && { mayComeAgain: true }),
      ...(request.count !== undefined && count !== undefined && { count }),
      ...(somebodyWaits === 1 && { somebodyWaits: true }),
    };
    return acquired;
  }

  releaseMany(requests: readonly ReleaseRequest[], timeoutMs: number): Promise<(ReleaseReply | Error)[]> {
    const breaksBefore = this.#server.breaks;
    const argsOf = (): Argument[] => [this.#server.publishCountsAll];
    return this.#each(RELEASE_SHARES, requests, argsOf, timeoutMs, (reply): ReleaseReply => {
      if (!Array.isArray(reply)) return this.#done(reply, RELEASED);
      // If the connection broke, the client may have sent the command twice. The first one may have released the hold.
      if (this.#server.breaks !== breaksBefore) throw uncertainRelease();
      return { released: false, holder: foundIn(reply) };
    });
  }

  #done<Reply>(reply: unknown, done: Reply): Reply {
    const outcome = Number(reply);
    if (outcome === 2) this.#server.warnOfDeniedChannels();
    if (outcome !== 1 && outcome !== 2) throw unexpected(reply);
    return done;
  }

  renewMany(requests: readonly RenewRequest[], timeoutMs: number): Promise<(RenewReply | Error)[]> {
    const argsOf = ({ lockTimeMs, count = 0 }: RenewRequest): Argument[] => [
      lockTimeMs,
      count,
      this.#server.publishCountsAll,
    ];
    return this.#each(RENEW_SHARES, requests, argsOf, timeoutMs, (reply): RenewReply => {
      if (Array.isArray(reply)) return { renewed: false, holder: foundIn(reply) };
      if (Number(reply) === 2) return { renewed: true, somebodyWaits: true };
      if (Number(reply) === 1) return { renewed: true };
      throw unexpected(reply);
    });
  }

  async revoke(request: ReleaseRequest, timeoutMs: number): Promise<boolean> {
    this.#assertCanBeShared(request);
    return await this.#server.scripts.run(
      REVOKE_SHARE,
      this.#keysOf([request]),
      [request.requestId],
      timeoutMs,
      (reply) => {
        if (Array.isArray(reply)) foundIn(reply); // Throws if Redis could not read the key.
        return Number(reply) === 1;
      },
    );
  }

  /** Lists the holds of a shared key. */
  async inspect(key: string, timeoutMs: number): Promise<readonly InspectedHold[]> {
    const keys = [this.#server.holdsOf(key)];
    return await this.#server.scripts.run(INSPECT_SHARES, keys, [], timeoutMs, (reply) => {
      const [now, holds, marks] = listOf(reply);
      const permits = new Map(
        pairsIn(marks).map(([mark, score]) => [mark.slice(1), -score % PERMITS_UNIT] as const),
      );
      return pairsIn(holds).map(([value, ends]): InspectedHold => {
        const count = permits.get(value);
        const leftMs = ends - Number(now);
        return count === undefined ? { value, leftMs } : { value, leftMs, permits: count };
      });
    });
  }

  // ---- one command for many ---------------------------------------------------------------------------

  /** Sends many requests in one command. In a cluster, nearly every key has a slot of its own, so each request is a command of its own. */
  async #each<Request extends ReleaseRequest, Reply>(
    script: Script,
    requests: readonly Request[],
    argsOf: (request: Request) => readonly Argument[],
    timeoutMs: number,
    read: (reply: unknown, request: Request) => Reply,
  ): Promise<(Reply | Error)[]> {
    const alone = async (request: Request): Promise<Reply> => {
      this.#assertCanBeShared(request);
      const args = [request.requestId, ...argsOf(request)];
      return await this.#server.scripts.run(script, this.#keysOf([request]), args, timeoutMs, (replies) => {
        const [reply = TOO_FEW] = listOf(replies);
        if (reply instanceof Error) throw translateError(reply);
        return read(reply, request);
      });
    };
    if (this.#server.cluster !== undefined || requests.length === 1) return await eachAlone(requests, alone);
    const together = async (some: readonly Request[]): Promise<(Reply | Error)[]> => {
      const args = [idsOf(some), ...some.flatMap(argsOf)];
      const keys = this.#keysOf(some);
      const replies = await this.#server.scripts.runMany(script, keys, args, timeoutMs, listOf);
      if (replies === "each alone") return await eachAlone(some, alone);
      return some.map((request, index) => {
        const reply = replies[index] ?? TOO_FEW;
        return reply instanceof Error ? translateError(reply) : attempted(() => read(reply, request));
      });
    };
    const chunks = chunksOf(requests, ({ key }) => key, undefined);
    return (
      await Promise.all(
        chunks.map((chunk) =>
          together(chunk).catch((error: unknown) => chunk.map(() => translateError(error))),
        ),
      )
    ).flat();
  }

  #keysOf(requests: readonly { readonly key: string }[]): string[] {
    const keys = requests.map(({ key }) => key);
    return [
      ...keys,
      ...keys.map((key) => this.#server.queueOf(key)),
      ...keys.map((key) => this.#server.holdsOf(key)),
    ];
  }

  #assertCanBeShared({ key }: { readonly key: string }): void {
    if (this.#server.canQueue(key)) return;
    throw new LockMisconfiguredError(
      `${key} cannot be shared in a cluster, because no other key can be in its slot. Fix: leave \`{\` and \`}\` out of the key and of the client's keyPrefix`,
    );
  }
}

function acquireArgsOf({ lockTimeMs, permits = 1, count = 1 }: AcquireRequest): Argument[] {
  return [lockTimeMs, permits === UNLIMITED ? 0 : permits, count];
}

function foundIn(reply: readonly unknown[]): string | undefined {
  const holder = holderOf((reply as Found)[0]);
  if (holder instanceof Error) throw holder;
  return holder;
}

/** Members of a sorted set with their scores. RESP2 sends one flat list, and RESP3 sends pairs. */
function pairsIn(reply: unknown): readonly (readonly [member: string, score: number])[] {
  const flat = listOf(reply).flat();
  return Array.from({ length: flat.length / 2 }, (_, index) => [
    String(flat[2 * index]),
    Number(flat[2 * index + 1]),
  ]);
}

function attempted<Reply>(read: () => Reply): Reply | Error {
  try {
    return read();
  } catch (error) {
    return translateError(error);
  }
}
