import { setTimeout as pause } from "node:timers/promises";

/** Resolves when `condition` holds. That it does in the end is for the test runner's time-out to judge. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(5);
}
