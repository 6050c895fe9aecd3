import type { Clock } from "../../base/clock";
import { LockMisconfiguredError, errorMessage } from "../../base/errors";
import { withCooldownLeft } from "../cooldown";
import type {
  ReleaseReply,
  ReleaseRequest,
  StoreState,
  WholeStore,
  AcquireReply,
  AcquireRequest,
} from "../port";
import { RequestBatch } from "./request-batch";

/** The parts of a master that a quorum needs in addition to the store. */
export interface Member {
  readonly store: WholeStore;
  /** Raises the fencing counter of the key, so that later tokens are larger than this one and all others of its draw. */
  raiseFence(key: string, token: number, lockTimeMs: number, timeoutMs: number): Promise<void>;
  /**
   * Returns the latest time at which the server may have started, on our clock. Data from before that time is lost. The result applies to
   * the connection on which replies are arriving now.
   *
   * @throws {LockMisconfiguredError} if that time cannot be known
   */
  startedAt(): Promise<number>;
  /** Closes what Lockweave opened for the master, and only that. */
  close(): Promise<void>;
}

/** The time between two commands to a master that does not reply. It must run all of these commands later, so they must not pile up. */
const PROBE_EVERY_MS = 250;
/** The timeout of a command whose reply nobody waits for. */
const COMMAND_MS = 1_000;

/** A release without a reply. It is sent again until a deadline, and keeps the key closed until `closedUntil`, both on our clock. */
interface UnconfirmedRelease {
  readonly request: ReleaseRequest;
  readonly until: number;
  readonly closedUntil: number;
}

/** One of the masters, and what is known about its health. */
export class Master {
  readonly name: string;
  readonly member: Member;
  /** The releases that are under way. Each promise resolves when its release is answered or has failed. */
  readonly pendingReleases = new Set<Promise<void>>();
  readonly #clock: Clock;
  readonly #onRefused: (message: string) => void;
  /** This long after the master starts, all holds that it had before have expired. */
  readonly #longestLockTimeMs: number;
  readonly #acquires: RequestBatch<AcquireRequest, AcquireReply>;
  readonly #releases: RequestBatch<ReleaseRequest, ReleaseReply>;
  #unanswered = 0;
  /** The time since which the master has been silent, while a reply is missing. */
  #silentSince = 0;
  #askedAt = -Infinity;
  #hasFailed = false;
  /** The last failure, if the master has not replied since. */
  #lastError: unknown;
  /** The releases without a reply, by `requestId`. The master may still have these holds. */
  readonly #unconfirmed = new Map<string, UnconfirmedRelease>();

