import { LockClosedError, LockLostError, errorMessage } from "../../runtime/base/errors";
import type { MultiLock } from "../../runtime/lock/multi-lock";
import { JOIN_WINDOW_MS } from "../../runtime/queue/shared-lease";
import { Beliefs } from "./beliefs";
import type { Caller } from "./caller";
import { processOf, Truth, type Grant } from "./truth";

/** How much longer than its budget a caller may wait: for a last command, and for a renewal of the hold that it found. */
const GRACE_MS = 450;
const ROUNDING_MS = 0.001;
/** The sections within one process before another process gets its turn. */
const SECTIONS_ON_ONE_GRANT = 16;
const MOST_SECTIONS_ON_ONE_GRANT = 64;
const WORTH_A_TURN_MS = 5;
const LONGEST_TURN_MS = 100;

/** What a world allows. */
export interface Allowances {
  readonly isCalm: boolean;
  /** The longest time for which a key may be free while a caller waits. */
  readonly idleMs: () => number;
}

/** The invariants, which must hold at every step and in all weather. */
export class Invariants {
  readonly problems: string[] = [];
  readonly #now: () => number;
  readonly truth: Truth;
  readonly beliefs: Beliefs;
  readonly #allowances: Allowances;
  /** The callers that wait or are inside, in the order in which they came. */
  readonly #callers = new Set<Caller>();
  /** The multi-key calls that wait, and may hold some of their keys. */
  readonly #partly = new Set<MultiLock>();
  readonly #lastTokens = new Map<string, number>();
  readonly #leftToExpire = new Set<string>();
  /** The numbers of ended processes. Their holds are left to expire. */
  readonly #ended = new Set<number>();
  readonly #idleSince = new Map<string, number>();
  readonly #firstWithRoom = new Map<string, string | undefined>();

  /**
   * @param now the world's time
   * @param serverNow the server's time
   */
  constructor(now: () => number, serverNow: () => number, allowances: Allowances) {
    this.#now = now;
    this.truth = new Truth(serverNow, (problem) => this.report(problem), allowances.isCalm);
    this.beliefs = new Beliefs(this.truth, (problem) => this.report(problem));
    this.#allowances = allowances;
  }

  report(problem: string): void {
    if (this.problems.length < 5) this.problems.push(`${problem} (at ${this.#now().toFixed(3)} ms)`);
  }

  /** All faults are over, so the time that a key is free counts from here. */
  healed(): void {
    this.#idleSince.clear();
  }

  // ---- the life of a caller ---------------------------------------------------------------------------

  joined(caller: Caller): void {
    this.#callers.add(caller);
  }

  /** A multi-key call starts to wait. `waitsNoMore()` says that it ends. */
  waitsForAll(locks: MultiLock): void {
    this.#partly.add(locks);
  }

  waitsNoMore(locks: MultiLock): void {
    this.#partly.delete(locks);
  }

  /** A body begins. */
  entered(caller: Caller): void {
    caller.state = "inside";
    const { lock, key, process, isNested } = caller;
    caller.storeValue = lock.storeValue;
    if (!caller.releasesItself) this.#leftToExpire.add(caller.storeValue ?? "");
    caller.grant = this.truth.grantTo(caller.storeValue ?? "");
    // The process may learn between the grant and the body that the server broke its promise.
    const hasKeptPromise = this.truth.hasKeptPromise(key, caller.storeValue ?? "");
    if (!this.beliefs.check(caller) && hasKeptPromise)
      this.report(`${lock.requestId} entered without the lock`);
    if (isNested) return;
    this.#checkAlone(caller);
    this.#checkBudget(caller, "entered");
    for (const other of this.#callers) {
      if (other === caller || caller.isMultiKey) break;
      if (areOfOneLine(caller, other) && other.state === "waiting" && !other.isNested)
        this.report(`${lock.requestId} overtook ${other.lock.requestId}`);
    }
    const others = [...(process.clock.mayNotKnowOfSuspension ? [] : this.#callers)].filter(
      (other) =>
        other !== caller && other.key === key && other.state === "inside" && areOfOneLife(other, caller),
    );
    // A caller that shares the key, and has lost its lock, does not know which of the others replaced it.
    if (areTooMany([caller, ...others])) {
      for (const other of others) if (areTooMany([caller, other])) other.mustGetError = true;
    }
    this.#checkLockTime(caller);
    this.#checkHandOff(caller);
    this.#checkToken(caller);
  }

  /** Checks that only calls inside a body enter its lock again. */
  #checkAlone(caller: Caller): void {
    if (caller.lock.terms.permits > 1) return;
    for (const other of this.#callers) {
      if (other === caller || other.state !== "inside" || other.storeValue !== caller.storeValue) continue;
      this.report(`${caller.lock.requestId} entered during the body of ${other.lock.requestId}`);
    }
  }

