/// <reference lib="esnext.disposable" preserve="true" />
import { RUNNER } from "../base/runner";
import { locker, type Terms } from "../lock/locker";
import { LockKeyError, LockNotWovenError, LockOptionError } from "../base/errors";
import { checkedKey, lockKey, lockKeys, type KeyValue } from "../base/key";
import { Lock } from "../lock/lock";
import { MultiLock } from "../lock/multi-lock";
import { assertNeed } from "../lock/needs";
import { checkedSignal } from "../lock/on-abort";
import { areBodiesTracked, beginInside, runInside, trackBodies } from "../lock/reentrancy";
import { assertForEach, withProjectDefaults, type LockOptions } from "../lock/settings";
import type { FailureClass } from "../lock/wait";
import { isOptions, readFrom } from "../base/options";
import { formatValue } from "../base/format-value";
import type { HeldLock } from "../lock/held-lock";
import { LockWithSignal, MultiLockWithSignal } from "./with-signal";
import { hasLock, hasOwnLock } from "./woven-code";

// The calls that the transformer weaves, in the order in which they appear around a body.

/** The tag's attributes, as the transformer writes them. */
export type Site = Flagged<boolean> | Keyed;

interface Named extends LockOptions {
  /** The name of the function, for messages: `OrderService.pay`. */
  readonly site: string;
  /** The project's defaults for options that are `undefined`: `lockTime=30s wait=5s`. */
  readonly projectDefaults?: string;
  /** Ends the wait for the lock. The call then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

interface Flagged<Each extends boolean> extends Named {
  readonly businessFlag: string;
  /** With `each`, each part, and each element of an array, is a key of its own. */
  readonly each?: Each;
  readonly key?: undefined;
}

interface Keyed extends Named {
  readonly businessFlag?: undefined;
  readonly each?: undefined;
  /** The whole key: wholeKey`mutex:${orderNo}`. */
  readonly key: string;
}

/**
 * The parts of a key. An array is allowed only if each element is a key. The parameter is `each` and not the whole site, because then a
 * compiler would have to create another type for each function of a build.
 */
type Parts<Each extends boolean> = Each extends true
  ? readonly (KeyValue | readonly KeyValue[])[]
  : readonly KeyValue[];

type Opened<Each extends boolean> = Each extends true ? MultiLock : Lock;

const SITE_NAMES = [
  "site",
  "businessFlag",
  "each",
  "key",
  "signal",
  "projectDefaults",
] satisfies (keyof Site)[];

/**
 * Returns a lock on the key that `businessFlag` and the parts make, with `each` on several keys, or on the whole `key`. Sends nothing yet.
 *
 * @throws {LockKeyError} if a part identifies nothing
 * @throws {LockMisconfiguredError} before `configure()`
 */
export function open<Each extends boolean = false>(
  site: Flagged<Each> | Keyed,
  ...parts: Parts<Each>
): Opened<Each>;
export function open(site: Site, ...parts: readonly (KeyValue | readonly KeyValue[])[]): Lock | MultiLock {
  const current = locker();
  const name = nameOfSite(site);
  try {
    const { projectDefaults } = site;
    const complete = projectDefaults === undefined ? site : withProjectDefaults(site, projectDefaults);
    const asked = current.callSites.find(complete, name, SITE_NAMES);
    const terms = asked.made;
    const businessFlag = asked.value("businessFlag");
    const signal = checkedSignal(asked.value("signal"));
    if (asked.value("each") === true) {
      assertForEach(terms);
      // `lockKeys` reports a flag that is not a string.
      return newMultiLock(terms, lockKeys(businessFlag as string, parts), signal);
    }
    const key = asked.value("key");
    // `lockKey` reports a flag and parts of a wrong type.
    const values = parts as readonly KeyValue[];
    if (key === undefined) return newLock(terms, lockKey(businessFlag as string, ...values), signal);
    if (businessFlag === undefined && parts.length === 0) return newLock(terms, checkedKey(key), signal);
    throw new LockOptionError(
      "Expected either `businessFlag` with the parts of a key, or `key`, the whole key",
    );
  } catch (error) {
    if (name !== undefined && error instanceof LockOptionError) throw optionErrorOf(name, error);
    throw namedKeyError(error, name);
  }
}

/** Returns the error with the name of the function in its message, because several functions may use the same flag. */
function namedKeyError(error: unknown, name: string | undefined): unknown {
  return error instanceof LockKeyError && name !== undefined
    ? new LockKeyError(`${name}: ${error.message}`)
    : error;
}

