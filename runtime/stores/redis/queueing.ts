import type { DropRequest, NextReply, NotDropped, PlaceRequest, TakeReply } from "../port";
import { reservedFor } from "../value";
import { unlessParted } from "./cluster/by-slot";
import { wrapped } from "./errors";
import type { Holding } from "./holding";
import { eachAlone, idsOf, lockTimesOf } from "./many";
import type { Places } from "./places";
import { listOf, notTaken, unexpected, type Figure, type Found } from "./replies";
import { DROP_ALONE } from "./scripts/drop";
import { LEAVE } from "./scripts/leave";
import { TIME_LEFT } from "./scripts/look";
import { NEXT } from "./scripts/next";
import { PLACE, PLACE_MANY } from "./scripts/place";
import type { Server } from "./server";

/** Who comes next for the locks of a server. */
export class Queueing {
  readonly #server: Server;
  readonly #holding: Holding;
  readonly #places: Places;

  constructor(server: Server, holding: Holding, places: Places) {
    this.#server = server;
    this.#holding = holding;
    this.#places = places;
  }

  place(request: PlaceRequest, withinMs: number): Promise<TakeReply> {
    const { key, place, requestId, lockTimeMs, fencing } = request;
    if (!this.#server.canQueue(key)) return this.#lookAgain(request, withinMs);
    const keys = this.#keys(key, fencing);
    const inbox = this.#server.inbox.addressFor(key);
    const before = this.#places.before(place, inbox);
    const args = [place, inbox, requestId, lockTimeMs, this.#server.counts];
    const breaksBefore = this.#server.breaks;
    const placed = this.#server.scripts.run(PLACE, keys, [...args, ...before], withinMs, (reply): TakeReply =>
      this.#placeReply(listOf(reply), place, inbox, fencing, breaksBefore),
    );
    return this.#server.cluster !== undefined
      ? unlessParted(placed, (ms) => this.#lookAgain(request, ms), withinMs)
      : placed;
  }

  #placeReply(
    reply: readonly unknown[],
    place: string,
    inbox: string,
    fencing: boolean,
    breaksBefore: number,
  ): TakeReply {
    const [isTaken, detail, pttl, isChannelDenied] = reply as [Figure, (string | null)?, Figure?, Figure?];
    this.#notePlace(place, inbox, Number(isTaken) !== 1);
    if (Number(isTaken) === 1) return this.#holding.taken(breaksBefore, fencing, detail);
    if (Number(isChannelDenied) === 1) this.#server.channelsAreDenied();
    return notTaken(detail ?? undefined, Number(pttl));
  }

  async placeMany(
    requests: readonly PlaceRequest[],
    withinMs: number,
  ): Promise<readonly (TakeReply | Error)[]> {
    const eachByItself = (): Promise<(TakeReply | Error)[]> =>
      eachAlone(requests, (one) => this.place(one, withinMs));
    const keys = requests.map(({ key }) => key);
    const inbox = this.#server.inbox.addressFor(keys[0] ?? "");
    if (requests.some(({ place }) => this.#places.before(place, inbox).length > 0))
      return await eachByItself();
    const places = requests.map(({ place }) => place).join("");
    const args = [idsOf(requests), ...lockTimesOf(requests), places, inbox, this.#server.counts];
    const breaksBefore = this.#server.breaks;
    const queues = keys.map((key) => this.#server.queueOf(key));
    const replies = await this.#server.scripts.runMany(
      PLACE_MANY,
      [...keys, ...queues],
      args,
      withinMs,
      listOf,
    );
    if (replies === "each alone") return await eachByItself();
    return requests.map(({ place }, index) => {
      const reply = replies[index];
      if (!Array.isArray(reply)) return reply instanceof Error ? wrapped(reply) : unexpected(reply);
      return this.#placeReply(reply, place, inbox, false, breaksBefore);
    });
  }

  #notePlace(place: string, inbox: string, stands: boolean): void {
    if (stands) this.#places.stands(place, inbox);
    else this.#places.left(place);
  }

  /** Where no queue can be, or none that could be asked. */
  async #lookAgain(request: PlaceRequest, withinMs: number): Promise<TakeReply> {
    const reply = await this.#holding.take(request, withinMs);
    if (reply.taken) return reply;
    // Which may be sent late: it changes nothing.
    return await this.#server.scripts.run(TIME_LEFT, [request.key], [], withinMs, (left) =>
      notTaken(reply.holder, Number(left)),
    );
  }

  async leave(key: string, place: string, withinMs: number): Promise<void> {
    if (!this.#server.canQueue(key)) return;
    const inbox = this.#server.inbox.addressFor(key);
    const before = this.#places.before(place, inbox);
    this.#places.left(place);
    const left = this.#server.scripts.run(
      LEAVE,
      this.#keys(key, false),
      [place, inbox, this.#server.counts, ...before],
      withinMs,
      (reply) => {
        if (Number(reply) === 2) this.#server.channelsAreDenied();
      },
    );
    const inParts = (ms: number): Promise<void> => this.#leaveInParts(key, place, [inbox, ...before], ms);
    await unlessParted(left, inParts, withinMs);
  }

  async #leaveInParts(
    key: string,
    place: string,
    inboxes: readonly string[],
    withinMs: number,
  ): Promise<void> {
    const entries = inboxes.flatMap((inbox) => ["", "-", "="].map((mark) => `${mark}${place} ${inbox}`));
    await Promise.all([
      this.#server.scripts.command(withinMs, "zrem", this.#server.queueOf(key), ...entries),
      this.#server.scripts.run(DROP_ALONE, [key], [reservedFor(place)], withinMs, () => {}),
    ]);
  }

  async next(held: DropRequest, request: PlaceRequest, withinMs: number): Promise<NextReply | NotDropped> {
    const { key, place, requestId, lockTimeMs, fencing } = request;
    const dropAlone = async (ms: number): Promise<NextReply | NotDropped> => {
      const reply = await this.#holding.drop(held, ms);
      return reply.dropped ? { dropped: true, next: undefined } : reply;
    };
    if (!this.#server.canQueue(key)) return await dropAlone(withinMs);
    const breaksBefore = this.#server.breaks;
    const keys = this.#keys(key, fencing);
    const inbox = this.#server.inbox.addressFor(key);
    const args = [held.requestId, place, inbox, requestId, lockTimeMs, this.#server.counts];
    const done = this.#server.scripts.run(NEXT, keys, args, withinMs, (reply): NextReply | NotDropped => {
      const [outcome, detail = null, isChannelDenied] = listOf(reply) as [Figure, Found[0]?, Figure?];
      if (Number(isChannelDenied) === 1) this.#server.channelsAreDenied();
      this.#notePlace(place, inbox, Number(outcome) === 2);
      switch (Number(outcome)) {
        case 1:
          return { dropped: true, next: this.#holding.taken(breaksBefore, fencing, detail as string | null) };
        case 2:
          return { dropped: true, next: "placed" };
        case 3:
          return { dropped: true, next: undefined };
        default: {
          const told = this.#holding.notDropped(detail, breaksBefore);
          if (told instanceof Error) throw told;
          return told;
        }
      }
    });
    return await unlessParted(done, dropAlone, withinMs);
  }

  #keys(key: string, fencing: boolean): string[] {
    const keys = [key, this.#server.queueOf(key)];
    return fencing ? [...keys, this.#server.fenceOf(key)] : keys;
  }
}
