import { isClosed, isReserved, isRevoked, isShared } from "./value";

const REQUEST_ID = /^[0-9a-f]{32}$/;

/** What keeps a key from a waiter, by the value that the store was last heard to have. */
export function stateOfKey(value: string | undefined): string {
  if (value === undefined || REQUEST_ID.test(value) || isShared(value)) return "is held by another";
  if (isReserved(value)) return "is kept for another waiter";
  if (isClosed(value)) return "is closed for the rest of its last holder's lockAtLeast";
  if (isRevoked(value)) return "was released by force, its holder has not left it,";
  return "holds a value that lockweave did not write";
}

/** What to do about it, beyond waiting. */
export function fixOfKey(value: string | undefined): string | undefined {
  if (stateOfKey(value) !== stateOfKey("")) return undefined;
  return "choose another businessFlag if a program uses the key, or delete the key if none does";
}
