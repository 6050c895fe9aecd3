/// <reference lib="esnext.disposable" preserve="true" />
import type { Duration } from "../base/duration";
import type { RunSql } from "../stores/port";

/** A lock that the caller holds. `await using` releases it at the end of the scope. */
export interface HeldLock extends AsyncDisposable {
  /** The key. For a lock with several keys, all of them, separated by spaces. */
  readonly key: string;
  /** The keys, in byte order. */
  readonly keys: readonly string[];
  /** The lock of each key, in the order of the keys. */
  readonly locks: readonly HeldLock[];
  /** The request ID: 32 hex characters that identify this acquisition. */
  readonly requestId: string;
  /**
   * The value of the key in the store, for your own scripts that act only under the lock. A hand-off inside the process keeps it.
   * `undefined` if the lock is not held, or has several keys.
   */
  readonly storeValue: string | undefined;
  /** With `fencing`, a number that rises with each holder of the key. `undefined` for a lock with several keys. */
  readonly fencingToken: number | undefined;
  /** Aborts with a `LockLostError` when the lock is lost. Its listeners run in the async context in which the signal was first read. */
  readonly signal: AbortSignal;
  /** Returns the time until the deadline in milliseconds, or 0 if the lock is not held. */
  remaining(): number;
  /**
   * Checks that the lock is still held.
   *
   * @throws {LockLostError} if the lock is lost, or its deadline has passed
   */
  assertHeld(): void;
  /**
   * Extends the lock to at least this long from now, at most 24 hours, and no longer than `holdAtMost` allows. The watchdog still renews it.
   * If the store does not reply, this retries until the earlier deadline.
   *
   * @throws {LockLostError} if the lock is not held
   * @throws {LockUnreachableError} if the store did not confirm the extension before the earlier deadline
   * @throws {LockMisconfiguredError} if the store rejects the extension
   */
  extend(duration: Duration): Promise<void>;
  /**
   * Ties the lock to one of your transactions: nobody else can acquire it until the transaction ends, so a stale holder cannot commit. For
   * locks in PostgreSQL, with data in the same database. Call `await lock.guard((sql) => tx.query(sql))` inside the transaction, before the
   * first write. If the last guard of a lock fails, its call ends with an error, even if the body catches that of the guard. It also does if the
   * body ends before `guard()` does.
   *
   * @param run runs a statement in the transaction, and returns the result of your client library. It is called twice, with no values
   * @throws {LockLostError} if the lock was revoked, or another caller has acquired it. Roll the transaction back. If the lock has several keys, the
   *   error names those that are lost
   * @throws {LockMisconfiguredError} if the store is not PostgreSQL, or if `run` does not run both statements in one transaction in the
   *   database of the store
   */
  guard(run: RunSql): Promise<void>;
  /**
   * Releases the lock before its body ends.
   *
   * @throws {LockLostError} if the lock was lost, unless `onLost` is `"warn"`
   */
  release(): Promise<void>;
}
