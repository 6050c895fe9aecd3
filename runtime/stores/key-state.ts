import { isClosed, isReserved, isRevoked, isShared } from "./value";

const REQUEST_ID = /^[0-9a-f]{32}$/;

/** Returns why a waiter cannot acquire the key, from the last value of the key that the store reported. */
export function stateOfKey(value: string | undefined): string {
  if (value === undefined || REQUEST_ID.test(value) || isShared(value)) return "is held by another caller";
  if (isReserved(value)) return "is reserved for another waiter";
  if (isClosed(value)) return "is in its cooldown (lockAtLeast of its last holder)";
  if (isRevoked(value)) return "was revoked, but its body still runs";
  return "contains a value that Lockweave did not write";
}

/** Returns what to do if waiting does not help. `undefined` for values that Lockweave wrote. */
export function fixOfKey(value: string | undefined): string | undefined {
  if (stateOfKey(value) !== stateOfKey("")) return undefined;
  return "choose another businessFlag if a program uses the key, or delete the key if none does";
}
