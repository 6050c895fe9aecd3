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

/** The queues of the locks of one server, for locks that a caller holds alone. */
export class Queueing {
  readonly #server: Server;
  readonly #holding: Holding;
  readonly #tickets: Tickets;

  constructor(server: Server, holding: Holding, tickets: Tickets) {
    this.#server = server;
    this.#holding = holding;
    this.#tickets = tickets;
  }

  enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    const { key, ticket, requestId, lockTimeMs, fencing } = request;
    if (!this.#server.canQueue(key)) return this.#acquireWithoutQueue(request, timeoutMs);
    const keys = this.#keys(key, fencing);
    const inbox = this.#server.inbox.addressFor(key);
    const before = this.#tickets.formerInbox(ticket, inbox);
    const args = [ticket, inbox, requestId, lockTimeMs, this.#server.publishCountsAll];
    const breaksBefore = this.#server.breaks;
    const enqueued = this.#server.scripts.run(
      ENQUEUE,
      keys,
      [...args, ...before],
      timeoutMs,
      (reply): AcquireReply => this.#enqueueReply(listOf(reply), ticket, inbox, fencing, breaksBefore),
    );
    return this.#server.cluster !== undefined
      ? unlessParted(enqueued, (ms) => this.#acquireWithoutQueue(request, ms), timeoutMs)
      : enqueued;
  }

  #enqueueReply(
    reply: readonly unknown[],
    ticket: string,
    inbox: string,
    fencing: boolean,
    breaksBefore: number,
  ): AcquireReply {
    const [isAcquired, detail, pttl, isChannelDenied] = reply as [Figure, (string | null)?, Figure?, Figure?];
    this.#recordTicket(ticket, inbox, Number(isAcquired) !== 1);
    if (Number(isAcquired) === 1) return this.#holding.acquired(breaksBefore, fencing, detail);
    if (Number(isChannelDenied) === 1) this.#server.warnOfDeniedChannels();
    return notAcquired(detail ?? undefined, Number(pttl));
  }

  async enqueueMany(
    requests: readonly EnqueueRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> {
    const askOneByOne = (): Promise<(AcquireReply | Error)[]> =>
      eachAlone(requests, (one) => this.enqueue(one, timeoutMs));
    const keys = requests.map(({ key }) => key);
    const inbox = this.#server.inbox.addressFor(keys[0] ?? "");
    if (requests.some(({ ticket }) => this.#tickets.formerInbox(ticket, inbox).length > 0))
      return await askOneByOne();
    const tickets = requests.map(({ ticket }) => ticket).join("");
    const args = [idsOf(requests), ...lockTimesOf(requests), tickets, inbox, this.#server.publishCountsAll];
    const breaksBefore = this.#server.breaks;
    const queues = keys.map((key) => this.#server.queueOf(key));
    const replies = await this.#server.scripts.runMany(
      ENQUEUE_MANY,
      [...keys, ...queues],
      args,
      timeoutMs,
      listOf,
    );
    if (replies === "each alone") return await askOneByOne();
    return requests.map(({ ticket }, index) => {
      const reply = replies[index];
      if (!Array.isArray(reply)) return reply instanceof Error ? translateError(reply) : unexpected(reply);
      return this.#enqueueReply(reply, ticket, inbox, false, breaksBefore);
    });
  }

  #recordTicket(ticket: string, inbox: string, isQueued: boolean): void {
    if (isQueued) this.#tickets.enqueued(ticket, inbox);
    else this.#tickets.dequeued(ticket);
  }

  /** Acquires the key without its queue: the lock cannot have one, or its slot is migrating. */
  async #acquireWithoutQueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    const reply = await this.#holding.acquire(request, timeoutMs);
    if (reply.acquired) return reply;
    // This command has the whole time again. If it is late, that does no harm, because it changes nothing.
    return await this.#server.scripts.run(TIME_LEFT, [request.key], [], timeoutMs, (left) =>
      notAcquired(reply.holder, Number(left)),
    );
  }

  async dequeue(key: string, ticket: string, timeoutMs: number): Promise<void> {
    if (!this.#server.canQueue(key)) return;
    const inbox = this.#server.inbox.addressFor(key);
    const before = this.#tickets.formerInbox(ticket, inbox);
    this.#tickets.dequeued(ticket);
    const dequeued = this.#server.scripts.run(
      DEQUEUE,
      this.#keys(key, false),
      [ticket, inbox, this.#server.publishCountsAll, ...before],
      timeoutMs,
      (reply) => {
        if (Number(reply) === 2) this.#server.warnOfDeniedChannels();
      },
    );
    const inParts = (ms: number): Promise<void> => this.#dequeueInParts(key, ticket, [inbox, ...before], ms);
    await unlessParted(dequeued, inParts, timeoutMs);
  }

  async #dequeueInParts(
    key: string,
    ticket: string,
    inboxes: readonly string[],
    timeoutMs: number,
  ): Promise<void> {
    const entries = inboxes.flatMap((inbox) => ["", "-", "="].map((mark) => `${mark}${ticket} ${inbox}`));
    await Promise.all([
      this.#server.scripts.command(timeoutMs, "zrem", this.#server.queueOf(key), ...entries),
      this.#server.scripts.run(RELEASE_ALONE, [key], [reservedFor(ticket)], timeoutMs, () => {}),
    ]);
  }

  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    const { key, ticket, requestId, lockTimeMs, fencing } = request;
    const releaseOnly = async (ms: number): Promise<ReleaseAndEnqueueReply | NotReleased> => {
      const reply = await this.#holding.release(held, ms);
      return reply.released ? { released: true, next: undefined } : reply;
    };
    if (!this.#server.canQueue(key)) return await releaseOnly(timeoutMs);
    const breaksBefore = this.#server.breaks;
    const keys = this.#keys(key, fencing);
    const inbox = this.#server.inbox.addressFor(key);
    const args = [held.requestId, ticket, inbox, requestId, lockTimeMs, this.#server.publishCountsAll];
    const done = this.#server.scripts.run(
      RELEASE_AND_ENQUEUE,
      keys,
      args,
      timeoutMs,
      (reply): ReleaseAndEnqueueReply | NotReleased => {
        const [outcome, detail = null, isChannelDenied] = listOf(reply) as [Figure, Found[0]?, Figure?];
        if (Number(isChannelDenied) === 1) this.#server.warnOfDeniedChannels();
        this.#recordTicket(ticket, inbox, Number(outcome) === 2);
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
            const notReleased = this.#holding.notReleased(detail, breaksBefore);
            if (notReleased instanceof Error) throw notReleased;
            return notReleased;
          }
        }
      },
    );
    return await unlessParted(done, releaseOnly, timeoutMs);
  }

  #keys(key: string, fencing: boolean): string[] {
    const keys = [key, this.#server.queueOf(key)];
    return fencing ? [...keys, this.#server.fenceOf(key)] : keys;
  }
}
