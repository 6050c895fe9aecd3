import { LockLostError, LockMisconfiguredError } from "../base/errors";
import type { GuardRequest, RunSql } from "../stores/port";
import { lockOf, nameOf, type LockEvent, namedError } from "./events";
import type { Terms } from "./locker";

/** A lock that a transaction may guard. */
interface GuardedLock extends LockEvent {
  readonly terms: Terms;
  beginGuard(): GuardRequest;
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
  const lost = locks.find((_, index) => areHeld[index] !== true);
  if (lost === undefined) return;
  throw new LockLostError(
    `${nameOf(lost)} is not held any more: it was revoked, or another caller has acquired it. Fix: roll the transaction back`,
    lockOf(lost),
  );
}
