import { redacted, formatValue } from "./format-value";

/** A stable code for `switch` and for logs. */
export type LockErrorCode =
  | "LOCK_WAIT_TIME_OUT"
  | "LOCK_UNREACHABLE"
  | "LOCK_LOST"
  | "LOCK_MISCONFIGURED"
  | "LOCK_BAD_KEY"
  | "LOCK_BAD_OPTION"
  | "LOCK_CLOSED"
  | "LOCK_NOT_HELD"
  | "LOCK_NOT_WOVEN";

// Not `ErrorOptions`, because that type needs `lib: ["es2022"]`.
/** The options of an error. */
export interface LockErrorOptions {
  /** The original error. */
  readonly cause?: unknown;
  /** The full key of the lock. */
  readonly key?: string;
  /** The function that asked for the lock, such as `OrderService.pay`. */
  readonly site?: string | undefined;
  /** The holder of the lock, if the wait ended without it. */
  readonly holder?: LockErrorHolder | undefined;
}

/** The holder of a lock, as far as the waiter knows it. */
export interface LockErrorHolder {
  /** The request ID of a holder in another process. A value that another program wrote is left out, because it may be secret. */
  readonly storeValue?: string;
  /** The host of a holder in another process, if both processes announce themselves: see `configure({ announce })`. */
  readonly host?: string;
  /** The number of its process: of this one, or of one that announced itself. */
  readonly pid?: number;
  /** Its function. Another process announces only functions that hold a lock for longer than a second. */
  readonly site?: string | undefined;
}

/** The base of every error that Lockweave throws. */
export class LockError extends Error {
  /** The same for all errors of a class, even if several copies of the package are loaded. */
  readonly code: LockErrorCode;
  /** The full key of the lock, if the error is about one lock. */
  declare readonly key?: string;
  /** The function that asked for the lock, such as `OrderService.pay`. */
  declare readonly site?: string;
  /** The holder of the lock, after a timeout. */
  declare readonly holder?: LockErrorHolder;

  constructor(code: LockErrorCode, message: string, options: LockErrorOptions = {}) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    // Object.prototype may have a property with such a name.
    for (const field of ["key", "site", "holder"] as const) {
      const value = Object.hasOwn(options, field) ? options[field] : undefined;
      if (value === undefined) continue;
      Object.defineProperty(this, field, { value, enumerable: true, configurable: true, writable: true });
    }
  }

  /** Returns the fields for a log in JSON. `cause` is its message. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, code, message, key, site, holder, cause } = this;
    const reason = cause === undefined ? undefined : errorMessage(cause);
    return { name, code, message, key, site, holder, cause: reason };
  }
}

/** Another caller held the lock for the whole wait budget (`wait`, or `retryTimes` x `waitTime`). */
export class LockWaitTimeoutError extends LockError {
  constructor(message: string, options?: LockErrorOptions) {
    super("LOCK_WAIT_TIME_OUT", message, options);
  }
}

/** The store did not reply within the wait budget, or replied only with errors. `cause` is its last error. */
export class LockUnreachableError extends LockError {
  constructor(message: string, options?: LockErrorOptions) {
    super("LOCK_UNREACHABLE", message, options);
  }
}

/** The lock ended before its body did, so another body may have run at the same time. */
export class LockLostError extends LockError {
  constructor(message: string, options?: LockErrorOptions) {
    super("LOCK_LOST", message, options);
  }
}

/** A retry cannot help: nothing is configured, or the store rejects the client (`NOAUTH`, `WRONGTYPE`, ...). */
export class LockMisconfiguredError extends LockError {
  constructor(message: string, options?: LockErrorOptions) {
    super("LOCK_MISCONFIGURED", message, options);
  }
}

/** A part of the key identifies nothing, such as `undefined`. Lockweave throws it before it sends anything. */
export class LockKeyError extends LockError {
  constructor(message: string, options?: LockErrorOptions) {
    super("LOCK_BAD_KEY", message, options);
  }
}

/** An option is invalid. Lockweave throws it before it sends anything. */
export class LockOptionError extends LockError {
  constructor(message: string, options?: LockErrorOptions) {
    super("LOCK_BAD_OPTION", message, options);
  }
}

/** Lockweave grants no more locks, because `shutdown()` was called. Waiters and new callers get this error. */
export class LockClosedError extends LockError {
  constructor(message: string, options?: LockErrorOptions) {
    super("LOCK_CLOSED", message, options);
  }
}

/** A function with `@needsLock` was called without that lock. If the lock was lost or released, `cause` is a {@link LockLostError}. */
export class LockNotHeldError extends LockError {
  constructor(message: string, options?: LockErrorOptions) {
    super("LOCK_NOT_HELD", message, options);
  }
}

/** Code that must be woven ran unwoven. */
export class LockNotWovenError extends LockError {
  constructor(message: string, options?: LockErrorOptions) {
    super("LOCK_NOT_WOVEN", message, options);
  }
}

/** Returns what was thrown if it is an error, or else wraps it in one. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error("the store failed", { cause: thrown });
}

/** The depth to which inner errors are read. It also ends cycles. */
const MAX_DEPTH = 3;

/**
 * Returns the message of whatever was thrown, without credentials of URLs. For an error with several inner errors, such as a connection
 * that was refused at each address of a host, it joins their messages. For an error without a message, it returns that of its cause, or its
 * code or name.
 */
export function errorMessage(thrown: unknown): string {
  try {
    return redacted(messageOf(thrown, MAX_DEPTH));
  } catch {
    return formatValue(thrown);
  }
}

function messageOf(thrown: unknown, depth: number): string {
  if (!(thrown instanceof Error)) return formatValue(thrown);
  const { message, name, errors, code, cause } = thrown as Error & Readonly<Record<string, unknown>>;
  const inner = Array.isArray(errors) ? errors : message === "" && cause instanceof Error ? [cause] : [];
  const reasons = depth > 0 ? new Set(inner.map((error: unknown) => messageOf(error, depth - 1))) : [];
  const own = message === "" ? [] : [message];
  const text = [...own, [...reasons].join("; ")].filter((part) => part !== "").join(": ");
  if (text !== "") return text;
  return typeof code === "string" ? code : name;
}
