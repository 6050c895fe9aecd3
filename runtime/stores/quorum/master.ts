import type { Clock } from "../../clock";
import { LockMisconfiguredError } from "../../errors";
import { closedNoLonger } from "../later-drop";
import type { ReleaseReply, ReleaseRequest, Store, AcquireReply, AcquireRequest } from "../port";
import { Together } from "./together";

/** What a quorum needs of a master beside the port. */
export interface Member {
  readonly store: Store;
  /** From now on the fencing tokens that it draws for the key are larger than this one, and those that come with it. */
  raiseFence(key: string, token: number, lockTimeMs: number, timeoutMs: number): Promise<void>;
  /**
   * When it started at the latest, on our clock: what it had before is lost. It speaks for the connection on which
   * replies come at this moment.
   *
   * @throws {LockMisconfiguredError} where that cannot be known
   */
  startedAt(): Promise<number>;
  /** Closes what was opened for it, and only that. */
  close(): Promise<void>;
}

/** A master that does not answer is asked this often, so that what it is to carry out later does not pile up. */
const PROBE_EVERY_MS = 250;
/** What a command may take that nobody waits for. */
const COMMAND_MS = 1_000;

/** What it is to be told again: for how long that is worth it, and until when the key is to be closed, on our clock. */
interface Owed {
  readonly request: ReleaseRequest;
  readonly until: number;
  readonly closedUntil: number;
}

/** One of the masters, and what is known of its health. */
export class Master {
  readonly name: string;
  readonly member: Member;
  /** Those that are on their way: each resolves when it is answered, or has failed. */
  readonly drops = new Set<Promise<void>>();
  readonly #clock: Clock;
  readonly #onRefused: (message: string) => void;
  /** So long after its start, nothing that it had promised before is good any more. */
  readonly #longestLockTimeMs: number;
  readonly #takes: Together<AcquireRequest, AcquireReply>;
  readonly #drops: Together<ReleaseRequest, ReleaseReply>;
  #unanswered = 0;
  /** Since when nothing was heard, while something is unanswered. */
  #waitsSince = 0;
  #askedAt = -Infinity;
  #hasFailed = false;
  /** Holds that it may have, and nobody wants: by their requestIds, and until when. */
  readonly #owed = new Map<string, Owed>();

  /** @param onRefused told why it never counts, each time that this is found */
  constructor(
    name: string,
    member: Member,
    clock: Clock,
    longestLockTimeMs: number,
    onRefused: (message: string) => void,
  ) {
    this.name = name;
    this.member = member;
    this.#clock = clock;
    this.#longestLockTimeMs = longestLockTimeMs;
    this.#onRefused = onRefused;
    const { acquireMany, releaseMany } = member.store;
    this.#takes = new Together(
      (request, timeoutMs) => this.ask((store) => store.acquire(request, timeoutMs)),
      acquireMany &&
        ((requests, timeoutMs) => this.ask((store) => acquireMany.call(store, requests, timeoutMs))),
    );
    this.#drops = new Together(
      (request, timeoutMs) => this.ask((store) => store.release(request, timeoutMs)),
      releaseMany &&
        ((requests, timeoutMs) => this.ask((store) => releaseMany.call(store, requests, timeoutMs))),
    );
  }

  /** Whether it is worth the wait, as far as we know. */
  answers(patienceMs: number): boolean {
    if (this.#hasFailed) return false;
    return this.#unanswered === 0 || this.#clock.now() - this.#waitsSince < patienceMs;
  }

  /** Whether to ask it at all. */
  mayBeAsked(patienceMs: number): boolean {
    return this.answers(patienceMs) || this.#clock.now() - this.#askedAt >= PROBE_EVERY_MS;
  }

  /** There is a new connection to it. */
  onReconnect(): void {
    this.#hasFailed = false;
    this.#giveBackWhatIsOwed();
  }

  /** Sends it something, and sees by that whether it is well. */
  async ask<Reply>(send: (store: Store) => Promise<Reply>): Promise<Reply> {
    this.#askedAt = this.#clock.now();
    if (this.#unanswered === 0) this.#waitsSince = this.#askedAt;
    this.#unanswered += 1;
    let isAnswered = false;
    try {
      const reply = await send(this.member.store);
      this.#hasFailed = false;
      isAnswered = true;
      return reply;
    } catch (error) {
      this.#hasFailed = !(error instanceof LockMisconfiguredError);
      throw error;
    } finally {
      this.#unanswered -= 1;
      this.#waitsSince = this.#clock.now();
      if (isAnswered) this.#giveBackWhatIsOwed(); // And not upon a refusal, which may be that of another drop.
    }
  }

  /**
   * Why what was just heard does not count. Whoever held a lock here before the master lost its data may believe in it for
   * the longest lock time: until then its word is worth nothing.
   */
  async fault(): Promise<Error | undefined> {
    try {
      const countsFrom = (await this.member.startedAt()) + this.#longestLockTimeMs;
      const leftMs = countsFrom - this.#clock.now();
      return leftMs > 0
        ? new Error(`it started a short time ago, and its votes count in ${Math.ceil(leftMs)} ms`)
        : undefined;
    } catch (error) {
      if (error instanceof LockMisconfiguredError) this.#onRefused(`has no vote: ${error.message}`);
      return error instanceof Error ? error : new Error("its start time is unknown", { cause: error });
    }
  }

  /** With what else is asked of it now, and without a fencing token: those are drawn once there is a majority. */
  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    return this.#takes.ask(plain(request), timeoutMs);
  }

  /** Ends what it may hold. What it does not hear of now it is told again when it is back. */
  release(request: ReleaseRequest, holdsForMs: number, timeoutMs: number): Promise<ReleaseReply> {
    const closedUntil = this.#clock.now() + (request.cooldownMs ?? 0);
    const dropped = this.#drops.ask(request, timeoutMs).catch((error: unknown) => {
      this.#owed.set(request.requestId, { request, until: this.#clock.now() + holdsForMs, closedUntil });
      throw error;
    });
    const settled: Promise<void> = dropped.then(
      () => void this.drops.delete(settled),
      () => void this.drops.delete(settled),
    );
    this.drops.add(settled);
    return dropped;
  }

  #giveBackWhatIsOwed(): void {
    if (this.#owed.size === 0) return;
    const now = this.#clock.now();
    const owed = [...this.#owed.values()];
    this.#owed.clear();
    for (const { request, until, closedUntil } of owed) {
      const leftMs = until - now;
      if (leftMs > 0)
        this.release(closedNoLonger(request, closedUntil - now), leftMs, COMMAND_MS).catch(() => {});
    }
  }
}

/** To a master, without a fencing token: those are drawn once there is a majority. */
export function plain({ key, requestId, lockTimeMs }: AcquireRequest): AcquireRequest {
  return { key, requestId, lockTimeMs, fencing: false };
}
