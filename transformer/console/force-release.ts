import { UsageError } from "../terminal/usage-error";
import { printError, safe } from "../terminal/printer";
import type { Deployment } from "./port/deployment";
import { errorMessage } from "./port/errors";
import type { HolderRow, LockRow } from "./snapshot";
import { holderText } from "./lock-table";
import type { SeenLock } from "./lock-scanner";

type Runtime = typeof import("../../runtime/index");

/** Returns the question to ask before a lock is released by force. */
export function releaseQuestion({ holders }: LockRow, now: boolean): string {
  if (now) return "Free it now? Its body may still run, and a second one could start at the same time.";
  const guard = guardOf(holders);
  const end =
    guard === undefined
      ? "when its body ends, or when its lease expires"
      : `when the transaction that guards it ends (${guard})`;
  return `Revoke it? Lockweave notifies its holder. Its key becomes free ${end}.`;
}

/** Returns the backends whose transactions guard the holds. */
function guardOf(holders: readonly HolderRow[]): string | undefined {
  const guards = holders.flatMap(({ guardedBy }) => (guardedBy === undefined ? [] : [guardedBy]));
  return guards.length === 0 ? undefined : guards.join(", ");
}

/** Whether the hold is over, so that only its guard keeps the key. */
function isOver({ guardedBy, leftMs }: HolderRow): boolean {
  return guardedBy !== undefined && leftMs < 0;
}

const SEE_GUARDS = 'as in "Release a guarded lock" of node_modules/lockweave/docs/postgres.md';

/**
 * Returns why nothing can be released, or `undefined` if the lock can be.
 *
 * @param now whether to free the key immediately, although a body may still run under it
 */
export function whyNotReleasable(key: string, seen: SeenLock | undefined, now: boolean): string | undefined {
  if (seen === undefined || seen.values.length === 0) return `${key} is free: there is nothing to release.`;
  if (seen.refusal !== undefined) return `${key} ${seen.refusal}`;
  const { holders } = seen.row;
  const guard = guardOf(holders);
  if (guard !== undefined && holders.every(isOver))
    return `The lock of ${key} has ended, but a transaction still guards it (${guard}). Its key becomes free when that transaction ends. Fix: end the transaction, ${SEE_GUARDS}.`;
  if (guard !== undefined && now)
    return `A transaction guards ${key} (${guard}), so its key becomes free when that transaction ends. Fix: revoke the lock without \`--now\`, or end the transaction, ${SEE_GUARDS}.`;
  if (now) return undefined;
  if (holders.length === 0)
    return `Nobody holds ${key}: it is ${seen.row.state === "closed" ? "closed by `lockAtLeast`" : "reserved for the next waiter"}. Fix: free it with \`--now\`.`;
  if (!holders.every(({ process, isRevoked }) => process !== undefined || isRevoked))
    return `${key} contains a value that Lockweave did not write, so nobody can be notified. Fix: free it with \`--now\`.`;
  return undefined;
}

/** The result if the key no longer contained the value that was shown. */
export const CHANGED_MEANWHILE = "The lock has changed in the meantime, so nothing was changed.";

export function releasedText({ holders, state }: LockRow, now: boolean): string {
  const what =
    holders.length > 0
      ? `it was held by ${holders.map(holderText).join(", ")}`
      : `it was ${state === "closed" ? "closed" : "reserved"}`;
  const guard = guardOf(holders);
  const end =
    guard === undefined ? "" : ` Its key becomes free when the transaction that guards it ends (${guard}).`;
  return `${now ? "Freed" : "Revoked"}: ${what}.${end}`;
}

/**
 * Forces the release of the lock if its key still contains the value that was seen. The store compares the complete value. So a process
 * that acquired the lock in the meantime keeps it. The value may be a hold, a reservation, a closed key, or another program's value.
 *
 * @param now whether to free the key immediately, although a body may still run under it
 * @returns whether the lock was released or revoked
 * @throws {UsageError} if too few servers answer. The lock may or may not be released then.
 */
export async function releaseByForce(
  deployment: Deployment,
  { row: { key, holders }, values }: SeenLock,
  now: boolean,
): Promise<boolean> {
  const { configure, forceRelease, shutdown, LockError } = require("lockweave") as Runtime;
  // `forceRelease()` returns holders, and a reservation or a closed key has none. So this checks for the value itself.
  const isUnchanged = async (): Promise<boolean> => {
    const found = await deployment.read(key);
    return found?.values.some((value) => values.includes(value)) === true;
  };
  if (!(await isUnchanged())) return false;
  const { configuration, close } = await deployment.connect();
  try {
    configure({ ...configuration, woven: false, logger: { warn: (line) => printError(safe`${line}`) } });
    const released = await forceRelease(key, { now, from: values });
    return holders.length > 0 ? released.length > 0 : !(await isUnchanged());
  } catch (error) {
    throw error instanceof LockError ? new UsageError(errorMessage(error)) : error;
  } finally {
    await shutdown({ patience: "0s" });
    close();
  }
}
