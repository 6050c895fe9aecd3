import type { Duration } from "../../runtime/base/duration";
import { UNLIMITED } from "../../runtime/base/limits";
import type { Lock } from "../../runtime/lock/lock";
import type { MultiLock } from "../../runtime/lock/multi-lock";
import type { LockOptions } from "../../runtime/lock/settings";
import { runInside } from "../../runtime/lock/reentrancy";
import { SeededRandom } from "../support/seeded-random";
import { allPromiseJobs, VirtualClock } from "../support/virtual-clock";
import { LockWaitTimeoutError, errorMessage } from "../../runtime/base/errors";
import type { Caller } from "./caller";
import { belongsTo, fromOutside, inContextOf, type Call } from "./contexts";
import { Invariants } from "./invariants";
import { Machines } from "./machines";
import { noCounts, type Outcome } from "./outcome";
import type { SimulatedProcess } from "./process";
import { inRedis, type OpenStore, type SimulatedStore } from "./simulated-store";
import type { Tamper } from "./tampering";
import { KINDS, weatherOf, type Weather } from "./weather";

const LONGEST_LOCK_TIME_MS = 10_000;
const LONGEST_SUSPENSION_MS = 25_000;
/** The time of a command that was lost before the weather cleared, a pause, and another command. */
const HEALED_IDLE_MS = 2_500;
/** The same after a resume. A waiter behind a hold that is not renewed may sleep for its whole lock time. */
const RESUMED_IDLE_MS = 7_000;

/**
 * Simulates one world from its beginning to its end. Everything in it follows from the seed. Processes, callers, and faults come
 * at random, and `Invariants` checks every step.
 */
export function simulate(seed: number, tamper: Tamper = (store) => store): Promise<Outcome> {
  return simulateOver(seed, inRedis(tamper));
}

/** Does the same over any store. */
export function simulateOver(seed: number, open: OpenStore): Promise<Outcome> {
  return new World(seed, open).run();
}

/** The key of a call with a reentrant lock. */
interface Wanted {
  readonly key: string;
}

type LockTimes = [Duration, ...Duration[]];

class World {
  readonly #seed: number;
  readonly #random: SeededRandom;
  readonly #clock = new VirtualClock();
  readonly #invariants: Invariants;
  readonly #store: SimulatedStore;
  readonly #isCalm: boolean;
  readonly #counts = noCounts();
  readonly #machines: Machines;
  readonly #callers = new Set<Caller>();
  readonly #keys: readonly string[];
  readonly #lockTimes: LockTimes;
  /** The share of calls that want several keys. */
  readonly #forSeveral: number;
  /** The multi-key calls that wait. */
  readonly #partly = new Map<MultiLock, SimulatedProcess>();
  /** In some worlds some callers do not wait for the end of their release. */
  readonly #hasOpenReleases: boolean;
  /** In some worlds most locks are reentrant, and bodies and abort listeners ask for other keys. */
  readonly #isNesting: boolean;
  readonly #sharing: "none" | "readers" | "permits" | "all";
  /** In many worlds all callers use the same options, so locks are handed off again and again. */
  readonly #sameForAll: LockOptions | undefined;
  /** Most sections are shorter than this. It decides whether many or few of them run on one grant. */
  readonly #briefMs: number;
  readonly #weather: Weather;
  #sectionsMs = 0;
  /** How many more calls may come in the same tick as others, or when a lock is lost. */
  #extraCalls = 20;
  #calls = 0;
  /** The number of calls that have not ended. */
  #underWay = 0;

