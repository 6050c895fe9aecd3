import type { Clock } from "../../clock";
import type { Renewed, RenewReply, RenewRequest } from "../port";
import { revokedFrom } from "../value";
import type { Election } from "./election";
import { drawToken } from "./fencing";
import type { GiveBack } from "./give-back";
import type { Hold } from "./hold";
import type { Holds } from "./holds";
import type { Peeking } from "./peeking";
import { plain, type Master } from "./master";
import { NO_ANSWER, patienceOf, type Masters } from "./masters";
import { Tally } from "./tally";

const RENEWED: Renewed = { renewed: true };

/** Prolongs what a majority has, and makes it known to those who lack it. */
export class Renewal {
  readonly #clock: Clock;
  readonly #masters: Masters;
  readonly #holds: Holds;
  readonly #giveBack: GiveBack;
  readonly #election: Election;
  readonly #looking: Peeking;

  constructor(
    clock: Clock,
    masters: Masters,
    holds: Holds,
    giveBack: GiveBack,
    election: Election,
    looking: Peeking,
  ) {
    this.#clock = clock;
    this.#masters = masters;
    this.#holds = holds;
    this.#giveBack = giveBack;
    this.#election = election;
    this.#looking = looking;
  }

  async renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    // What was not declared is never renewed: its give-back may be on its way to the masters.
    const isHeld = ({ requestId }: RenewRequest): boolean => this.#holds.get(requestId)?.isDeclared === true;
    const allowed = requests.filter((request) => this.#holds.refusal(request) === undefined);
    const held = allowed.filter(isHeld);
    const others = allowed.filter((request) => !held.includes(request));
    const keys = others.map(({ key }) => key);
    const [renewed, values] = await Promise.all([
      held.length > 0 ? this.#renewHeld(held, patienceOf(timeoutMs)) : [],
      this.#looking.peek(keys, timeoutMs),
    ]);
    const replies = new Map<RenewRequest, RenewReply>();
    held.forEach((request, index) => replies.set(request, renewed[index] ?? NO_ANSWER));
    others.forEach((request, index) => {
      const value = values[index];
      const holder = value === request.requestId ? undefined : value;
      replies.set(request, holder instanceof Error ? holder : { renewed: false, holder });
    });
    return requests.map((request) => replies.get(request) ?? this.#holds.refusal(request) ?? NO_ANSWER);
  }

  async #renewHeld(requests: readonly RenewRequest[], patienceMs: number): Promise<readonly RenewReply[]> {
    const sentAt = this.#clock.now();
    const tallies = requests.map(() => new Tally(this.#masters.votes));
    const lacking = requests.map(() => new Set<Master>());
    const asked = this.#masters.askAll(
      patienceMs,
      async ({ store }, master) => {
        const replies = await store.renew(requests.map(plain), patienceMs);
        lacking.forEach((masters, index) => {
          const reply = replies[index];
          const isFree = reply !== undefined && "holder" in reply && reply.holder === undefined;
          if (isFree) masters.add(master); // Also where its word does not count yet.
        });
        return replies;
      },
      (master, replies) =>
        tallies.forEach((tally, index) => {
          const reply = replies instanceof Error ? replies : (replies[index] ?? NO_ANSWER);
          if (reply instanceof Error) tally.silent(master, reply);
          else if (reply.renewed) tally.yes(master);
          else tally.no(master, reply.holder);
        }),
    );
    const isDecided = (): boolean =>
      tallies.every(
        (tally, index) => tally.isYes || this.#masters.isSurelyNo(tally, requests[index]?.key ?? ""),
      );
    await this.#masters.heard(asked, isDecided, patienceMs);
    const none = new Tally(this.#masters.votes);
    return await Promise.all(
      requests.map((request, index) => {
        const [tally = none, masters = []] = [tallies[index], lacking[index]];
        return this.#renewed(request, tally, masters, sentAt, patienceMs).catch((error: Error) => error);
      }),
    );
  }

  async #renewed(
    request: RenewRequest,
    tally: Tally,
    lacking: Iterable<Master>,
    sentAt: number,
    patienceMs: number,
  ): Promise<RenewReply> {
    const order = this.#masters.inOrder(request.key);
    const hold = this.#holds.get(request.requestId);
    if (hold === undefined) return { renewed: false, holder: undefined }; // It was given back meanwhile.
    hold.lockTimeMs = Math.max(hold.lockTimeMs, request.lockTimeMs);
    const revoked = revokedFrom(request.requestId);
    // One that knows of it is enough: others may have taken the hold since they were asked to revoke it. Until its body is
    // done it keeps others out, wherever it is.
    if (tally.has(revoked)) return { renewed: false, holder: revoked };
    if (tally.isNo) {
      await this.#giveBack.giveUp(hold, patienceMs, order[0]);
      return { renewed: false, holder: tally.holder(order) };
    }
    const wasSure = this.#holds.isSure(hold);
    // What is sure again from now on is known only of those that have said so now.
    if (!wasSure) hold.witnesses.clear();
    if (tally.isYes) hold.prove(sentAt, request.lockTimeMs);
    if (wasSure || tally.isYes) {
      for (const master of order) if (tally.of(master)?.says === "yes") hold.witnesses.add(master);
    }
    // Never what may have been lost: it would come back to life.
    if (wasSure) this.#strengthen(hold, lacking, request, patienceMs);
    if (!tally.isYes) throw tally.error();
    if (!request.fencing) return RENEWED;
    return { renewed: true, fencingToken: await drawToken(this.#masters, hold.request, patienceMs) };
  }

  /** A master that does not have what is surely ours, such as one that was dead when it was taken, takes it now. */
  #strengthen(hold: Hold, lacking: Iterable<Master>, request: RenewRequest, patienceMs: number): void {
    for (const master of lacking) {
      void this.#election.askFor(hold, master, (one) => one.acquire(request, patienceMs), patienceMs);
    }
  }
}
