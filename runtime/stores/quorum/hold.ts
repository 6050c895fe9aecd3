import type { Belief } from "../../base/certainty";
import type { AcquireRequest } from "../port";
import type { Master } from "./master";
import { Tally, type Votes } from "./tally";

/** A server's clock may run faster than ours. */
const DRIFT_RATIO = 0.01;
const DRIFT_MS = 2;

/** One `requestId`, and what is known about its hold at the masters. */
export class Hold implements Belief {
  readonly request: AcquireRequest;
  readonly tally: Tally;
  /** The masters that were asked for it. Each promise resolves when the master's reply is recorded. */
  readonly asked = new Map<Master, Promise<unknown>>();
  /** The masters that replied that they have it, even if their votes do not count. */
  readonly grantedBy = new Set<Master>();
  /**
   * The masters that certainly had the hold while it was sure, because of a command that cannot run again. If a majority of masters in this
   * set still has it at the release, it was held throughout.
   */
  readonly witnesses = new Set<Master>();
  /** The last release that was sent to each master. The promise resolves to whether it ended the hold. */
  readonly releases = new Map<Master, Promise<boolean>>();
  /** Callers may rely on a hold that is declared and not over. A hold that is over never comes back. */
  isDeclared = false;
  isOver = false;
  /** The longest lock time that was requested for it. */
  lockTimeMs: number;
  #sureUntil: number;
  /** The send time of the commands that make the hold sure. */
  #provenFrom: number;

  constructor(request: AcquireRequest, votes: Votes, sentAt: number) {
    this.request = request;
    this.tally = new Tally(votes);
    this.lockTimeMs = request.lockTimeMs;
    this.#sureUntil = deadline(sentAt, request.lockTimeMs);
    this.#provenFrom = sentAt;
  }

  /** Records that a majority has the hold, by commands that were sent at `sentAt` or later. */
  prove(sentAt: number, lockTimeMs: number): void {
    const until = deadline(sentAt, lockTimeMs);
    if (until <= this.#sureUntil) return;
    this.#sureUntil = until;
    this.#provenFrom = sentAt;
  }

  /** Returns the time until which nobody else can have a majority, if the hold had one. */
  sureUntil(trustedSince: number): number {
    return this.#provenFrom >= trustedSince ? this.#sureUntil : -Infinity;
  }

  /** Whether the hold has certainly expired at all masters. */
  isForgotten(now: number): boolean {
    return now > this.#sureUntil + 2 * this.lockTimeMs;
  }
}

function deadline(sentAt: number, lockTimeMs: number): number {
  return sentAt + lockTimeMs * (1 - DRIFT_RATIO) - DRIFT_MS;
}
