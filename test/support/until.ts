import { setTimeout as pause } from "node:timers/promises";

/** Far beyond what any condition takes on a busy machine, and below the test runner's patience. */
const GIVES_UP_AFTER_MS = 50_000;

/**
 * Resolves when `condition` holds.
 *
 * @throws {Error} with the condition's text, when it does not come to hold: the test runner's own time-out waits for the
 *   longest of all tests, and does not say what was waited for
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + GIVES_UP_AFTER_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`it did not come to hold that ${String(condition)}`);
    await pause(5);
  }
}
