import { shown } from "./shown";

/** TypeScript has this by the name of `ErrorOptions` from es2022 on, and our declarations serve older settings too. */
export interface CausedBy {
  readonly cause?: unknown;
}

/** What went wrong, as a stable word for `switch` and for logs. */
export type LockErrorCode =
  | "LOCK_WAIT_TIME_OUT"
  | "LOCK_UNREACHABLE"
  | "LOCK_LOST"
  | "LOCK_MISCONFIGURED"
  | "LOCK_BAD_KEY"
  | "LOCK_BAD_OPTION"
  | "LOCK_CLOSED"
  | "LOCK_NOT_WOVEN";

/** The base of every error that Lockweave throws. */
export class LockError extends Error {
  readonly code: LockErrorCode;

  constructor(code: LockErrorCode, message: string, options?: CausedBy) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** Somebody else held the lock for the whole wait budget (`retryTimes` x `waitTime`). */
export class LockWaitTimeoutError extends LockError {
  constructor(message: string, options?: CausedBy) {
    super("LOCK_WAIT_TIME_OUT", message, options);
  }
}

/** The store did not answer, or could not serve, within the time the lock had. `cause` is its last error. */
export class LockUnreachableError extends LockError {
  constructor(message: string, options?: CausedBy) {
    super("LOCK_UNREACHABLE", message, options);
  }
}

/** The lock ended before the work under it did: somebody else may have entered meanwhile. */
export class LockLostError extends LockError {
  constructor(message: string, options?: CausedBy) {
    super("LOCK_LOST", message, options);
  }
}

/** Waiting will not help: nothing is configured, or the store refuses us (`NOAUTH`, `WRONGTYPE`, ...). */
export class LockMisconfiguredError extends LockError {
  constructor(message: string, options?: CausedBy) {
    super("LOCK_MISCONFIGURED", message, options);
  }
}

/** A part of the lock key is no usable identity. Thrown before anything is sent. */
export class LockKeyError extends LockError {
  constructor(message: string, options?: CausedBy) {
    super("LOCK_BAD_KEY", message, options);
  }
}

/** An option has a value that it cannot have. Thrown before anything is sent. */
export class LockOptionError extends LockError {
  constructor(message: string, options?: CausedBy) {
    super("LOCK_BAD_OPTION", message, options);
  }
}

/** `shutdown()` has begun: no new lock is given, and those who wait are sent home. */
export class LockClosedError extends LockError {
  constructor(message: string, options?: CausedBy) {
    super("LOCK_CLOSED", message, options);
  }
}

/** Code that only the weave can make work ran without having been woven. */
export class LockNotWovenError extends LockError {
  constructor(message: string, options?: CausedBy) {
    super("LOCK_NOT_WOVEN", message, options);
  }
}

/** The words of whatever was thrown. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : shown(thrown);
}
