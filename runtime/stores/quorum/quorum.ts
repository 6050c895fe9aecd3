// N masters that know nothing of each other, as one store. A lock is held while a majority of them has its requestId, and
// by nothing else. What each method does, and why two never hold one lock, is in docs/quorum.md.

import { inRootContext, type Clock } from "../../clock";
import { rooted } from "../../root-context";
import type {
  AnnounceRequest,
  ReleaseReply,
  ReleaseRequest,
  ReleaseAndEnqueueReply,
  NotReleased,
  EnqueueRequest,
  RenewReply,
  RenewRequest,
  Store,
  StoreListener,
  AcquireReply,
  AcquireRequest,
} from "../port";
import { Election } from "./election";
import { Ends } from "./ending";
import { GiveBack } from "./give-back";
import { Holds } from "./holds";
import { QuorumQueue } from "./quorum-queue";
import { Peeking } from "./peeking";
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
  readonly #looking: Peeking;
  readonly #line: QuorumQueue;
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
    this.#line = new QuorumQueue(masters);
    this.#looking = new Peeking(masters, holds);
    this.#election = new Election(masters, holds, giveBack);
    this.#renewal = new Renewal(clock, masters, holds, giveBack, this.#election, this.#looking);
    this.#ends = new Ends(masters, holds, giveBack, this.#election, this.#line);
    const deafen = all.map((master) =>
      master.member.store.listen({
        onWakeUp() {},
        onReconnect: rooted(() => master.onReconnect()),
        onWarning() {},
      }),
    );
    this.#deafen = () => deafen.forEach((end) => end());
  }

  // ---- who holds --------------------------------------------------------------------------------------

  async acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    const patienceMs = patienceOf(timeoutMs);
    const { reply } = await this.#election.elect(request, patienceMs, (gate) =>
      gate.acquire(request, patienceMs),
    );
    return reply;
  }

  /** What masters are asked for at the same time goes to each of them together. */
  readonly acquireMany = (
    requests: readonly AcquireRequest[],
    timeoutMs: number,
  ): Promise<readonly (AcquireReply | Error)[]> =>
    Promise.all(requests.map((request) => orError(this.acquire(request, timeoutMs))));

  renew(requests: readonly RenewRequest[], timeoutMs: number): Promise<readonly RenewReply[]> {
    return this.#renewal.renew(requests, timeoutMs);
  }

  release(request: ReleaseRequest, timeoutMs: number): Promise<ReleaseReply> {
    return this.#ends.release(request, timeoutMs);
  }

  readonly releaseMany = (
    requests: readonly ReleaseRequest[],
    timeoutMs: number,
  ): Promise<readonly (ReleaseReply | Error)[]> =>
    Promise.all(requests.map((request) => orError(this.release(request, timeoutMs))));

  /** Of those masters that have answered, a majority, none has it that is not revoked; where some take it after that, those that know better are heard. */
  async revoke(request: ReleaseRequest, timeoutMs: number): Promise<boolean> {
    const patienceMs = patienceOf(timeoutMs);
    let isRevoked = false;
    await this.#masters.poll(patienceMs, async ({ store }) => {
      if (await store.revoke?.(request, patienceMs)) isRevoked = true;
      return true;
    });
    return isRevoked;
  }

  /** To each of the masters that answers. */
  async announce(request: AnnounceRequest, timeoutMs: number): Promise<void> {
    const patienceMs = patienceOf(timeoutMs);
    await this.#masters.poll(patienceMs, async ({ store }) => {
      await store.announce?.(request, patienceMs);
      return true;
    });
  }

  peek(keys: readonly string[], timeoutMs: number): Promise<readonly (string | Error | undefined)[]> {
    return this.#looking.peek(keys, timeoutMs);
  }

  // ---- who comes next ---------------------------------------------------------------------------------

  async enqueue(request: EnqueueRequest, timeoutMs: number): Promise<AcquireReply> {
    const patienceMs = patienceOf(timeoutMs);
    const { ticket } = request;
    const { gate, reply } = await this.#election.elect(request, patienceMs, (master) =>
      master.ask((store) => store.enqueue({ ...plain(request), ticket }, patienceMs)),
    );
    if (reply.acquired) this.#line.served(ticket);
    else this.#line.stands(request, gate, patienceMs);
    return reply;
  }

  dequeue(key: string, place: string, timeoutMs: number): Promise<void> {
    return this.#line.dequeue(key, place, timeoutMs);
  }

  releaseAndEnqueue(
    held: ReleaseRequest,
    request: EnqueueRequest,
    timeoutMs: number,
  ): Promise<ReleaseAndEnqueueReply | NotReleased> {
    return this.#ends.releaseAndEnqueue(held, request, timeoutMs);
  }

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    const deafen = this.#masters.all.map(({ name, member }) =>
      member.store.listen({
        onWakeUp: (place) => listener.onWakeUp(place),
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
