import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import test from "ava";
import { systemClock } from "../../runtime/base/clock";
import { NODE } from "../support/node";
import { deferred } from "../support/deferred";

const FRACTIONS = Array.from({ length: 40 }, (_, n) => n * 0.37);

for (const kind of ["after", "afterInBackground"] as const) {
  test(`${kind} never runs its callback early`, async (t) => {
    const early = await Promise.all(
      FRACTIONS.map(
        (delayMs) =>
          new Promise<number>((resolve) => {
            const dueAt = systemClock.now() + delayMs;
            systemClock[kind](delayMs, () => resolve(dueAt - systemClock.now()));
            if (kind === "afterInBackground") systemClock.after(delayMs, () => {}); // Keeps the process alive.
          }),
      ),
    );
    t.deepEqual(
      early.filter((ms) => ms > 0),
      [],
    );
  });

  test(`${kind} can be canceled before and after it ran`, async (t) => {
    const cancel = systemClock[kind](0, () => t.fail());
    cancel();
    cancel();
    const hasRun = deferred();
    const cancelRun = systemClock[kind](1, hasRun.resolve);
    const stopKeepingAlive = systemClock.after(60_000, () => {});
    await hasRun.promise;
    t.notThrows(cancelRun);
    t.notThrows(cancelRun);
    stopKeepingAlive();
  });
}

test("epochMicroseconds() never falls, and is a safe integer", (t) => {
  const now = systemClock.epochMicroseconds();
  t.true(Number.isSafeInteger(now));
  t.true(systemClock.epochMicroseconds() >= now);
  t.true(now > Date.UTC(2024) * 1_000);
});

for (const kind of ["timer", "timerInBackground"] as const) {
  test(`a ${kind} runs its callback after it is set, and never early`, async (t) => {
    for (const delayMs of [0, 3.3, 0.4, 7.9, 2]) {
      const early = await new Promise<number>((resolve) => {
        const dueAt = systemClock.now() + delayMs;
        systemClock[kind](() => resolve(dueAt - systemClock.now())).set(dueAt);
        systemClock.after(delayMs + 1, () => {}); // Keeps the process alive.
      });
      t.true(early <= 0, String(early));
    }
  });

  test(`a ${kind} that is set again runs only at the new time, earlier or later`, async (t) => {
    let ran = 0;
    const now = systemClock.now();
    const hasRun = deferred();
    const sooner = systemClock[kind](() => {
      ran += 1;
      hasRun.resolve();
    });
    sooner.set(now + 600_000);
    sooner.set(now + 1);
    const ranAt = await new Promise<number>((resolve) => {
      const later = systemClock[kind](() => resolve(systemClock.now()));
      later.set(now + 5);
      later.set(now + 40);
      systemClock.after(60, () => {}); // Keeps the process alive.
    });
    t.true(ranAt >= now + 40);
    systemClock.after(1_000, () => {});
    await hasRun.promise; // Both may be late on a busy machine.
    t.is(ran, 1);
  });

  test(`a ${kind} that is cleared does not run, and can be set again`, async (t) => {
    let runs = 0;
    let onRun: () => void = () => {};
    const timer = systemClock[kind](() => {
      runs += 1;
      onRun();
    });
    timer.clear();
    timer.set(systemClock.now() + 2);
    timer.clear();
    await new Promise<void>((resolve) => void systemClock.after(20, resolve));
    t.is(runs, 0);
    await new Promise<void>((resolve) => {
      onRun = resolve;
      timer.set(systemClock.now() + 2);
      systemClock.after(20, () => {}); // Keeps the process alive.
    });
    t.is(runs, 1);
  });
}

for (const [kind, then, isAlive] of [
  ["timer", "", true],
  ["timer", "timer.clear();", false],
  ["timer", "timer.clear(); timer.set(systemClock.now() + 50);", true],
  ["timerInBackground", "", false],
  ["timerInBackground", "timer.clear(); timer.set(systemClock.now() + 50);", false],
] as const) {
  test(`a ${kind} that is set${then === "" ? "" : `, with ${then},`} ${isAlive ? "keeps" : "does not keep"} the process alive`, async (t) => {
    const code = `
      const { systemClock } = require("./runtime/base/clock");
      const timer = systemClock.${kind}(() => console.log("ran"));
      timer.set(systemClock.now() + 50);
      ${then}`;
    const [node, ...args] = NODE;
    const { stdout } = await promisify(execFile)(node, [...args, "--eval", code], {
      cwd: join(__dirname, "../.."),
    });
    t.is(stdout, isAlive ? "ran\n" : "");
  });
}
