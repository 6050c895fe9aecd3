import { errorMessage, LockLostError, LockMisconfiguredError } from "../base/errors";
import type { GuardRequest, RunSql } from "../stores/port";
import { lockOf, nameOf, type LockEvent, namedError } from "./events";
import type { Terms } from "./locker";

/** A lock that a transaction may guard. */
interface GuardedLock extends LockEvent {
  readonly terms: Terms;
  /** The outermost of nested reentrant locks. They share a hold, and so a guard. */
  readonly root: object;
  /** Begins a guard: from now on, no other caller of this process gets the hold. Returns `undefined` if the process knows that it is lost. */
  beginGuard(): GuardRequest | undefined;
  notHeld(): LockLostError;
}

/** The error of the last guard of each hold, if it failed. Most holds have no guard, and take no memory for it. */
const failures = new WeakMap<object, unknown>();

/**
 * Returns the error that ends a call whose last guard failed, although its body succeeded: the body has caught the error of `guard()`. In
 * several client libraries, the commit of a failed transaction resolves although it stores nothing.
 */
export function errorOfGuard(lock: GuardedLock): LockLostError | undefined {
  const error = failures.get(lock.root);
  if (error === undefined) return undefined;
  const name = `${nameOf(lock)}: `;
  return new LockLostError(
    `${name}its last guard() failed, so its transaction may have stored nothing: ${errorMessage(error).replace(name, "")}`,
    { ...lockOf(lock), cause: error },
  );
}

/**
 * Guards the locks in a transaction of the caller: see `HeldLock.guard`.
 *
 * The store decides whether each lock is still held, and not the deadline in this process: nobody can acquire the key while the transaction
 * runs, even if the lock time is over by then. It also learns of a lock that this process knows to be lost, because only the server can
 * reject the transaction.
 *
 * @param locks locks of one store
 * @throws {LockLostError} if one of them is not held any more
 */
export async function guardAll(locks: readonly GuardedLock[], run: RunSql): Promise<void> {
  const earlier = locks.map(({ root }) => failures.get(root));
  try {
    await sendGuard(locks, run);
  } catch (error) {
    for (const { root } of locks) failures.set(root, error);
    throw error;
  }
  // Another transaction may have failed meanwhile.
  for (const [index, { root }] of locks.entries())
    if (failures.get(root) === earlier[index]) failures.delete(root);
}

async function sendGuard(locks: readonly GuardedLock[], run: RunSql): Promise<void> {
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
  const requests = holds.map((hold, index) => hold ?? { key: locks[index]?.key ?? "", requestId: NO_HOLD });
  const areHeld = await transactions.guard(requests, run).catch((error: unknown) => {
    throw namedError(first, error);
  });
  for (const [index, lock] of locks.entries()) {
    if (holds[index] === undefined) throw lock.notHeld();
    if (areHeld[index] === true) continue;
    throw new LockLostError(
      `${nameOf(lock)} is not held any more: it was revoked, or another caller has acquired it. Fix: roll the transaction back`,
      lockOf(lock),
    );
  }
}

/** The request ID of no hold. */
const NO_HOLD = "0".repeat(32);
