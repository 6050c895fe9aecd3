import { setTimeout as sleep } from "node:timers/promises";
import { cannotRead } from "./errors";
import type { Deployment } from "./deployment";
import type { Snapshot } from "./snapshot";
import type { LockScanner } from "./lock-scanner";

/** So many times as long as the look took. */
const PAUSE_PER_LOOK = 10;

/**
 * One look after the other; of one that fails, why: the next one may not. One that took long is not followed by another at
 * once: a slow server is not to be made slower.
 */
export async function* looks(
  survey: LockScanner,
  home: Deployment,
  everyMs: number,
): AsyncGenerator<{ readonly look: Snapshot } | { readonly trouble: string }, never> {
  for (;;) {
    const startedAt = performance.now();
    let pauseMs = everyMs;
    try {
      const look = await survey.look(home);
      pauseMs = Math.max(everyMs, PAUSE_PER_LOOK * (performance.now() - startedAt));
      yield { look };
    } catch (error) {
      yield { trouble: cannotRead(error).message };
    }
    await sleep(pauseMs);
  }
}
