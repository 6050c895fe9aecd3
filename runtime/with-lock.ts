import { locker } from "./config/configure";
import { LockOptionError } from "./base/errors";
import { checkedKey, countedKeys } from "./base/key";
import { Lock } from "./lock/lock";
import { MultiLock } from "./lock/multi-lock";
import { runInside } from "./lock/reentrancy";
import type { CallSite } from "./lock/locker";
import {
  assertForEach,
  LOCK_OPTIONS,
  mayBeEnteredAgain,
  unknownLockOption,
  type LockOptions,
} from "./lock/settings";
import type { HeldLock } from "./lock/held-lock";
import { isOptions, readFrom, readOptions } from "./base/options";
import { formatValue } from "./base/format-value";

/** The options of a lock without a tag. */
export interface WithLockOptions extends LockOptions {
  /** Ends the wait for the lock. The call then rejects with the signal's reason. It does not end a running body. */
  readonly signal?: AbortSignal;
  /** Only in {@link ConditionalOptions}. */
  readonly when?: undefined;
}

/** Options with a condition. If it is false, the body runs without a lock. */
export type ConditionalOptions = Omit<WithLockOptions, "when"> & { readonly when: boolean };

/** The full key of a lock, or several keys. Lockweave acquires all of them or none, and their order does not matter. */
export type Keys = string | readonly string[];

type Body<T, Given> = (lock: Given) => T | PromiseLike<T>;

interface Throws {
  readonly onFailure?: "throw";
}

const OWN_OPTIONS = ["signal", "when"] satisfies (keyof WithLockOptions)[];

/**
 * Runs `body` under the lock, and releases the lock when the body ends or throws.
 *
 * @param key the full key. `lockKey(businessFlag, ...parts)` and wholeKey`...` make the keys of tags. With several keys, all are acquired
 *   or none
 * @returns what `body` returns, or `undefined` if `onFailure` is `"skip"` and the lock was not acquired
 * @throws {LockWaitTimeoutError} if another caller held the lock for the whole wait budget
 * @throws {LockUnreachableError} if the store did not reply
 * @throws {LockLostError} if the lock ended before `body` did and `body` did not throw
 */
export function withLock<T>(
  key: string,
  options: WithLockOptions & Throws,
  body: Body<T, HeldLock>,
): Promise<T>;
export function withLock<T>(
  key: Keys,
  options: WithLockOptions,
  body: Body<T, HeldLock>,
): Promise<T | undefined>;
export function withLock<T>(
  key: Keys,
  options: ConditionalOptions & Throws,
  body: Body<T, HeldLock | undefined>,
): Promise<T>;
export function withLock<T>(
  key: Keys,
  options: ConditionalOptions,
  body: Body<T, HeldLock | undefined>,
): Promise<T | undefined>;
export async function withLock<T>(
  key: Keys,
  options: WithLockOptions | ConditionalOptions,
  body: Body<T, HeldLock> | Body<T, HeldLock | undefined>,
): Promise<T | undefined> {
  if (typeof body !== "function") {
    throw new LockOptionError(
      typeof options === "function"
        ? "Expected withLock(key, options, body), got no options before the function. Fix: withLock(key, {}, body)"
        : `Expected \`body\` of withLock(key, options, body) to be a function, got ${formatValue(body)}`,
    );
  }
  if (isGenerator(body)) {
    throw new LockOptionError(
      `Expected \`body\` of withLock() not to be a generator, got ${formatValue(body)}. A generator's code would run after the release. Fix: pass an async function`,
    );
  }
  const { callSite, signal, when } = readCall(options);
  // The type of a body with a condition accepts `undefined`.
  if (when === false) return await (body as Body<T, undefined>)(undefined);
  const lock = open(key, callSite);
  while (!(await lock.acquire(signal))) if (!(await lock.retryCheck())) return undefined;
  try {
    lock.assertHeld(); // Code that ran since the lock was granted may have taken longer than the lock time.
    return await (mayBeEnteredAgain(callSite.settings)
      ? runInside(lock.locks, () => body(lock))
      : body(lock));
  } catch (error) {
    throw lock.fail(error);
  } finally {
    await lock.release();
  }
}

