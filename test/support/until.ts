import { setTimeout as pause } from "node:timers/promises";

/** It ends only what hangs, however busy the machine is: a little less than AVA waits for a test. */
const WITHIN_MS = 240_000;

/**
 * Resolves when `condition` holds.
 *
 * @throws where it does not in time: a test that has failed must not look on for ever, which would keep its file from ending
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  withinMs = WITHIN_MS,
): Promise<void> {
  const givesUpAt = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > givesUpAt) {
      throw new Error(`Waited ${withinMs / 1_000} s in vain until ${String(condition)}`);
    }
    await pause(5);
  }
}
