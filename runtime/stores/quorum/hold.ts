import type { Belief } from "../../suspension";
import type { AcquireRequest } from "../port";
import type { Master } from "./master";
import { Tally, type Votes } from "./tally";

/** A server's clock may run faster than ours. */
const DRIFT_RATIO = 0.01;
const DRIFT_MS = 2;

/** One requestId: what the masters have for it. */
export class Hold implements Belief {
  readonly request: AcquireRequest;
  readonly tally: Tally;
  /** Those that were asked for it, each with the promise that what it said is noted. */
  readonly asked = new Map<Master, Promise<unknown>>();
  /** Those that have said that they have it, whether their word counts or not. */
  readonly at = new Set<Master>();
  /**
   * Those that are known to have had it while it was sure, by a command that is not under way any more. A majority of them
   * that has it at its end proves that it was held all the time.
   */
  readonly witnesses = new Set<Master>();
  /** Those that were told last that it is over, each with whether it ended it by that. */
  readonly ends = new Map<Master, Promise<boolean>>();
  /** Nobody may believe in it before, nor once it is over, which is for good. */
  isDeclared = false;
  isOver = false;
  /** The longest time for which it was asked for. */
  lockTimeMs: number;
  #sureUntil: number;
  /** When the commands were sent by which it is sure. */
  #provenFrom: number;

  constructor(request: AcquireRequest, votes: Votes, sentAt: number) {
    this.request = request;
    this.tally = new Tally(votes);
    this.lockTimeMs = request.lockTimeMs;
    this.#sureUntil = deadline(sentAt, request.lockTimeMs);
    this.#provenFrom = sentAt;
  }

  /** A majority has it, by commands that were sent then or later. */
  prove(sentAt: number, lockTimeMs: number): void {
    const until = deadline(sentAt, lockTimeMs);
    if (until <= this.#sureUntil) return;
    this.#sureUntil = until;
    this.#provenFrom = sentAt;
  }

  /** Until when nobody else can have a majority, provided that it had one. */
  sureUntil(trustedSince: number): number {
    return this.#provenFrom >= trustedSince ? this.#sureUntil : -Infinity;
  }

  /** Whether it is long gone at all masters. */
  isForgotten(now: number): boolean {
    return now > this.#sureUntil + 2 * this.lockTimeMs;
  }
}

function deadline(sentAt: number, lockTimeMs: number): number {
  return sentAt + lockTimeMs * (1 - DRIFT_RATIO) - DRIFT_MS;
}
