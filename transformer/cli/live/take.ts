import { UsageError } from "../../verify/usage-error";
import { printError, safe } from "../printer";
import { reasonOf } from "./errors";
import { MOST_BYTES } from "./found";
import type { Deployment } from "./deployment";
import type { LockRow } from "./snapshot";
import { holderText } from "./rows";
import { LockScanner, type SeenLock } from "./lock-scanner";

type Runtime = typeof import("../../../runtime/index");

/** The question before a lock is taken. */
export function takeQuestion(now: boolean): string {
  return now
    ? "Free it now? A body may still run under it, and another one could then run beside it."
    : "Revoke it? Its holder is notified. Its key becomes free when its body ends, or when its lease expires.";
}

/**
 * Returns why there is nothing to take, or `undefined` if there is.
 *
 * @param now whether the key is to be free at once, although a body may still run under it
 */
export function nothingToTake(key: string, seen: SeenLock | undefined, now: boolean): string | undefined {
  if (seen === undefined || seen.values?.length === 0) return `${key} is free: there is nothing to release.`;
  if (seen.values === undefined)
    return `${key} contains no text, or more than ${MOST_BYTES} bytes. Lockweave did not write that. Fix: delete the key with redis-cli.`;
  const { holders } = seen.row;
  if (now) return undefined;
  if (holders.length === 0)
    return `Nobody holds ${key}: it is ${seen.row.state === "closed" ? "closed for a time" : "reserved for the next waiter"}. Fix: \`--now\` frees it.`;
  if (!holders.every(({ process, isRevoked }) => process !== undefined || isRevoked))
    return `${key} contains a value that Lockweave did not write, so nobody can be notified. Fix: \`--now\` frees it.`;
  return undefined;
}

/** The result when the key no longer contained what was shown. */
export const CHANGED_MEANWHILE = "The lock changed hands in the meantime: nothing was changed.";

export function takenText({ holders, state }: LockRow, now: boolean): string {
  const what =
    holders.length > 0
      ? `it was held by ${holders.map(holderText).join(", ")}`
      : `it was ${state === "closed" ? "closed" : "reserved"}`;
  return `${now ? "Freed" : "Revoked"}: ${what}.`;
}

/**
 * Takes the lock, if its key still contains what was seen. The store compares the full value, so a process that acquired the
 * lock in the meantime keeps it, whatever the key contained before: a hold, a reservation, a closing, or another program's value.
 *
 * @param prefix the `keyPrefix` of the client that acquired the lock
 * @param now free the key at once, although a body may still run under it
 * @returns whether the lock was taken
 * @throws {UsageError} if too few servers answer. Then the lock may be taken, or not.
 */
export async function take(
  home: Deployment,
  prefix: string,
  { row: { key, holders }, values = [] }: SeenLock,
  now: boolean,
): Promise<boolean> {
  const { configure, forceRelease, shutdown, LockError } = require("lockweave") as Runtime;
  // A reservation and a closing have no holder that `forceRelease()` could return: their value itself is looked for.
  const isThere = async (): Promise<boolean> => {
    const found = await new LockScanner({ match: "", prefix }).lookAtOne(home, key);
    return found?.values?.some((value) => values.includes(value)) === true;
  };
  if (!(await isThere())) return false;
  const { redis, close } = home.prefixed(prefix);
  try {
    configure({ redis, woven: false, logger: { warn: (line) => printError(safe`${line}`) } });
    const taken = await forceRelease(key, { now, from: values });
    return holders.length > 0 ? taken.length > 0 : !(await isThere());
  } catch (error) {
    throw error instanceof LockError ? new UsageError(reasonOf(error)) : error;
  } finally {
    await shutdown({ patience: "0s" });
    close();
  }
}
