import { LockClosedError, LockLostError, errorMessage } from "../../runtime/errors";
import type { MultiLock } from "../../runtime/lock/multi-lock";
import { JOIN_WINDOW_MS } from "../../runtime/queue/shared-lease";
import { Beliefs } from "./beliefs";
import type { Caller } from "./caller";
import { processOf, Truth, type Grant } from "./truth";

/** How much longer than its budget a caller may wait: for a last command, and for a renewal of what that has found. */
const GRACE_MS = 450;
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
  readonly #now: () => number;
  readonly truth: Truth;
  readonly beliefs: Beliefs;
  readonly #allowances: Allowances;
  /** Who waits or is inside, in the order in which they came. */
  readonly #callers = new Set<Caller>();
  /** Those who wait for several keys, and may have some of them. */
  readonly #partly = new Set<MultiLock>();
  readonly #lastTokens = new Map<string, number>();
  readonly #leftToExpire = new Set<string>();
  /** By number: what they had, or were still giving back, is left to expire. */
  readonly #ended = new Set<number>();
  readonly #idleSince = new Map<string, number>();
  readonly #firstWithRoom = new Map<string, string | undefined>();

  /**
   * @param now the world's time
   * @param serverNow the server's
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

  /** Everything bad is over: how long a key was free counts from here. */
  healed(): void {
    this.#idleSince.clear();
  }

  // ---- the life of a caller ---------------------------------------------------------------------------

  joined(caller: Caller): void {
    this.#callers.add(caller);
  }

  /** Somebody waits for several keys, and does so no more. */
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
    if (!caller.isHeldToItsEnd) this.#leftToExpire.add(caller.storeValue ?? "");
    caller.grant = this.truth.grantTo(caller.storeValue ?? "");
    // That the server broke its word may be heard between the grant and the first step of the body.
    const hasKeptItsWord = this.truth.hasKeptItsWord(key, caller.storeValue ?? "");
    if (!this.beliefs.check(caller) && hasKeptItsWord)
      this.report(`${lock.requestId} is let in without the lock`);
    if (isNested) return;
    this.#checkAlone(caller);
    this.#checkBudget(caller, "entered");
    for (const other of this.#callers) {
      if (other === caller || caller.isOfSeveral) break;
      if (areOfOneLine(caller, other) && other.state === "waiting" && !other.isNested)
        this.report(`${lock.requestId} overtook ${other.lock.requestId}`);
    }
    const others = [...(process.clock.mayNotKnowOfSuspension ? [] : this.#callers)].filter(
      (other) =>
        other !== caller && other.key === key && other.state === "inside" && areOfOneLife(other, caller),
    );
    // Who may be beside the others, and has lost its lock, does not know which of them came in its place.
    if (areTooMany([caller, ...others])) {
      for (const other of others) if (areTooMany([caller, other])) other.mustBeTold = true;
    }
    this.#checkLockTime(caller);
    this.#checkHandOn(caller);
    this.#checkToken(caller);
  }

  /** Nobody enters a body's lock again but what is inside that body. */
  #checkAlone(caller: Caller): void {
    if (caller.lock.permits > 1) return;
    for (const other of this.#callers) {
      if (other === caller || other.state !== "inside" || other.storeValue !== caller.storeValue) continue;
      this.report(`${caller.lock.requestId} entered beside the body of ${other.lock.requestId}`);
    }
  }

  /** Who is let in has what it asked for, or what is left of as much. */
  #checkLockTime({ lock, isOfSeveral }: Caller): void {
    if (this.#allowances.isCalm && !isOfSeveral && lock.remaining() < lock.lockTimeMs * 0.45)
      this.report(`${lock.requestId} is let in for ${lock.remaining()} ms of ${lock.lockTimeMs} ms`);
  }

  /**
   * The process heard that the key did not hold what it was to drop: those under whom the server broke its word, before
   * the time was over, must be told, also where they have handed it on and still wait to hear of it. When it is over, a key
   * that is free proves nothing to these any more.
   */
  heardOfLoss(key: string, requestId: string): void {
    if (this.truth.hasKeptItsWord(key, requestId) || this.beliefs.isGivenUpAnew(requestId)) return;
    const having = [...this.#callers].filter(
      (caller) => caller.storeValue === requestId && caller.state !== "waiting",
    );
    const isOver = this.truth.isOver(requestId);
    for (const caller of having) {
      const hasHandedOff = caller !== having.at(-1);
      if (isOver && hasHandedOff) continue;
      if (caller.isHeldToItsEnd && !caller.wasKeptToItsEnd) caller.mustBeTold = true;
    }
  }

  /** Between processes: the one that has the lock may let in so many of its own, for so long. */
  #checkHandOn(caller: Caller): void {
    const { key, process, lock, grant, isOfSeveral } = caller;
    if (grant === undefined) return this.report(`${lock.requestId} was let in without a grant`);
    grant.sections += 1;
    grant.since ??= this.#now();
    if (lock.permits > 1) return this.#checkJoin(caller, grant);
    // Of several, one is had before the others: since then it is not handed on, but kept.
    if (!this.#allowances.isCalm || grant.sections === 1 || isOfSeveral) return;
    const forMs = this.#now() - grant.since;
    const most = forMs < WORTH_A_TURN_MS ? MOST_SECTIONS_ON_ONE_GRANT : SECTIONS_ON_ONE_GRANT;
    if (grant.sections > most)
      this.report(`process ${process.number} let in ${grant.sections} on one grant of ${key}`);
    if (forMs > LONGEST_TURN_MS)
      this.report(`process ${process.number} handed ${key} on ${forMs} ms after the first had it`);
  }

  /** A reader that joins a hold of its process passes nobody who waits elsewhere for longer than the window. */
  #checkJoin({ key, lock, isOfSeveral, joinedAt, process }: Caller, { sections }: Grant): void {
    if (!this.#allowances.isCalm || isOfSeveral || sections === 1 || lock.permits < Infinity) return;
    const now = this.#now();
    const cameAt = now - (process.clock.now() - joinedAt);
    const passedMs = now - this.truth.waitsSince(key, cameAt);
    if (passedMs > JOIN_WINDOW_MS + ROUNDING_MS)
      this.report(`${lock.requestId} passed one who has waited for ${key} for ${passedMs} ms`);
  }

  #checkToken({ key, lock, grant, process }: Caller): void {
    if (lock.fencingToken === undefined || process.clock.mayNotKnowOfSuspension) return;
    const last = this.#lastTokens.get(key) ?? 0;
    // One whose lock was forgotten by the server may come after its successor: that is what tokens are for.
    const isForgotten = (grant?.life ?? 0) < this.truth.lifeOf(key);
    if (lock.fencingToken <= last && !isForgotten) this.report(`token ${lock.fencingToken} after ${last}`);
    this.#lastTokens.set(key, Math.max(last, lock.fencingToken));
  }

  turnedAway(caller: Caller, error: unknown): void {
    this.#forget(caller);
    if (error instanceof LockClosedError) return;
    this.#checkBudget(caller, "gave up");
    if (caller.isNested)
      return this.report(`${caller.lock.requestId} was not let in again: ${errorMessage(error)}`);
    const tookMs = caller.process.clock.now() - caller.joinedAt;
    if (tookMs < caller.budgetMs - ROUNDING_MS)
      this.report(`gave up after ${tookMs} ms of ${caller.budgetMs} ms`);
    if (this.#allowances.isCalm) this.report("a caller was turned away in calm weather");
  }

  /** A body has ended, and its release begins: who comes now does not come beside it. */
  leaves(caller: Caller, bodyFailed: boolean): void {
    caller.state = "leaving";
    caller.wasKeptToItsEnd = this.truth.hasKeptItsWord(caller.key, caller.storeValue ?? "");
    if (bodyFailed) caller.mayBeSilent = true; // The body's own error goes before any of ours.
    // Of whom its own process was sure to the end: only the store knows better, and is not waited for.
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
    if (caller.mustBeTold && !mayBeSilent && error === undefined)
      this.report(`${requestId} did not learn that it was not alone`);
    if (this.#allowances.isCalm && error !== undefined)
      this.report(`${requestId} lost its lock in calm weather`);
  }

  /** It goes away while it waits, or dies with its process. */
  disappeared(caller: Caller): void {
    this.#forget(caller);
  }

  /** Nothing of it runs any more. */
  crashed(process: Caller["process"]): void {
    this.ended(process);
    for (const caller of this.#callers) if (caller.process === process) this.#forget(caller);
  }

  /** Nothing of it is sent any more. */
  ended({ number }: Caller["process"]): void {
    this.#ended.add(number);
  }

  #forget(caller: Caller): void {
    caller.state = "gone";
    this.#callers.delete(caller);
  }

  /** Who waits for nobody waits for the reply to one command all the same. */
  #checkBudget({ process, joinedAt, budgetMs, isOfSeveral }: Caller, what: string): void {
    const now = process.clock.now();
    const leastMs = budgetMs === 0 ? process.commandTimeoutMs : 0;
    const lateMs = process.clock.awakeMs(joinedAt + budgetMs + leastMs, now);
    // Behind the last key that was waited for, the rest may be asked for once more.
    if (lateMs > (isOfSeveral ? 2 : 1) * GRACE_MS)
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
        const isShared = caller.lock.permits > 1 && this.truth.hasKeptItsWord(key, caller.storeValue ?? "");
        if (isShared && inside(byTheSame) > capacity)
          this.report(`${inside(byTheSame)} are sure to hold ${key} by ${capacity} permits`);
        if (areTooMany([caller, ...others])) {
          const ids = [...others, caller].map((one) => one.lock.requestId);
          this.report(`${ids.join(" and ")} are both sure to hold ${key}`);
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

  /** What every process believes, as often as anything has happened. */
  checkBeliefs(): void {
    for (const caller of this.#callers) this.beliefs.check(caller);
  }

  /** Who is awake learns by the signal, at once, that the lock is lost. */
  #checkSignal(caller: Caller): void {
    const { lock, process, watchesSignal } = caller;
    // Who was suspended does not know before a renewal answers.
    const isInDoubt = process.clock.resumedAt > -Infinity;
    if (!watchesSignal || !process.clock.isRunning || isInDoubt || lock.signal.aborted) {
      caller.silentSince = undefined;
      return;
    }
    caller.silentSince ??= process.clock.now();
    const silentMs = process.clock.now() - caller.silentSince;
    if (silentMs > 1) this.report(`${lock.requestId} lost its lock ${silentMs} ms ago, without a signal`);
  }

  /** No waiter is lost: a key does not lie about while somebody waits for it. */
  #checkIdle(sure: ReadonlyMap<string, unknown>, longestWait: ReadonlyMap<string, Caller>): void {
    const now = this.#now();
    for (const [key, { lock }] of longestWait) {
      // In other weather the first of those who wait may be dead, and keep its place for a while.
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

  /** Whether one who waits for others beside it is sure of it. */
  #isHeldInPart(key: string): boolean {
    for (const { locks } of this.#partly)
      if (locks.some((lock) => lock.key === key && lock.remaining() > 0)) return true;
    return false;
  }

  /** Whether somebody works under it, sure of it or in doubt, or gives it back. */
  #isInUse(value: string): boolean {
    for (const { storeValue } of this.#callers) if (storeValue === value) return true;
    for (const { locks } of this.#partly) if (locks.some((lock) => lock.storeValue === value)) return true;
    return false;
  }

  /** Whether the key is free, or taken by a command whose process has heard of it, and does not use it. */
  #isUnused(key: string): boolean {
    return this.truth.values(key).every((value) => this.#isUnusedHold(value));
  }

  #isUnusedHold(value: string): boolean {
    const isLeftOver =
      this.#leftToExpire.has(value) ||
      this.truth.isOverstaying(value) ||
      this.#ended.has(processOf(value)) ||
      this.truth.grantTo(value)?.isTakenAgain === true;
    return this.beliefs.isHeard(value) && !isLeftOver && !this.#isInUse(value);
  }
}

/** Whether the key was held again by the same command when it ended: that much is believed of the store's last word. */
function isUnprovable({ grant, process }: Caller): boolean {
  return grant?.isTakenAgain === true && !process.isClosed;
}

/** Whether the later of them waits behind the other: who may be beside others waits by itself. */
function areOfOneLine(one: Caller, other: Caller): boolean {
  const areAlone = one.lock.permits === 1 && other.lock.permits === 1;
  return areAlone && one.process === other.process && one.key === other.key;
}

/** Whether both have their locks from the same life of the server, in which nothing was forgotten. */
function areOfOneLife(one: Caller, other: Caller): boolean {
  return one.grant?.life === other.grant?.life;
}

/**
 * How many have come in: of those who hold a key alone, all who hold it by the same command are inside one another, or one after
 * the other; of those who share it, each counts that is not inside another.
 */
function inside(callers: readonly Caller[]): number {
  const alone = callers.filter(({ lock }) => lock.permits === 1);
  const shared = callers.filter(({ lock, isNested }) => lock.permits > 1 && !isNested);
  return new Set(alone.map(({ storeValue, lock }) => storeValue ?? lock.requestId)).size + shared.length;
}

/** Whether more have come in than may be together: readers are beside readers alone. */
function areTooMany(callers: readonly Caller[]): boolean {
  const readers = callers.filter(({ lock }) => lock.permits === Infinity);
  if (readers.length > 0) return readers.length < callers.length;
  return inside(callers) > Math.min(...callers.map(({ lock }) => lock.permits));
}
