import { LockOptionError } from "./base/errors";
import { checkedKey, countedKeys } from "./base/key";
import { Lock } from "./lock/lock";
import { MultiLock } from "./lock/multi-lock";
import { assertWanted, checkedSignal } from "./lock/on-abort";
import { areBodiesTracked, runInside } from "./lock/reentrancy";
import { locker, type Terms } from "./lock/locker";
import { assertForEach, LOCK_OPTIONS, unknownLockOption, type LockOptions } from "./lock/settings";
import type { HeldLock } from "./lock/held-lock";
import { isOptions, readFrom, readOptions } from "./base/options";
import { formatValue } from "./base/format-value";

/** The options of a lock without a tag. */
export interface WithLockOptions extends LockOptions {
  /** Ends the wait for the lock. The call then rejects with the signal's reason. It does not end a running body. */
  readonly signal?: AbortSignal;
  /** Only in {@link ConditionalOptions}. */
  readonly when?: undefined;
  /** Only in {@link SkipOptions}. */
  readonly skipValue?: undefined;
}

/** Options with a condition. If it is false, the body runs without a lock. */
export type ConditionalOptions = Omit<WithLockOptions, "when"> & { readonly when: boolean };

/** Options with the value that a skipped call returns instead of `undefined`. It tells a skip from a result that may be `undefined`. */
export type SkipOptions<Skipped, Options = WithLockOptions> = Omit<Options, "skipValue"> & {
  readonly skipValue: Skipped;
};

/** The full key of a lock, or several keys. Lockweave acquires all of them or none, and their order does not matter. */
export type Keys = string | readonly string[];

type Body<T, Given> = (lock: Given) => T | PromiseLike<T>;

type AnyBody<T> = Body<T, HeldLock> | Body<T, HeldLock | undefined>;

type AnyOptions =
  WithLockOptions | ConditionalOptions | SkipOptions<unknown> | SkipOptions<unknown, ConditionalOptions>;

const NO_OPTIONS: WithLockOptions = {};

interface Throws {
  readonly onFailure?: "throw";
  readonly onUnreachable?: "throw";
}

const OWN_OPTIONS = ["signal", "when", "skipValue"] satisfies (keyof WithLockOptions)[];

/**
 * Runs `body` under the lock, and releases the lock when the body ends or throws.
 *
 * @param key the full key. `lockKey(businessFlag, ...parts)` and wholeKey`...` make the keys of tags. With several keys, all are acquired
 *   or none
 * @returns what `body` returns, or `skipValue` if the lock was not acquired and `onFailure` or `onUnreachable` is `"skip"`. The default of
 *   `skipValue` is `undefined`
 * @throws {LockWaitTimeoutError} if another caller held the lock for the whole wait budget
 * @throws {LockUnreachableError} if the store did not reply
 * @throws {LockLostError} if the lock ended before `body` did and `body` did not throw
 */
export function withLock<T>(key: Keys, body: Body<T, HeldLock>): Promise<T>;
export function withLock<T>(
  key: Keys,
  options: WithLockOptions & Throws,
  body: Body<T, HeldLock>,
): Promise<T>;
export function withLock<T>(
  key: Keys,
  options: WithLockOptions,
  body: Body<T, HeldLock>,
): Promise<T | undefined>;
export function withLock<T, const Skipped>(
  key: Keys,
  options: SkipOptions<Skipped>,
  body: Body<T, HeldLock>,
): Promise<T | Skipped>;
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
export function withLock<T, const Skipped>(
  key: Keys,
  options: SkipOptions<Skipped, ConditionalOptions>,
  body: Body<T, HeldLock | undefined>,
): Promise<T | Skipped>;
export async function withLock<T, Skipped>(
  key: Keys,
  given: AnyOptions | AnyBody<T>,
  last?: AnyBody<T>,
): Promise<T | Skipped | undefined> {
  const isBody = typeof given === "function" && last === undefined;
  const options = isBody ? NO_OPTIONS : (given as AnyOptions);
  const body = (isBody ? given : last) as Body<T, HeldLock | undefined> | undefined;
  if (typeof body !== "function") {
    throw new LockOptionError(
      `Expected \`body\` of withLock(key, body) or withLock(key, options, body) to be a function, got ${formatValue(body)}`,
    );
  }
  if (isGenerator(body)) {
    throw new LockOptionError(
      `Expected \`body\` of withLock() not to be a generator, got ${formatValue(body)}. A generator's code would run after the release. Fix: pass an async function`,
    );
  }
  const { terms, signal, when, skipValue } = readCall(options);
  // The type of a body with a condition accepts `undefined`.
  if (when === false) return await body(undefined);
  const lock = open(key, terms);
  lock.isBodyKnown = areBodiesTracked();
  while (!(await lock.acquire(signal)))
    if (!(await lock.retryCheck())) return skipValue as Skipped | undefined;
  try {
    assertWanted(lock, signal);
    lock.assertHeld(); // Code that ran since the lock was granted may have taken longer than the lock time.
    const hasFrame = terms.mayReenter || areBodiesTracked();
    return await (hasFrame ? runInside(lock.locks, awaitInside, body, lock) : body(lock));
  } catch (error) {
    throw lock.fail(error);
  } finally {
    await lock.release();
  }
}

