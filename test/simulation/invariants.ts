import { LockClosedError, LockLostError, reasonOf } from "../../runtime/errors";
import type { VirtualClock } from "../support/virtual-clock";
import type { Caller } from "./caller";
import { Truth } from "./truth";

/** How much longer than its budget a caller may wait. */
const GRACE_MS = 250;
const ROUNDING_MS = 0.001;
/** Within one process, before another has its turn. */
const SECTIONS_ON_ONE_GRANT = 16;
const MOST_SECTIONS_ON_ONE_GRANT = 64;
const WORTH_A_TURN_MS = 5;
const LONGEST_TURN_MS = 100;

/** What a world allows. */
export interface Allowances {
  readonly isCalm: boolean;
  /** How long a key may be free, while somebody waits for it. */
  readonly idleMs: () => number;
}

/** What must hold, at every step and whatever the weather. */
export class Invariants {
  readonly problems: string[] = [];
  readonly #clock: VirtualClock;
  readonly #truth: Truth;
  readonly #allowances: Allowances;
  /** Who waits or is inside, in the order in which they came. */
  readonly #callers = new Set<Caller>();
  readonly #lastTokens = new Map<string, number>();
  readonly #idleSince = new Map<string, number>();

  constructor(clock: VirtualClock, allowances: Allowances) {
    this.#clock = clock;
    this.#truth = new Truth(
      () => clock.now(),
      (problem) => this.report(problem),
      allowances.isCalm,
    );
    this.#allowances = allowances;
  }

  get truth(): Truth {
    return this.#truth;
  }

  report(problem: string): void {
    if (this.problems.length < 5) this.problems.push(`${problem} (at ${this.#clock.now().toFixed(3)} ms)`);
  }

  /** Everything bad is over: how long a key was free counts from here. */
  healed(): void {
    this.#idleSince.clear();
  }

  // ---- the life of a caller ---------------------------------------------------------------------------

  joined(caller: Caller): void {
    this.#callers.add(caller);
  }

  /** A body begins. */
  entered(caller: Caller): void {
    caller.state = "inside";
    const { lock, key, process } = caller;
    const granted = this.#truth.grantTo(process.connection.grantedNow(key) ?? "");
    if (granted !== undefined) process.grants.set(key, granted);
    caller.grant = process.grants.get(key); // Without a reply at this moment it was handed on in the process.
    this.#checkBudget(caller, "entered");
    this.#checkSure(caller);
    if (lock.remaining() === 0) this.report(`${lock.requestId} is let in without the lock`);
    for (const other of this.#callers) {
      if (other === caller) break;
      if (other.process === process && other.key === key && other.state === "waiting")
        this.report(`${lock.requestId} overtook ${other.lock.requestId}`);
    }
    for (const other of this.#callers) {
      const isBeside = other !== caller && other.key === key && other.state === "inside";
      if (isBeside && areOfOneLife(other, caller)) other.mustBeTold = true;
    }
    this.#checkHandOn(caller);
    this.#checkToken(caller);
  }

  /** Between processes: the one that has the lock may let in so many of its own, for so long. */
  #checkHandOn({ key, process, lock, grant }: Caller): void {
    if (grant === undefined) return this.report(`${lock.requestId} was let in without a grant`);
    grant.sections += 1;
    grant.since ??= this.#clock.now();
    if (!this.#allowances.isCalm || grant.sections === 1) return;
    const forMs = this.#clock.now() - grant.since;
    const most = forMs < WORTH_A_TURN_MS ? MOST_SECTIONS_ON_ONE_GRANT : SECTIONS_ON_ONE_GRANT;
    if (grant.sections > most)
      this.report(`process ${process.number} let in ${grant.sections} on one grant of ${key}`);
    if (forMs > LONGEST_TURN_MS)
      this.report(`process ${process.number} handed ${key} on ${forMs} ms after the first had it`);
  }

  #checkToken({ key, lock, grant }: Caller): void {
    if (lock.fencingToken === undefined) return;
    const last = this.#lastTokens.get(key) ?? 0;
    // One whose lock was forgotten by the server may come after its successor: that is what tokens are for.
    const isForgotten = (grant?.generation ?? 0) < this.#truth.generation;
    if (lock.fencingToken <= last && !isForgotten) this.report(`token ${lock.fencingToken} after ${last}`);
    this.#lastTokens.set(key, Math.max(last, lock.fencingToken));
  }

  turnedAway(caller: Caller, error: unknown): void {
    this.#forget(caller);
    if (error instanceof LockClosedError) return;
    this.#checkBudget(caller, "gave up");
    const tookMs = caller.process.clock.now() - caller.joinedAt;
    if (tookMs < caller.budgetMs - ROUNDING_MS)
      this.report(`gave up after ${tookMs} ms of ${caller.budgetMs} ms`);
    if (this.#allowances.isCalm) this.report("a caller was turned away in calm weather");
  }

  /** A body has ended, and its release begins: who comes now does not come beside it. */
  leaves(caller: Caller, bodyFailed: boolean): void {
    caller.state = "gone";
    if (bodyFailed) caller.mustBeTold = false; // The body's own error goes before any of ours.
  }

  /** The release has ended, with `error` or without. */
  left(caller: Caller, error: unknown): void {
    this.#forget(caller);
    if (error !== undefined && !(error instanceof LockLostError))
      this.report(`released with ${reasonOf(error)}`);
    const { requestId } = caller.lock;
    if (caller.mustBeTold && error === undefined)
      this.report(`${requestId} did not learn that it was not alone`);
    if (this.#allowances.isCalm && error !== undefined)
      this.report(`${requestId} lost its lock in calm weather`);
  }

  /** It goes away while it waits, or dies with its process. */
  disappeared(caller: Caller): void {
    this.#forget(caller);
  }

  #forget(caller: Caller): void {
    caller.state = "gone";
    this.#callers.delete(caller);
  }

  #checkBudget({ process, joinedAt, budgetMs }: Caller, what: string): void {
    const now = process.clock.now();
    const lateMs = process.clock.awakeMs(joinedAt + budgetMs, now);
    if (lateMs > GRACE_MS) this.report(`${what} after ${now - joinedAt} ms of ${budgetMs} ms`);
  }

  // ---- at every step ----------------------------------------------------------------------------------

  check(): void {
    const sure = new Map<string, Caller>();
    const longestWait = new Map<string, Caller>();
    for (const caller of this.#callers) {
      const { key, lock, process } = caller;
      if (lock.remaining() > 0) {
        this.#checkSure(caller);
        caller.silentSince = undefined;
        const other = sure.get(key);
        if (other !== undefined && areOfOneLife(other, caller))
          this.report(`${other.lock.requestId} and ${lock.requestId} are both sure to hold ${key}`);
        sure.set(key, caller);
      } else if (caller.state === "inside") {
        this.#checkSignal(caller);
      }
      const waits = caller.state === "waiting" && process.clock.isRunning && !process.isClosing;
      if (waits && !longestWait.has(key)) longestWait.set(key, caller);
    }
    this.#checkIdle(sure, longestWait);
  }

  /** Who is sure to hold a key does hold it, or the server has lost its memory since. */
  #checkSure(caller: Caller): void {
    const { key, lock, process, grant } = caller;
    const holder = this.#truth.holder(key);
    if (holder !== process.number && (grant?.generation ?? Infinity) >= this.#truth.generation) {
      const who = holder === undefined ? "nobody has it" : `process ${holder} has it`;
      this.report(`${lock.requestId} is sure to hold ${key} for ${lock.remaining()} ms, and ${who}`);
    }
  }

  /** Who is awake learns by the signal, at once, that the lock is lost. */
  #checkSignal(caller: Caller): void {
    const { lock, process, watchesSignal } = caller;
    if (!watchesSignal || !process.clock.isRunning || lock.signal.aborted) {
      caller.silentSince = undefined;
      return;
    }
    caller.silentSince ??= process.clock.now();
    const silentMs = process.clock.now() - caller.silentSince;
    if (silentMs > 1) this.report(`${lock.requestId} lost its lock ${silentMs} ms ago, without a signal`);
  }

  /** No waiter is lost: a key does not lie about while somebody waits for it. */
  #checkIdle(sure: ReadonlyMap<string, Caller>, longestWait: ReadonlyMap<string, Caller>): void {
    const now = this.#clock.now();
    for (const [key, { lock }] of longestWait) {
      if (sure.has(key) || this.#truth.freeSince(key) === Infinity) {
        this.#idleSince.delete(key);
        continue;
      }
      const since = this.#idleSince.get(key) ?? now;
      this.#idleSince.set(key, since);
      const idleMs = now - since;
      if (idleMs > this.#allowances.idleMs())
        this.report(`${key} has been free for ${idleMs} ms while ${lock.requestId} waits`);
    }
    for (const key of this.#idleSince.keys()) if (!longestWait.has(key)) this.#idleSince.delete(key);
  }
}

/** Whether both have their locks from the same life of the server, in which nothing was forgotten. */
function areOfOneLife(one: Caller, other: Caller): boolean {
  return one.grant?.generation === other.grant?.generation;
}
