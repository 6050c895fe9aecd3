import type { Clock } from "../../runtime/base/clock";
import type { Lock } from "../../runtime/lock/lock";
import type { StoreListener } from "../../runtime/stores/port";
import type { Member } from "../../runtime/stores/quorum/master";
import { QuorumStore } from "../../runtime/stores/quorum/quorum";
import { memoryMember } from "../stores/quorum/memory-member";
import { FleetProcess } from "../support/fleet";
import { SeededRandom } from "../support/seeded-random";
import { VirtualClock } from "../support/virtual-clock";
import { belongsToNobody, inContextOf } from "./contexts";
import { but } from "./tampering";
import { requestIdOf } from "./truth";

/** The faults of masters and of the network to them. */
export interface QuorumWeather {
  /** The largest number of masters with faults at a time. */
  readonly ailing: number;
  readonly restarts: boolean;
  readonly stalls: boolean;
  readonly outages: boolean;
  /** The probability that a command or its reply is lost, duplicated, or late. */
  readonly losses: number;
  /** Between one process and one master. */
  readonly partitions: boolean;
  /** The difference between the masters' wall clocks. */
  readonly skewMs: number;
}

/** Deliberate faults, which the simulation must find. */
export interface QuorumFaults {
  readonly majority?: number;
  /** Masters that lost their locks report that they started long ago. */
  readonly forgetsRestarts?: boolean;
  /** Tokens are drawn from a majority, and written to no master. */
  readonly raisesNoFence?: boolean;
}

export interface QuorumOutcome {
  readonly problems: readonly string[];
  readonly served: number;
  readonly refused: number;
  readonly troubles: number;
}

const MASTERS = 5;
const PROCESSES = 3;
const LONGEST_LOCK_TIME_MS = 1_000;
const TIMEOUT_MS = 1_000;
const STORMY_FOR_MS = 8_000;

/** Simulates a world from one seed: processes with the runtime's real code over a quorum of five masters, in virtual time. */
export async function simulateQuorum(
  seed: number,
  weather: QuorumWeather,
  faults: QuorumFaults = {},
): Promise<QuorumOutcome> {
  return await new QuorumWorld(seed, weather, faults).run();
}

class QuorumWorld {
  readonly #clock = new VirtualClock();
  readonly #random: SeededRandom;
  readonly #weather: QuorumWeather;
  readonly #servers: readonly Server[];
  readonly #processes: readonly FleetProcess[];
  readonly #inside = new Map<Lock, string>();
  readonly #lastTokens = new Map<string, number>();
  readonly #problems: string[] = [];
  #isStormy = true;
  #callers = 0;
  #served = 0;
  #refused = 0;
  #troubles = 0;

