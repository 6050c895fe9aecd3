import test from "ava";
import { systemClock } from "../../runtime/clock";

const FRACTIONS = Array.from({ length: 40 }, (_, n) => n * 0.37);

for (const kind of ["after", "afterInBackground"] as const) {
  test(`${kind} runs its callback never earlier than it was told`, async (t) => {
    const early = await Promise.all(
      FRACTIONS.map(
        (delayMs) =>
          new Promise<number>((resolve) => {
            const dueAt = systemClock.now() + delayMs;
            systemClock[kind](delayMs, () => resolve(dueAt - systemClock.now()));
            if (kind === "afterInBackground") systemClock.after(delayMs, () => {}); // Something else that lives.
          }),
      ),
    );
    t.deepEqual(
      early.filter((ms) => ms > 0),
      [],
    );
  });

  test(`${kind} can be cancelled, before and after it ran`, async (t) => {
    const cancel = systemClock[kind](0, () => t.fail());
    cancel();
    cancel();
    await new Promise<void>((resolve) => {
      const cancelRun = systemClock.after(1, () => {
        cancelRun();
        resolve();
      });
    });
    t.pass();
  });
}

test("the microseconds since 1970 rise, and fit a number", (t) => {
  const now = systemClock.epochMicroseconds();
  t.true(Number.isSafeInteger(now));
  t.true(systemClock.epochMicroseconds() >= now);
  t.true(now > Date.UTC(2024) * 1_000);
});
