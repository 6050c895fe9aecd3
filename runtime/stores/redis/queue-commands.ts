import type { AcquireReply, NotReleased, ReleaseAndEnqueueReply, ReleaseRequest } from "../port";
import { reservedFor } from "../value";
import { idsAndLockTimes, nothing, type ExclusiveCommands } from "./exclusive-commands";
import { lockOnly, type Executor, type Keyed, type Operation } from "./executor";
import { acquired, listOf, notAcquired, notReleased, tokenIn, type Figure, type Found } from "./replies";
import { DEQUEUE } from "./scripts/dequeue";
import { ENQUEUE, ENQUEUE_MANY } from "./scripts/enqueue";
import { TIME_LEFT } from "./scripts/peek";
import { RELEASE_AND_ENQUEUE } from "./scripts/release-and-enqueue";
import type { Server } from "./server";
import type { AddressedRequest, Inboxes, Tickets } from "./tickets";

interface DequeueRequest extends Keyed, Inboxes {
  readonly ticket: string;
}

interface HandOffRequest extends Keyed {
  readonly held: ReleaseRequest;
  readonly next: AddressedRequest;
}

/**
 * The commands for waiters that want a key alone. Each field is an {@link Operation}. The header of its script describes it, and
 * `scripts/queue.ts` the layout of the data.
 */
export class QueueCommands {
  readonly #server: Server;
  readonly #executor: Executor;
  readonly #tickets: Tickets;
  readonly #exclusive: ExclusiveCommands;

  constructor(server: Server, executor: Executor, tickets: Tickets, exclusive: ExclusiveCommands) {
    this.#server = server;
    this.#executor = executor;
    this.#tickets = tickets;
    this.#exclusive = exclusive;
  }

  readonly enqueue: Operation<AddressedRequest, AcquireReply> = {
    keys: ({ key, fencing }) => this.#keysOf(key, fencing),
    one: {
      run: ENQUEUE,
      args: ({ ticket, inbox, requestId, lockTimeMs, formerInboxes }) => [
        ticket,
        inbox,
        requestId,
        lockTimeMs,
        this.#server.publishCountsAll,
        ...formerInboxes,
      ],
    },
    many: {
      run: ENQUEUE_MANY,
      args: (requests) => [
        ...idsAndLockTimes(requests),
        requests.map(({ ticket }) => ticket).join(""),
        requests[0]?.inbox ?? "", // All keys of a server have the same inbox.
        this.#server.publishCountsAll,
      ],
      fits: ({ formerInboxes }) => formerInboxes.length === 0,
      each: listOf,
    },
    read: (reply, { ticket, inbox, fencing }, mayHaveRunTwice) => {
      const [isAcquired, detail, pttl, isDenied] = listOf(reply) as [Figure, string?, Figure?, Figure?];
      const hasAcquired = Number(isAcquired) === 1;
      this.#tickets.note(ticket, inbox, !hasAcquired);
      if (hasAcquired) return acquired(mayHaveRunTwice, fencing ? tokenIn(detail) : undefined);
      if (Number(isDenied) === 1) this.#server.warnOfDeniedChannels();
      return notAcquired(detail ?? undefined, Number(pttl));
    },
    withoutQueue: (request, timeoutMs) => this.#acquireWithoutQueue(request, timeoutMs),
    inParts: (request, timeoutMs) => this.#acquireWithoutQueue(request, timeoutMs),
  };

  async #acquireWithoutQueue(request: AddressedRequest, timeoutMs: number): Promise<AcquireReply> {
    const reply = await this.#executor.one(this.#exclusive.acquire(request), request, timeoutMs);
    if (reply.acquired) return reply;
    // This command gets the whole timeout again. It may be late, because it changes nothing.
    const pttl = await this.#executor.one(this.#timeLeft, request, timeoutMs);
    return notAcquired(reply.holder, pttl);
  }

  readonly #timeLeft: Operation<Keyed, number> = {
    keys: lockOnly,
    one: { run: TIME_LEFT, args: nothing },
    read: Number,
  };

  readonly dequeue: Operation<DequeueRequest, void> = {
    keys: ({ key }) => this.#keysOf(key),
    one: {
      run: DEQUEUE,
      args: ({ ticket, inbox, formerInboxes }) => [
        ticket,
        inbox,
        this.#server.publishCountsAll,
        ...formerInboxes,
      ],
    },
    read: (reply) => {
      if (Number(reply) === 2) this.#server.warnOfDeniedChannels();
    },
    withoutQueue: () => Promise.resolve(),
    inParts: (request, timeoutMs) => this.#dequeueInParts(request, timeoutMs),
  };

  async #dequeueInParts(request: DequeueRequest, timeoutMs: number): Promise<void> {
    const { key, ticket } = request;
    const inboxes = [request.inbox, ...request.formerInboxes];
    const entries = inboxes.flatMap((inbox) => ["", "-", "="].map((mark) => `${mark}${ticket} ${inbox}`));
    const zrem = { name: "zrem", keys: [this.#server.queueOf(key)], args: entries };
    await Promise.all([
      this.#server.ask(zrem, timeoutMs),
      this.#executor.one(this.#exclusive.releaseAlone, { key, requestId: reservedFor(ticket) }, timeoutMs),
    ]);
  }

  readonly releaseAndEnqueue: Operation<HandOffRequest, ReleaseAndEnqueueReply | NotReleased> = {
    keys: ({ key, next: { fencing } }) => this.#keysOf(key, fencing),
    one: {
      run: RELEASE_AND_ENQUEUE,
      args: ({ held, next: { ticket, inbox, requestId, lockTimeMs } }) => [
        held.requestId,
        ticket,
        inbox,
        requestId,
        lockTimeMs,
        this.#server.publishCountsAll,
      ],
    },
    read: (reply, { next: { ticket, inbox, fencing } }, mayHaveRunTwice) => {
      const [outcome, detail = null, isDenied] = listOf(reply) as [Figure, Found?, Figure?];
      if (Number(isDenied) === 1) this.#server.warnOfDeniedChannels();
      this.#tickets.note(ticket, inbox, Number(outcome) === 2);
      switch (Number(outcome)) {
        case 1:
          return { released: true, next: acquired(mayHaveRunTwice, fencing ? tokenIn(detail) : undefined) };
        case 2:
          return { released: true, next: "enqueued" };
        case 3:
          return { released: true, next: undefined };
        default:
          return notReleased(detail, mayHaveRunTwice);
      }
    },
    withoutQueue: (...request) => this.#releaseOnly(...request),
    inParts: (...request) => this.#releaseOnly(...request),
  };

  async #releaseOnly(
    { held }: HandOffRequest,
    timeoutMs: number,
    breaksBefore: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    const reply = await this.#executor.one(this.#exclusive.release(held), held, timeoutMs, breaksBefore);
    return reply.released ? { released: true, next: undefined } : reply;
  }

  #keysOf(key: string, fencing = false): string[] {
    const keys = [key, this.#server.queueOf(key)];
    return fencing ? [...keys, this.#server.fenceOf(key)] : keys;
  }
}