/**
 * Acquires a lock for `await using`, which releases it at the end of the scope. The scope is not a function, so functions with `@needsLock`
 * do not find this lock. Call them inside `withLock()`.
 *
 * @param key the full key. `lockKey(businessFlag, ...parts)` and wholeKey`...` make the keys of tags
 * @returns `undefined` if the lock was not acquired and `onFailure` or `onUnreachable` is `"skip"`, or if `when` is false
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
  const { terms, signal, when, skipValue } = readCall(options);
  if (skipValue !== undefined) {
    throw new LockOptionError(
      "obtain() has no option `skipValue`, because only a skipped call returns `undefined`. Fix: compare its result with `undefined`",
    );
  }
  if (terms.reentrant) {
    throw new LockOptionError(
      "obtain() cannot be reentrant, because its scope is not a function. Fix: use withLock()",
    );
  }
  if (terms.autoUnlock === "onError") {
    throw new LockOptionError(
      'obtain() cannot have `autoUnlock: "onError"`, because it does not learn whether its scope throws. Fix: use withLock()',
    );
  }
  if (when === false) return undefined;
  const lock = open(key, terms);
  lock.isBodyKnown = true; // It has no body.
  while (!(await lock.acquire(signal))) if (!(await lock.retryCheck())) return undefined;
  assertWanted(lock, signal);
  return lock;
}

/** The options of a lock that the caller does not wait for. */
export type TryOptions = Omit<WithLockOptions, "retryTimes" | "waitTime" | "wait" | "onFailure">;

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
  const waiting = ["retryTimes", "waitTime", "wait", "onFailure"].find((name) => name in own);
  if (waiting === undefined) return await obtain(key, { ...own, ...ONE_TRY });
  throw new LockOptionError(
    `tryObtain() does not wait, so it has no option \`${waiting}\`. Fix: use obtain()`,
  );
}

const ONE_TRY = { retryTimes: 0, onFailure: "skip" } as const;

/** Awaits inside the frame, because a thenable runs its code only when it is awaited. */
async function awaitInside<T>(body: Body<T, HeldLock | undefined>, lock: HeldLock): Promise<T> {
  return await body(lock);
}

function open(key: Keys, terms: Terms): Lock | MultiLock {
  if (!isList(key)) return new Lock(terms, checkedKey(key));
  assertForEach(terms);
  return new MultiLock(terms, countedKeys(Array.from(key, checkedKey)));
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

function assertOptions(options: unknown): asserts options is object {
  if (isOptions(options)) return;
  throw new LockOptionError(
    `Expected lock options to be an object such as { lockTime: "30s" }, got ${formatValue(options)}`,
  );
}

/** The options of one call. Each is read only once, because a getter might return another value the next time. */
interface Call {
  readonly terms: Terms;
  readonly signal: AbortSignal | undefined;
  readonly when: boolean | undefined;
  readonly skipValue: unknown;
}

function readCall(options: AnyOptions): Call {
  assertOptions(options);
  const asked = locker().callSites.find(options, undefined, OWN_OPTIONS);
  const signal = checkedSignal(asked.value("signal"));
  const when = asked.value("when");
  if (when !== undefined && typeof when !== "boolean") {
    throw new LockOptionError(`Expected \`when\` to be true or false, got ${formatValue(when)}`);
  }
  return { terms: asked.made, signal, when, skipValue: asked.value("skipValue") };
}
