import { LockMisconfiguredError } from "../../base/errors";
import { UNLIMITED } from "../../base/limits";
import type {
  AcquireReply,
  AcquireRequest,
  InspectedHold,
  ReleaseReply,
  ReleaseRequest,
  RenewReply,
  RenewRequest,
} from "../port";
import { permitsDiffer } from "../value";
import { idsOf, type Argument } from "./command";
import { translateError } from "./errors";
import type { Keyed, Operation } from "./executor";
import {
  acquired,
  holderIn,
  isOne,
  listOf,
  notAcquired,
  releaseReply,
  unexpected,
  type Figure,
  type Found,
} from "./replies";
import type { Script } from "./scripts/script";
import {
  ENQUEUE_TO_SHARE_MANY,
  INSPECT_SHARES,
  RELEASE_SHARES,
  RENEW_SHARES,
  REVOKE_SHARE,
  SHARE_MANY,
} from "./scripts/share";
import { PERMITS_UNIT } from "./scripts/shares";
import type { Server } from "./server";
import type { AddressedRequest, Tickets } from "./tickets";

/**
 * The commands for shared locks. Each field is an {@link Operation}. The header of its script describes it, and `scripts/shares.ts` the
 * layout of the data.
 */
export class SharedCommands {
  readonly #server: Server;
  readonly #tickets: Tickets;

  constructor(server: Server, tickets: Tickets) {
    this.#server = server;
    this.#tickets = tickets;
  }

  readonly acquire = this.#operation<AcquireRequest, AcquireReply>({
    run: SHARE_MANY,
    args: acquireArgsOf,
    read: (reply, request, mayHaveRunTwice) => this.#acquireReply(reply, request, mayHaveRunTwice),
  });

  readonly enqueue = this.#operation<AddressedRequest, AcquireReply>({
    run: ENQUEUE_TO_SHARE_MANY,
    args: (request) => [
      ...acquireArgsOf(request),
      request.ticket,
      request.inbox,
      this.#server.publishCountsAll,
      request.formerInboxes[0] ?? "-",
    ],
    read: (reply, request, mayHaveRunTwice) => {
      const result = this.#acquireReply(reply, request, mayHaveRunTwice);
      this.#tickets.note(request.ticket, request.inbox, !result.acquired);
      return result;
    },
  });

  #acquireReply(reply: unknown, request: AcquireRequest, mayHaveRunTwice: boolean): AcquireReply {
    const parts = listOf(reply);
    if (Number(parts[0]) !== 1) {
      const [, found, left = -1, isDenied, isLast] = parts as [Figure, Found, Figure?, Figure?, Figure?];
      if (Number(isDenied) === 1) this.#server.warnOfDeniedChannels();
      if (found instanceof Error) throw translateError(found);
      const refused = notAcquired(found ?? undefined, Number(left));
      return Number(isLast) === 1 ? { ...refused, isLast: true } : refused;
    }
    const [, count, limit, hasWaiters, isDenied] = (parts as readonly Figure[]).map(Number);
    if (count === undefined || !(count >= 1)) throw unexpected(reply);
    if (isDenied === 1) this.#server.warnOfDeniedChannels();
    const { permits = 1 } = request;
    if (limit !== 0 && limit !== undefined)
      this.#server.warn(permitsDiffer(request.key, permits, limit), `permits ${permits} ${limit}`);
    return {
      ...acquired(mayHaveRunTwice),
      ...(request.count !== undefined && { count }),
      ...(hasWaiters === 1 && { hasWaiters: true }),
    };
  }

  readonly renew = this.#operation<RenewRequest, RenewReply>({
    run: RENEW_SHARES,
    args: ({ lockTimeMs, count = 0 }) => [lockTimeMs, count, this.#server.publishCountsAll],
    read: (reply) => {
      if (Array.isArray(reply)) return { renewed: false, holder: holderIn(reply) };
      if (Number(reply) === 2) return { renewed: true, hasWaiters: true };
      if (Number(reply) === 1) return { renewed: true };
      throw unexpected(reply);
    },
  });

  readonly release = this.#operation<ReleaseRequest, ReleaseReply>({
    run: RELEASE_SHARES,
    args: () => [this.#server.publishCountsAll],
    read: (reply, _request, mayHaveRunTwice) => releaseReply(reply, mayHaveRunTwice, this.#server),
  });

  readonly revoke: Operation<ReleaseRequest, boolean> = {
    keys: ({ key }) => this.#keysOf(key),
    one: { run: REVOKE_SHARE, args: ({ requestId }) => [requestId] },
    read: (reply) => {
      if (isOne(reply)) return true;
      holderIn(reply); // Throws if Redis could not read the key.
      return false;
    },
    withoutQueue: cannotBeShared,
  };

  /** Lists the holds of a shared key. */
  readonly inspect: Operation<Keyed, readonly InspectedHold[]> = {
    keys: ({ key }) => [this.#server.holdsOf(key)],
    one: { run: INSPECT_SHARES, args: () => [] },
    read: (reply) => {
      const [now, holds, marks] = listOf(reply);
      const permits = new Map(
        pairsIn(marks).map(([mark, score]) => [mark.slice(1), -score % PERMITS_UNIT] as const),
      );
      return pairsIn(holds).map(([value, ends]): InspectedHold => {
        const count = permits.get(value);
        const leftMs = ends - Number(now);
        return count === undefined ? { value, leftMs } : { value, leftMs, permits: count };
      });
    },
  };

  /** Returns an operation whose script serves one or many requests. */
  #operation<Request extends ReleaseRequest, Reply>({
    run,
    args,
    read,
  }: {
    readonly run: Script;
    /** The arguments of one request, after its `requestId`. */
    readonly args: (request: Request) => readonly Argument[];
    readonly read: Operation<Request, Reply>["read"];
  }): Operation<Request, Reply> {
    return {
      keys: ({ key }) => this.#keysOf(key),
      many: { run, args: (requests) => [idsOf(requests), ...requests.flatMap(args)], each: listOf },
      read,
      withoutQueue: cannotBeShared,
    };
  }

  #keysOf(key: string): string[] {
    return [key, this.#server.queueOf(key), this.#server.holdsOf(key)];
  }
}

function acquireArgsOf({ lockTimeMs, permits = 1, count = 1 }: AcquireRequest): readonly Argument[] {
  return [lockTimeMs, permits === UNLIMITED ? 0 : permits, count];
}

function cannotBeShared({ key }: Keyed): Promise<never> {
  return Promise.reject(
    new LockMisconfiguredError(
      `${key} cannot be shared in a cluster, because no other key can be in its slot. Fix: leave \`{\` and \`}\` out of the key and of the client's keyPrefix`,
    ),
  );
}

/** Members of a sorted set with their scores. RESP2 sends one flat list, and RESP3 sends pairs. */
function pairsIn(reply: unknown): readonly (readonly [member: string, score: number])[] {
  const flat = listOf(reply).flat();
  return Array.from({ length: flat.length / 2 }, (_, index) => [
    String(flat[2 * index]),
    Number(flat[2 * index + 1]),
  ]);
}