  constructor(seed: number, open: OpenStore) {
    this.#seed = seed;
    this.#random = new SeededRandom(seed);
    this.#weather = weatherOf(seed, this.#random);
    this.#isCalm = this.#weather.name === "calm";
    this.#hasOpenReleases = Math.floor(seed / KINDS.length) % 3 === 2;
    this.#isNesting = Math.floor(seed / KINDS.length) % 5 === 3;
    this.#keys = ["LOCK_one", "LOCK_two", "LOCK_three", "LOCK_four", "LOCK_five"].slice(
      0,
      this.#isNesting ? 5 : this.#random.oneOf(1, 2, 2, 5),
    );
    let invariants: Invariants | undefined;
    this.#store = open({
      world: this.#clock,
      random: this.#random,
      judge: (serverNow) => {
        const allowances = { isCalm: this.#isCalm, idleMs: () => this.#idleMs };
        invariants = new Invariants(() => this.#clock.now(), serverNow, allowances);
        return invariants;
      },
      onExecuted: () => this.#looks(),
    });
    if (invariants === undefined) throw new Error("Expected the store to ask for its judge");
    this.#invariants = invariants;
    this.#lockTimes = this.#isCalm ? ["10s", "5s", "4s"] : ["6s", "800ms", "300ms"];
    this.#forSeveral = this.#random.oneOf(0, 0, 0.3);
    this.#sharing = this.#random.oneOf("none", "none", "readers", "permits", "all");
    this.#sameForAll = this.#random.happens(0.5) ? this.#chooseHow() : undefined;
    this.#briefMs = this.#random.oneOf(1, 5, 60);
    this.#machines = new Machines(
      this.#clock,
      this.#random,
      this.#store,
      this.#weather,
      this.#counts,
      this.#keys,
      {
        onDelivered: () => queueMicrotask(() => this.#looks()),
        onAcquireSent: (requestId) => this.#invariants.beliefs.acquireSent(requestId),
        onReleaseSent: (requestId) => this.#invariants.beliefs.releaseSent(requestId),
        onAcquired: (requestId) => this.#invariants.beliefs.grantReceived(requestId),
        onNotReleased: (key, requestId) => this.#invariants.notReleased(key, requestId),
        onSpinning: () => this.#invariants.report("failed commands are retried immediately, without end"),
      },
      {
        onCrash: (process) => this.#crashed(process),
        onClosed: (process) => this.#invariants.ended(process),
      },
    );
  }

  /** Checks beliefs between the events of one tick, too. Frequent checks would make the runtime notice suspensions too soon. */
  #looks(): void {
    if (this.#weather.suspensions === 0 || this.#random.happens(0.1)) this.#invariants.checkBeliefs();
  }

  /** The longest time for which a key may be free while a caller waits. */
  get #idleMs(): number {
    if (this.#isCalm) return this.#store.calmIdleMs;
    if (!this.#machines.hasCleared) return Infinity;
    return this.#weather.suspensions > 0 ? RESUMED_IDLE_MS : HEALED_IDLE_MS;
  }

  async run(): Promise<Outcome> {
    const random = this.#random;
    const spreadMs = this.#isCalm ? random.oneOf(0, 100, 2_000) : random.oneOf(0, 100, 2_000, 6_000);
    const calls = 4 + random.below(random.oneOf(8, 24, 60));
    for (let n = 0; n < calls; n += 1) {
      this.#underWay += 1;
      this.#clock.after(random.below(spreadMs + 1), () => void this.#call());
    }
    const startedAt = this.#clock.now();
    await this.#steps(this.#weather.clearsAfterMs);
    this.#machines.clear();
    this.#invariants.healed();
    // Enough time for every section to run, and for all leftovers to expire.
    await this.#steps(60_000 + calls * (3_000 + 3_000));
    const { problems } = this.#invariants;
    if (problems.length === 0) {
      if (this.#underWay > 0) this.#invariants.report(`${this.#underWay} callers wait forever`);
      if (this.#isCalm) this.#checkSpeed(startedAt, spreadMs);
      await this.#clock.advance(LONGEST_SUSPENSION_MS + 2 * LONGEST_LOCK_TIME_MS + this.#machines.setBackMs);
      await this.#checkTheEnd();
    }
    const endedAt = this.#clock.now();
    return { seed: this.#seed, weather: this.#weather.name, problems, counts: this.#counts, endedAt };
  }

  async #steps(ms: number): Promise<void> {
    await this.#clock.advanceWhile(async () => {
      this.#invariants.check();
      // The check may make a process notice its suspension. The effects of that happen before time goes on.
      if (this.#weather.suspensions > 0) await allPromiseJobs();
      return this.#underWay > 0 && this.#invariants.problems.length === 0;
    }, ms);
  }

  // ---- callers ----------------------------------------------------------------------------------------

  /** @param wanted the call of an abort listener, which has its own context. By default the call comes from outside. */
  async #call(from = this.#machines.any(), wanted?: Wanted): Promise<void> {
    if (from === undefined) {
      this.#underWay -= 1;
      return;
    }
    this.#calls += 1;
    const call: Call = {
      name: `call ${this.#calls}`,
      report: (problem) => this.#invariants.report(problem),
    };
    const serve = (): Promise<void> =>
      inContextOf(call, async () => {
        const mayBeForSeveral = this.#keys.length > 1 && wanted === undefined;
        if (mayBeForSeveral && this.#random.happens(this.#forSeveral)) await this.#callForAll(from);
        else await this.#serve(call, this.#join(from, wanted));
      });
    await (wanted === undefined ? fromOutside(serve) : serve());
  }

  async #serve(call: Call, caller: Caller): Promise<void> {
    const from = caller.process;
    const { lock, abortController } = caller;
    try {
      const acquired = lock.acquire(abortController.signal);
      this.#sameTick(from);
      let isHeld = await acquired;
      while (!isHeld) {
        if (!(await lock.retryCheck())) return this.#turnAway(caller, undefined);
        isHeld = await lock.acquire(abortController.signal);
      }
    } catch (error) {
      if (caller.state === "waiting") this.#turnAway(caller, error);
      return;
    }
    if (caller.state === "gone") return void lock.release().catch(() => {});
    if (this.#isLostBeforeBody(caller)) {
      lock.release().catch(() => {});
      return this.#disappear(caller);
    }
    this.#counts.served += 1;
    await this.#hold(call, caller);
  }

  /** Makes a multi-key call. */
  async #callForAll(process: SimulatedProcess): Promise<void> {
    const random = this.#random;
    const [retryTimes, waitMs] = this.#chooseWait();
    const { fencing: _, lockAtLeast: __, holdAtMost: ___, ...how } = this.#chooseHow();
    const wait = { retryTimes, waitTime: `${waitMs}ms` } as const;
    // A key that is not renewed may expire before the last one is acquired.
    const watchdog = this.#isCalm || how.watchdog === true;
    const options: LockOptions = { ...how, ...wait, watchdog, autoUnlock: true, reentrant: false };
    const locks = process.locks(
      Array.from({ length: 3 }, () => random.oneOf("LOCK_one", ...this.#keys.slice(1))),
      options,
    );
    const joinedAt = process.clock.now();
    this.#partly.set(locks, process);
    this.#invariants.waitsForAll(locks);
    try {
      const acquired = locks.acquire();
      this.#sameTick(process);
      let isHeld = await acquired;
      while (!isHeld) {
        await locks.retryCheck();
        isHeld = await locks.acquire();
      }
      locks.assertHeld();
    } catch (error) {
      await locks.release().catch(() => {});
      if (this.#isCalm) this.#invariants.report(`${locks.key} were not acquired: ${errorMessage(error)}`);
      if (this.#waitsNoMore(locks)) this.#counts.turnedAway += 1;
      return;
    }
    const callers = locks.locks.map((lock) =>
      this.#callerOf(process, lock, options, { joinedAt, budgetMs: retryTimes * waitMs, isMultiKey: true }),
    );
    if (!this.#waitsNoMore(locks)) return;
    this.#underWay += callers.length;
    for (const caller of callers) {
      this.#callers.add(caller);
      this.#invariants.entered(caller);
    }
    this.#counts.served += 1;
    const ms = random.below(random.oneOf(2, 60, 300));
    this.#sectionsMs += ms + callers.length * 8 * this.#weather.latencyMs;
    await process.passes(ms);
    for (const caller of callers) this.#invariants.leaves(caller, false);
    const trouble: unknown = await locks.release().then(
      () => undefined,
      (error: unknown) => error,
    );
    for (const caller of callers) {
      this.#invariants.left(caller, trouble);
      this.#forget(caller);
    }
  }

  /** Returns whether the call was still waiting. Its process may have died. */
  #waitsNoMore(locks: MultiLock): boolean {
    this.#invariants.waitsNoMore(locks);
    const didWait = this.#partly.delete(locks);
    if (didWait) this.#underWay -= 1;
    return didWait;
  }

  async #hold(call: Call, caller: Caller): Promise<void> {
    const { lock, process } = caller;
    this.#invariants.entered(caller);
    const work = (): Promise<boolean> => this.#work(call, caller);
    const bodyFailed = await (caller.hasFrame ? runInside([lock], work) : work());
    this.#invariants.leaves(caller, bodyFailed);
    let trouble: unknown;
    const released = lock.release();
    this.#sameTick(process);
    try {
      await released;
    } catch (error) {
      trouble = error;
    }
    this.#invariants.left(caller, trouble);
    this.#forget(caller);
  }

  /** Returns whether something else released the lock between the grant and the body. */
  #isLostBeforeBody({ lock, process }: Caller): boolean {
    return lock.remaining() === 0 && (process.isClosed || lock.storeValue === undefined);
  }

  /** Makes something else happen in the process before the current action continues. */
  #sameTick(process: SimulatedProcess): void {
    const random = this.#random;
    const { sameTick, close } = this.#weather;
    while (!this.#machines.hasCleared && random.happens(sameTick)) {
      const waiting = [...this.#callers].filter(
        (caller) => caller.process === process && caller.state === "waiting" && !caller.isNested,
      );
      const other = waiting[random.below(waiting.length)];
      const what = random.oneOf("abort", "call", "close");
      if (what === "abort" && other !== undefined) this.#goAway(other);
      else if (what === "close" && random.happens(close / 4)) this.#machines.close(process);
      else if (what === "call" && this.#extraCalls > 0) {
        this.#extraCalls -= 1;
        this.#underWay += 1;
        void this.#call(process);
      }
    }
  }

  #join(process: SimulatedProcess, wanted: Wanted | undefined): Caller {
    const random = this.#random;
    const key = wanted?.key ?? random.oneOf("LOCK_one", ...this.#keys.slice(1));
    const [retryTimes, waitMs] = this.#chooseWait();
    const chosen = this.#sameForAll ?? this.#chooseHow();
    const how: LockOptions =
      wanted === undefined ? chosen : { ...chosen, reentrant: true, lockAtLeast: "0s" };
    const onFailure = random.oneOf("throw", "skip");
    const options: LockOptions = { ...how, retryTimes, waitTime: `${waitMs}ms`, onFailure };
    const caller = this.#newCaller(process, key, options, retryTimes * waitMs, {
      isInside: wanted !== undefined, // Its listener runs in the context of the body that was aborted.
    });
    this.#callers.add(caller);
    if (!this.#machines.hasCleared && random.happens(this.#weather.abort))
      void this.#abort(caller, random.below(1_000));
    return caller;
  }

  #newCaller(
    process: SimulatedProcess,
    key: string,
    options: LockOptions,
    budgetMs: number,
    where: Partial<Pick<Caller, "isNested" | "isInside">>,
  ): Caller {
    const joinedAt = process.clock.now();
    return this.#callerOf(process, process.lock(key, options), options, { joinedAt, budgetMs, ...where });
  }

  #callerOf(
    process: SimulatedProcess,
    lock: Lock,
    options: LockOptions,
    of: Pick<Caller, "joinedAt" | "budgetMs"> & Partial<Caller>,
  ): Caller {
    const caller: Caller = {
      key: lock.key,
      lock,
      process,
      watchesSignal: this.#random.happens(this.#isNesting ? 1 : 0.5),
      isNested: false,
      isInside: false,
      isMultiKey: false,
      isReentrant: options.reentrant === true,
      hasFrame: options.reentrant === true || options.mode === "read",
      releasesItself: options.autoUnlock !== false,
      isReleasedInBackground: options.release === "background",
      abortController: new AbortController(),
      state: "waiting",
      storeValue: undefined,
      grant: undefined,
      wasKeptToTheEnd: false,
      mustGetError: false,
      mayBeSilent: false,
      silentSince: undefined,
      ...of,
    };
    this.#invariants.joined(caller);
    return caller;
  }

  #chooseWait(): [retryTimes: number, waitMs: number] {
    if (this.#isCalm) return [100, 10_000];
    return this.#random.oneOf<[number, number]>([0, 1_000], [1, 300], [3, 700], [3, 5_000], [100, 10_000]);
  }

  #chooseHow(): LockOptions {
    const random = this.#random;
    const lockTime = random.oneOf(...this.#lockTimes);
    const sharing = this.#chooseSharing();
    const isAlone = !("permits" in sharing) && sharing.mode !== "read";
    const watchdog = random.happens(this.#isCalm ? 0.8 : 0.6);
    const fencing = random.happens(0.5) && isAlone;
    const autoUnlock = this.#isCalm || random.happens(0.9);
    const reentrant = random.happens(this.#isNesting ? 0.8 : 0.15);
    const mayStay = !this.#isCalm && autoUnlock && !reentrant && isAlone && random.happens(0.1);
    const lockAtLeast = mayStay ? (`${Math.floor(random.below(300))}ms` as const) : "0s";
    const mayBeOpen = this.#hasOpenReleases && autoUnlock && random.happens(0.5);
    const release = mayBeOpen ? "background" : "awaited";
    const isLimited = !this.#isCalm && watchdog && random.happens(this.#isNesting ? 0.5 : 0.1);
    const limit: LockOptions = isLimited ? { holdAtMost: lockTime } : {};
    return { ...sharing, ...limit, lockTime, watchdog, fencing, autoUnlock, release, reentrant, lockAtLeast };
  }

  /** In some worlds all locks are exclusive. In others many callers read and few write, or they use permits. */
  #chooseSharing(): LockOptions {
    const random = this.#random;
    switch (this.#sharing) {
      case "none":
        return {};
      case "readers":
        return random.happens(0.7) ? { mode: "read" } : {};
      case "permits":
        return random.happens(0.9) ? { permits: random.oneOf(2, 2, 3) } : {};
      default:
        return random.oneOf<LockOptions>({}, { mode: "read" }, { mode: "write" }, { permits: 2 });
    }
  }

  /** Resolves to whether the body failed. */
  async #work(call: Call, caller: Caller): Promise<boolean> {
    const { lock, process, watchesSignal } = caller;
    // Reads the signal before anything else, because the first read decides its context, and the judge reads it, too.
    const { signal } = watchesSignal ? lock : {};
    const random = this.#random;
    const mayTryAnother = caller.hasFrame && !caller.isInside && !this.#isCalm;
    const mostOthers = mayTryAnother ? 3 : 0;
    for (let n = 0; n < mostOthers && random.happens(this.#isNesting ? 0.8 : 0.2); n += 1)
      await this.#tryAnother(call, caller);
    if (!this.#isCalm && this.#store.transact !== undefined) await this.#store.transact(caller);
    const isLong = random.happens(this.#isCalm ? 0.05 : this.#isNesting ? 0.7 : 0.3);
    const ms = isLong ? random.below(3_000) : random.below(this.#briefMs);
    this.#sectionsMs += ms;
    if (Math.floor(ms) % 10 === 7) void lock.extend(`${ms + LEAST_EXTENSION_MS}ms`).catch(() => {}); // It may be lost by then.
    const isAtOnce = !this.#isCalm && random.happens(0.1);
    const isNesting = caller.isReentrant && random.happens(0.7);
    if (!isAtOnce) {
      await new Promise<void>((resolve) => {
        process.clock.after(isNesting ? ms / 2 : ms, resolve);
        if (signal === undefined || (!this.#isNesting && random.happens(0.5))) return;
        signal.addEventListener("abort", () => {
          belongsTo(call, "an abort listener");
          this.#cleanUp(caller);
          resolve();
        });
      });
    }
    if (isNesting) await this.#enterAgain(caller, ms / 2);
    const bodyFails = random.happens(0.1);
    if (bodyFails) lock.fail(undefined);
    return bodyFails;
  }

  /** Tries another key inside a body. It does not wait, so that no deadlock is possible. */
  async #tryAnother(call: Call, { key, process }: Caller): Promise<void> {
    const other = this.#anyKeyBut(key);
    if (other === undefined) return;
    const options: LockOptions = { ...this.#chooseHow(), retryTimes: 0 };
    const caller = this.#callerOf(process, process.lock(other, options), options, {
      joinedAt: process.clock.now(),
      budgetMs: 0,
      isInside: true,
    });
    this.#callers.add(caller);
    this.#underWay += 1;
    const isHeld = await caller.lock.acquire().catch(() => false);
    if (isHeld && !this.#isLostBeforeBody(caller) && caller.state === "waiting") {
      this.#counts.served += 1;
      await this.#hold(call, caller);
    } else {
      caller.lock.release().catch(() => {});
      this.#disappear(caller);
    }
  }

  /** Acts as an abort listener may: it asks for another key, which other callers may hold with reentrant bodies. */
  #cleanUp({ key, process, isInside }: Caller): void {
    const beside = [...this.#callers].find(
      (one) =>
        one.process === process &&
        one.key !== key &&
        one.state === "inside" &&
        one.hasFrame &&
        one.lock.remaining() > 0,
    );
    const other = beside?.key ?? this.#anyKeyBut(key);
    // A body inside another one may enter the locks around it.
    if (other === undefined || this.#extraCalls === 0 || isInside) return;
    this.#extraCalls -= 1;
    this.#underWay += 1;
    void this.#call(process, { key: other });
  }

  #anyKeyBut(key: string): string | undefined {
    const [first, ...others] = this.#keys.filter((one) => one !== key);
    return first === undefined ? undefined : this.#random.oneOf(first, ...others);
  }

  /** Runs a body inside the body, with its own options. */
  async #enterAgain({ key, process, lock: outer }: Caller, ms: number): Promise<void> {
    // Its own options, except the mode and the permits.
    const { mode: _, permits: __, ...how } = this.#chooseHow();
    const { permits } = outer.terms;
    const fencing = how.fencing === true && permits === 1;
    const options: LockOptions = {
      ...how,
      fencing,
      ...(permits === UNLIMITED ? { mode: "read" as const } : { permits }),
      autoUnlock: true,
      reentrant: true,
      lockAtLeast: "0s",
    };
    const caller = this.#newCaller(process, key, options, 0, { isNested: true });
    const wasSure = outer.remaining() > 0;
    try {
      if (!(await caller.lock.acquire())) throw new Error("it was not let in");
    } catch (error) {
      // The entry may fail if the key cannot be renewed, or is not surely ours.
      if (this.#isCalm || (wasSure && error instanceof LockWaitTimeoutError))
        this.#invariants.turnedAway(caller, error);
      else this.#invariants.disappeared(caller);
      return;
    }
    if (process.clock.isDead) return;
    if (this.#isLostBeforeBody(caller)) return this.#invariants.disappeared(caller);
    this.#invariants.entered(caller);
    await this.#untilLost(caller, ms);
    this.#invariants.leaves(caller, false);
    const trouble: unknown = await caller.lock.release().then(
      () => undefined,
      (error: unknown) => error,
    );
    this.#invariants.left(caller, trouble);
  }

  /** Lets this much time pass, or less if the lock is lost and the body listens. Some bodies that listen do not stop. */
  #untilLost({ process, lock, watchesSignal }: Caller, ms: number): Promise<void> {
    return new Promise((resolve) => {
      process.clock.after(ms, resolve);
      const { signal } = watchesSignal ? lock : {};
      if (Math.floor(ms) % 2 === 0) signal?.addEventListener("abort", () => resolve());
    });
  }

  async #abort(caller: Caller, ms: number): Promise<void> {
    await caller.process.passes(ms);
    this.#goAway(caller);
  }

  #goAway(caller: Caller): void {
    if (caller.state !== "waiting") return;
    this.#disappear(caller);
    if (this.#random.happens(0.7)) caller.abortController.abort();
    else caller.lock.release().catch(() => {});
  }

  #crashed(process: SimulatedProcess): void {
    this.#invariants.crashed(process);
    for (const caller of this.#callers) if (caller.process === process) this.#forget(caller);
    for (const [locks, owner] of this.#partly) if (owner === process) this.#waitsNoMore(locks);
  }

  #turnAway(caller: Caller, error: unknown): void {
    this.#counts.turnedAway += 1;
    this.#invariants.turnedAway(caller, error);
    this.#forget(caller);
  }

  #disappear(caller: Caller): void {
    this.#invariants.disappeared(caller);
    this.#forget(caller);
  }

  #forget(caller: Caller): void {
    if (this.#callers.delete(caller)) this.#underWay -= 1;
  }

  // ---- the end ----------------------------------------------------------------------------------------

  /** Checks that in calm weather callers wait only for the sections of others and for a few commands between them. */
  #checkSpeed(startedAt: number, spreadMs: number): void {
    const tookMs = this.#clock.now() - startedAt;
    const allowedMs = spreadMs + this.#sectionsMs + this.#counts.served * 8 * this.#weather.latencyMs + 20;
    if (tookMs > allowedMs)
      this.#invariants.report(`it took ${tookMs} ms instead of at most ${allowedMs} ms`);
  }

  /** Checks that nothing is left. Lost holds have expired with their lock times. */
  async #checkTheEnd(): Promise<void> {
    for (const key of this.#keys) {
      if (!(await this.#store.server.isForgotten(key)))
        this.#invariants.report(`${key} is not forgotten at the end`);
    }
    for (const process of this.#machines.all) {
      if (process.clock.isDead) continue;
      if (process.hasQueues) this.#invariants.report(`process ${process.number} has a queue at the end`);
      if (process.isRetryingReleases && this.#isCalm)
        this.#invariants.report(`process ${process.number} still retries a release at the end`);
    }
    const { pendingTimers } = this.#clock;
    if (pendingTimers > 0) this.#invariants.report(`${pendingTimers} timers are left at the end`);
  }
}

/** The shortest extension. */
const LEAST_EXTENSION_MS = 100;
