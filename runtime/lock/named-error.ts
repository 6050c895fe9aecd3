import { LockMisconfiguredError } from "../base/errors";
import { nameOf, type LockEvent } from "./events";

/**
 * Adds the name of the lock to an error of the store that a retry cannot help. The store does not know the function, and may give one error to
 * several callers. Returns all other errors unchanged.
 */
export function namedError(lock: LockEvent, error: unknown): unknown {
  if (!(error instanceof LockMisconfiguredError)) return error;
  const { message, cause = error } = error;
  return new LockMisconfiguredError(`${nameOf(lock)}: ${message}`, { cause });
}