  /** Checks that a caller enters with its lock time, or with the rest of an equal one. */
  #checkLockTime({ lock, isMultiKey }: Caller): void {
    if (this.#allowances.isCalm && !isMultiKey && lock.remaining() < lock.terms.lockTimeMs * 0.45)
      this.report(`${lock.requestId} entered with ${lock.remaining()} ms of ${lock.terms.lockTimeMs} ms`);
  }

  /**
   * A release found that the key does not have the hold. If the server broke its promise before the time was over, all callers on
   * that hold must get an error, even those that have handed it off and still wait. When the time is over, a free key proves
   * nothing to these any more.
   */
  notReleased(key: string, requestId: string): void {
    if (this.truth.hasKeptPromise(key, requestId) || this.beliefs.wasReleasedTwice(requestId)) return;
    const having = [...this.#callers].filter(
      (caller) => caller.storeValue === requestId && caller.state !== "waiting",
    );
    const isOver = this.truth.isOver(requestId);
    for (const caller of having) {
      const hasHandedOff = caller !== having.at(-1);
      if (isOver && hasHandedOff) continue;
      if (caller.releasesItself && !caller.wasKeptToTheEnd) caller.mustGetError = true;
    }
  }

  /** Checks how many of its own callers a process lets in, and for how long, before another process gets its turn. */
  #checkHandOff(caller: Caller): void {
    const { key, process, lock, grant, isMultiKey } = caller;
    if (grant === undefined) return this.report(`${lock.requestId} entered without a grant`);
    grant.sections += 1;
    grant.since ??= this.#now();
    if (lock.terms.permits > 1) return this.#checkJoin(caller, grant);
    // A multi-key call holds one key before the others. Since then the key is kept, not handed off.
    if (!this.#allowances.isCalm || grant.sections === 1 || isMultiKey) return;
    const forMs = this.#now() - grant.since;
    const most = forMs < WORTH_A_TURN_MS ? MOST_SECTIONS_ON_ONE_GRANT : SECTIONS_ON_ONE_GRANT;
    if (grant.sections > most)
      this.report(`process ${process.number} let in ${grant.sections} on one grant of ${key}`);
    if (forMs > LONGEST_TURN_MS)
      this.report(`process ${process.number} handed off ${key} ${forMs} ms after its first holder got it`);
  }

  /** Checks that a joining reader passes no waiter of another process that has waited for longer than the window. */
  #checkJoin({ key, lock, isMultiKey, joinedAt, process }: Caller, { sections }: Grant): void {
    if (!this.#allowances.isCalm || isMultiKey || sections === 1 || lock.terms.permits < Infinity) return;
    const now = this.#now();
    const cameAt = now - (process.clock.now() - joinedAt);
    const passedMs = now - this.truth.waitsSince(key, cameAt);
    if (passedMs > JOIN_WINDOW_MS + ROUNDING_MS)
      this.report(`${lock.requestId} passed a waiter that has waited for ${key} for ${passedMs} ms`);
  }