/** Returns the error with the tag that gives the option. */
function optionErrorOf(name: string, { message, cause }: LockOptionError): LockOptionError {
  return new LockOptionError(`@redisLock of ${name}: ${message}`, cause === undefined ? {} : { cause });
}

function newLock(terms: Terms, key: string, signal: AbortSignal | undefined): Lock {
  return signal === undefined ? new Lock(terms, key) : new LockWithSignal(terms, key, signal);
}

function newMultiLock(terms: Terms, keys: readonly string[], signal: AbortSignal | undefined): MultiLock {
  return signal === undefined ? new MultiLock(terms, keys) : new MultiLockWithSignal(terms, keys, signal);
}

/** @throws {LockOptionError} if it is not a site */
function nameOfSite(site: Partial<Site>): string | undefined {
  try {
    const { site: usual } = site;
    if (typeof usual === "string") return usual;
  } catch {
    // The following checks report why.
  }
  const name: unknown = isOptions(site) ? readFrom("The option `site`", () => site.site) : null;
  if (name === undefined || typeof name === "string") return name;
  throw new LockOptionError(`Expected open() to be given { site, businessFlag }, got ${formatValue(site)}`);
}

/** Takes the place of a lock if the tag's `when` is false. All steps accept it and do nothing. */
class Unlocked {
  declare private readonly brand: never;
}

const UNLOCKED = new Unlocked();

/**
 * Returns the value of the tag's `when`.
 *
 * @throws {LockOptionError} if it is not a boolean, which types may hide. So nothing runs unlocked by mistake
 */
export function when(condition: boolean): boolean {
  if (typeof condition === "boolean") return condition;
  throw new LockOptionError(`Expected \`when\` to be true or false, got ${formatValue(condition)}`);
}

/** Returns the value for no lock. The steps around the body then do nothing. */
export function unlocked(): Unlocked {
  return UNLOCKED;
}

function opened(call: string, lock: Lock | MultiLock | Unlocked): Lock | MultiLock | undefined {
  if (isLock(lock)) return lock;
  if (lock === UNLOCKED) return undefined;
  throw new LockOptionError(
    `Expected ${call}() to be given a lock that open() made, got ${formatValue(lock)}`,
  );
}

function isLock(value: unknown): value is Lock | MultiLock {
  try {
    return value instanceof Lock || value instanceof MultiLock;
  } catch {
    return false; // A revoked proxy.
  }
}

/** Tries once to acquire the lock: see {@link Lock.acquire}. */
export function acquire(lock: Lock | MultiLock | Unlocked): Promise<boolean> {
  const asked = opened("acquire", lock);
  if (asked === undefined) return MAY_BEGIN;
  // The promise that the caller awaits is tracked, too, so the body can begin with a frame.
  asked.isBodyKnown = areBodiesTracked();
  return asked.acquire();
}

/** Waits until the next try makes sense: see {@link Lock.retryCheck}. */
export function retryCheck(lock: Lock | MultiLock | Unlocked, Failure?: FailureClass): Promise<boolean> {
  return opened("retryCheck", lock)?.retryCheck(Failure) ?? MAY_BEGIN;
}

/**
 * Checks the lock and the tag's `signal` right before the body. Code that ran since the lock was granted may have blocked the process for the
 * lock time. If the process tracks bodies, the body gets a frame.
 *
 * @param kind `"generator"` for a body that gets no frame. After each `yield`, it runs in the async context of the caller of `next()`
 * @throws {LockLostError} if `remaining()` is 0
 * @throws the signal's reason if the signal has aborted
 */
export function assertHeld(lock: Lock | MultiLock | Unlocked, kind?: "generator"): void {
  const held = opened("assertHeld", lock);
  if (held === undefined) return;
  held.assertMayBegin();
  if (kind === "generator") held.isBodyKnown = false;
  else if (held.isBodyKnown) beginInside(held.locks);
}

/**
 * Runs the body of a reentrant lock.
 *
 * @throws {LockLostError} if `remaining()` is already 0: see {@link assertHeld}
 */
export function runReentrant<T>(lock: Lock | MultiLock | Unlocked, body: () => Promise<T>): Promise<T> {
  const held = opened("runReentrant", lock);
  if (held === undefined) return body(); // The locks around it are still held, and calls in the body may reenter them.
  held.assertMayBegin();
  return runInside(held.locks, async () => await body());
}