  constructor(seed: number, weather: QuorumWeather, faults: QuorumFaults) {
    this.#random = new SeededRandom(seed);
    this.#weather = weather;
    this.#servers = Array.from(
      { length: MASTERS },
      (_, index) => new Server(this.#clock, (index - 2) * weather.skewMs),
    );
    this.#processes = Array.from({ length: PROCESSES }, (_, number) => {
      const members = this.#servers.map((server) => this.#way(server, faults));
      const store = new QuorumStore(members, this.#clock, LONGEST_LOCK_TIME_MS, faults.majority);
      let ids = 0;
      const own = { newRequestId: () => requestIdOf(number + 1, (ids += 1)) };
      const configuration = {
        store,
        clock: this.#clock,
        commandTimeout: "400ms",
        logger: { warn: () => belongsToNobody("a log line") },
      } as const;
      const process = new FleetProcess(configuration, own);
      Object.assign(process.locker.manager, own);
      return process;
    });
  }

  async run(): Promise<QuorumOutcome> {
    const { ailing } = this.#weather;
    for (let n = 0; n < ailing; n += 1) void this.#trouble(n);
    if (this.#weather.partitions) void this.#partitions();
    const callers = 6 + this.#random.below(6);
    const report = (problem: string): void => this.#report(problem);
    for (let n = 0; n < callers; n += 1)
      void inContextOf({ name: `caller ${n}`, report }, () => this.#caller(n));
    await this.#clock.advanceWhile(() => this.#check(), STORMY_FOR_MS);
    this.#isStormy = false;
    for (const server of this.#servers) server.recover();
    await this.#clock.advanceWhile(() => this.#check() && this.#callers > 0, 60_000);
    if (this.#problems.length === 0 && this.#callers > 0)
      this.#report(`${this.#callers} callers wait forever`);
    if (this.#problems.length === 0) await this.#checkTheEnd();
    return {
      problems: this.#problems,
      served: this.#served,
      refused: this.#refused,
      troubles: this.#troubles,
    };
  }

  #report(problem: string): void {
    this.#problems.push(`${problem} (at ${this.#clock.now().toFixed(1)} ms)`);
  }

  // ---- callers ----------------------------------------------------------------------------------------

  async #caller(n: number): Promise<void> {
    this.#callers += 1;
    while (this.#isStormy && this.#problems.length === 0) {
      await this.#passes(this.#random.below(this.#random.oneOf(1, 50, 400)));
      const process = this.#processes[n % PROCESSES];
      if (process !== undefined) await this.#call(process);
    }
    this.#callers -= 1;
  }

  async #call(process: FleetProcess): Promise<void> {
    const random = this.#random;
    const key = random.oneOf("LOCK_one", "LOCK_one", "LOCK_two");
    const lockTime = random.oneOf("1s", "300ms", "700ms");
    const watchdog = random.happens(0.8);
    const waitTime = random.oneOf("0ms", "300ms", "3s");
    const aborter = new AbortController();
    if (random.happens(0.15))
      this.#clock.after(random.below(500), () => aborter.abort(new Error("it went away")));
    const options = { lockTime, watchdog, waitTime, retryTimes: 1, fencing: true, onLost: "warn" } as const;
    try {
      await process.call(key, options, (lock) => this.#body(lock, key), { signal: aborter.signal });
    } catch {
      this.#refused += 1;
    }
  }

  async #body(lock: Lock, key: string): Promise<void> {
    this.#served += 1;
    this.#inside.set(lock, key);
    const token = lock.fencingToken ?? 0;
    const last = this.#lastTokens.get(key) ?? 0;
    if (token <= last) this.#report(`token ${token} of ${lock.storeValue} after ${last}`);
    this.#lastTokens.set(key, token);
    this.#check();
    await this.#passes(this.#random.below(this.#random.oneOf(2, 20, 1_500)));
    this.#inside.delete(lock);
  }

  /** Checks at every step that no two callers believe they hold the same key. A problem ends the world. */
  #check(): boolean {
    const sure = new Map<string, Lock>();
    for (const [lock, key] of this.#inside) {
      if (lock.remaining() === 0) continue;
      const other = sure.get(key);
      if (other !== undefined)
        this.#report(`${other.storeValue} and ${lock.storeValue} both believe they hold ${key}`);
      sure.set(key, lock);
    }
    return this.#problems.length === 0;
  }

  /** Checks that nothing is left: in the masters after the longest lock time, in the processes immediately. */
  async #checkTheEnd(): Promise<void> {
    await this.#clock.advance(4 * LONGEST_LOCK_TIME_MS);
    for (const [index, server] of this.#servers.entries()) {
      for (const key of ["LOCK_one", "LOCK_two"]) {
        const [value] = await server.member.store.peek([key], TIMEOUT_MS);
        if (value !== undefined) this.#report(`master ${index + 1} still has ${String(value)}`);
      }
    }
    if (this.#processes.some(({ isIdle }) => !isIdle)) this.#report("a process still has a queue");
  }

  #passes(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.after(ms, resolve);
    });
  }

  // ---- weather ----------------------------------------------------------------------------------------

  /** Plays faults on one master after the other. */
  async #trouble(n: number): Promise<void> {
    const random = this.#random;
    const { restarts, stalls, outages } = this.#weather;
    const kinds = [
      ...(restarts ? ["restart"] : []),
      ...(stalls ? ["stall"] : []),
      ...(outages ? ["outage"] : []),
    ];
    await this.#passes(random.below(500));
    while (this.#isStormy && kinds.length > 0) {
      const [first = "stall", ...others] = kinds;
      const kind = random.oneOf(first, ...others);
      // Faults at the same time hit different masters.
      const server = this.#servers[(n + random.below(2) * this.#weather.ailing) % MASTERS];
      const ms = random.below(kind === "restart" ? 100 : random.oneOf(100, 600, 2_000));
      this.#troubles += 1;
      if (kind === "restart") server?.restart();
      server?.[kind === "stall" ? "stall" : "goDown"]();
      await this.#passes(ms);
      server?.recover();
      await this.#passes(random.below(1_000));
    }
  }

  readonly #cut = new Set<object>();
  readonly #ways: object[] = [];

  async #partitions(): Promise<void> {
    const random = this.#random;
    while (this.#isStormy) {
      await this.#passes(random.below(300));
      const way = this.#ways[random.below(this.#ways.length)] ?? {};
      this.#cut.add(way);
      this.#troubles += 1;
      this.#clock.after(random.below(2_000), () => this.#cut.delete(way));
    }
  }

  /** The network between one process and one master, which loses, delays, and duplicates commands and replies. */
  #way(server: Server, faults: QuorumFaults): Member {
    const way = {};
    this.#ways.push(way);
    const travel = async (): Promise<void> => {
      const { losses } = this.#weather;
      const isBad = this.#isStormy && this.#random.happens(losses);
      if (this.#isStormy && (this.#cut.has(way) || (isBad && this.#random.happens(0.4))))
        return await new Promise(() => {});
      await this.#passes(isBad ? this.#random.below(900) : this.#random.next() * 2);
    };
    const send = async <Reply>(carryOut: (member: Member) => Promise<Reply>): Promise<Reply> => {
      belongsToNobody("a command");
      await travel();
      await server.receives();
      if (this.#isStormy && this.#random.happens(this.#weather.losses / 2)) {
        void travel()
          .then(async () => {
            await server.receives();
            await carryOut(server.member);
          })
          .catch(() => {});
      }
      const reply = await carryOut(server.member);
      await travel();
      return reply;
    };
    const store = but(server.member.store, {
      acquire: (request, timeoutMs) => send(({ store: at }) => at.acquire(request, timeoutMs)),
      renew: (requests, timeoutMs) => send(({ store: at }) => at.renew(requests, timeoutMs)),
      release: (request, timeoutMs) => send(({ store: at }) => at.release(request, timeoutMs)),
      peek: (keys, timeoutMs) => send(({ store: at }) => at.peek(keys, timeoutMs)),
      enqueue: (request, timeoutMs) => send(({ store: at }) => at.queue.enqueue(request, timeoutMs)),
      dequeue: (key, ticket, timeoutMs) => send(({ store: at }) => at.queue.dequeue(key, ticket, timeoutMs)),
      releaseAndEnqueue: (held, request, timeoutMs) =>
        send(({ store: at }) => at.queue.releaseAndEnqueue(held, request, timeoutMs)),
      listen: (listener) =>
        server.listen({
          ...listener,
          onWakeUp: (ticket) => void travel().then(() => listener.onWakeUp(ticket)),
        }),
      close: async () => {},
    });
    return {
      store,
      raiseFence: (...args) =>
        faults.raisesNoFence === true ? Promise.resolve() : send((member) => member.raiseFence(...args)),
      startedAt: async () => (faults.forgetsRestarts === true ? -Infinity : server.startedAt),
      close: async () => {},
    };
  }
}

