import { createRequire } from "node:module";
import { hostname } from "node:os";
import type { Clock } from "./clock";
import type { Store } from "./stores/port";

/** What a process says of itself stands for so long after it was said last. */
const STANDS_FOR_MS = 60_000;
const SAID_EVERY_MS = STANDS_FOR_MS / 3;

/**
 * Keeps in each store who the process is, by the number with which its request ids begin: so whoever looks at a lock can
 * tell whose it is. Nothing is added to a lock. What cannot be said now is said the next time; it costs no lock.
 *
 * @returns ends it
 */
export function announce(
  stores: readonly Store[],
  processNumber: string,
  clock: Clock,
  withinMs: number,
): () => void {
  const about = JSON.stringify({ host: hostname(), pid: process.pid, version: ownVersion() });
  let cancel = (): void => {};
  const say = (): void => {
    for (const store of stores) {
      store.announce?.({ processNumber, about, forMs: STANDS_FOR_MS }, withinMs).catch(() => {});
    }
    cancel = clock.afterInBackground(SAID_EVERY_MS, say);
  };
  say();
  return () => cancel();
}

function ownVersion(): string | undefined {
  try {
    // A plain `require` would be taken into the bundle, with what it takes to have a module in it.
    return (createRequire(__filename)("lockweave/package.json") as { version: string }).version;
  } catch {
    return undefined; // In a bundle.
  }
}
