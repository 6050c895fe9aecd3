import { inRoot } from "../base/root-context";

/** The callbacks of each signal. With one listener for each callback, Node would warn of a leak at the eleventh. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `callback` when the signal aborts.
 *
 * @returns a function that stops this
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let callbacks = waiting.get(signal);
  if (callbacks === undefined) {
    signal.addEventListener("abort", callAll); // An imitation of a signal may throw.
    waiting.set(signal, (callbacks = new Set()));
  }
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || waiting.get(signal) !== callbacks) return;
    waiting.delete(signal);
    try {
      signal.removeEventListener("abort", callAll);
    } catch {
      // An imitation of a signal. `callAll` then finds no callbacks.
    }
  };
}

/** Returns the promise, but rejects with the signal's reason as soon as the signal aborts. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    stop();
  }
}

function callAll(this: AbortSignal): void {
  inRoot(() => {
    for (const callback of waiting.get(this) ?? []) callback();
  });
}
