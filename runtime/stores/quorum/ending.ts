import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
} from "../port";
import { hasAcquired } from "../value";
import type { Election } from "./election";
import type { Rollback } from "./rollback";
import type { Hold } from "./hold";
import type { Holds } from "./holds";
import type { QuorumQueue } from "./quorum-queue";
import { withoutFencing, type Master } from "./master";
import { patienceOf, type Masters } from "./masters";
import { Tally, UNPROVEN } from "./tally";

const RELEASED: ReleaseReply = { released: true };

/** A release that is under way. */
interface Ending {
  readonly request: ReleaseRequest;
  readonly hold: Hold | undefined;
  readonly order: readonly Master[];
  readonly gate: Master;
  readonly tally: Tally;
  /** The masters except the gate. Each promise resolves when the reply is recorded. */
  readonly others: Promise<void>[];
}

/** Ends a hold at all masters: first at the others, and then at the gate, which passes the key on. */
export class Releasing {
  readonly #masters: Masters;
  readonly #holds: Holds;
  readonly #rollback: Rollback;
  readonly #election: Election;
  readonly #queue: QuorumQueue;

  constructor(masters: Masters, holds: Holds, rollback: Rollback, election: Election, queue: QuorumQueue) {
    this.#masters = masters;
    this.#holds = holds;
    this.#rollback = rollback;
    this.#election = election;
    this.#queue = queue;
  }

  async release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    const patienceMs = patienceOf(timeoutMs);
    const ending = this.#beginEnd(request, patienceMs);
    const { gate, others, tally } = ending;
    // The gate is last, so that the next caller that passes it finds a majority free.
    const last = this.#masters
      .awaitReplies(
        others,
        () => tally.count("yes") + tally.count("no") >= this.#masters.votes.majority - 1,
        patienceMs,
      )
      .then(() => this.#endAt(gate, ending, patienceMs));
    return await this.#outcomeOf(ending, [...others, last], 2 * patienceMs);
  }

  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    if (this.#holds.refusal(request) !== undefined) {
      // The holder only releases. The next caller learns of the refusal when it asks for the key itself.
      const reply = await this.release(held, timeoutMs);
      return reply.released ? { released: true, next: undefined } : reply;
    }
    const patienceMs = patienceOf(timeoutMs);
    const ending = this.#beginEnd(held, patienceMs);
    const { gate, others, tally } = ending;
    const isPassable = (): boolean => tally.count("yes") >= this.#masters.votes.majority - 1;
    await this.#masters.awaitReplies(others, isPassable, patienceMs);
    if (!isPassable()) {
      const last = this.#endAt(gate, ending, patienceMs);
      const reply = await this.#outcomeOf(ending, [...others, last], patienceMs);
      return reply.released ? { released: true, next: undefined } : reply;
    }
    return await this.#passOn(ending, request, patienceMs);
  }

  /** Lets the gate alone pass the key on: to the request, which then asks the other masters, or to the first waiter at the gate. */
  async #passOn(
    ending: Ending,
    request: EnqueueRequest,
    patienceMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    const { gate, others } = ending;
    const successor = this.#holds.begin(request);
    let isEnqueued = false;
    this.#queue.asks(request.ticket, gate);
    const asked = this.#election.askFor(
      successor,
      gate,
      async () => {
        const { ticket } = request;
        const reply = await gate.ask((store) =>
          store.queue.releaseAndEnqueue(ending.request, { ...withoutFencing(request), ticket }, patienceMs),
        );
        const isDone = reply.released || hasAcquired(request.requestId, reply.holder);
        await this.#noteEnd(gate, ending, isDone ? RELEASED : reply);
        isEnqueued = reply.released && reply.next === "enqueued";
        if (reply.released && typeof reply.next === "object") return reply.next;
        return { acquired: false, holder: reply.released ? undefined : reply.holder, freeInMs: undefined };
      },
      patienceMs,
    );
    void asked.then(() => {
      if (successor.tally.voteOf(gate)?.says !== "silent" || successor.grantedBy.has(gate)) return;
      void this.#endAt(gate, ending, patienceMs); // It is unknown whether the command ran.
    });
    await this.#masters.withTimeout(patienceMs, asked);
    if (isEnqueued) this.#queue.enqueued(request, gate, patienceMs);
    const reply = await this.#outcomeOf(ending, [...others, asked.then(() => {})], patienceMs).catch(
      (error: Error) => error,
    );
    if (reply instanceof Error || !reply.released || !successor.grantedBy.has(gate)) {
      await this.#rollback.abandon(successor, patienceMs, gate);
      if (reply instanceof Error) throw reply;
      if (!isEnqueued || !reply.released) this.#queue.leave(request, patienceMs);
      return reply.released ? { released: true, next: isEnqueued ? "enqueued" : undefined } : reply;
    }
    this.#queue.leave(request, patienceMs, gate);
    const next = await this.#election.askOthers(successor, gate, patienceMs).catch(() => undefined);
    return { released: true, next: next?.acquired === true ? next : undefined };
  }

  /** Sends the release to all masters except the gate. */
  #beginEnd(request: ReleaseRequest, patienceMs: number): Ending {
    const hold = this.#holds.get(request.requestId);
    if (hold !== undefined) this.#holds.end(hold);
    const order = this.#masters.inOrder(request.key);
    const gate = this.#masters.gates(request.key, patienceMs)[0] ?? order[0];
    if (gate === undefined) throw new Error("a quorum of no masters");
    const ending: Ending = { request, hold, order, gate, tally: new Tally(this.#masters.votes), others: [] };
    for (const master of order) {
      if (master !== gate) ending.others.push(this.#endAt(master, ending, patienceMs));
    }
    return ending;
  }

  async #endAt(master: Master, ending: Ending, patienceMs: number): Promise<void> {
    const { request, hold, tally } = ending;
    try {
      const reply = await this.#rollback.send(request, hold, master, patienceMs);
      await this.#noteEnd(master, ending, reply);
    } catch (error) {
      tally.silent(master, error);
    }
  }

  async #noteEnd(master: Master, { hold, tally }: Ending, reply: ReleaseReply): Promise<void> {
    const isProven = hold === undefined || hold.witnesses.has(master);
    const fault = (await master.fault()) ?? (reply.released && !isProven ? UNPROVEN : undefined);
    if (fault !== undefined) tally.silent(master, fault);
    else if (reply.released) tally.yes(master);
    else tally.no(master, reply.holder);
  }

  async #outcomeOf(
    { request, order, tally }: Ending,
    asked: readonly Promise<void>[],
    timeoutMs: number,
  ): Promise<ReleaseReply> {
    await this.#masters.awaitReplies(
      asked,
      () => tally.isYes || this.#masters.isSurelyNo(tally, request.key),
      timeoutMs,
    );
    if (tally.isYes) return RELEASED;
    if (!tally.isNo) throw tally.error(order);
    return { released: false, holder: tally.holder(order) };
  }
}
