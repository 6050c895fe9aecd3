import test from "ava";
import { systemClock, type Clock } from "../../runtime/clock";
import { Suspension } from "../../runtime/suspension";
import { VirtualClock } from "../support/virtual-clock";

/** A machine that can be suspended: then its monotonic clock stands still, as on Linux. */
class Machine extends VirtualClock {
  #now = 5_000;
  #suspendedMs = 0;
  /** In which time since boot goes on. */
  stepMs = 1;
  looks = 0;

  override now(): number {
    return this.#now;
  }

  sinceBoot(): number {
    this.looks += 1;
    const ms = 900_000 + this.#now + this.#suspendedMs;
    return Math.floor(ms / this.stepMs) * this.stepMs;
  }

  runs(ms: number): void {
    this.#now += ms;
  }

  isSuspended(ms: number): void {
    this.#suspendedMs += ms;
  }
}

function watched(machine: Machine): { suspension: Suspension; told: number[]; since: () => number } {
  const told: number[] = [];
  const suspension = new Suspension(machine, (suspendedMs) => void told.push(suspendedMs));
  return { suspension, told, since: () => suspension.trustedSince() };
}

test("as long as the machine runs, all that was ever sent counts", (t) => {
  const machine = new Machine();
  const { told, since } = watched(machine);
  for (const ms of [0, 1, 20, 5_000, 3_600_000, 30 * 86_400_000]) {
    machine.runs(ms);
    t.is(since(), -Infinity);
  }
  t.deepEqual(told, []);
});

test("after a suspension, only what is sent from then on counts", (t) => {
  const machine = new Machine();
  const { told, since } = watched(machine);
  machine.runs(1_000);
  t.is(since(), -Infinity);
  machine.runs(1_000);
  machine.isSuspended(60_000);
  const noticedAt = machine.now();
  t.is(since(), noticedAt);
  t.deepEqual(told, [60_000]);
  machine.runs(1_000);
  t.is(since(), noticedAt);
  machine.isSuspended(2_000);
  machine.runs(30);
  t.is(since(), noticedAt + 1_030);
  t.deepEqual(told, [60_000, 2_000]);
});

test("a suspension before the first question is noticed as well", (t) => {
  const machine = new Machine();
  const { told, since } = watched(machine);
  machine.isSuspended(60_000);
  t.is(since(), machine.now());
  t.deepEqual(told, [60_000]);
});

test("who is told may ask again at once", (t) => {
  const machine = new Machine();
  const answers: number[] = [];
  const suspension: Suspension = new Suspension(machine, () => answers.push(suspension.trustedSince()));
  machine.isSuspended(60_000);
  suspension.trustedSince();
  t.deepEqual(answers, [machine.now()]);
});

test("it looks at most once in 20 ms", (t) => {
  const machine = new Machine();
  const { since } = watched(machine);
  since();
  const looks = machine.looks;
  for (let ms = 1; ms < 20; ms += 1) {
    machine.runs(1);
    since();
  }
  t.is(machine.looks, looks);
  machine.isSuspended(60_000);
  t.is(since(), -Infinity);
  machine.runs(1);
  t.is(since(), machine.now());
  t.is(machine.looks, looks + 1);
});

for (const stepMs of [10, 1_000]) {
  test(`a time since boot in steps of ${stepMs} ms raises no false alarm, and hides no suspension of 3 s`, (t) => {
    const machine = new Machine();
    machine.stepMs = stepMs;
    const { told, since } = watched(machine);
    for (let ms = 0; ms < 1_500_000; ms += 137) {
      machine.runs(137);
      since();
    }
    t.deepEqual(told, []);
    machine.isSuspended(3_000);
    machine.runs(137);
    t.is(since(), machine.now());
    for (let ms = 0; ms < 10_000; ms += 137) {
      machine.runs(137);
      since();
    }
    t.is(told.length, 1);
  });
}

