// N masters that know nothing of each other, as one store. A lock is held while a majority of them has its requestId, and
// by nothing else. What each method does, and why two never hold one lock, is in docs/quorum.md.

import { inRootContext, type Clock } from "../../clock";
import { rooted } from "../../root-context";
import type {
  AnnounceRequest,
  DropReply,
  DropRequest,
  NextReply,
  NotDropped,
  PlaceRequest,
  RenewReply,
  RenewRequest,
  Store,
  StoreListener,
  TakeReply,
  TakeRequest,
} from "../port";
import { Election } from "./election";
import { Ends } from "./ending";
import { GiveBack } from "./give-back";
import { Holds } from "./holds";
import { Line } from "./line";
import { Looking } from "./looking";
import { Master, plain, type Member } from "./master";
import { Masters, patienceOf } from "./masters";
import { Renewal } from "./renewal";

/** What is under way when the store is closed may take so long, of masters that answer at once. */
const LAST_PATIENCE_MS = 250;
const ANSWERED_WITHIN_MS = 20;

export class QuorumStore implements Store {
  readonly #masters: Masters;
  readonly #election: Election;
  readonly #renewal: Renewal;
  readonly #ends: Ends;
  readonly #looking: Looking;
  readonly #line: Line;
  readonly #listeners = new Set<StoreListener>();
  readonly #warnings = new Set<string>();
  readonly #deafen: () => void;

  /** @param majority another one is for tests of those who are to find out */
  constructor(
    members: readonly Member[],
    given: Clock,
    longestLockTimeMs: number,
    majority = Math.floor(members.length / 2) + 1,
  ) {
    const clock = inRootContext(given);
    const all = members.map((member, index) => {
      const name = `master ${index + 1}`;
      return new Master(name, member, clock, longestLockTimeMs, (reason) => this.#warn(`${name} ${reason}`));
    });
    const votes = { all: all.length, majority };
    const masters = new Masters(all, votes, clock);
    const holds = new Holds(clock, votes, longestLockTimeMs);
    const giveBack = new GiveBack(masters, holds, longestLockTimeMs);
    this.#masters = masters;
    this.#line = new Line(masters);
    this.#looking = new Looking(masters, holds);
    this.#election = new Election(masters, holds, giveBack);
    this.#renewal = new Renewal(clock, masters, holds, giveBack, this.#election, this.#looking);
    this.#ends = new Ends(masters, holds, giveBack, this.#election, this.#line);
    const deafen = all.map((master) =>
      master.member.store.listen({
        onHint() {},
        onReconnect: rooted(() => master.onReconnect()),
        onWarning() {},
      }),
    );
    this.#deafen = () => deafen.forEach((end) => end());
  }

  // ---- who holds --------------------------------------------------------------------------------------

  async take(request: TakeRequest, withinMs: number): Promise<TakeReply> {
    const patienceMs = patienceOf(withinMs);
    const { reply } = await this.#election.elect(request, patienceMs, (gate) =>
      gate.take(request, patienceMs),
    );
    return reply;
  }

  /** What masters are asked for at the same time goes to each of them together. */
  readonly takeMany = (
    requests: readonly TakeRequest[],
    withinMs: number,
  ): Promise<readonly (TakeReply | Error)[]> =>
    Promise.all(requests.map((request) => orError(this.take(request, withinMs))));

  renew(requests: readonly RenewRequest[], withinMs: number): Promise<readonly RenewReply[]> {
    return this.#renewal.renew(requests, withinMs);
  }

  drop(request: DropRequest, withinMs: number): Promise<DropReply> {
    return this.#ends.drop(request, withinMs);
  }

  readonly dropMany = (
    requests: readonly DropRequest[],
    withinMs: number,
  ): Promise<readonly (DropReply | Error)[]> =>
    Promise.all(requests.map((request) => orError(this.drop(request, withinMs))));

  /** Of those masters that have answered, a majority, none has it that is not revoked; where some take it after that, those that know better are heard. */
  async revoke(request: DropRequest, withinMs: number): Promise<boolean> {
    const patienceMs = patienceOf(withinMs);
    let isRevoked = false;
    await this.#masters.poll(patienceMs, async ({ store }) => {
      if (await store.revoke?.(request, patienceMs)) isRevoked = true;
      return true;
    });
    return isRevoked;
  }

  /** To each of the masters that answers. */
  async announce(request: AnnounceRequest, withinMs: number): Promise<void> {
    const patienceMs = patienceOf(withinMs);
    await this.#masters.poll(patienceMs, async ({ store }) => {
      await store.announce?.(request, patienceMs);
      return true;
    });
  }

  look(keys: readonly string[], withinMs: number): Promise<readonly (string | Error | undefined)[]> {
    return this.#looking.look(keys, withinMs);
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  async place(request: PlaceRequest, withinMs: number): Promise<TakeReply> {
    const patienceMs = patienceOf(withinMs);
    const { place } = request;
    const { gate, reply } = await this.#election.elect(request, patienceMs, (master) =>
      master.ask((store) => store.place({ ...plain(request), place }, patienceMs)),
    );
    if (reply.taken) this.#line.served(place);
    else this.#line.stands(request, gate, patienceMs);
    return reply;
  }

  leave(key: string, place: string, withinMs: number): Promise<void> {
    return this.#line.leave(key, place, withinMs);
  }

  next(held: DropRequest, request: PlaceRequest, withinMs: number): Promise<NextReply | NotDropped> {
    return this.#ends.next(held, request, withinMs);
  }

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    const deafen = this.#masters.all.map(({ name, member }) =>
      member.store.listen({
        onHint: (place) => listener.onHint(place),
        onReconnect: () => listener.onReconnect(),
        onWarning: (message) => listener.onWarning(`${name}: ${message}`),
        shortestLeaseMs: () => listener.shortestLeaseMs?.() ?? Infinity,
      }),
    );
    return () => {
      this.#listeners.delete(listener);
      for (const end of deafen) end();
    };
  }

  #warn(message: string): void {
    if (this.#warnings.has(message)) return;
    this.#warnings.add(message);
    for (const listener of this.#listeners) listener.onWarning(message);
  }

  /** What is on its way back to the masters gets there, if they answer. */
  async close(): Promise<void> {
    const drops = this.#masters.all.flatMap((master) =>
      master.answers(ANSWERED_WITHIN_MS) ? [...master.drops] : [],
    );
    await this.#masters.heard(drops, () => false, LAST_PATIENCE_MS);
    this.#deafen();
    await Promise.all(this.#masters.all.map(({ member }) => member.close()));
  }
}

function orError<Reply>(asked: Promise<Reply>): Promise<Reply | Error> {
  return asked.catch((error: unknown) =>
    error instanceof Error ? error : new Error("it failed", { cause: error }),
  );
}
