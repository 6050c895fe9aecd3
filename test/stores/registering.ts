import type { TestFn } from "ava";
import type { RegisterTest } from "../store-contract";

/** The number of contract tests that run concurrently. With more, reservations of 1.5 s could expire on a busy machine. */
const AT_ONCE = 8;

let running = 0;
const waiting: (() => void)[] = [];

/** Registers the tests of the contract with AVA, with `prefix` before each title. */
export function registering(test: TestFn, prefix = ""): RegisterTest {
  return (title, run) =>
    test(prefix + title, async (t) => {
      await inTurn(run);
      t.pass();
    });
}

async function inTurn(run: () => Promise<void>): Promise<void> {
  if (running === AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  else running += 1;
  try {
    await run();
  } finally {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
}
