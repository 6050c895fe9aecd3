import type {
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
} from "../port";
import { hasTaken } from "../value";
import type { Election } from "./election";
import type { GiveBack } from "./give-back";
import type { Hold } from "./hold";
import type { Holds } from "./holds";
import type { QuorumQueue } from "./quorum-queue";
import { plain, type Master } from "./master";
import { patienceOf, type Masters } from "./masters";
import { Tally } from "./tally";

const UNPROVEN = new Error("it may have lost the key in the meantime");
const DROPPED: ReleaseReply = { released: true };

/** A hold that is being given back. */
interface Ending {
  readonly request: ReleaseRequest;
  readonly hold: Hold | undefined;
  readonly order: readonly Master[];
  readonly gate: Master;
  readonly tally: Tally;
  /** All but the gate: each resolves when what it said is noted. */
  readonly others: Promise<void>[];
}

/** Ends a hold that was held: all but the gate, and then the gate, which passes the key on. */
export class Ends {
  readonly #masters: Masters;
  readonly #holds: Holds;
  readonly #giveBack: GiveBack;
  readonly #election: Election;
  readonly #line: QuorumQueue;

  constructor(masters: Masters, holds: Holds, giveBack: GiveBack, election: Election, line: QuorumQueue) {
    this.#masters = masters;
    this.#holds = holds;
    this.#giveBack = giveBack;
    this.#election = election;
    this.#line = line;
  }

  async release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    const patienceMs = patienceOf(timeoutMs);
    const ending = this.#beginEnd(request, patienceMs);
    const { gate, others, tally } = ending;
    // The next one who passes the gate finds a majority free.
    const last = this.#masters
      .heard(
        others,
        () => tally.count("yes") + tally.count("no") >= this.#masters.votes.majority - 1,
        patienceMs,
      )
      .then(() => this.#endAt(gate, ending, patienceMs));
    return await this.#ended(ending, [...others, last], 2 * patienceMs);
  }

  async releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    if (this.#holds.refusal(request) !== undefined) {
      // Who asks for too much is told when it asks by itself: who holds it has nothing to do with that.
      const reply = await this.release(held, timeoutMs);
      return reply.released ? { released: true, next: undefined } : reply;
    }
    const patienceMs = patienceOf(timeoutMs);
    const ending = this.#beginEnd(held, patienceMs);
    const { gate, others, tally } = ending;
    const isPassable = (): boolean => tally.count("yes") >= this.#masters.votes.majority - 1;
    await this.#masters.heard(others, isPassable, patienceMs);
    if (!isPassable()) {
      const last = this.#endAt(gate, ending, patienceMs);
      const reply = await this.#ended(ending, [...others, last], patienceMs);
      return reply.released ? { released: true, next: undefined } : reply;
    }
    return await this.#passOn(ending, request, patienceMs);
  }

  /** The gate alone passes the key on: to the request, which then asks the others, or to who waits there. */
  async #passOn(
    ending: Ending,
    request: EnqueueRequest,
    patienceMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    const { gate, others } = ending;
    const successor = this.#holds.begin(request);
    let isPlaced = false;
    const asked = this.#election.askFor(
      successor,
      gate,
      async () => {
        const { ticket } = request;
        const reply = await gate.ask((store) =>
          store.releaseAndEnqueue(ending.request, { ...plain(request), ticket }, patienceMs),
        );
        const isDone = reply.released || hasTaken(request.requestId, reply.holder);
        await this.#noteEnd(gate, ending, isDone ? DROPPED : reply);
        isPlaced = reply.released && reply.next === "enqueued";
        if (reply.released && typeof reply.next === "object") return reply.next;
        return { acquired: false, holder: reply.released ? undefined : reply.holder, freeInMs: undefined };
      },
      patienceMs,
    );
    void asked.then(() => {
      if (successor.tally.of(gate)?.says !== "silent" || successor.at.has(gate)) return;
      void this.#endAt(gate, ending, patienceMs); // Whether it was carried out is unknown.
    });
    await this.#masters.within(patienceMs, asked);
    if (isPlaced) this.#line.stands(request, gate, patienceMs);
    const reply = await this.#ended(ending, [...others, asked.then(() => {})], patienceMs).catch(
      (error: Error) => error,
    );
    if (reply instanceof Error || !reply.released || !successor.at.has(gate)) {
      await this.#giveBack.giveUp(successor, patienceMs, gate);
      if (reply instanceof Error) throw reply;
      return reply.released ? { released: true, next: isPlaced ? "enqueued" : undefined } : reply;
    }
    const next = await this.#election.askOthers(successor, gate, patienceMs).catch(() => undefined);
    return { released: true, next: next?.acquired === true ? next : undefined };
  }

  /** All but the gate are told that it is over. */
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
      const reply = await this.#giveBack.send(request, hold, master, patienceMs);
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

  async #ended(
    { request, order, tally }: Ending,
    asked: readonly Promise<void>[],
    timeoutMs: number,
  ): Promise<ReleaseReply> {
    await this.#masters.heard(
      asked,
      () => tally.isYes || this.#masters.isSurelyNo(tally, request.key),
      timeoutMs,
    );
    if (tally.isYes) return DROPPED;
    if (!tally.isNo) throw tally.error();
    return { released: false, holder: tally.holder(order) };
  }
}
