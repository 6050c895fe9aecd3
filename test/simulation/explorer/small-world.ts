import type { Lock } from "../../../runtime/lock/lock";
import type { LockOptions } from "../../../runtime/lock/settings";
import { errorMessage } from "../../../runtime/base/errors";
import type { Caller } from "../caller";
import { inContextOf } from "../contexts";
import { Invariants } from "../invariants";
import { SimulatedProcess } from "../process";
import { ProcessClock } from "../process-clock";
import { SimulatedServer } from "../server";
import type { Belief } from "../../spec/model-trace";
import { Recording } from "../../spec/recording";
import { StoppingClock } from "../../support/stopping-clock";
import { Schedule } from "./schedule";
import { Narrator, type Choice, type Judge, type Manner, type Plan, type Story } from "./story";
import { Wire } from "./wire";

const KEY = "LOCK_one";
const COMMAND_TIMEOUT_MS = 100;
const LATENCY_MS = 1;
const FREEZE_MS = 2_600;
/** The longest time for which a key may be free while a caller waits: the longest delay of a message, plus the interval of the waiter's checks. */
const IDLE_MS = 4_000;

/**
 * Runs one schedule of a small world, from its beginning to its end, with the runtime's real code in virtual time.
 *
 * @param choices the deviations from the plain order, in the order of their steps
 */
export function liveOnOneServer(plan: Plan, choices: readonly Choice[], manner: Manner = {}): Promise<Story> {
  return new SmallWorld(plan, manner).run(choices, manner.countsOptions ?? false);
}

class SmallWorld implements Judge {
  readonly #schedule = new Schedule();
  readonly #server: SimulatedServer;
  readonly #invariants: Invariants;
  readonly #processes: SimulatedProcess[] = [];
  readonly #narrator: Narrator;
  readonly #mayStop: boolean;
  readonly #recording: Recording | undefined;
  readonly #callers = new Set<Caller>();
  /** The callers that wait for several keys. */
  readonly #partly = new Set<{ readonly process: SimulatedProcess }>();
  /** The number of callers that wait or are inside. */
  #underWay = 0;

