import type { Clock } from "../../base/clock";
import type { Renewed, RenewReply, RenewRequest } from "../port";
import { revokedFrom } from "../value";
import type { Election } from "./election";
import { drawToken } from "./fencing";
import type { Rollback } from "./rollback";
import type { Hold } from "./hold";
import type { Holds } from "./holds";
import type { Peeking } from "./peeking";
import { withoutFencing, type Master } from "./master";
import { NO_ANSWER, orFailure, patienceOf, type Masters } from "./masters";
import { Tally } from "./tally";

const RENEWED: Renewed = { renewed: true };

/** Renews the holds that a majority has, and restores them at masters that lack them. */
export class Renewal {
  readonly #clock: Clock;
  readonly #masters: Masters;
  readonly #holds: Holds;
  readonly #rollback: Rollback;
  readonly #election: Election;
  readonly #peeking: Peeking;

  constructor(
    clock: Clock,
    masters: Masters,
    holds: Holds,
    rollback: Rollback,
    election: Election,
    peeking: Peeking,
  ) {
    this.#clock = clock;
    this.#masters = masters;
    this.#holds = holds;
    this.#rollback = rollback;
    this.#election = election;
    this.#peeking = peeking;
  }

  async renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    // A hold that was not declared is never renewed, because its release may be on the way to the masters.
    const isHeld = ({ requestId }: RenewRequest): boolean => this.#holds.get(requestId)?.isDeclared === true;
    const allowed = requests.filter((request) => this.#holds.refusal(request) === undefined);
    const held = allowed.filter(isHeld);
    const others = allowed.filter((request) => !held.includes(request));
    const keys = others.map(({ key }) => key);
    const [renewed, values] = await Promise.all([
      held.length > 0 ? this.#renewHeld(held, patienceOf(timeoutMs)) : [],
      this.#peeking.peek(keys, timeoutMs),
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
        const replies = orFailure(await store.renew(requests.map(withoutFencing), patienceMs));
        lacking.forEach((masters, index) => {
          const reply = replies[index];
          const isFree = reply !== undefined && "holder" in reply && reply.holder === undefined;
          if (isFree) masters.add(master); // This includes a master whose vote does not count yet.
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
    await this.#masters.awaitReplies(asked, isDecided, patienceMs);
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
    if (hold === undefined) return { renewed: false, holder: undefined }; // The hold was released in the meantime.
    hold.lockTimeMs = Math.max(hold.lockTimeMs, request.lockTimeMs);
    const revoked = revokedFrom(request.requestId);
    // One master that knows of the revocation is enough, because the others may have acquired the hold after they were asked to revoke it.
    // The hold keeps others out, whichever masters have it, until its body ends.
    if (tally.has(revoked)) return { renewed: false, holder: revoked };
    if (tally.isNo) {
      await this.#rollback.abandon(hold, patienceMs, order[0]);
      return { renewed: false, holder: tally.holder(order) };
    }
    const wasSure = this.#holds.isSure(hold);
    // The hold is sure again only from now on, so only masters that confirm it now are witnesses.
    if (!wasSure) hold.witnesses.clear();
    if (tally.isYes) hold.prove(sentAt, request.lockTimeMs);
    if (wasSure || tally.isYes) {
      for (const master of order) if (tally.voteOf(master)?.says === "yes") hold.witnesses.add(master);
    }
    // A hold that may have been lost is not restored. Otherwise, it would come back to life.
    if (wasSure) this.#restoreAt(hold, lacking, request, patienceMs);
    if (!tally.isYes) throw tally.error(this.#masters.all);
    if (!request.fencing) return RENEWED;
    return { renewed: true, fencingToken: await drawToken(this.#masters, hold.request, patienceMs) };
  }

  /**
   * Acquires the hold at masters that lack it, such as one that was down when the hold was acquired. Each is a witness again only when it
   * confirms the hold, because this command may run late.
   */
  #restoreAt(hold: Hold, lacking: Iterable<Master>, request: RenewRequest, patienceMs: number): void {
    for (const master of lacking) {
      hold.witnesses.delete(master);
      void this.#election.askFor(hold, master, (one) => one.acquire(request, patienceMs), patienceMs);
    }
  }
}