  #checkToken({ key, lock, grant, process }: Caller): void {
    if (lock.fencingToken === undefined || process.clock.mayNotKnowOfSuspension) return;
    const last = this.#lastTokens.get(key) ?? 0;
    // A caller whose lock the server forgot may come after its successor. Fencing tokens exist for that case.
    const isForgotten = (grant?.life ?? 0) < this.truth.lifeOf(key);
    if (lock.fencingToken <= last && !isForgotten) this.report(`token ${lock.fencingToken} after ${last}`);
    this.#lastTokens.set(key, Math.max(last, lock.fencingToken));
  }

  turnedAway(caller: Caller, error: unknown): void {
    this.#forget(caller);
    if (error instanceof LockClosedError) return;
    this.#checkBudget(caller, "gave up");
    if (caller.isNested)
      return this.report(`${caller.lock.requestId} could not enter again: ${errorMessage(error)}`);
    const tookMs = caller.process.clock.now() - caller.joinedAt;
    if (tookMs < caller.budgetMs - ROUNDING_MS)
      this.report(`gave up after ${tookMs} ms of ${caller.budgetMs} ms`);
    if (this.#allowances.isCalm) this.report("a caller gave up in calm weather");
  }

  /** A body has ended, and its release begins. A caller that enters now does not overlap it. */
  leaves(caller: Caller, bodyFailed: boolean): void {
    caller.state = "leaving";
    caller.wasKeptToTheEnd = this.truth.hasKeptPromise(caller.key, caller.storeValue ?? "");
    if (bodyFailed) caller.mayBeSilent = true; // The body's own error wins over any of ours.
    // Its process was sure of the lock to the end. Only the store knows better, and its reply is not awaited.
    if (caller.isReleasedInBackground && caller.lock.remaining() > 0) caller.mayBeSilent = true;
  }

  /** The release has ended, with `error` or without. */
  left(caller: Caller, error: unknown): void {
    this.#forget(caller);
    if (error !== undefined && !(error instanceof LockLostError))
      this.report(`released with ${errorMessage(error)}`);
    const { requestId } = caller.lock;
    const { mayNotKnowOfSuspension } = caller.process.clock;
    const mayBeSilent = caller.mayBeSilent || mayNotKnowOfSuspension || isUnprovable(caller);
    if (caller.mustGetError && !mayBeSilent && error === undefined)
      this.report(`${requestId} did not learn that it was not alone`);
    if (this.#allowances.isCalm && error !== undefined)
      this.report(`${requestId} lost its lock in calm weather`);
  }

  /** A caller gives up while it waits, or dies with its process. */
  disappeared(caller: Caller): void {
    this.#forget(caller);
  }

  /** A process has crashed, and nothing of it runs any more. */
  crashed(process: Caller["process"]): void {
    this.ended(process);
    for (const caller of this.#callers) if (caller.process === process) this.#forget(caller);
  }

  /** A process has ended, and sends nothing more. */
  ended({ number }: Caller["process"]): void {
    this.#ended.add(number);
  }

  #forget(caller: Caller): void {
    caller.state = "gone";
    this.#callers.delete(caller);
  }

  /** Checks that no wait exceeds its budget. A caller with no wait budget still waits for one reply. */
  #checkBudget({ process, joinedAt, budgetMs, isMultiKey }: Caller, what: string): void {
    const now = process.clock.now();
    const leastMs = budgetMs === 0 ? process.commandTimeoutMs : 0;
    const lateMs = process.clock.awakeMs(joinedAt + budgetMs + leastMs, now);
    // After the wait for its last key, a multi-key call may try the rest once more.
    if (lateMs > (isMultiKey ? 2 : 1) * GRACE_MS)
      this.report(`${what} after ${now - joinedAt} ms of ${budgetMs} ms`);
  }

  // ---- at every step ----------------------------------------------------------------------------------

  check(): void {
    const sure = new Map<string, Caller[]>();
    const longestWait = new Map<string, Caller>();
    for (const caller of this.#callers) {
      const { key, process, isNested } = caller;
      if (this.beliefs.check(caller)) {
        caller.silentSince = undefined;
        if (process.clock.mayNotKnowOfSuspension) continue;
        const others = (sure.get(key) ?? []).filter((other) => areOfOneLife(other, caller));
        const byTheSame = [caller, ...others].filter((other) => other.storeValue === caller.storeValue);
        const capacity = this.truth.capacityOf(key, caller.storeValue ?? "");
        const isShared =
          caller.lock.terms.permits > 1 && this.truth.hasKeptPromise(key, caller.storeValue ?? "");
        if (isShared && inside(byTheSame) > capacity)
          this.report(`${inside(byTheSame)} believe they hold ${key} by ${capacity} permits`);
        if (areTooMany([caller, ...others])) {
          const ids = [...others, caller].map((one) => one.lock.requestId);
          this.report(`${ids.join(" and ")} both believe they hold ${key}`);
        }
        sure.set(key, [...(sure.get(key) ?? []), caller]);
      } else if (caller.state === "inside") {
        this.#checkSignal(caller);
      }
      const waits = caller.state === "waiting" && process.clock.isRunning && !process.isClosed && !isNested;
      if (waits && !longestWait.has(key)) longestWait.set(key, caller);
    }
    this.#checkIdle(sure, longestWait);
  }

  /** Checks the beliefs of all processes. */
  checkBeliefs(): void {
    for (const caller of this.#callers) this.beliefs.check(caller);
  }

  /** Checks that the signal of a lost lock aborts immediately while its process is awake. */
  #checkSignal(caller: Caller): void {
    const { lock, process, watchesSignal } = caller;
    // A process that was suspended does not know before a renewal is answered.
    const isInDoubt = process.clock.resumedAt > -Infinity;
    if (!watchesSignal || !process.clock.isRunning || isInDoubt || lock.signal.aborted) {
      caller.silentSince = undefined;
      return;
    }
    caller.silentSince ??= process.clock.now();
    const silentMs = process.clock.now() - caller.silentSince;
    if (silentMs > 1) this.report(`${lock.requestId} lost its lock ${silentMs} ms ago, without a signal`);
  }

  /** Checks that no waiter is lost: a key must not stay free while a caller waits. */
  #checkIdle(sure: ReadonlyMap<string, unknown>, longestWait: ReadonlyMap<string, Caller>): void {
    const now = this.#now();
    for (const [key, { lock }] of longestWait) {
      // In other weather the first waiter may be dead, and keep its ticket for a while.
      const withRoom = this.#allowances.isCalm ? this.truth.firstWithRoom(key) : undefined;
      const isHeld = sure.has(key) || this.#isHeldInPart(key);
      const isIdle = withRoom !== undefined || (!isHeld && this.#isUnused(key));
      if (!isIdle || withRoom !== this.#firstWithRoom.get(key)) this.#idleSince.delete(key);
      this.#firstWithRoom.set(key, withRoom);
      if (!isIdle) continue;
      const since = this.#idleSince.get(key) ?? now;
      this.#idleSince.set(key, since);
      const idleMs = now - since;
      if (idleMs > this.#allowances.idleMs())
        this.report(`${key} has been free for ${idleMs} ms while ${lock.requestId} waits`);
    }
    for (const key of this.#idleSince.keys()) if (!longestWait.has(key)) this.#idleSince.delete(key);
  }

  /** Returns whether a waiting multi-key call believes it holds the key. */
  #isHeldInPart(key: string): boolean {
    for (const { locks } of this.#partly)
      if (locks.some((lock) => lock.key === key && lock.remaining() > 0)) return true;
    return false;
  }

  /** Returns whether a caller uses the hold, sure or in doubt, or releases it. */
  #isInUse(value: string): boolean {
    for (const { storeValue } of this.#callers) if (storeValue === value) return true;
    for (const { locks } of this.#partly) if (locks.some((lock) => lock.storeValue === value)) return true;
    return false;
  }

  /** Returns whether the key is free, or held by a command whose process got the reply and does not use the hold. */
  #isUnused(key: string): boolean {
    if (this.truth.guards.isOpen(key)) return false;
    return this.truth.values(key).every((value) => this.#isUnusedHold(value));
  }

  #isUnusedHold(value: string): boolean {
    const isLeftOver =
      this.#leftToExpire.has(value) ||
      this.truth.isOverstaying(value) ||
      this.#ended.has(processOf(value)) ||
      this.truth.grantTo(value)?.isAcquiredAgain === true;
    return this.beliefs.hasReceivedGrant(value) && !isLeftOver && !this.#isInUse(value);
  }
}

/** Returns whether the same command acquired the key twice, so that the store's last reply proves nothing. */
function isUnprovable({ grant, process }: Caller): boolean {
  return grant?.isAcquiredAgain === true && !process.isClosed;
}

/** Returns whether one of the two waits behind the other. Callers that share a key do not. */
function areOfOneLine(one: Caller, other: Caller): boolean {
  const areAlone = one.lock.terms.permits === 1 && other.lock.terms.permits === 1;
  return areAlone && one.process === other.process && one.key === other.key;
}

/** Returns whether both got their locks in the same life of the server, in which it forgot nothing. */
function areOfOneLife(one: Caller, other: Caller): boolean {
  return one.grant?.life === other.grant?.life;
}

/**
 * Returns how many callers have entered. Exclusive callers on the same command count once, because they are nested or follow one
 * another. Callers that share the key count once each, unless they are nested.
 */
function inside(callers: readonly Caller[]): number {
  const alone = callers.filter(({ lock }) => lock.terms.permits === 1);
  const shared = callers.filter(({ lock, isNested }) => lock.terms.permits > 1 && !isNested);
  return new Set(alone.map(({ storeValue, lock }) => storeValue ?? lock.requestId)).size + shared.length;
}

/** Returns whether more callers are inside than may be together. Readers may be inside only with readers. */
function areTooMany(callers: readonly Caller[]): boolean {
  const readers = callers.filter(({ lock }) => lock.terms.permits === Infinity);
  if (readers.length > 0) return readers.length < callers.length;
  return inside(callers) > Math.min(...callers.map(({ lock }) => lock.terms.permits));
}
