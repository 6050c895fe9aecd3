import { setTimeout as pause } from "node:timers/promises";

/** Long enough for a busy machine, so only a test that hangs reaches it. AVA's own timeout is a little longer. */
const TIMEOUT_MS = 240_000;

/**
 * Resolves when `condition` holds.
 *
 * @throws if it does not hold in time. Without this, a failed test would poll forever and keep its file from ending.
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
