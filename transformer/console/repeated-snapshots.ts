import { setTimeout as sleep } from "node:timers/promises";
import { cannotRead } from "./errors";
import type { Deployment } from "./deployment";
import type { Snapshot } from "./snapshot";
import type { LockScanner } from "./lock-scanner";

/** The pause after a snapshot, as a multiple of the time that it took. So a slow server does not become slower. */
const PAUSE_FACTOR = 10;

/** Takes snapshots without end. A failure yields its message, because the next snapshot may succeed. */
export async function* snapshots(
  scanner: LockScanner,
  deployment: Deployment,
  everyMs: number,
): AsyncGenerator<{ readonly snapshot: Snapshot } | { readonly trouble: string }, never> {
  for (;;) {
    const startedAt = performance.now();
    let pauseMs = everyMs;
    try {
      const snapshot = await scanner.look(deployment);
      pauseMs = Math.max(everyMs, PAUSE_FACTOR * (performance.now() - startedAt));
      yield { snapshot };
    } catch (error) {
      yield { trouble: cannotRead(error).message };
    }
    await sleep(pauseMs);
  }
}