/**
 * Acquires a lock for `await using`, which releases it at the end of the scope.
 *
 * @param key the full key. `lockKey(businessFlag, ...parts)` and wholeKey`...` make the keys of tags
 * @returns `undefined` if `onFailure` is `"skip"` and the lock was not acquired, or if `when` is false
 * @throws {LockWaitTimeoutError} if another caller held the lock for the whole wait budget
 * @throws {LockUnreachableError} if the store did not reply
 */
export function obtain(key: Keys, options?: WithLockOptions & Throws): Promise<HeldLock>;
export function obtain(
  key: Keys,
  options: WithLockOptions | ConditionalOptions,
): Promise<HeldLock | undefined>;
export async function obtain(
  key: Keys,
  options: WithLockOptions | ConditionalOptions = {},
): Promise<HeldLock | undefined> {
  const { callSite, signal, when } = readCall(options);
  if (callSite.settings.reentrant) {
    throw new LockOptionError(
      "obtain() cannot be reentrant, because its scope is not a function. Fix: use withLock()",
    );
  }
  if (when === false) return undefined;
  const lock = open(key, callSite);
  while (!(await lock.acquire(signal))) if (!(await lock.retryCheck())) return undefined;
  return lock;
}

/** The options of a lock that the caller does not wait for. */
export type TryOptions = Omit<WithLockOptions, "retryTimes" | "waitTime" | "onFailure">;

/**
 * Tries once to acquire a lock, without waiting. See {@link obtain}.
 *
 * @returns `undefined` if another caller holds the lock
 * @throws {LockUnreachableError} if the store did not reply
 */
export async function tryObtain(key: Keys, options: TryOptions = {}): Promise<HeldLock | undefined> {
  assertOptions(options);
  const names = [...OWN_OPTIONS, ...LOCK_OPTIONS];
  const own = readOptions(options, names, (name) => unknownLockOption(name, OWN_OPTIONS));
  const waiting = ["retryTimes", "waitTime", "onFailure"].find((name) => name in own);
  if (waiting === undefined) return await obtain(key, { ...own, ...ONE_TRY });
  throw new LockOptionError(
    `tryObtain() does not wait, so it has no option \`${waiting}\`. Fix: use obtain()`,
  );
}

const ONE_TRY = { retryTimes: 0, onFailure: "skip" } as const;

function open(key: Keys, callSite: CallSite): Lock | MultiLock {
  if (!isList(key)) return new Lock(callSite, checkedKey(key));
  assertForEach(callSite.settings);
  return new MultiLock(callSite, countedKeys(Array.from(key, checkedKey)));
}

/** Whether the value is an array. `Array.isArray` throws for a revoked proxy. */
function isList(value: unknown): value is readonly unknown[] {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/**
 * Whether the body is a generator function, even of another realm such as a test environment. Only such functions have a tag that says so.
 */
function isGenerator(body: object): boolean {
  const { [Symbol.toStringTag]: tag } = readFrom(
    "The body",
    () => body as { readonly [Symbol.toStringTag]?: unknown },
  );
  return tag === "GeneratorFunction" || tag === "AsyncGeneratorFunction";
}

/** Whether the value is an `AbortSignal`, even of another realm such as a test environment. */
function isAbortSignal(value: unknown): boolean {
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

function assertOptions(options: unknown): asserts options is object {
  if (isOptions(options)) return;
  throw new LockOptionError(
    `Expected lock options to be an object such as { lockTime: "30s" }, got ${formatValue(options)}`,
  );
}

/** The options of one call. Each is read only once, since a getter might return another value the next time. */
interface Call {
  readonly callSite: CallSite;
  readonly signal: AbortSignal | undefined;
  readonly when: boolean | undefined;
}

function readCall(options: WithLockOptions | ConditionalOptions): Call {
  assertOptions(options);
  const asked = locker().callSite(options, undefined, OWN_OPTIONS);
  const signal = asked.differing(options, "signal");
  const when = asked.differing(options, "when");
  if (signal !== undefined && !isAbortSignal(signal)) {
    throw new LockOptionError(`Expected \`signal\` to be an AbortSignal, got ${formatValue(signal)}`);
  }
  if (when !== undefined && typeof when !== "boolean") {
    throw new LockOptionError(`Expected \`when\` to be true or false, got ${formatValue(when)}`);
  }
  return { callSite: asked.made, signal, when };
}
