import type { Locker } from "../lock/locker";
import { inRoot } from "../base/root-context";

/** Whether no lock of any store of the configuration is held or waited for. */
export function isIdle({ all }: Locker): boolean {
  return [...all.values()].every(({ manager }) => manager.isEmpty);
}

/** Most bodies have ended by then, so a longer wait may surprise people. */
const WARN_AFTER_MS = 10_000;
/** The number of keys that the warning names. It only counts the others. */
const MAX_KEYS = 5;

/**
 * Calls `callback` as soon as no lock is held or waited for. The caller with the last lock does not wait for `callback`.
 *
 * @returns a function that cancels this
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
  const unwatched = lockers.map(({ manager }) => manager.watch(onChange));
  const cancelWarning = locker.clock.afterInBackground(WARN_AFTER_MS, () => {
    const keys = new Set<string>();
    for (const { manager } of lockers) for (const key of manager.keys()) keys.add(key);
    locker.logger.warn(waitsFor([...keys]));
  });
  return cancel;
}

function waitsFor(keys: readonly string[]): string {
  const more = keys.length > MAX_KEYS ? ` and ${keys.length - MAX_KEYS} more` : "";
  return `configure(): the earlier configuration stays in force until no lock is held or waited for. These keys are still in use: ${keys.slice(0, MAX_KEYS).join(", ")}${more}. Fix: if their functions do not end, restart the process`;
}
