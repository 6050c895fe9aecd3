import { setTimeout as pause } from "node:timers/promises";

/** It ends only what hangs, however busy the machine is: a little less than AVA waits for a test. */
const TIMEOUT_MS = 240_000;

/**
 * Resolves when `condition` holds.
 *
 * @throws where it does not in time: a test that has failed must not look on for ever, which would keep its file from ending
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs = TIMEOUT_MS,
): Promise<void> {
  const givesUpAt = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > givesUpAt) {
      throw new Error(`Waited ${timeoutMs / 1_000} s in vain until ${String(condition)}`);
    }
    await pause(5);
  }
}
