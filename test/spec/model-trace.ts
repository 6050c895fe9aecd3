import type { AcquireRequest, InspectedHold } from "../../runtime/stores/port";
import { isClosed, isReserved, isRevokedFrom } from "../../runtime/stores/value";

/** The kinds of steps in a trace. `trace.h` and `lock.pml` have the same numbers. */
export const STEP = {
  end: 0,
  tick: 1,
  // The store:
  grant: 2,
  reserve: 3,
  renew: 4,
  free: 5,
  revoke: 6,
  // A process:
  send: 7,
  sendRenewal: 8,
  believe: 9,
  extend: 10,
  endLease: 11,
  renounce: 12,
} as const;

/** The largest number of request IDs of one process in a trace. `LIVE` in `lock.pml`. */
export const MOST_IDS = 40;

/** One step of the model: its kind, a request ID, a time in microseconds, and the process for which the key is reserved, counted from 1, or 0. */
export type Step = readonly [kind: number, id: number, time: number, reservedFor: number];

/** What a caller believes about its lock. */
export interface Belief {
  readonly key: string;
  /** The number of its process. */
  readonly process: number;
  readonly requestId: string;
  /** In the time of the store. */
  readonly leftMs: number;
}

/** A value of the key, and the time at which it expires. */
interface KeyValue {
  readonly value: string;
  readonly expiresAt: number;
}

/** A lease of a process, with the deadline that the trace has shown. */
interface KnownLease {
  readonly requestId: string;
  until: number;
}

/** `DRIFT_RATIO` and `DRIFT_MS` in lease.ts */
const DRIFT_RATIO = 0.01;
const DRIFT_MS = 2;

/** Records what happens to one key as steps of `lock.pml`. All times in a trace are in microseconds of the store's clock. */
export class ModelTrace {
  readonly steps: Step[] = [];
  /** Why the model says nothing about this key, if it does not. */
  unfit: string | undefined;
  readonly #now: () => number;
  /** The numbers of the processes that use the key. The model has two. */
  readonly #processes: number[] = [];
  readonly #ids = new Map<string, number>();
  readonly #counts = [0, 0];
  readonly #leases: (KnownLease | undefined)[] = [undefined, undefined];
  #held: KeyValue | undefined;
  #at: number;

  /** @param nowMs returns the time of the store */
  constructor(nowMs: () => number) {
    this.#now = () => microseconds(nowMs());
    this.#at = this.#now();
  }

  /** Notes what changed in the beliefs of the processes. */
  believes(beliefs: readonly Belief[]): void {
    const believed: (Belief | undefined)[] = [undefined, undefined];
    for (const belief of beliefs) {
      const process = this.#indexOf(belief.process);
      // The model has no step after which two callers of one process believe.
      if (believed[process] !== undefined) this.#add(STEP.believe, this.#idOf(belief.requestId), NEVER);
      believed[process] = belief;
    }
    believed.forEach((belief, process) => {
      if (belief !== undefined) this.#leaseOf(process, belief.requestId, microseconds(belief.leftMs));
    });
  }

