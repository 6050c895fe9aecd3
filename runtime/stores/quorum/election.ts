import type { Acquired, AcquireReply, AcquireRequest } from "../port";
import { drawToken } from "./fencing";
import type { GiveBack } from "./give-back";
import type { Hold } from "./hold";
import type { Holds } from "./holds";
import { plain, type Master } from "./master";
import { NO_ANSWER, type Masters } from "./masters";

/** How soon to try again, at most, where several asked at once and none had a majority. */
const LONGEST_SPLIT_PAUSE_MS = 64;

/** How a master is asked for a hold. */
export type Ask = (master: Master) => Promise<AcquireReply>;

/** What a hold has to win before anybody may believe in it. */
export class Election {
  readonly #masters: Masters;
  readonly #holds: Holds;
  readonly #giveBack: GiveBack;

  constructor(masters: Masters, holds: Holds, giveBack: GiveBack) {
    this.#masters = masters;
    this.#holds = holds;
    this.#giveBack = giveBack;
  }

  /** The gate is asked first, then the others; what is not a majority is given back, the gate last. */
  async elect(
    request: AcquireRequest,
    patienceMs: number,
    askGate: Ask,
  ): Promise<{ readonly gate: Master; readonly reply: AcquireReply }> {
    const refusal = this.#holds.refusal(request);
    if (refusal !== undefined) throw refusal;
    const hold = this.#holds.begin(request);
    const { gate, reply } = await this.#passGate(hold, patienceMs, askGate);
    if (hold.at.has(gate)) return { gate, reply: await this.askOthers(hold, gate, patienceMs) };
    void this.#giveBack.giveUp(hold, patienceMs); // A gate that was passed over may have it.
    return { gate, reply };
  }

  /** The first in the key's order that answers is the gate. */
  async #passGate(
    hold: Hold,
    patienceMs: number,
    askGate: Ask,
  ): Promise<{ readonly gate: Master; readonly reply: AcquireReply }> {
    for (const gate of this.#masters.gates(hold.request.key, patienceMs)) {
      const reply = await this.#masters.within(patienceMs, this.askFor(hold, gate, askGate, patienceMs));
      if (reply !== undefined) return { gate, reply };
      if (hold.tally.of(gate) === undefined) hold.tally.silent(gate, NO_ANSWER);
    }
    const error = hold.tally.error();
    await this.#giveBack.giveUp(hold, patienceMs);
    throw error;
  }

  /** Once the gate has it. */
  async askOthers(hold: Hold, gate: Master, patienceMs: number): Promise<AcquireReply> {
    const { tally, request, asked } = hold;
    const order = this.#masters.inOrder(request.key);
    for (const master of order) {
      if (asked.has(master)) continue;
      if (!master.mayBeAsked(patienceMs)) tally.silent(master, NO_ANSWER);
      else void this.askFor(hold, master, (other) => other.acquire(request, patienceMs), patienceMs);
    }
    await this.#masters.heard(asked.values(), () => tally.isYes || tally.isNo, patienceMs);
    try {
      if (tally.isYes) return await this.#declare(hold, patienceMs);
    } catch (error) {
      await this.#giveBack.giveUp(hold, patienceMs, gate);
      throw error;
    }
    const { isNo } = tally;
    const error = tally.error();
    const holder = tally.holder(order);
    const freeInMs = tally.isHeldBy(holder) ? undefined : splitPauseOf(request.requestId);
    await this.#giveBack.giveUp(hold, patienceMs, gate);
    if (!isNo) throw error;
    return { acquired: false, holder, freeInMs };
  }

  /** A majority has it. */
  async #declare(hold: Hold, patienceMs: number): Promise<Acquired> {
    const fencingToken = hold.request.fencing
      ? await drawToken(this.#masters, hold.request, patienceMs)
      : undefined;
    if (hold.isOver) throw new Error("it was released before it was acquired");
    this.#holds.declare(hold);
    return {
      acquired: true,
      ...(hold.witnesses.size < this.#masters.votes.majority && { mayComeAgain: true }),
      ...(fencingToken !== undefined && { fencingToken }),
    };
  }

  // ---- one master's word on a hold --------------------------------------------------------------------

  /** Resolves when its word is noted: to what it said, or to nothing where it failed. */
  askFor(hold: Hold, master: Master, ask: Ask, patienceMs: number): Promise<AcquireReply | undefined> {
    const noted = this.#askAndNote(hold, master, ask, patienceMs).catch((error: unknown) => {
      hold.tally.silent(master, error);
      return undefined;
    });
    hold.asked.set(master, noted);
    return noted;
  }

  async #askAndNote(hold: Hold, master: Master, ask: Ask, patienceMs: number): Promise<AcquireReply> {
    const { request, tally, witnesses, at } = hold;
    const reply = await ask(master);
    const isOwn = reply.acquired || (reply.holder === request.requestId && !this.#holds.isSecond(hold));
    if (!isOwn) {
      tally.no(master, reply.holder);
      return reply;
    }
    at.add(master);
    if (hold.isOver) {
      // What was sent to end it may have come before.
      if ((await hold.ends.get(master)) !== true) void this.#giveBack.releaseAt(master, hold, patienceMs);
      return reply;
    }
    if (!reply.acquired) {
      // It was carried out twice, and is worth nothing until it is renewed.
      const [renewed = NO_ANSWER] = await master.ask((store) => store.renew([plain(request)], patienceMs));
      if (renewed instanceof Error) throw renewed;
      if (!renewed.renewed) at.delete(master);
    } else if (reply.mayComeAgain !== true && this.#holds.isSure(hold)) witnesses.add(master);
    const fault = await master.fault();
    if (fault !== undefined) tally.silent(master, fault);
    else if (at.has(master)) tally.yes(master);
    return reply;
  }
}

/** Another one for each, so that not all who tried at once try at once again. */
function splitPauseOf(requestId: string): number {
  return Number.parseInt(requestId.slice(-4), 16) % LONGEST_SPLIT_PAUSE_MS;
}
