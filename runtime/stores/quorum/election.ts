import type { Acquired, AcquireReply, AcquireRequest } from "../port";
import { drawToken } from "./fencing";
import type { Rollback } from "./rollback";
import type { Hold } from "./hold";
import type { Holds } from "./holds";
import { withoutFencing, type Master } from "./master";
import { NO_ANSWER, type Masters } from "./masters";

/** The longest pause before a retry if several callers asked at the same time and none got a majority. */
const LONGEST_SPLIT_PAUSE_MS = 64;

/** Asks one master for a hold. */
export type Ask = (master: Master) => Promise<AcquireReply>;

/** The vote that a hold must win before anybody may rely on it. */
export class Election {
  readonly #masters: Masters;
  readonly #holds: Holds;
  readonly #rollback: Rollback;

  constructor(masters: Masters, holds: Holds, rollback: Rollback) {
    this.#masters = masters;
    this.#holds = holds;
    this.#rollback = rollback;
  }

  /** Asks the gate, then the other masters. Without a majority, it releases what it acquired, at the gate last. */
  async elect(
    request: AcquireRequest,
    patienceMs: number,
    askGate: Ask,
  ): Promise<{ readonly gate: Master; readonly reply: AcquireReply }> {
    const refusal = this.#holds.refusal(request);
    if (refusal !== undefined) throw refusal;
    const hold = this.#holds.begin(request);
    const { gate, reply } = await this.#askGates(hold, patienceMs, askGate);
    if (hold.grantedBy.has(gate)) return { gate, reply: await this.askOthers(hold, gate, patienceMs) };
    void this.#rollback.abandon(hold, patienceMs); // A gate that did not reply in time may still grant it.
    return { gate, reply };
  }

  /** Asks the masters in the key's order until one replies. That one is the gate. */
  async #askGates(
    hold: Hold,
    patienceMs: number,
    askGate: Ask,
  ): Promise<{ readonly gate: Master; readonly reply: AcquireReply }> {
    for (const gate of this.#masters.gates(hold.request.key, patienceMs)) {
      const reply = await this.#masters.withTimeout(patienceMs, this.askFor(hold, gate, askGate, patienceMs));
      if (reply !== undefined) return { gate, reply };
      if (hold.tally.voteOf(gate) === undefined) hold.tally.silent(gate, gate.silence);
    }
    const error = hold.tally.error(hold.asked.keys());
    await this.#rollback.abandon(hold, patienceMs);
    throw error;
  }

  /** Asks the other masters after the gate granted the hold. */
  async askOthers(hold: Hold, gate: Master, patienceMs: number): Promise<AcquireReply> {
    const { tally, request, asked } = hold;
    const order = this.#masters.inOrder(request.key);
    for (const master of order) {
      if (asked.has(master)) continue;
      if (!master.mayBeAsked(patienceMs)) tally.silent(master, master.silence);
      else void this.askFor(hold, master, (other) => other.acquire(request, patienceMs), patienceMs);
    }
    await this.#masters.awaitReplies(asked.values(), () => tally.isYes || tally.isNo, patienceMs);
    try {
      if (tally.isYes) return await this.#declare(hold, patienceMs);
    } catch (error) {
      await this.#rollback.abandon(hold, patienceMs, gate);
      throw error;
    }
    const { isNo } = tally;
    const error = tally.error(asked.keys());
    const holder = tally.holder(order);
    const freeInMs = tally.isHeldBy(holder) ? undefined : splitPauseOf(request.requestId);
    await this.#rollback.abandon(hold, patienceMs, gate);
    if (!isNo) throw error;
    return { acquired: false, holder, freeInMs };
  }

  /** Reports the hold as acquired, because a majority has it. */
  async #declare(hold: Hold, patienceMs: number): Promise<Acquired> {
    const fencingToken = hold.request.fencing
      ? await drawToken(this.#masters, hold.request, patienceMs)
      : undefined;
    if (hold.isOver) throw new Error("it was released before it was acquired");
    this.#holds.declare(hold);
    return {
      acquired: true,
      ...(hold.witnesses.size < this.#masters.votes.majority && { mayRunAgain: true }),
      ...(fencingToken !== undefined && { fencingToken }),
    };
  }

  // ---- one master's reply for a hold --------------------------------------------------------------------

  /** Asks one master. Resolves when its vote is recorded: to its reply, or to `undefined` if it failed. */
  askFor(hold: Hold, master: Master, ask: Ask, patienceMs: number): Promise<AcquireReply | undefined> {
    const noted = this.#askAndNote(hold, master, ask, patienceMs).catch((error: unknown) => {
      hold.tally.silent(master, error);
      return undefined;
    });
    hold.asked.set(master, noted);
    return noted;
  }

  async #askAndNote(hold: Hold, master: Master, ask: Ask, patienceMs: number): Promise<AcquireReply> {
    const { request, tally, witnesses, grantedBy } = hold;
    const reply = await ask(master);
    const isOwn = reply.acquired || (reply.holder === request.requestId && !this.#holds.isSecond(hold));
    if (!isOwn) {
      tally.no(master, reply.holder);
      return reply;
    }
    grantedBy.add(master);
    if (hold.isOver) {
      // The release may have overtaken this command and found nothing. Then it is sent again.
      if ((await hold.releases.get(master)) !== true) void this.#rollback.releaseAt(master, hold, patienceMs);
      return reply;
    }
    if (!reply.acquired) {
      // The command ran twice, so the hold does not count until a renewal confirms it.
      const [renewed = NO_ANSWER] = await master.ask((store) =>
        store.renew([withoutFencing(request)], patienceMs),
      );
      if (renewed instanceof Error) throw renewed;
      if (!renewed.renewed) grantedBy.delete(master);
    } else if (reply.mayRunAgain !== true && this.#holds.isSure(hold)) witnesses.add(master);
    const fault = await master.fault();
    if (fault !== undefined) tally.silent(master, fault);
    else if (grantedBy.has(master)) tally.yes(master);
    return reply;
  }
}

/** Returns a different pause for each request, so that callers that collided do not collide again. */
function splitPauseOf(requestId: string): number {
  return Number.parseInt(requestId.slice(-4), 16) % LONGEST_SPLIT_PAUSE_MS;
}