  constructor(plan: Plan, manner: Manner) {
    const { tamper = (store) => store, isModeled = false } = manner;
    const { mayStop = false } = plan;
    this.#mayStop = mayStop;
    this.#recording = isModeled
      ? new Recording(
          () => this.#schedule.now(),
          () => this.#believed(),
        )
      : undefined;
    this.#schedule.onStop = () => {
      // All processes stop, because nothing else happens meanwhile.
      for (const { clock } of this.#processes) clock.stopsFor(FREEZE_MS);
      this.#schedule.pass(FREEZE_MS);
      this.#invariants.healed(); // No process could take a key that was free meanwhile.
    };
    this.#narrator = new Narrator(this.#schedule, manner, mayStop);
    let invariants: Invariants | undefined;
    const schedule = this.#schedule;
    this.#server = new SimulatedServer(
      schedule.timeOf("server"),
      (serverNow) => {
        invariants = new Invariants(() => schedule.now(), serverNow, {
          isCalm: false,
          idleMs: () => IDLE_MS,
        });
        return invariants.truth;
      },
      (store) => this.#recording?.ofServer(tamper(store)) ?? tamper(store),
      () => this.#invariants.checkBeliefs(),
    );
    if (invariants === undefined) throw new Error("Expected the server to ask for the truth");
    this.#invariants = invariants;
    const wires: Wire[] = [];
    for (const number of new Set(plan.calls.map(({ process }) => process))) {
      const pace = { rate: 1, startsAt: 1_000_000 * number, bootStepMs: mayStop ? 1 : 0 };
      const clock = new ProcessClock(schedule.timeOf(number), pace);
      const wire = new Wire(schedule, number, clock, this.#server, {
        onExecuted: (done) => this.#narrator.notes(done),
        onAcquireSent: (requestId) => this.#invariants.beliefs.acquireSent(requestId),
        onReleaseSent: (requestId) => this.#invariants.beliefs.releaseSent(requestId),
        onNotReleased: (key, requestId) => this.#invariants.notReleased(key, requestId),
      });
      wires.push(wire);
      const runtimeClock = mayStop ? new StoppingClock(clock, schedule.stops.beforeRead) : clock;
      const process = new SimulatedProcess(
        number,
        clock,
        this.#recording?.ofProcess(number, wire) ?? wire,
        COMMAND_TIMEOUT_MS,
        runtimeClock,
      );
      this.#processes.push(process);
      const fault = (what: string, happen: () => void): void =>
        void schedule.add("fault", number, `process ${number} ${what}`, Infinity, happen);
      fault("crashes", () => this.#crash(process));
      fault("is frozen", () => this.#freeze(process));
      fault("shuts down at once", () => void process.close(0));
    }
    schedule.add("fault", "server", "the server loses its data", Infinity, () => {
      this.#server.loseEverything();
      this.#narrator.notes({
        process: 0,
        at: schedule.now(),
        command: { name: "lose everything" },
        reply: undefined,
      });
      schedule.pass(LATENCY_MS); // It does not come back at the same moment.
      for (const wire of wires) wire.reconnected();
    });
    if (plan.mayBeRevoked === true) {
      schedule.add("fault", "server", "the lock is revoked", Infinity, () => {
        const command = { name: "revoke", key: KEY } as const;
        this.#narrator.notes({ process: 0, at: schedule.now(), command, reply: undefined });
        void this.#server.revoke(KEY);
      });
    }
    plan.calls.forEach((call, index) => {
      const name = `caller ${String.fromCodePoint(65 + index)} of process ${call.process}`;
      const at = schedule.now() + call.atMs;
      const { keys } = call;
      const come = (): Promise<void> =>
        keys === undefined ? this.#call(name, call) : this.#callForAll(name, keys, call);
      const report = (problem: string): void => this.report(problem);
      schedule.add("act", call.process, `${name} comes`, at, () => void inContextOf({ name, report }, come));
    });
  }

  async run(choices: readonly Choice[], countsOptions: boolean): Promise<Story> {
    const story = await this.#narrator.live(this, choices, countsOptions);
    const recording = this.#recording;
    recording?.end();
    return recording === undefined ? story : { ...story, modelTraces: recording.traces };
  }

  get problems(): readonly string[] {
    return this.#invariants.problems;
  }

  report(problem: string): void {
    this.#invariants.report(problem);
  }

  checkBeliefs(): void {
    this.#invariants.checkBeliefs();
    this.#recording?.look();
  }

  *#believed(): Generator<Belief> {
    for (const { lock, process } of this.#callers) {
      const { storeValue } = lock;
      if (process.clock.isDead || storeValue === undefined) continue;
      yield { key: lock.key, process: process.number, requestId: storeValue, leftMs: lock.remaining() };
    }
  }

  check(): void {
    this.#invariants.check();
  }

  // ---- callers ----------------------------------------------------------------------------------------

  async #call(name: string, { process: number, workMs, how }: Plan["calls"][number]): Promise<void> {
    const process = this.#processes.find((one) => one.number === number);
    if (process === undefined || process.clock.isDead) return;
    const [lock, abortController] = [process.lock(KEY, how), new AbortController()];
    const acquired = lock.acquire(abortController.signal);
    // The wait budget counts from the time that the lock read, and the process may have been stopped since.
    const joinedAt = process.lastWaitSince;
    const caller = callerOf(process, lock, how, { abortController, joinedAt });
    const away = this.#schedule.add("act", number, `${name} goes away`, Infinity, () => {
      if (!process.clock.isRunning || caller.state !== "waiting") return;
      this.#over(caller);
      this.#invariants.disappeared(caller);
      abortController.abort();
    });
    this.#callers.add(caller);
    this.#underWay += 1;
    this.#invariants.joined(caller);
    try {
      let isHeld = await acquired;
      while (!isHeld && (await lock.retryCheck())) isHeld = await lock.acquire(abortController.signal);
      if (!isHeld) throw undefined;
    } catch (error) {
      this.#schedule.cancel(away);
      if (caller.state === "waiting") this.#judge(() => this.#invariants.turnedAway(caller, error));
      this.#over(caller);
      return this.#narrator.log(`${name} was turned away: ${errorMessage(error)}`);
    }
    this.#schedule.cancel(away);
    if (caller.state === "gone") return void lock.release().catch(() => {});
    if (lock.remaining() === 0 && (process.isClosed || this.#mayStop)) {
      // The process was shut down or stopped between the grant and the body, so the body does not start.
      caller.state = "leaving";
      caller.storeValue = lock.storeValue;
      this.#over(caller);
      await lock.release().catch(() => {});
      return this.#invariants.disappeared(caller);
    }
    this.#judge(() => {
      this.#narrator.log(`${name} is let in by ${lock.storeValue}, for ${lock.remaining()} ms`);
      this.#invariants.entered(caller);
    });
    await this.#work(process, workMs);
    this.#narrator.log(`${name} leaves`);
    this.#judge(() => this.#invariants.leaves(caller, false));
    const trouble: unknown = await lock.release().then(
      () => undefined,
      (error: unknown) => error,
    );
    this.#narrator.log(`${name} has left${trouble === undefined ? "" : `: ${errorMessage(trouble)}`}`);
    this.#invariants.left(caller, trouble);
    this.#over(caller);
  }

  async #callForAll(
    name: string,
    keys: readonly string[],
    { process: number, workMs, how }: Plan["calls"][number],
  ): Promise<void> {
    const process = this.#processes.find((one) => one.number === number);
    if (process === undefined || process.clock.isDead) return;
    const locks = process.locks(keys, how);
    const abortController = new AbortController();
    const waiting = { process };
    const away = this.#schedule.add("act", number, `${name} goes away`, Infinity, () => {
      if (process.clock.isRunning) abortController.abort();
    });
    this.#partly.add(waiting);
    this.#underWay += 1;
    this.#invariants.waitsForAll(locks);
    let isHeld = false;
    try {
      isHeld = await locks.acquire(abortController.signal);
      while (!isHeld && (await locks.retryCheck())) isHeld = await locks.acquire(abortController.signal);
      locks.assertHeld();
    } catch (error) {
      isHeld = false;
      this.#narrator.log(`${name} was turned away: ${errorMessage(error)}`);
      await locks.release().catch(() => {});
    }
    this.#schedule.cancel(away);
    this.#invariants.waitsNoMore(locks);
    if (this.#partly.delete(waiting)) this.#underWay -= 1;
    if (!isHeld || process.clock.isDead) return;
    this.#narrator.log(`${name} is let in by ${locks.locks.map(({ storeValue }) => storeValue).join(", ")}`);
    const callers = locks.locks.map((lock) => callerOf(process, lock, how, { isMultiKey: true }));
    for (const caller of callers) {
      this.#callers.add(caller);
      this.#underWay += 1;
      this.#invariants.joined(caller);
      this.#invariants.entered(caller);
    }
    await this.#work(process, workMs);
    this.#narrator.log(`${name} leaves`);
    for (const caller of callers) this.#invariants.leaves(caller, false);
    const trouble: unknown = await locks.release().then(
      () => undefined,
      (error: unknown) => error,
    );
    this.#narrator.log(`${name} has left${trouble === undefined ? "" : `: ${errorMessage(trouble)}`}`);
    for (const caller of callers) {
      this.#invariants.left(caller, trouble);
      this.#over(caller);
    }
  }

  /** The clock reads of the judge are not steps of the process. */
  #judge(judge: () => void): void {
    this.#schedule.stops.ignoring(judge);
  }

  /** The shortest body ends in the turn of the event loop in which it starts. */
  async #work(process: SimulatedProcess, ms: number): Promise<void> {
    if (ms > 0) await process.passes(ms);
  }

  #over(caller: Caller): void {
    if (this.#callers.delete(caller)) this.#underWay -= 1;
  }

  // ---- troubles ---------------------------------------------------------------------------------------

  #crash(process: SimulatedProcess): void {
    process.clock.die();
    this.#invariants.crashed(process);
    for (const caller of this.#callers) if (caller.process === process) this.#over(caller);
    for (const waiting of this.#partly) {
      if (waiting.process === process && this.#partly.delete(waiting)) this.#underWay -= 1;
    }
  }

  #freeze({ clock, number }: SimulatedProcess): void {
    clock.freeze();
    const at = this.#schedule.now() + FREEZE_MS;
    this.#schedule.add("act", "world", `process ${number} goes on`, at, () => clock.thaw("timer"));
  }

  // ---- the end ----------------------------------------------------------------------------------------

  checkTheEnd(): void {
    if (this.#underWay > 0) this.#invariants.report(`${this.#underWay} callers wait forever`);
    for (const { clock, number, hasQueues, isRetryingReleases } of this.#processes) {
      if (clock.isDead) continue;
      if (hasQueues) this.#invariants.report(`process ${number} has a queue at the end`);
      if (isRetryingReleases) this.#invariants.report(`process ${number} still retries a release at the end`);
    }
  }
}

function callerOf(process: SimulatedProcess, lock: Lock, how: LockOptions, of: Partial<Caller> = {}): Caller {
  return {
    key: lock.key,
    lock,
    process,
    joinedAt: process.clock.now(),
    budgetMs: (how.retryTimes ?? 0) * Number.parseInt(String(how.waitTime ?? 0), 10),
    watchesSignal: true,
    isNested: false,
    isInside: false,
    isMultiKey: false,
    isReentrant: false,
    hasFrame: false,
    releasesItself: true,
    isReleasedInBackground: how.release === "background",
    abortController: new AbortController(),
    state: "waiting",
    grant: undefined,
    storeValue: undefined,
    wasKeptToTheEnd: false,
    mustGetError: false,
    mayBeSilent: false,
    silentSince: undefined,
    ...of,
  };
}