/** Records that the body failed, and returns its error unchanged. */
export function fail<E>(lock: Lock | MultiLock | Unlocked, error: E): E {
  return opened("fail", lock)?.fail(error) ?? error;
}

/** Releases the lock: see {@link Lock.release}. */
export function release(lock: Lock | MultiLock | Unlocked): Promise<void> {
  return opened("release", lock)?.release() ?? IS_DONE;
}

const MAY_BEGIN = Promise.resolve(true);
const IS_DONE = Promise.resolve();

/** The attributes of a `@needsLock`, as the transformer writes them. */
export type NeededSite = {
  /** The name of the function, for messages: `Ledger.post`. */
  readonly site: string;
  readonly store?: string;
  readonly mode?: "read" | "write";
} & (
  | { readonly businessFlag: string; readonly key?: undefined }
  | { readonly businessFlag?: undefined; readonly key: string }
);

/** Prepares for functions with `@needsLock`. A module that has any calls it when it is loaded. */
export function expectNeeds(): void {
  trackBodies();
}

/**
 * Checks that the caller holds the lock that a function needs. It is the first step of the function.
 *
 * @throws {LockNotHeldError} if the caller does not hold it
 * @throws {LockKeyError} if a part of the key identifies nothing
 */
export function needs(needed: NeededSite, ...parts: readonly KeyValue[]): void {
  trackBodies();
  const { site, businessFlag, key, store, mode } = needed;
  assertNeed({ key: neededKey(), site, store, isReadEnough: mode === "read" });

  function neededKey(): string {
    try {
      return key === undefined ? lockKey(businessFlag, ...parts) : checkedKey(key);
    } catch (error) {
      throw namedKeyError(error, site);
    }
  }
}

/**
 * Refuses to run unlocked. It is the body of a tagged function that could not be woven, if the compiler emitted the file in spite of the
 * error.
 */
export function refuse(reason: string): void {
  throw new LockNotWovenError(reason);
}

/** The advice on how to weave unit tests. */
export const TEST_FIXES = [
  `Fix: run \`${RUNNER} lockweave init\`, or let the test runner compile with Lockweave:`,
  "- Vitest: the lockweave/vite plugin, in the configuration and in each project that does not inherit it (`extends: true`).",
  "- Jest: lockweave/jest as the transform.",
  "- ava, mocha, and node --test: node --import lockweave/register.",
  '- Bun: `preload = ["lockweave/register"]` under `[test]` in bunfig.toml.',
].join("\n  ");

/**
 * Checks in a unit test that a function was woven. It reads the function's own code, so it cannot see through a bound function or a wrapper,
 * such as that of a decorator.
 *
 * @throws {LockNotWovenError} if the function's code neither has a lock around it, nor checks the lock that it needs
 */
export function assertWoven(fn: (...args: never[]) => unknown): void {
  if (typeof fn !== "function") {
    throw new LockOptionError(`Expected assertWoven() to be given a function, got ${formatValue(fn)}`);
  }
  const code = Function.prototype.toString.call(fn);
  if (hasOwnLock(code)) return;
  throw new LockNotWovenError(`The function \`${fn.name}\` was not woven: ${whyNotWoven(code)}`);
}

function whyNotWoven(code: string): string {
  if (/\{\s*\[native code\]\s*\}$/.test(code))
    return "its code cannot be read. Fix: give assertWoven() the function itself, not a bound function or a proxy";
  if (hasLock(code))
    return "it has no lock, but a function inside it has one. Fix: put the @redisLock tag on it, or give assertWoven() the inner function";
  return `it runs without its lock. If it has no @redisLock or @needsLock tag, add one. If a decorator wraps it, give assertWoven() the function itself. ${TEST_FIXES}`;
}

/**
 * Returns the lock of the tagged function in which it is called, or `undefined` if the tag's `when` is false.
 *
 * @param lock written by the transformer
 * @throws {LockNotWovenError} outside of a tagged function
 */
export function currentLock(lock?: Lock | MultiLock): HeldLock;
export function currentLock(lock: Lock | MultiLock | Unlocked): HeldLock | undefined;
export function currentLock(lock?: Lock | MultiLock | Unlocked): HeldLock | undefined {
  if (isLock(lock)) return lock;
  if (lock === UNLOCKED) return undefined;
  throw new LockNotWovenError(
    "currentLock() works only in the body of a woven function with @redisLock. Fix: call it there, and pass the lock to other functions as an argument",
  );
}
