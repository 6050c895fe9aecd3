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
  /** How often it was handed on, and since when it is here. */
  handOns = 0;
  readonly since: number;
  /** Set when the lease is no longer ours, or no longer surely so. */
  lostBecause: string | undefined;
  ending: "given back" | "left to expire" | undefined;
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
    this.since = Math.floor(countsFrom); // Whole milliseconds need no memory beside their field.
    this.prolong(countsFrom);
  }

  get key(): string {
    return this.line.key;
  }

  prolong(countsFrom: number): void {
    this.#deadline = Math.floor(countsFrom + this.lockTimeMs * (1 - DRIFT_RATIO) - DRIFT_MS);
  }

  get hasEnded(): boolean {
    return this.ending !== undefined;
  }

  /** Milliseconds for which the lease is surely ours, by arithmetic; 0 when it is not. */
  remaining(now: number): number {
    return this.lostBecause === undefined && !this.hasEnded ? Math.max(this.#deadline - now, 0) : 0;
  }

  lose(reason: string): void {
    if (this.hasEnded || this.lostBecause !== undefined) return;
    this.lostBecause = reason;
    this.holder?.lost(reason);
  }
}

export const DEADLINE_PASSED = "its deadline passed";
