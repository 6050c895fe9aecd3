import type { TestFn } from "ava";
import type { RegisterTest } from "../store-contract";
import { atMost } from "../support/at-most";

/** With more contract tests at once, reservations of 1.5 s could expire on a busy machine. */
const inTurn = atMost(8);

/** Registers the tests of the contract with AVA, with `prefix` before each title. */
export function registering(test: TestFn, prefix = ""): RegisterTest {
  return (title, run) =>
    test(prefix + title, async (t) => {
      await inTurn(run);
      t.pass();
    });
}
