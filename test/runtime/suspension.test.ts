import test from "ava";
import { systemClock, type Clock } from "../../runtime/base/clock";
import { Certainty } from "../../runtime/base/certainty";
import { VirtualClock } from "../support/virtual-clock";

/** A machine that can be suspended. Its monotonic clock then stops, as on Linux. */
class Machine extends VirtualClock {
  #now = 5_000;
  #suspendedMs = 0;
  /** The resolution of the time since boot. */
  stepMs = 1;
  clockReads = 0;

  override now(): number {
    return this.#now;
  }

  sinceBoot(): number {
    this.clockReads += 1;
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

function watched(machine: Machine): { certainty: Certainty; reported: number[]; since: () => number } {
  const reported: number[] = [];
  const certainty = new Certainty(machine, (suspendedMs) => void reported.push(suspendedMs));
  return { certainty, reported, since: () => certainty.trustedSince() };
}

test("trusts every command as long as the machine is not suspended", (t) => {
  const machine = new Machine();
  const { reported, since } = watched(machine);
  for (const ms of [0, 1, 20, 5_000, 3_600_000, 30 * 86_400_000]) {
    machine.runs(ms);
    t.is(since(), -Infinity);
  }
  t.deepEqual(reported, []);
});

test("trusts only commands sent after a suspension", (t) => {
  const machine = new Machine();
  const { reported, since } = watched(machine);
  machine.runs(1_000);
  t.is(since(), -Infinity);
  machine.runs(1_000);
  machine.isSuspended(60_000);
  const noticedAt = machine.now();
  t.is(since(), noticedAt);
  t.deepEqual(reported, [60_000]);
  machine.runs(1_000);
  t.is(since(), noticedAt);
  machine.isSuspended(2_000);
  machine.runs(30);
  t.is(since(), noticedAt + 1_030);
  t.deepEqual(reported, [60_000, 2_000]);
});

test("notices a suspension before the first check", (t) => {
  const machine = new Machine();
  const { reported, since } = watched(machine);
  machine.isSuspended(60_000);
  t.is(since(), machine.now());
  t.deepEqual(reported, [60_000]);
});

test("the listener may check again immediately", (t) => {
  const machine = new Machine();
  const answers: number[] = [];
  const certainty: Certainty = new Certainty(machine, () => answers.push(certainty.trustedSince()));
  machine.isSuspended(60_000);
  certainty.trustedSince();
  t.deepEqual(answers, [machine.now()]);
});

test("reads the clock at most once in 20 ms", (t) => {
  const machine = new Machine();
  const { since } = watched(machine);
  since();
  const clockReads = machine.clockReads;
  for (let ms = 1; ms < 20; ms += 1) {
    machine.runs(1);
    since();
  }
  t.is(machine.clockReads, clockReads);
  machine.isSuspended(60_000);
  t.is(since(), -Infinity);
  machine.runs(1);
  t.is(since(), machine.now());
  t.is(machine.clockReads, clockReads + 1);
});

for (const stepMs of [10, 1_000]) {
  test(`a boot clock with steps of ${stepMs} ms causes no false alarm, and reveals a suspension of 3 s`, (t) => {
    const machine = new Machine();
    machine.stepMs = stepMs;
    const { reported, since } = watched(machine);
    for (let ms = 0; ms < 1_500_000; ms += 137) {
      machine.runs(137);
      since();
    }
    t.deepEqual(reported, []);
    machine.isSuspended(3_000);
    machine.runs(137);
    t.is(since(), machine.now());
    for (let ms = 0; ms < 10_000; ms += 137) {
      machine.runs(137);
      since();
    }
    t.is(reported.length, 1);
  });
}

test("adds up short suspensions", (t) => {
  const machine = new Machine();
  const { reported, since } = watched(machine);
  for (let count = 1; count <= 4; count += 1) {
    machine.runs(1_000);
    machine.isSuspended(400);
    since();
  }
  t.deepEqual(reported, [1_600]);
});

test("a clock drift of 100 parts per million causes no alarm in a day", (t) => {
  const machine = new Machine();
  const { reported, since } = watched(machine);
  for (let seconds = 0; seconds < 86_400; seconds += 10) {
    machine.runs(10_000);
    machine.isSuspended(1);
    since();
  }
  t.deepEqual(reported, []);
});

/** A clock whose next `times` readings are each followed by a stall of `ms`. */
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

test("notices a suspension at the third reading if the process stalled in two, and otherwise at the next check", (t) => {
  for (const [times, isSeen] of [
    [2, true],
    [3, false],
  ] as const) {
    const machine = new Machine();
    const { stalling, stall } = stallingClock(machine);
    const certainty = new Certainty(stalling);
    const readsBefore = machine.clockReads;
    machine.isSuspended(60_000);
    machine.runs(20);
    stall(5_000, times);
    const since = certainty.trustedSince();
    t.is(since, isSeen ? machine.now() : -Infinity);
    t.is(machine.clockReads - readsBefore, 3);
    t.not(certainty.trustedSince(), -Infinity);
  }
});

test("a process that stalls between two readings is not reported as a suspended machine", (t) => {
  const machine = new Machine();
  const { stalling, stall } = stallingClock(machine);
  const reported: number[] = [];
  const certainty = new Certainty(stalling, (ms) => void reported.push(ms));
  for (const [ms, times] of [
    [5_000, 1],
    [99, 5],
    [60_000, 9],
  ] as const) {
    stall(ms, times);
    t.is(certainty.trustedSince(), -Infinity);
    stall(0, 0);
    machine.runs(20);
    t.is(certainty.trustedSince(), -Infinity);
  }
  t.deepEqual(reported, []);
  machine.isSuspended(2_000);
  machine.runs(20);
  t.is(certainty.trustedSince(), machine.now());
});

for (const [what, sinceBoot] of [
  ["has no time since boot", undefined],
  ["gets NaN from the system", () => NaN],
  [
    "cannot read it",
    () => {
      throw new Error("EACCES");
    },
  ],
] as const) {
  test(`a machine whose clock ${what} never reports a suspension`, (t) => {
    const machine = new Machine();
    const clock = Object.assign(Object.create(machine) as Machine, { now: () => machine.now(), sinceBoot });
    const certainty = new Certainty(clock, () => t.fail());
    for (let count = 0; count < 3; count += 1) {
      machine.runs(10_000);
      machine.isSuspended(60_000);
      t.is(certainty.trustedSince(), -Infinity);
    }
  });
}

test("the system's two clocks agree in real time", async (t) => {
  const certainty = new Certainty(systemClock, (ms) => t.fail(`${ms} ms`));
  const ahead = (): number => (systemClock.sinceBoot?.() ?? NaN) - systemClock.now();
  const before = ahead();
  const endsAt = systemClock.now() + 1_200;
  while (systemClock.now() < endsAt) {
    t.is(certainty.trustedSince(), -Infinity);
    await new Promise<void>((resolve) => void systemClock.after(25, resolve));
  }
  t.true(Math.abs(ahead() - before) < 1_100, `${before} ms, then ${ahead()} ms`);
});
