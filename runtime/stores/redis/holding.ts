// The commands' names are in small letters: ioredis needs no others.

import { systemClock } from "../../clock";
import type {
  DropReply,
  DropRequest,
  Inspection,
  NotDropped,
  NotHeld,
  Renewed,
  RenewReply,
  RenewRequest,
  Taken,
  TakeReply,
  TakeRequest,
} from "../port";
import { isShared } from "../value";
import { askBySlot, chunksOf, unlessParted } from "./cluster/by-slot";
import { isBeforeRedis7, wrapped } from "./errors";
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
  doubtful,
  DROPPED,
  eachDone,
  eachTaken,
  holderOf,
  listOf,
  renewReply,
  TAKEN,
  TOO_FEW,
  unexpected,
  type Figure,
  type Found,
} from "./replies";
import { CLOSE, DROP, DROP_ALONE, DROP_MANY } from "./scripts/drop";
import { INSPECT, LOOK } from "./scripts/look";
import { RAISE_FENCE } from "./scripts/raise-fence";
import { RENEW, RENEW_WITH_TOKEN } from "./scripts/renew";
import { REVOKE } from "./scripts/revoke";
import { TAKE } from "./scripts/take";
import { TAKE_MANY } from "./scripts/take-many";
import { DRAW } from "./scripts/token";
import type { Server } from "./server";

/** Who holds the locks of a server that are held alone. */
export class Holding {
  readonly #server: Server;
  #setCanGet = true;

  constructor(server: Server) {
    this.#server = server;
  }

  take(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    const { key, requestId, lockTimeMs, fencing } = request;
    if (fencing || !this.#setCanGet) return this.#takeByScript(request, withinMs);
    const breaksBefore = this.#server.breaks;
    // One command that changes nothing when it is carried out again, and tells what it found.
    return this.#server.send(withinMs, "set", key, requestId, "PX", lockTimeMs, "NX", "GET").then(
      (holder) => {
        if (holder === "QUEUED") throw unexpected(holder); // The transaction's end may still carry it out.
        return this.#takeReply(holder as string | null, breaksBefore);
      },
      (error: unknown) => {
        if (!isBeforeRedis7(error)) throw wrapped(error);
        this.#setCanGet = false;
        return this.#takeByScript(request, withinMs);
      },
    );
  }

