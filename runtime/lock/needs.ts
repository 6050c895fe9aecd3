import { LockNotHeldError } from "../base/errors";
import { DEFAULT_STORE } from "../base/limits";
import { nameOf } from "./events";
import { Lock } from "./lock";
import { lockerIfConfigured } from "./locker";
import { findAround } from "./reentrancy";
import { sharingOf } from "./settings";

/** The lock that a function needs. */
export interface Need {
  readonly key: string;
  /** The function that needs it, such as `Ledger.post`. */
  readonly site: string;
  /** The name of its store, unless it is the default of `configure()`. */
  readonly store: string | undefined;
  /** Whether a read lock satisfies the need, too. */
  readonly isReadEnough: boolean;
}

/** A need whose store is known. */
interface CompleteNeed extends Need {
  readonly store: string;
}

/**
 * Checks that a lock around the running code satisfies the need.
 *
 * @throws {LockNotHeldError} if none does
 */
export function assertNeed(need: Need): void {
  const store = need.store ?? lockerIfConfigured()?.defaults.store ?? DEFAULT_STORE;
  const complete = { ...need, store };
  if (findAround(satisfies, complete) === undefined && !isHeldByUnknownBody(complete))
    throw notHeld(complete);
}

function isOfKey(lock: object, { key, store }: CompleteNeed): lock is Lock {
  return lock instanceof Lock && lock.key === key && lock.store === store;
}

function satisfies(lock: object, need: CompleteNeed): lock is Lock {
  return isOfKey(lock, need) && mayBeEnough(lock, need) && lock.remaining() > 0;
}

/** Whether the lock excludes all callers that must not run at the same time as the function. */
function mayBeEnough({ terms }: Lock, { isReadEnough }: Need): boolean {
  return terms.permits === 1 || (isReadEnough && terms.mode === "read");
}

/**
 * Whether a body of this process that has no frame holds the lock. The running code may belong to it: see {@link Lock.isBodyKnown}. Shared
 * locks are not searched, because generators cannot read, and bodies that read always have a frame.
 */
function isHeldByUnknownBody(need: CompleteNeed): boolean {
  const leases = lockerIfConfigured()?.all.get(need.store)?.manager.hereOf(need.key).leases ?? [];
  return leases.some(
    ({ holder }) => holder instanceof Lock && !holder.isBodyKnown && satisfies(holder, need),
  );
}

function notHeld(need: CompleteNeed): LockNotHeldError {
  const { key, site, store } = need;
  const name = nameOf({ key, site, store, requestId: "" });
  const around = findAround(isOfKey, need);
  const inside = `a function with @redisLock on the same key, or inside withLock()`;
  if (around === undefined) {
    return new LockNotHeldError(
      `${name}: the function needs this lock, but its caller does not hold it. Fix: call ${site} inside ${inside}. A lock of obtain() does not count`,
      { key, site },
    );
  }
  const holder = around.site ?? "its caller";
  if (!mayBeEnough(around, need)) {
    return new LockNotHeldError(
      `${name}: the function needs this lock alone, but ${holder} shares it with ${sharingOf(around.terms)}. Fix: acquire it with mode=write there`,
      { key, site },
    );
  }
  const cause = around.notHeld();
  const fix = around.isHeld
    ? "Fix: stop the body when the lock's signal aborts"
    : `Fix: wait for the call of ${site} before the body ends, or call it inside ${inside}`;
  return new LockNotHeldError(
    `${name}: the function needs this lock. When it was called, ${holder} had lost or released it: ${around.loss.because}. ${fix}`,
    { key, site, cause },
  );
}