/** A master in memory, which may stall, go down, and lose its data. */
class Server {
  member: Member;
  startedAt = -Infinity;
  readonly #world: Clock;
  readonly #clock: Clock;
  readonly #listeners = new Set<StoreListener>();
  #isDown = false;
  #moves: Promise<void> = Promise.resolve();
  #moveOn = (): void => {};

  /** @param aheadMs how far its wall clock is ahead of the world's */
  constructor(world: VirtualClock, aheadMs: number) {
    this.#world = world;
    this.#clock = {
      now: () => world.now(),
      epochMicroseconds: () => world.epochMicroseconds() + aheadMs * 1_000,
      after: (ms, callback) => world.after(ms, callback),
      afterInBackground: (ms, callback) => world.after(ms, callback),
      timer: (callback) => world.timer(callback),
      timerInBackground: (callback) => world.timer(callback),
    };
    this.member = this.#empty();
  }

  #empty(): Member {
    const member = memoryMember(this.#clock);
    member.store.listen({
      onWakeUp: (ticket) => {
        if (member === this.member) for (const listener of this.#listeners) listener.onWakeUp(ticket);
      },
      onReconnect() {},
      onWarning() {},
    });
    return member;
  }

  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves when the master executes an arrived command. */
  async receives(): Promise<void> {
    await this.#moves;
    if (this.#isDown) throw new Error("connect ECONNREFUSED");
  }

  stall(): void {
    this.#moves = new Promise((resolve) => {
      this.#moveOn = resolve;
    });
  }

  goDown(): void {
    this.#isDown = true;
  }

  restart(): void {
    this.member = this.#empty();
    this.startedAt = this.#world.now();
  }

  recover(): void {
    this.#moveOn();
    if (!this.#isDown) return;
    this.#isDown = false;
    for (const listener of this.#listeners) listener.onReconnect();
  }
}