  #takeByScript(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    const { key, requestId, lockTimeMs, fencing } = request;
    const keys = fencing ? [key, this.#server.fenceOf(key)] : [key];
    const breaksBefore = this.#server.breaks;
    const taken = this.#server.scripts.run(TAKE, keys, [requestId, lockTimeMs], withinMs, (reply) => {
      const [isTaken, detail] = listOf(reply) as [Figure, (string | null)?];
      if (Number(isTaken) === 1) return this.taken(breaksBefore, fencing, detail);
      return this.#takeReply(detail ?? "", breaksBefore);
    });
    return this.#server.cluster !== undefined
      ? unlessParted(taken, (ms) => this.#takeThenDraw(request, ms), withinMs)
      : taken;
  }

  /** In a slot that migrates: the token is drawn after the grant, which counts once a later renewal has confirmed it. */
  async #takeThenDraw(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    const startedAt = systemClock.now();
    const reply = await this.take({ ...request, fencing: false }, withinMs);
    if (!reply.taken) return reply;
    const drawn = await this.#drawAndRenew(request, startedAt, withinMs);
    if (!drawn.renewed) return { taken: false, holder: drawn.holder, freeInMs: undefined };
    return {
      ...reply,
      ...(drawn.fencingToken === undefined ? {} : { fencingToken: drawn.fencingToken }),
      taken: true,
    };
  }

  async takeMany(
    requests: readonly TakeRequest[],
    withinMs: number,
  ): Promise<readonly (TakeReply | Error)[]> {
    const cluster = this.#server.cluster;
    if (cluster === undefined) return await this.#takeTogether(requests, withinMs);
    if (!this.#setCanGet) return await eachAlone(requests, (one) => this.take(one, withinMs));
    const breaksBefore = this.#server.breaks;
    return await askBySlot(cluster, requests, {
      command: (some) => single(some, setOf) ?? scriptFor(TAKE_MANY, some),
      read: (reply, some) =>
        (some.length === 1 && !Array.isArray(reply) ? [reply] : eachTaken(reply, some.length)).map((found) =>
          found instanceof Error ? wrapped(found) : this.#takeReply(found as string | null, breaksBefore),
        ),
      again: (some) => eachAlone(some, (one) => this.take(one, withinMs)),
    });
  }

  async #takeTogether(
    requests: readonly TakeRequest[],
    withinMs: number,
  ): Promise<readonly (TakeReply | Error)[]> {
    const alone = (request: TakeRequest): Promise<TakeReply> => this.#takeByScript(request, withinMs);
    if (!this.#setCanGet) return await eachAlone(requests, alone);
    const keys = requests.map(({ key }) => key);
    const args = [idsOf(requests), ...lockTimesOf(requests)];
    const breaksBefore = this.#server.breaks;
    const read = (reply: unknown): readonly unknown[] => eachTaken(reply, requests.length);
    const replies = await this.#server.scripts.runMany(TAKE_MANY, keys, args, withinMs, read);
    if (replies === "each alone") return await eachAlone(requests, (one) => this.take(one, withinMs));
    if (replies.some(isBeforeRedis7)) {
      this.#setCanGet = false;
      return await eachAlone(requests, alone);
    }
    return (replies as (string | null | Error)[]).map((reply) =>
      reply instanceof Error ? wrapped(reply) : this.#takeReply(reply, breaksBefore),
    );
  }

  /** @param found what the key held before the command */
  #takeReply(found: string | null, breaksBefore: number): TakeReply {
    if (found === null) return this.taken(breaksBefore, false, undefined);
    return { taken: false, holder: found, freeInMs: undefined };
  }

  taken(breaksBefore: number, fencing: boolean, token: string | null | undefined): Taken {
    const mayComeAgain = this.#server.breaks !== breaksBefore;
    if (!fencing && !mayComeAgain) return TAKEN;
    return {
      taken: true,
      ...(mayComeAgain && { mayComeAgain }),
      ...(fencing && { fencingToken: Number(token) }),
    };
  }

  async renew(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    const plain = requests.filter(({ fencing }) => !fencing);
    const replies = new Map<RenewRequest, RenewReply>();
    const note = (some: readonly RenewRequest[], told: readonly RenewReply[]): void =>
      some.forEach((request, index) => replies.set(request, told[index] ?? TOO_FEW));
    // What fails for some says nothing about the others, which may be on another node.
    await Promise.all([
      this.#renewPlain(plain, withinMs).then((told) => note(plain, told)),
      ...requests
        .filter(({ fencing }) => fencing)
        .map(async (request) => {
          const told = await this.#renewWithToken(request, withinMs).catch((error: Error) => error);
          note([request], [told]);
        }),
    ]);
    return requests.map((request) => replies.get(request) ?? TOO_FEW);
  }

  async #renewPlain(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    if (this.#server.cluster !== undefined) {
      return await askBySlot(this.#server.cluster, requests, {
        command: (some) => scriptFor(RENEW, some),
        read: (reply, some) => eachDone(reply, some.length).map(renewReply),
        again: async (some) =>
          await this.#renewMany(some, withinMs).catch((error: Error) => some.map(() => error)),
      });
    }
    const chunks = chunksOf(requests, ({ key }) => key, undefined).map((chunk) =>
      this.#renewMany(chunk, withinMs).catch((error: Error) => chunk.map(() => error)),
    );
    return (await Promise.all(chunks)).flat();
  }

  async #renewMany(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    const keys = requests.map(({ key }) => key);
    const args = [idsOf(requests), ...lockTimesOf(requests)];
    const read = (reply: unknown): readonly unknown[] => eachDone(reply, requests.length);
    const replies = await this.#server.scripts.runMany(RENEW, keys, args, withinMs, read);
    if (replies !== "each alone") return replies.map(renewReply);
    const alone = requests.map(async (request) => (await this.#renewMany([request], withinMs))[0] ?? TOO_FEW);
    return (await Promise.allSettled(alone)).map(settledOrError);
  }

  #renewWithToken(request: RenewRequest, withinMs: number): Promise<RenewReply> {
    const { key, requestId, lockTimeMs } = request;
    const keys = [key, this.#server.fenceOf(key)];
    const args = [requestId, lockTimeMs];
    const renewed = this.#server.scripts.run(RENEW_WITH_TOKEN, keys, args, withinMs, (reply): RenewReply => {
      const [isRenewed, detail = null] = listOf(reply) as [Figure, (string | null | Error)?];
      if (Number(isRenewed) === 1) return { renewed: true, fencingToken: Number(detail) };
      return renewReply([detail]);
    });
    return this.#server.cluster !== undefined
      ? unlessParted(renewed, (ms) => this.#renewThenDraw(request, ms), withinMs)
      : renewed;
  }

  async #renewThenDraw(request: RenewRequest, withinMs: number): Promise<RenewReply> {
    const startedAt = systemClock.now();
    const [reply = TOO_FEW] = await this.#renewMany([request], withinMs);
    if (reply instanceof Error) throw reply;
    return reply.renewed ? await this.#drawAndRenew(request, startedAt, withinMs) : reply;
  }

  /**
   * Of a hold that the store had after `startedAt`: a token, and a renewal that was sent later. If that is answered before the
   * lock time can be over, nobody else had the key in between, and no larger token.
   */
  async #drawAndRenew(
    request: RenewRequest,
    startedAt: number,
    withinMs: number,
  ): Promise<Renewed | NotHeld> {
    const { key, lockTimeMs } = request;
    const leftMs = (): number => withinMs - (systemClock.now() - startedAt);
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
    if (systemClock.now() - startedAt > lockTimeMs * SHARE_FOR_DRAWING) {
      throw new Error("the slot of the key is migrating, and drawing a fencing token took too long");
    }
    return { renewed: true, fencingToken };
  }

  drop(request: DropRequest, withinMs: number): Promise<DropReply> {
    const { key, requestId, closedForMs } = request;
    const breaksBefore = this.#server.breaks;
    const read = (reply: unknown): DropReply => {
      const told = this.#dropReply(reply, breaksBefore);
      if (told instanceof Error) throw told;
      return told;
    };
    if (closedForMs !== undefined)
      return this.#server.scripts.run(CLOSE, [key], [requestId, closedForMs], withinMs, read);
    const dropAlone = (ms: number): Promise<DropReply> =>
      this.#server.scripts.run(DROP_ALONE, [key], [requestId], ms, read);
    if (!this.#server.canQueue(key)) return dropAlone(withinMs);
    const dropped = this.#server.scripts.run(
      DROP,
      [key, this.#server.queueOf(key)],
      [requestId, this.#server.counts],
      withinMs,
      read,
    );
    // In a slot that migrates, those who wait find the key when they look again.
    return this.#server.cluster !== undefined ? unlessParted(dropped, dropAlone, withinMs) : dropped;
  }

  async dropMany(
    requests: readonly DropRequest[],
    withinMs: number,
  ): Promise<readonly (DropReply | Error)[]> {
    if (!requests.every(goesWithOthers)) return await eachAlone(requests, (one) => this.drop(one, withinMs));
    const cluster = this.#server.cluster;
    if (cluster === undefined) return await this.#dropTogether(requests, withinMs);
    const breaksBefore = this.#server.breaks;
    const queued = requests.filter(({ key }) => this.#server.canQueue(key));
    const others = requests.filter(({ key }) => !this.#server.canQueue(key));
    const [replies, alone] = await Promise.all([
      askBySlot(cluster, queued, {
        command: (some) => this.#dropCommand(some),
        read: (reply, some) =>
          (some.length === 1 ? [reply] : eachDone(reply, some.length)).map((one) =>
            this.#dropReply(one, breaksBefore),
          ),
        again: (some) => eachAlone(some, (one) => this.drop(one, withinMs)),
      }),
      eachAlone(others, (one) => this.drop(one, withinMs)),
    ]);
    const told = new Map([
      ...queued.map((request, index) => [request, replies[index] ?? TOO_FEW] as const),
      ...others.map((request, index) => [request, alone[index] ?? TOO_FEW] as const),
    ]);
    return requests.map((request) => told.get(request) ?? TOO_FEW);
  }

  #dropCommand(requests: readonly DropRequest[]): Command {
    const queues = requests.map(({ key }) => this.#server.queueOf(key));
    return scriptFor(requests.length === 1 ? DROP : DROP_MANY, requests, queues, [this.#server.counts]);
  }

  async #dropTogether(
    requests: readonly DropRequest[],
    withinMs: number,
  ): Promise<readonly (DropReply | Error)[]> {
    const breaksBefore = this.#server.breaks;
    const keys = requests.map(({ key }) => key);
    const queues = keys.map((key) => this.#server.queueOf(key));
    const args = [idsOf(requests), this.#server.counts];
    const read = (reply: unknown): readonly unknown[] => eachDone(reply, requests.length);
    const replies = await this.#server.scripts.runMany(DROP_MANY, [...keys, ...queues], args, withinMs, read);
    if (replies === "each alone") return await eachAlone(requests, (one) => this.drop(one, withinMs));
    return replies.map((reply) => this.#dropReply(reply, breaksBefore));
  }

  #dropReply(reply: unknown, breaksBefore: number): DropReply | Error {
    if (reply instanceof Error) return wrapped(reply);
    if (!Array.isArray(reply)) {
      const outcome = Number(reply);
      if (outcome === 2) this.#server.channelsAreDenied();
      return outcome === 1 || outcome === 2 ? DROPPED : unexpected(reply);
    }
    return this.notDropped((reply as unknown as Found)[0], breaksBefore);
  }

  /** A client may send a command again, unasked, when the connection broke under it: the first may have dropped. */
  notDropped(found: Found[0], breaksBefore: number): NotDropped | Error {
    if (this.#server.breaks !== breaksBefore) return doubtful();
    const holder = holderOf(found);
    return holder instanceof Error ? holder : { dropped: false, holder };
  }

  revoke({ key, requestId }: DropRequest, withinMs: number): Promise<boolean | "shared"> {
    return this.#server.scripts.run(REVOKE, [key], [requestId], withinMs, (reply) => {
      if (Number(reply) === 1) return true;
      const holder = holderOf((listOf(reply) as unknown as Found)[0]);
      if (holder instanceof Error) throw holder;
      return holder !== undefined && isShared(holder) && "shared";
    });
  }

  async look(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]> {
    const chunks = chunksOf(
      keys.map((key, index) => ({ key, index })),
      ({ key }) => key,
      this.#server.cluster?.shards,
    );
    const values: (string | Error | undefined)[] = keys.map(() => TOO_FEW);
    await Promise.all(
      chunks.map(async (chunk) => {
        const told = await this.#lookAt(
          chunk.map(({ key }) => key),
          withinMs,
        );
        chunk.forEach(({ index }, nth) => (values[index] = told[nth]));
      }),
    );
    return values;
  }

  async #lookAt(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]> {
    try {
      const replies = await this.#server.scripts.runMany(LOOK, keys, [], withinMs, listOf);
      if (replies !== "each alone") return (replies as Found[0][]).map(holderOf);
    } catch (error) {
      return keys.map(() => wrapped(error));
    }
    return (await Promise.all(keys.map((key) => this.#lookAt([key], withinMs)))).flat();
  }

  async inspect(key: string, withinMs: number): Promise<Inspection> {
    const inspected = (keys: string[], ms: number): Promise<Inspection> =>
      this.#server.scripts.run(INSPECT, keys, [], ms, (reply) => inspectionOf(listOf(reply)));
    if (!this.#server.canQueue(key)) return await inspected([key], withinMs);
    const all = inspected([key, this.#server.queueOf(key)], withinMs);
    return await (this.#server.cluster === undefined
      ? all
      : unlessParted(all, (ms) => inspected([key], ms), withinMs));
  }

  /** From now on all tokens that are drawn for the key are larger than this one, and those that it stands for. */
  async raiseFence(key: string, token: number, lockTimeMs: number, withinMs: number): Promise<void> {
    await this.#server.scripts.run(
      RAISE_FENCE,
      [this.#server.fenceOf(key)],
      [token, lockTimeMs],
      withinMs,
      () => {},
    );
  }
}

/** How much of its lock time a hold may take to get its token, where it is drawn after the grant. */
const SHARE_FOR_DRAWING = 0.9;

/** In a script for many, each id takes up as much room as any other; what is not ours may be of another length. */
function goesWithOthers({ requestId, closedForMs }: DropRequest): boolean {
  return closedForMs === undefined && requestId.length === 32;
}

function inspectionOf(reply: readonly unknown[]): Inspection {
  const [value, left, waiting] = reply as [string | null | undefined, Figure, Figure];
  const holds = typeof value === "string" ? [{ value, leftMs: Number(left) }] : [];
  return { holds, waiting: Number(waiting) };
}
