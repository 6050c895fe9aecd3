import type { Line } from "./line";
import type { Lock } from "./lock";
import type { AcquireRequest, RenewRequest } from "./store";

/** Redis counts time to live on its own clock: what that clock may run faster, and its granularity. */
const DRIFT_RATIO = 0.01;
const DRIFT_MS = 2;

/**
 * One stay of this process on a key: what the store granted, until it is given back or lost. Several locks
 * of the process may have it, one after the other.
 */
export class Lease implements RenewRequest {
  readonly line: Line;
  /** The holder of the key, as the store knows it. */
  readonly requestId: string;
  readonly lockTimeMs: number;
  /** The first of the fencing tokens that came with the lease. */
  readonly fencingToken: number | undefined;
  /**
   * Whether nothing else that was sent can get the same `requestId` the key once more. Only then does a key that still
   * has it at the end prove that it had it all the time.
   */
  readonly isOnlyGrant: boolean;
  /** Who in this process holds the lock now. */
  holder: Lock | undefined;
  /** Once it was handed on. */
  turn: Turn | undefined;
  #end: "given back" | "left to expire" | Lost | undefined;
  /** When it is to be renewed: the business of `Renewals`. */
  renewAt = 0;
  #deadline = 0;

  /** @param countsFrom when the command was sent, or the first of several that may have been carried out */
  constructor(
    line: Line,
    { requestId, lockTimeMs }: AcquireRequest,
    countsFrom: number,
    fencingToken: number | undefined,
    isOnlyGrant = true,
  ) {
    this.isOnlyGrant = isOnlyGrant;
    this.line = line;
    this.requestId = requestId;
    this.lockTimeMs = lockTimeMs;
    this.fencingToken = fencingToken;
    this.prolong(countsFrom);
  }

  get key(): string {
    return this.line.key;
  }

  prolong(countsFrom: number): void {
    // Whole milliseconds need no memory beside their field.
    this.#deadline = Math.floor(countsFrom + this.lockTimeMs * (1 - DRIFT_RATIO) - DRIFT_MS);
  }

  /** Milliseconds for which the lease is surely ours, by arithmetic; 0 when it is not. */
  remaining(now: number): number {
    return this.#end === undefined ? Math.max(this.#deadline - now, 0) : 0;
  }

  /** It is no longer ours, or no longer surely so. */
  lose(reason: string): void {
    if (this.#end !== undefined) return;
    this.#end = { lostBecause: reason };
    this.holder?.lost(reason);
  }

  get lostBecause(): string | undefined {
    return typeof this.#end === "object" ? this.#end.lostBecause : undefined;
  }

  end(how: "given back" | "left to expire"): void {
    this.#end = how;
  }

  get isGivenBack(): boolean {
    return this.#end === "given back";
  }
}

/** What this process had of a key before others have theirs. */
interface Turn {
  readonly since: number;
  handOns: number;
}

interface Lost {
  readonly lostBecause: string;
}

export const DEADLINE_PASSED = "its deadline passed";
