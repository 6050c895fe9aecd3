import { LockLostError, LockMisconfiguredError } from "../base/errors";
import type { Loss } from "../queue/loss";
import type { GuardRequest, RunSql } from "../stores/port";
import { lockOf, nameOf, type LockEvent, namedError } from "./events";
import type { Terms } from "./locker";

/** A lock that a transaction may guard. */
interface GuardedLock extends LockEvent {
  readonly terms: Terms;
  beginGuard(): GuardRequest;
}

/** The locks whose last guard found that they are not held. Most locks have no guard, and take no memory for it. */
const failures = new WeakMap<object, Loss>();

const GUARD_FAILED: Loss = {
  outcome: "unknown",
  because: "guard() found that it is not held, so the transaction stored nothing",
  isEarly: true,
};

/**
 * Returns the loss that the last guard of the lock has found. The release reports it even if the body has caught the error of `guard()`: in
 * several client libraries, the commit of a failed transaction resolves although it stores nothing.
 */
export function lossOfGuard(lock: object): Loss | undefined {
  return failures.get(lock);
}

/**
 * Guards the locks in a transaction of the caller: see `HeldLock.guard`.
 *
 * The store decides whether each lock is still held, and not the deadline in this process: nobody can acquire the key while the transaction
 * runs, even if the lock time is over by then.
 *
 * @param locks locks of one store
 * @throws {LockLostError} if one of them is not held any more
 */
export async function guardAll(locks: readonly GuardedLock[], run: RunSql): Promise<void> {
  const [first] = locks;
  if (first === undefined) return;
  const { transactions } = first.terms.locker.store;
  if (transactions === undefined) {
    throw new LockMisconfiguredError(
      `${nameOf(first)}: guard() needs a lock in PostgreSQL. Fix: configure a store with \`postgres\`, and name it in the tag with \`store\``,
      lockOf(first),
    );
  }
  const holds = locks.map((lock) => lock.beginGuard());
  const areHeld = await transactions.guard(holds, run).catch((error: unknown) => {
    throw namedError(first, error);
  });
  for (const [index, lock] of locks.entries()) {
    if (areHeld[index] === true) failures.delete(lock);
    else failures.set(lock, GUARD_FAILED);
  }
  const lost = locks.find((lock) => failures.has(lock));
  if (lost === undefined) return;
  throw new LockLostError(
    `${nameOf(lost)} is not held any more: it was revoked, or another caller has acquired it. Fix: roll the transaction back`,
    lockOf(lost),
  );
}
