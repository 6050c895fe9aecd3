import { inspect } from "node:util";
import { locker } from "./configure";
import { LockKeyError, LockOptionError } from "./errors";
import { Lock } from "./lock";
import { runInside } from "./reentrancy";
import { settle, type LockOptions, type Settings } from "./settings";
import type { HeldLock } from "./woven";

type Throwing = LockOptions & { readonly onFailure?: "throw" };

/**
 * Runs `body` while the lock is held: released when it ends, however it ends.
 *
 * @param key the full name of the lock; `lockKey(businessFlag, ...parts)` makes the same as a tag does
 * @returns what `body` returns; `undefined` when `onFailure` is `"skip"` and the lock could not be had
 * @throws {LockWaitTimeoutError} when somebody else held the lock for the whole wait budget
 * @throws {LockUnreachableError} when the store did not answer
 * @throws {LockLostError} when the lock ended before `body` did; an error of `body` itself goes first
 */
export function withLock<T>(
  key: string,
  options: Throwing,
  body: (lock: HeldLock) => T | PromiseLike<T>,
): Promise<T>;
export function withLock<T>(
  key: string,
  options: LockOptions,
  body: (lock: HeldLock) => T | PromiseLike<T>,
): Promise<T | undefined>;
export async function withLock<T>(
  key: string,
  options: LockOptions,
  body: (lock: HeldLock) => T | PromiseLike<T>,
): Promise<T | undefined> {
  if (typeof body !== "function") {
    throw new LockOptionError(
      `Expected withLock(key, options, body) to be given a function, got ${inspect(body)}`,
    );
  }
  const settings = settingsOf(options);
  const lock = await hold(key, settings);
  if (lock === undefined) return undefined;
  try {
    return await (settings.reentrant ? runInside(lock, () => body(lock)) : body(lock));
  } catch (error) {
    throw lock.fail(error);
  } finally {
    await lock.release();
  }
}

/**
 * A held lock, for `await using`, which releases it at the end of the scope.
 *
 * @param key the full name of the lock; `lockKey(businessFlag, ...parts)` makes the same as a tag does
 * @returns `undefined` when `onFailure` is `"skip"` and the lock could not be had
 * @throws {LockWaitTimeoutError} when somebody else held the lock for the whole wait budget
 * @throws {LockUnreachableError} when the store did not answer
 */
export function obtain(key: string, options?: Throwing): Promise<HeldLock>;
export function obtain(key: string, options: LockOptions): Promise<HeldLock | undefined>;
export async function obtain(key: string, options: LockOptions = {}): Promise<HeldLock | undefined> {
  const settings = settingsOf(options);
  if (settings.reentrant) {
    throw new LockOptionError(
      "obtain() cannot be reentrant, because its scope is not a function: use withLock()",
    );
  }
  return await hold(key, settings);
}

async function hold(key: string, settings: Settings): Promise<Lock | undefined> {
  if (typeof key !== "string" || key === "") {
    throw new LockKeyError(`Expected the lock key to be a non-empty string, got ${inspect(key)}`);
  }
  const lock = new Lock(locker(), key, settings, undefined);
  while (!(await lock.acquire())) if (!(await lock.retryCheck())) return undefined;
  return lock;
}

function settingsOf(options: LockOptions): Settings {
  if (typeof options !== "object" || options === null) {
    throw new LockOptionError(
      `Expected lock options to be an object such as { lockTime: "30s" }, got ${inspect(options)}`,
    );
  }
  return settle(options, locker().defaults);
}
