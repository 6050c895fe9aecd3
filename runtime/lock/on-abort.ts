import { LockOptionError } from "../base/errors";
import { formatValue } from "../base/format-value";
import { readFrom } from "../base/options";
import { inRoot } from "../base/root-context";

/**
 * Returns the value of the option `signal`.
 *
 * @throws {LockOptionError} if it is neither an `AbortSignal` nor `undefined`
 */
export function checkedSignal(signal: unknown): AbortSignal | undefined {
  if (signal === undefined || isAbortSignal(signal)) return signal;
  throw new LockOptionError(`Expected \`signal\` to be an AbortSignal, got ${formatValue(signal)}`);
}

/** Whether the value is an `AbortSignal`, even of another realm such as a test environment. */
function isAbortSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
  return readFrom("The option `signal`", () => {
    const { aborted, addEventListener, removeEventListener } = value as Partial<AbortSignal>;
    return (
      typeof aborted === "boolean" &&
      typeof addEventListener === "function" &&
      typeof removeEventListener === "function"
    );
  });
}

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

/** The reasons that stand for those of signals without one, so that each signal has the same one each time. */
const missingReasons = new WeakMap<AbortSignal, Error>();

/** Returns the reason of a signal that has aborted. Signals of the package `abort-controller`, which older SDKs use, have none. */
export function reasonOf(signal: AbortSignal): unknown {
  if (signal.reason !== undefined) return signal.reason;
  let reason = missingReasons.get(signal);
  if (reason === undefined) {
    reason = new DOMException("This operation was aborted", "AbortError");
    missingReasons.set(signal, reason);
  }
  return reason;
}

/** Whether the error is the reason of the signal, which has aborted. */
export function isReasonOf(signal: AbortSignal | undefined, error: unknown): boolean {
  return signal?.aborted === true && error === reasonOf(signal);
}

/**
 * Declines a granted lock whose caller has given up before the body began. It is the last step before the body.
 *
 * @throws the signal's reason if the signal has aborted
 */
export function assertWanted(lock: { decline(): void }, signal: AbortSignal | undefined): void {
  if (signal?.aborted !== true) return;
  lock.decline();
  throw reasonOf(signal);
}

/** Returns the promise, but rejects with the signal's reason as soon as the signal aborts. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(reasonOf(signal));
    else stop = onAbort(signal, () => reject(reasonOf(signal)));
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