  /** @param onRefused called with the reason each time that the master turns out to have no vote */
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
    const { batch } = member.store;
    this.#acquires = new RequestBatch(
      (request, timeoutMs) => this.ask((store) => store.acquire(request, timeoutMs)),
      batch && ((requests, timeoutMs) => this.ask(() => batch.acquireMany(requests, timeoutMs))),
    );
    this.#releases = new RequestBatch(
      (request, timeoutMs) => this.ask((store) => store.release(request, timeoutMs)),
      batch && ((requests, timeoutMs) => this.ask(() => batch.releaseMany(requests, timeoutMs))),
    );
  }

  /** Whether the master is likely to reply in time. */
  isResponsive(patienceMs: number): boolean {
    if (this.#hasFailed) return false;
    return this.#unanswered === 0 || this.#clock.now() - this.#silentSince < patienceMs;
  }

  /** Returns whether the master is connected, and its last command had a reply. */
  state(): StoreState {
    const state = this.member.store.state?.() ?? "starting";
    return state === "up" && this.#hasFailed ? "down" : state;
  }

  /** Whether to ask the master: it is likely to reply, or the next probe is due. */
  mayBeAsked(patienceMs: number): boolean {
    return this.isResponsive(patienceMs) || this.#clock.now() - this.#askedAt >= PROBE_EVERY_MS;
  }

  /** The reason why the master has no vote if it does not answer, or if it was not asked because it did not answer before. */
  get silence(): Error {
    const cause = this.#lastError;
    const last = cause === undefined ? "" : `. Its last error: ${errorMessage(cause)}`;
    return new Error(`it does not answer${last}`, { cause });
  }

  /** Handles a new connection to the master. */
  onReconnect(): void {
    this.#hasFailed = false;
    this.#retryReleases();
  }

  /** Sends a command, and learns from the outcome whether the master is healthy. */
  async ask<Reply>(send: (store: WholeStore) => Promise<Reply>): Promise<Reply> {
    this.#askedAt = this.#clock.now();
    if (this.#unanswered === 0) this.#silentSince = this.#askedAt;
    this.#unanswered += 1;
    let isAnswered = false;
    try {
      const reply = await send(this.member.store);
      this.#hasFailed = false;
      this.#lastError = undefined;
      isAnswered = true;
      return reply;
    } catch (error) {
      this.#lastError = error;
      this.#hasFailed = !(error instanceof LockMisconfiguredError);
      throw error;
    } finally {
      this.#unanswered -= 1;
      this.#silentSince = this.#clock.now();
      if (isAnswered) this.#retryReleases(); // An error may come from one of these releases.
    }
  }

  /**
   * Returns why the reply that just arrived does not count, or `undefined` if it does. A process that held a lock here before the master
   * lost its data may rely on that lock for the longest lock time. Until that is over, the master has no vote.
   */
  async fault(): Promise<Error | undefined> {
    try {
      const countsFrom = (await this.member.startedAt()) + this.#longestLockTimeMs;
      const leftMs = countsFrom - this.#clock.now();
      return leftMs > 0
        ? new Error(`it started recently, so its votes do not count for another ${Math.ceil(leftMs)} ms`)
        : undefined;
    } catch (error) {
      if (error instanceof LockMisconfiguredError) this.#onRefused(`has no vote: ${error.message}`);
      return error instanceof Error ? error : new Error("its start time is unknown", { cause: error });
    }
  }

  /**
   * Acquires the hold, in one command with other requests of the same tick. Draws no fencing token, because that happens once there is a
   * majority.
   */
  acquire(request: AcquireRequest, timeoutMs: number): Promise<AcquireReply> {
    return this.#acquires.ask(withoutFencing(request), timeoutMs);
  }

  /** Releases what the master may hold. A release without a reply is sent again when the master replies to something or reconnects. */
  release(request: ReleaseRequest, holdsForMs: number, timeoutMs: number): Promise<ReleaseReply> {
    const closedUntil = this.#clock.now() + (request.cooldownMs ?? 0);
    const released = this.#releases.ask(request, timeoutMs).catch((error: unknown) => {
      this.#unconfirmed.set(request.requestId, {
        request,
        until: this.#clock.now() + holdsForMs,
        closedUntil,
      });
      throw error;
    });
    const settled: Promise<void> = released.then(
      () => void this.pendingReleases.delete(settled),
      () => void this.pendingReleases.delete(settled),
    );
    this.pendingReleases.add(settled);
    return released;
  }

  #retryReleases(): void {
    if (this.#unconfirmed.size === 0) return;
    const now = this.#clock.now();
    const unconfirmed = [...this.#unconfirmed.values()];
    this.#unconfirmed.clear();
    for (const { request, until, closedUntil } of unconfirmed) {
      const leftMs = until - now;
      if (leftMs > 0)
        this.release(withCooldownLeft(request, closedUntil - now), leftMs, COMMAND_MS).catch(() => {});
    }
  }
}

/** Returns the request without a fencing token, which is drawn once there is a majority. */
export function withoutFencing({ key, requestId, lockTimeMs }: AcquireRequest): AcquireRequest {
  return { key, requestId, lockTimeMs, fencing: false };
}
