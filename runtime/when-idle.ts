import type { Locker } from "./lock/locker";
import { inRoot } from "./root-context";

/** Whether no lock of any store of the configuration is held or waited for. */
export function isIdle({ all }: Locker): boolean {
  return [...all.values()].every(({ queues }) => queues.isEmpty);
}

/** By then most bodies are over, and a person wonders. */
const WARN_AFTER_MS = 10_000;
/** Keys that the warning names. It gives the number of the others. */
const MOST_KEYS = 5;

/**
 * Calls `callback` at the first moment when no lock is held or waited for. The caller whose lock is the last one does not
 * wait for that.
 *
 * @returns a function that cancels it
 */
export function onceIdle(locker: Locker, callback: () => void): () => void {
  const lockers = [...locker.all.values()];
  const cancel = (): void => {
    cancelWarning();
    for (const unwatch of unwatched) unwatch();
  };
  const onChange = (): void => {
    if (!isIdle(locker)) return;
    cancel();
    inRoot(callback);
  };
  const unwatched = lockers.map(({ queues }) => queues.watch(onChange));
  const cancelWarning = locker.clock.afterInBackground(WARN_AFTER_MS, () => {
    const keys = new Set<string>();
    for (const { queues } of lockers) for (const key of queues.keys()) keys.add(key);
    locker.logger.warn(waitsFor([...keys]));
  });
  return cancel;
}

function waitsFor(keys: readonly string[]): string {
  const more = keys.length > MOST_KEYS ? ` and ${keys.length - MOST_KEYS} more` : "";
  return `configure(): the earlier configuration stays in force until no lock is held or waited for. Now these are: ${keys.slice(0, MOST_KEYS).join(", ")}${more}. Fix: if their functions do not end, restart the process.`;
}
