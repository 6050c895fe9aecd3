import { setTimeout as sleep } from "node:timers/promises";
import { cannotRead } from "./errors";
import type { Deployment } from "./deployment";
import type { Snapshot } from "./snapshot";
import type { LockScanner } from "./lock-scanner";

/** The pause after a snapshot, as a multiple of the time that it took. So a slow server does not become slower. */
const PAUSE_PER_LOOK = 10;

/** Takes snapshots without end. A failure yields its message, because the next snapshot may succeed. */
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