test("short suspensions add up", (t) => {
  const machine = new Machine();
  const { told, since } = watched(machine);
  for (let count = 1; count <= 4; count += 1) {
    machine.runs(1_000);
    machine.isSuspended(400);
    since();
  }
  t.deepEqual(told, [1_600]);
});

test("clocks that run apart by 100 parts in a million raise no alarm in a day", (t) => {
  const machine = new Machine();
  const { told, since } = watched(machine);
  for (let seconds = 0; seconds < 86_400; seconds += 10) {
    machine.runs(10_000);
    machine.isSuspended(1);
    since();
  }
  t.deepEqual(told, []);
});

/** A clock that is read while the process stands still, `stall(ms, times)` many times. */
function stallingClock(machine: Machine): { stalling: Clock; stall: (ms: number, times: number) => void } {
  let stallMs = 0;
  let stalls = 0;
  const stalling: Clock = Object.assign(Object.create(machine) as Machine, {
    now: () => machine.now(),
    sinceBoot() {
      const ms = machine.sinceBoot();
      if (stalls > 0) machine.runs(stallMs);
      stalls -= 1;
      return ms;
    },
  });
  return { stalling, stall: (ms, times) => void ([stallMs, stalls] = [ms, times]) };
}

test("a suspension is seen by the third reading, where the process stood still in two, and else by the next look", (t) => {
  for (const [times, isSeen] of [
    [2, true],
    [3, false],
  ] as const) {
    const machine = new Machine();
    const { stalling, stall } = stallingClock(machine);
    const suspension = new Suspension(stalling);
    const looksAtFirst = machine.looks;
    machine.isSuspended(60_000);
    machine.runs(20);
    stall(5_000, times);
    const since = suspension.trustedSince();
    t.is(since, isSeen ? machine.now() : -Infinity);
    t.is(machine.looks - looksAtFirst, 3);
    t.not(suspension.trustedSince(), -Infinity);
  }
});

test("a process that stands still between two readings is no machine that was suspended", (t) => {
  const machine = new Machine();
  const { stalling, stall } = stallingClock(machine);
  const told: number[] = [];
  const suspension = new Suspension(stalling, (ms) => void told.push(ms));
  for (const [ms, times] of [
    [5_000, 1],
    [99, 5],
    [60_000, 9],
  ] as const) {
    stall(ms, times);
    t.is(suspension.trustedSince(), -Infinity);
    stall(0, 0);
    machine.runs(20);
    t.is(suspension.trustedSince(), -Infinity);
  }
  t.deepEqual(told, []);
  machine.isSuspended(2_000);
  machine.runs(20);
  t.is(suspension.trustedSince(), machine.now());
});

for (const [what, sinceBoot] of [
  ["has no time since boot", undefined],
  ["is not told it by the system", () => NaN],
  [
    "may not read it",
    () => {
      throw new Error("EACCES");
    },
  ],
] as const) {
  test(`a clock that ${what} never reports`, (t) => {
    const machine = new Machine();
    const clock = Object.assign(Object.create(machine) as Machine, { now: () => machine.now(), sinceBoot });
    const suspension = new Suspension(clock, () => t.fail());
    for (let count = 0; count < 3; count += 1) {
      machine.runs(10_000);
      machine.isSuspended(60_000);
      t.is(suspension.trustedSince(), -Infinity);
    }
  });
}

test("the system's clock agrees with itself over real time", async (t) => {
  const suspension = new Suspension(systemClock, (ms) => t.fail(`${ms} ms`));
  const ahead = (): number => (systemClock.sinceBoot?.() ?? NaN) - systemClock.now();
  const before = ahead();
  const endsAt = systemClock.now() + 1_200;
  while (systemClock.now() < endsAt) {
    t.is(suspension.trustedSince(), -Infinity);
    await new Promise<void>((resolve) => void systemClock.after(25, resolve));
  }
  t.true(Math.abs(ahead() - before) < 1_100, `${before} ms, then ${ahead()} ms`);
});
