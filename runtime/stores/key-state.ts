import { isClosed, isGuarded, isReserved, isRevoked, isShared } from "./value";

const REQUEST_ID = /^[0-9a-f]{32}$/;

/** Returns why a waiter cannot acquire the key, from the last value of the key that the store reported. */
export function stateOfKey(value: string | undefined): string {
  if (value === undefined || REQUEST_ID.test(value) || isShared(value)) return "is held by another caller";
  if (isReserved(value)) return "is reserved for another waiter";
  if (isClosed(value)) return "is in its cooldown (lockAtLeast of its last holder)";
  if (isGuarded(value)) return "is guarded by an open transaction of its last holder";
  if (isRevoked(value)) return "was revoked, but its body still runs";
  return "contains a value that Lockweave did not write";
}

/** The fix if a lock that Lockweave callers hold stays busy for too long. */
export const FIX_OF_BUSY_LOCK =
  "allow a longer wait (wait, or retryTimes and waitTime), shorten the bodies, or set onFailure";

/** The fix if an open transaction keeps the key. Only the server knows which one. */
const FIX_OF_GUARDED_KEY =
  "find the transaction with `npx lockweave inspect`, end it, and set idle_in_transaction_session_timeout and statement_timeout";

/** Returns what to do if a key with this value does not become free. */
export function fixOfKey(value: string | undefined): string {
  if (value !== undefined && isGuarded(value)) return FIX_OF_GUARDED_KEY;
  if (stateOfKey(value) !== stateOfKey("")) return FIX_OF_BUSY_LOCK;
  return "choose another businessFlag if another program uses the key, or delete the key if none does";
}
