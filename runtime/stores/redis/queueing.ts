import type {
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  AcquireReply,
} from "../port";
import { reservedFor } from "../value";
import { unlessParted } from "./cluster/by-slot";
import { translateError } from "./errors";
import type { Holding } from "./holding";
import { eachAlone, idsOf, lockTimesOf } from "./many";
import type { Tickets } from "./tickets";
import { listOf, notAcquired, unexpected, type Figure, type Found } from "./replies";
import { RELEASE_ALONE } from "./scripts/release";
import { DEQUEUE } from "./scripts/dequeue";
import { TIME_LEFT } from "./scripts/peek";
import { RELEASE_AND_ENQUEUE } from "./scripts/release-and-enqueue";
import { ENQUEUE, ENQUEUE_MANY } from "./scripts/enqueue";
import type { Server } from "./server";

/** Who comes next for the locks of a server. */
export class Queueing {
  readonly #server: Server;
  readonly #holding: Holding;
  readonly #places: Tickets;

  constructor(server: Server, holding: Holding, places: Tickets) {
    this.#server = server;
    this.#holding = holding;
    this.#places = places;
  }

  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    const { key, ticket, requestId, lockTimeMs, fencing } = request;
    if (!this.#server.canQueue(key)) return this.#lookAgain(request, timeoutMs);
    const keys = this.#keys(key, fencing);
    const inbox = this.#server.inbox.addressFor(key);
    const before = this.#places.before(ticket, inbox);
    const args = [ticket, inbox, requestId, lockTimeMs, this.#server.counts];
    const breaksBefore = this.#server.breaks;
    const placed = this.#server.scripts.run(
      ENQUEUE,
      keys,
      [...args, ...before],
      timeoutMs,
      (reply): AcquireReply => this.#placeReply(listOf(reply), ticket, inbox, fencing, breaksBefore),
    );
    return this.#server.cluster !== undefined
      ? unlessParted(placed, (ms) => this.#lookAgain(request, ms), timeoutMs)
      : placed;
  }

  #placeReply(
    reply: readonly unknown[],
    place: string,
    inbox: string,
    fencing: boolean,
    breaksBefore: number,
  ): AcquireReply {
    const [isTaken, detail, pttl, isChannelDenied] = reply as [Figure, (string | null)?, Figure?, Figure?];
    this.#notePlace(place, inbox, Number(isTaken) !== 1);
    if (Number(isTaken) === 1) return this.#holding.acquired(breaksBefore, fencing, detail);
    if (Number(isChannelDenied) === 1) this.#server.channelsAreDenied();
    return notAcquired(detail ?? undefined, Number(pttl));
  }

  async enqueueMany(
    requests: readonly EnqueueRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    const eachByItself = (): Promise<(AcquireReply | Error)[]> =>
      eachAlone(requests, (one) => this.enqueue(one, timeoutMs));
    const keys = requests.map(({ key }) => key);
    const inbox = this.#server.inbox.addressFor(keys[0] ?? "");
    if (requests.some(({ ticket }) => this.#places.before(ticket, inbox).length > 0))
      return await eachByItself();
    const places = requests.map(({ ticket }) => ticket).join("");
    const args = [idsOf(requests), ...lockTimesOf(requests), places, inbox, this.#server.counts];
    const breaksBefore = this.#server.breaks;
    const queues = keys.map((key) => this.#server.queueOf(key));
    const replies = await this.#server.scripts.runMany(
      ENQUEUE_MANY,
      [...keys, ...queues],
      args,
      timeoutMs,
      listOf,
    );
    if (replies === "each alone") return await eachByItself();
    return requests.map(({ ticket }, index) => {
      const reply = replies[index];
      if (!Array.isArray(reply)) return reply instanceof Error ? translateError(reply) : unexpected(reply);
      return this.#placeReply(reply, ticket, inbox, false, breaksBefore);
    });
  }

  #notePlace(place: string, inbox: string, stands: boolean): void {
    if (stands) this.#places.stands(place, inbox);
    else this.#places.left(place);
  }

  /** Where no queue can be, or none that could be asked. */
  async #lookAgain(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    const reply = await this.#holding.acquire(request, timeoutMs);
    if (reply.acquired) return reply;
    // Which may be sent late: it changes nothing.
    return await this.#server.scripts.run(TIME_LEFT, [request.key], [], timeoutMs, (left) =>
      notAcquired(reply.holder, Number(left)),
    );
  }

  async dequeue(key: string, place: string, timeoutMs: number): Promise<void> {
    if (!this.#server.canQueue(key)) return;
    const inbox = this.#server.inbox.addressFor(key);
    const before = this.#places.before(place, inbox);
    this.#places.left(place);
    const left = this.#server.scripts.run(
      DEQUEUE,
      this.#keys(key, false),
      [place, inbox, this.#server.counts, ...before],
      timeoutMs,
      (reply) => {
        if (Number(reply) === 2) this.#server.channelsAreDenied();
      },
    );
    const inParts = (ms: number): Promise<void> => this.#leaveInParts(key, place, [inbox, ...before], ms);
    await unlessParted(left, inParts, timeoutMs);
  }

  async #leaveInParts(
    key: string,
    place: string,
    inboxes: readonly string[],
    timeoutMs: number,
  ): Promise<void> {
    const entries = inboxes.flatMap((inbox) => ["", "-", "="].map((mark) => `${mark}${place} ${inbox}`));
    await Promise.all([
      this.#server.scripts.command(timeoutMs, "zrem", this.#server.queueOf(key), ...entries),
      this.#server.scripts.run(RELEASE_ALONE, [key], [reservedFor(place)], timeoutMs, () => {}),
    ]);
  }

  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    const { key, ticket, requestId, lockTimeMs, fencing } = request;
    const dropAlone = async (ms: number): Promise<ReleaseAndEnqueueReply | NotReleased> => {
      const reply = await this.#holding.release(held, ms);
      return reply.released ? { released: true, next: undefined } : reply;
    };
    if (!this.#server.canQueue(key)) return await dropAlone(timeoutMs);
    const breaksBefore = this.#server.breaks;
    const keys = this.#keys(key, fencing);
    const inbox = this.#server.inbox.addressFor(key);
    const args = [held.requestId, ticket, inbox, requestId, lockTimeMs, this.#server.counts];
    const done = this.#server.scripts.run(
      RELEASE_AND_ENQUEUE,
      keys,
      args,
      timeoutMs,
      (reply): ReleaseAndEnqueueReply | NotReleased => {
        const [outcome, detail = null, isChannelDenied] = listOf(reply) as [Figure, Found[0]?, Figure?];
        if (Number(isChannelDenied) === 1) this.#server.channelsAreDenied();
        this.#notePlace(ticket, inbox, Number(outcome) === 2);
        switch (Number(outcome)) {
          case 1:
            return {
              released: true,
              next: this.#holding.acquired(breaksBefore, fencing, detail as string | null),
            };
          case 2:
            return { released: true, next: "enqueued" };
          case 3:
            return { released: true, next: undefined };
          default: {
            const told = this.#holding.notDropped(detail, breaksBefore);
            if (told instanceof Error) throw told;
            return told;
          }
        }
      },
    );
    return await unlessParted(done, dropAlone, timeoutMs);
  }

  #keys(key: string, fencing: boolean): string[] {
    const keys = [key, this.#server.queueOf(key)];
    return fencing ? [...keys, this.#server.fenceOf(key)] : keys;
  }
}
