import { locker } from "../lock/locker";
import { LockOptionError } from "../base/errors";
import { adminOf, askStore, holdersOf, inspectKey, type InspectedHolder } from "../diagnostics/holders";
import { checkedKey } from "../base/key";
import { keyInStore } from "../lock/events";
import type { Locker } from "../lock/locker";
import { isLockweaveHold } from "../stores/value";
import { FREED, REVOKED } from "../queue/loss";
import { isOptions, readFrom, readOptions } from "../base/options";
import { formatValue } from "../base/format-value";

/** The options of `forceRelease()`. */
export interface ForceOptions {
  /** The name of the store. */
  readonly store?: string;
  /**
   * Frees the key immediately, whatever its value is. **Another body may then run while the holder's body still runs.** The holder notices when it
   * next asks the store. In PostgreSQL, the call rejects while a transaction guards the lock.
   */
  readonly now?: boolean;
  /**
   * Revokes only these holders: their `storeValue`s from `inspect()`. A caller that has acquired the lock from the store since then keeps
   * it. After a hand-off inside a process, the new holder has the same value, and loses the lock. By default, all holders lose it.
   */
  readonly from?: readonly string[];
}

const OPTIONS: readonly string[] = ["store", "now", "from"] satisfies (keyof ForceOptions)[];

/**
 * Revokes a lock. Each holder's `signal` aborts when its process next asks the store. With a watchdog, that is within a third of its lock
 * time. The key becomes free when the body ends or the lock time is over. A caller that acquires the lock in the meantime keeps it.
 *
 * @param key the full key, as `lockKey()` makes it
 * @returns the holders that lost the lock, as they were before
 * @throws {LockUnreachableError} if the store did not reply. Some holders may have lost the lock
 * @throws {LockMisconfiguredError} if the store has no `admin` group
 * @throws {LockKeyError} if the key is empty, or begins with `lockweave:`
 * @throws {LockOptionError} if another program wrote the value, or, with `now`, if a transaction guards the lock. Other holders may have lost
 * the lock then
 */
export async function forceRelease(
  key: string,
  options: ForceOptions = {},
): Promise<readonly InspectedHolder[]> {
  const name = checkedKey(key);
  const { now = false, from, ...place } = checked(options);
  const { locker: storeLocker } = locker().callSites.find(place, "forceRelease()", []).made;
  const found = await inspectKey(storeLocker, name);
  const holds = found.holds.filter(({ value }) => from?.includes(value) !== false);
  const holders = holdersOf(storeLocker, name, holds);
  const foreign = now ? undefined : holders.find(isForeign);
  if (foreign !== undefined) throw notOurs(name, storeLocker.name, foreign.storeValue);
  const revoked = await Promise.all(
    now
      ? holds.map(({ value }) => free(storeLocker, name, value))
      : holders.map(({ storeValue }) => revoke(storeLocker, name, storeValue)),
  );
  return holders.filter(({ storeValue }) => revoked.includes(storeValue));
}

/** Whether another program wrote the value. A hold of Lockweave always expires. */
function isForeign({ storeValue, leftMs = 0 }: InspectedHolder): boolean {
  return !isLockweaveHold(storeValue) || leftMs < 0;
}

function notOurs(key: string, store: string, value: string): LockOptionError {
  return new LockOptionError(
    `${keyInStore({ key, store })} holds ${formatValue(value)}. Lockweave did not write this value, or it never expires, so Lockweave cannot revoke it. Fix: if its writer no longer runs, delete it with forceRelease(key, { now: true })`,
  );
}

/** The store compares bytes. Bytes that are not UTF-8 text are changed on the way to this process. */
function notText(key: string, store: string): LockOptionError {
  return new LockOptionError(
    `${keyInStore({ key, store })} holds bytes that are not UTF-8 text. Another program wrote them, so Lockweave cannot compare them. Fix: delete the key with redis-cli, as in \`redis-cli UNLINK ${key}\``,
  );
}

/** Nobody can take the key from a transaction that guards it. */
function isGuarded(key: string, store: string, by: string): LockOptionError {
  return new LockOptionError(
    `${keyInStore({ key, store })} is guarded by a transaction (${by}), so its key becomes free when that transaction ends. Fix: revoke the lock without \`now\`, or end the transaction as in "Release a guarded lock" of Lockweave's docs/postgres.md`,
  );
}

/** Returns the value that was revoked, or `undefined` if it was gone. */
async function revoke(storeLocker: Locker, key: string, requestId: string): Promise<string | undefined> {
  const admin = adminOf(storeLocker, key);
  const isRevoked = await askStore(storeLocker, key, (timeoutMs) =>
    admin.revoke({ key, requestId }, timeoutMs),
  );
  if (!isRevoked) return undefined;
  storeLocker.manager.lose(key, requestId, REVOKED);
  return requestId;
}

async function free(storeLocker: Locker, key: string, requestId: string): Promise<string | undefined> {
  const { store, manager } = storeLocker;
  const reply = await askStore(storeLocker, key, (timeoutMs) =>
    store.release({ key, requestId, isForced: true }, timeoutMs),
  );
  if (!reply.released) {
    if (reply.guardedBy !== undefined) throw isGuarded(key, storeLocker.name, reply.guardedBy);
    if (reply.holder === requestId) throw notText(key, storeLocker.name);
    return undefined;
  }
  manager.lose(key, requestId, FREED);
  return requestId;
}

function checked(options: ForceOptions): ForceOptions {
  const expected = (): LockOptionError =>
    new LockOptionError(
      `Expected forceRelease(key) or forceRelease(key, { now: true, from: [storeValue], store }), got ${formatValue(options)}`,
    );
  if (!isOptions(options)) throw expected();
  const own = readOptions(options, OPTIONS, expected);
  const isGood =
    ["boolean", "undefined"].includes(typeof own.now) && (own.from === undefined || areStrings(own.from));
  if (isGood) return own;
  throw expected();
}

function areStrings(value: unknown): boolean {
  return readFrom(
    "The option `from`",
    () => Array.isArray(value) && value.every((one) => typeof one === "string"),
  );
}
