import { setTimeout as sleep } from "node:timers/promises";
import { cannotRead } from "./port/errors";
import type { Snapshot } from "./snapshot";
import type { LockScanner } from "./lock-scanner";

/** The pause after a snapshot, as a multiple of the time that it took. So a slow server does not become slower. */
const PAUSE_FACTOR = 10;

/** A snapshot that takes longer than this makes the last one stale. */
const STALE_AFTER_MS = 2_000;

/** The last snapshot is old, because the next one takes long or has failed. */
export interface Stale {
  /** The time since the last snapshot, or since the first attempt to take one. */
  readonly staleForMs: number;
  /** The reason why the latest snapshot that has ended failed. */
  readonly trouble?: string;
}

/** Takes snapshots without end. Yields a {@link Stale} after a failure, and repeatedly while the server does not reply. */
export async function* snapshots(
  scanner: Pick<LockScanner, "look">,
  everyMs: number,
): AsyncGenerator<{ readonly snapshot: Snapshot } | Stale, never> {
  let freshAt = performance.now();
  let trouble: string | undefined;
  const stale = (): Stale => ({
    staleForMs: performance.now() - freshAt,
    ...(trouble !== undefined && { trouble }),
  });
  for (;;) {
    const startedAt = performance.now();
    const ended = scanner.look().then(
      (snapshot) => ({ snapshot }),
      (error: unknown) => ({ trouble: cannotRead(error).message }),
    );
    let seen = await Promise.race([ended, sleep(everyMs)]);
    for (; seen === undefined; seen = await Promise.race([ended, sleep(everyMs)]))
      if (trouble !== undefined || performance.now() - startedAt >= STALE_AFTER_MS) yield stale();
    if ("snapshot" in seen) {
      [freshAt, trouble] = [startedAt, undefined];
      const pauseMs = PAUSE_FACTOR * (performance.now() - startedAt);
      yield seen;
      await sleep(Math.max(everyMs, pauseMs));
    } else {
      ({ trouble } = seen);
      yield stale();
      await sleep(everyMs);
    }
  }
}
