import { LockMisconfiguredError } from "../../errors";
import { UNLIMITED } from "../../limits";
import type {
  DropReply,
  DropRequest,
  InspectedHold,
  PlaceRequest,
  RenewReply,
  RenewRequest,
  Taken,
  TakeReply,
  TakeRequest,
} from "../port";
import { permitsDiffer } from "../value";
import { chunksOf } from "./cluster/by-slot";
import { wrapped } from "./errors";
import { eachAlone, idsOf } from "./many";
import type { Places } from "./places";
import {
  doubtful,
  DROPPED,
  holderOf,
  listOf,
  notTaken,
  TOO_FEW,
  unexpected,
  type Figure,
  type Found,
} from "./replies";
import type { Script } from "./scripts/script";
import {
  DROP_SHARES,
  INSPECT_SHARES,
  PLACE_TO_SHARE_MANY,
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
  readonly #places: Places;

  constructor(server: Server, places: Places) {
    this.#server = server;
    this.#places = places;
  }

  takeMany(requests: readonly TakeRequest[], withinMs: number): Promise<(TakeReply | Error)[]> {
    const breaksBefore = this.#server.breaks;
    return this.#each(SHARE_MANY, requests, wishesOf, withinMs, (reply, request) =>
      this.#takeReply(listOf(reply), request, breaksBefore),
    );
  }

  placeMany(requests: readonly PlaceRequest[], withinMs: number): Promise<(TakeReply | Error)[]> {
    const breaksBefore = this.#server.breaks;
    const inboxOf = ({ key }: PlaceRequest): string => this.#server.inbox.addressFor(key);
    const argsOf = (request: PlaceRequest): Argument[] => {
      const { place } = request;
      const inbox = inboxOf(request);
      const [before = "-"] = this.#places.before(place, inbox);
      return [...wishesOf(request), place, inbox, this.#server.counts, before];
    };
    return this.#each(PLACE_TO_SHARE_MANY, requests, argsOf, withinMs, (reply, request) => {
      const told = this.#takeReply(listOf(reply), request, breaksBefore);
      if (told.taken) this.#places.left(request.place);
      else this.#places.stands(request.place, inboxOf(request));
      return told;
    });
  }

  #takeReply(reply: readonly unknown[], request: TakeRequest, breaksBefore: number): TakeReply {
    if (Number(reply[0]) !== 1) {
      const [, found, left = -1, isDenied, isLast] = reply as [Figure, Found[0], Figure?, Figure?, Figure?];
      if (Number(isDenied) === 1) this.#server.channelsAreDenied();
      if (found instanceof Error) throw wrapped(found);
      const told = notTaken(found ?? undefined, Number(left));
      return Number(isLast) === 1 ? { ...told, isLast: true } : told;
    }
    const [, count, limit, waits, isDenied] = (reply as readonly Figure[]).map(Number);
    if (isDenied === 1) this.#server.channelsAreDenied();
    const { permits = 1 } = request;
    if (limit !== 0 && limit !== undefined) this.#server.warn(permitsDiffer(permits, limit));
    const taken: Taken = {
      taken: true,
      ...(this.#server.breaks !== breaksBefore && { mayComeAgain: true }),
      ...(request.count !== undefined && count !== undefined && { count }),
      ...(waits === 1 && { somebodyWaits: true }),
    };
    return taken;
  }

  dropMany(requests: readonly DropRequest[], withinMs: number): Promise<(DropReply | Error)[]> {
    const breaksBefore = this.#server.breaks;
    const argsOf = (): Argument[] => [this.#server.counts];
    return this.#each(DROP_SHARES, requests, argsOf, withinMs, (reply): DropReply => {
      if (!Array.isArray(reply)) return this.#done(reply, DROPPED);
      // After a broken connection, a client may have sent the command twice. The first may have released the hold.
      if (this.#server.breaks !== breaksBefore) throw doubtful();
      return { dropped: false, holder: foundIn(reply) };
    });
  }

  #done<Reply>(reply: unknown, done: Reply): Reply {
    const outcome = Number(reply);
    if (outcome === 2) this.#server.channelsAreDenied();
    if (outcome !== 1 && outcome !== 2) throw unexpected(reply);
    return done;
  }

  renewMany(requests: readonly RenewRequest[], withinMs: number): Promise<(RenewReply | Error)[]> {
    const argsOf = ({ lockTimeMs, count = 0 }: RenewRequest): Argument[] => [
      lockTimeMs,
      count,
      this.#server.counts,
    ];
    return this.#each(RENEW_SHARES, requests, argsOf, withinMs, (reply): RenewReply => {
      if (Array.isArray(reply)) return { renewed: false, holder: foundIn(reply) };
      if (Number(reply) === 2) return { renewed: true, somebodyWaits: true };
      if (Number(reply) === 1) return { renewed: true };
      throw unexpected(reply);
    });
  }

  async revoke(request: DropRequest, withinMs: number): Promise<boolean> {
    this.#assertCanBeShared(request);
    return await this.#server.scripts.run(
      REVOKE_SHARE,
      this.#keysOf([request]),
      [request.requestId],
      withinMs,
      (reply) => {
        if (Array.isArray(reply)) foundIn(reply); // Throws if the key has other data.
        return Number(reply) === 1;
      },
    );
  }

  /** Lists the holds of a shared key. */
  async inspect(key: string, withinMs: number): Promise<readonly InspectedHold[]> {
    const keys = [this.#server.holdsOf(key)];
    return await this.#server.scripts.run(INSPECT_SHARES, keys, [], withinMs, (reply) => {
      const [now, holds, marks] = listOf(reply);
      const permits = new Map(
        pairsIn(marks).map(([mark, score]) => [mark.slice(1), -score % PERMITS_UNIT] as const),
      );
      return pairsIn(holds).map(([value, ends]): InspectedHold => {
        const has = permits.get(value);
        const leftMs = ends - Number(now);
        return has === undefined ? { value, leftMs } : { value, leftMs, permits: has };
      });
    });
  }

  // ---- one command for many ---------------------------------------------------------------------------

  /** Sends many requests in one command. In a cluster, each key has its own slot, so each request is one command. */
  async #each<Request extends DropRequest, Reply>(
    script: Script,
    requests: readonly Request[],
    argsOf: (request: Request) => readonly Argument[],
    withinMs: number,
    read: (reply: unknown, request: Request) => Reply,
  ): Promise<(Reply | Error)[]> {
    const alone = async (request: Request): Promise<Reply> => {
      this.#assertCanBeShared(request);
      const args = [request.requestId, ...argsOf(request)];
      return await this.#server.scripts.run(script, this.#keysOf([request]), args, withinMs, (replies) => {
        const [reply = TOO_FEW] = listOf(replies);
        if (reply instanceof Error) throw wrapped(reply);
        return read(reply, request);
      });
    };
    if (this.#server.cluster !== undefined || requests.length === 1) return await eachAlone(requests, alone);
    const together = async (some: readonly Request[]): Promise<(Reply | Error)[]> => {
      const args = [idsOf(some), ...some.flatMap(argsOf)];
      const keys = this.#keysOf(some);
      const replies = await this.#server.scripts.runMany(script, keys, args, withinMs, listOf);
      if (replies === "each alone") return await eachAlone(some, alone);
      return some.map((request, index) => {
        const reply = replies[index] ?? TOO_FEW;
        return reply instanceof Error ? wrapped(reply) : attempted(() => read(reply, request));
      });
    };
    const chunks = chunksOf(requests, ({ key }) => key, undefined);
    return (
      await Promise.all(
        chunks.map((chunk) => together(chunk).catch((error: unknown) => chunk.map(() => wrapped(error)))),
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

function wishesOf({ lockTimeMs, permits = 1, count = 1 }: TakeRequest): Argument[] {
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
    return wrapped(error);
  }
}
