import type { TestFn } from "ava";
import type { RegisterTest } from "../../runtime/stores/contract";

/** Registers the tests of the contract with AVA, each title after `prefix`. */
export function registering(test: TestFn, prefix = ""): RegisterTest {
  return (title, run) =>
    test(prefix + title, async (t) => {
      await run();
      t.pass();
    });
}
