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

/** The error with which a call ends because the last guard of its hold failed. Most holds have no guard, and take no memory for it. */
const failures = new WeakMap<object, LockLostError>();

/** The guards of each lock that have not finished, by their locks. */
const unfinished = new WeakMap<object, Set<readonly GuardedLock[]>>();

/**
 * Returns the error that ends a call although its body succeeded:
 *
 * - Its last guard failed, and the body has caught the error of `guard()`. In several client libraries, the commit of a failed transaction
 *   resolves although it stores nothing.
 * - The body did not wait for `guard()`, so it does not know what its transaction stored.
 */
export function errorOfGuard(lock: GuardedLock): LockLostError | undefined {
  const [locks] = unfinished.get(lock) ?? [];
  if (locks === undefined) return failures.get(lock.root);
  const all = together(locks);
  return new LockLostError(
    `${nameOf(all)}: its body ended before guard() did, so its transaction may store nothing. Fix: await guard(), and the transaction`,
    lockOf(all),
  );
}

/** Returns the name of several locks of one caller as that of one lock with all their keys. */
function together(locks: readonly GuardedLock[]): LockEvent {
  const { store = "", site, requestId = "" } = locks[0] ?? {};
  return { key: locks.map(({ key }) => key).join(" "), store, site, requestId };
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
  for (const lock of locks) unfinished.set(lock, (unfinished.get(lock) ?? new Set()).add(locks));
  try {
    await sendGuard(locks, run);
  } catch (error) {
    const failure = guardFailed(together(locks), error);
    for (const { root } of locks) failures.set(root, failure);
    throw error;
  } finally {
    for (const lock of locks) finish(lock, locks);
  }
  // Another transaction may have failed meanwhile.
  for (const [index, { root }] of locks.entries())
    if (failures.get(root) === earlier[index]) failures.delete(root);
}

function finish(lock: GuardedLock, locks: readonly GuardedLock[]): void {
  const others = unfinished.get(lock);
  others?.delete(locks);
  if (others?.size === 0) unfinished.delete(lock);
}

function guardFailed(lock: LockEvent, error: unknown): LockLostError {
  const name = `${nameOf(lock)}: `;
  return new LockLostError(
    `${name}its last guard() failed, so its transaction may have stored nothing: ${errorMessage(error).replace(name, "")}`,
    { ...lockOf(lock), cause: error },
  );
}

async function sendGuard(locks: readonly GuardedLock[], run: RunSql): Promise<void> {
  const [first] = locks;
  if (first === undefined) return;
  const { transactions } = first.terms.locker.store;
  const all = together(locks);
  if (transactions === undefined) {
    throw new LockMisconfiguredError(
      `${nameOf(all)}: guard() needs a lock in PostgreSQL. Fix: configure a store with \`postgres\`, and name it in the tag with \`store\``,
      lockOf(all),
    );
  }
  const holds = locks.map((lock) => lock.beginGuard());
  const requests = holds.map((hold, index) => hold ?? { key: locks[index]?.key ?? "", requestId: NO_HOLD });
  const areHeld = await transactions.guard(requests, run).catch((error: unknown) => {
    throw namedError(all, error);
  });
  const noticed = locks.filter((_, index) => holds[index] === undefined);
  const others = locks.filter((_, index) => holds[index] !== undefined && areHeld[index] !== true);
  if (noticed.length + others.length > 0) throw lostError(noticed, others);
}

/**
 * Returns the error that names each lock that is lost, and no other.
 *
 * @param noticed the locks that this process knew to be lost
 */
function lostError(noticed: readonly GuardedLock[], others: readonly GuardedLock[]): LockLostError {
  const errors = noticed.map((lock) => lock.notHeld());
  if (others.length > 0) {
    const all = together(others);
    const [are, they] = others.length === 1 ? ["is", "it was"] : ["are", "they were"];
    const message = `${nameOf(all)} ${are} not held any more: ${they} revoked, or acquired by another caller. Fix: roll the transaction back`;
    errors.push(new LockLostError(message, lockOf(all)));
  }
  const [only] = errors;
  if (only !== undefined && errors.length === 1) return only;
  return new LockLostError(errors.map(({ message }) => message).join("; "), {
    cause: new AggregateError(errors),
  });
}

/** The request ID of no hold. */
const NO_HOLD = "0".repeat(32);