  #leaseOf(process: number, requestId: string, left: number): void {
    this.#pass();
    const known = this.#leases[process];
    const until = this.#at + left;
    if (known?.requestId !== requestId) {
      this.#endLease(process);
      this.#leases[process] = { requestId, until };
      this.#add(STEP.believe, this.#idOf(requestId), left);
    } else if (until > known.until + ROUNDING) {
      known.until = until;
      this.#add(STEP.extend, this.#idOf(requestId), left);
    }
  }

  /**
   * A process sends a command that may acquire the key.
   *
   * @param believes whether a caller of the process believes that it holds the key
   * @param rate the milliseconds of its clock in a millisecond of the store's
   */
  sends(
    process: number,
    { requestId, lockTimeMs, permits = 1 }: AcquireRequest,
    believes: boolean,
    rate: number,
  ): void {
    if (permits > 1) this.unfit = "the lock is shared";
    const index = this.#indexOf(process);
    // A lease that no caller believes in may have ended without a release.
    if (!believes) this.#endLease(index);
    this.#add(STEP.send, this.#newId(index, requestId), sureTime(lockTimeMs, rate));
  }

  /** A process sends a renewal. */
  sendsRenewal({ requestId, lockTimeMs }: AcquireRequest, rate: number): void {
    this.#add(STEP.sendRenewal, this.#idOf(requestId), sureTime(lockTimeMs, rate));
  }

  /** A process sends a release. */
  sendsRelease(process: number, requestId: string): void {
    const index = this.#indexOf(process);
    if (this.#leases[index]?.requestId === requestId) this.#endLease(index);
    else this.#add(STEP.renounce, this.#idOf(requestId), 0);
  }

  #endLease(process: number): void {
    this.#pass();
    const known = this.#leases[process];
    if (known === undefined) return;
    this.#leases[process] = undefined;
    this.#add(STEP.endLease, this.#idOf(known.requestId), 0);
  }

  /**
   * The store ran a command.
   *
   * @param requestId that of the command, if it was sent to acquire the key or to renew a hold
   * @param holds what the key has now
   */
  ran(requestId: string | undefined, [now]: readonly InspectedHold[], isRenewal = false): void {
    this.#pass();
    const before = this.#held;
    const time = microseconds(now?.leftMs ?? 0);
    this.#held = now && { value: now.value, expiresAt: this.#at + time };
    if (now === undefined) return before === undefined ? undefined : this.#freed(before, 0, 0);
    if (before?.value === now.value && Math.abs(before.expiresAt - this.#at - time) <= ROUNDING) {
      this.#held = before;
      if (!isRenewal || now.value !== requestId) return;
      return this.#add(STEP.renew, this.#idOf(now.value), before.expiresAt - this.#at);
    }
    if (isClosed(now.value)) this.unfit = "the key stays closed";
    if (isReserved(now.value)) {
      const reservedFor = this.#indexOf(processOf(now.value.slice("reserved:".length))) + 1;
      if (before !== undefined) return this.#freed(before, time, reservedFor);
      return this.#add(STEP.reserve, this.#idOf(requestId ?? ""), time, reservedFor);
    }
    if (before !== undefined && isRevokedFrom(before.value, now.value))
      return this.#add(STEP.revoke, this.#idOf(before.value), time);
    this.#add(before?.value === now.value ? STEP.renew : STEP.grant, this.#idOf(now.value), time);
  }

  #freed({ value }: KeyValue, time: number, reservedFor: number): void {
    this.#add(STEP.free, isReserved(value) ? 0 : this.#idOf(value), time, reservedFor);
  }

  /** Ends the trace. Whatever happens later does not belong to it. */
  end(): void {
    this.#add(STEP.end, 0, 0);
    Object.freeze(this.steps);
  }

  /** Notes that time has passed. */
  #pass(): void {
    const now = this.#now();
    if (now <= this.#at || Object.isFrozen(this.steps)) return;
    this.steps.push([STEP.tick, 0, now - this.#at, 0]);
    this.#at = now;
    if (this.#held !== undefined && this.#held.expiresAt <= now) this.#held = undefined;
  }

  #add(kind: number, id: number, time: number, reservedFor = 0): void {
    this.#pass();
    if (!Object.isFrozen(this.steps)) this.steps.push([kind, id, time, reservedFor]);
  }

  #indexOf(process: number): number {
    if (!this.#processes.includes(process)) this.#processes.push(process);
    const index = this.#processes.indexOf(process);
    if (index < this.#counts.length) return index;
    this.unfit = "more than two processes use the key";
    return 0;
  }

  /** Returns the next number. If another command had the same request ID, it returns the number of that one, which the model then rejects. */
  #newId(process: number, requestId: string): number {
    if (this.#ids.has(requestId)) return this.#idOf(requestId);
    const count = (this.#counts[process] ?? 0) + 1;
    this.#counts[process] = count;
    if (count > MOST_IDS) this.unfit = `a process sent more than ${MOST_IDS} commands`;
    this.#ids.set(requestId, process * MOST_IDS + count);
    return this.#idOf(requestId);
  }

  /** Returns the number of a request ID in the model, also of its revoked form, or 0 if no process has sent it. */
  #idOf(value: string): number {
    for (const [requestId, id] of this.#ids)
      if (requestId === value || isRevokedFrom(requestId, value)) return id;
    return 0;
  }
}

/** Returns the number of the process, which an ID of a simulated process begins with. */
function processOf(id: string): number {
  return Number.parseInt(id.slice(0, 12), 16);
}

/** No belief lasts this long. */
const NEVER = 2 ** 31 - 1;
/** Times are rounded when they are read from several clocks. */
const ROUNDING = 2;

function microseconds(ms: number): number {
  return Math.round(ms * 1_000);
}

/** Returns the longest time for which a command proves a belief. */
function sureTime(lockTimeMs: number, rate: number): number {
  return Math.ceil(((lockTimeMs * (1 - DRIFT_RATIO) - DRIFT_MS) / rate) * 1_000) + ROUNDING;
}
