import { UsageError } from "../../verify/usage-error";
import type { Home } from "./home";
import type { LockRow } from "./look";
import { isShortened } from "./shortened";

type Runtime = typeof import("../../../runtime/index");

/** What is asked of who is about to take a lock from its holders. */
export function takeQuestion(now: boolean): string {
  return now
    ? "Free it at once? A body may be at work under it, and another one would run beside it."
    : "Revoke it? Its holder is told, and its key is free when its body has ended, or its time is over.";
}

/**
 * Takes the lock from those who were seen to hold it, and from nobody who has taken it since.
 *
 * @param prefix the `keyPrefix` of the client that took the lock
 * @param now free the key at once, though a body may be at work under it
 * @returns whether one of them held it still
 * @throws {UsageError} when too few servers answer; then it may be taken, or not
 */
export async function take(
  home: Home,
  prefix: string,
  { key, holders }: Pick<LockRow, "key" | "holders">,
  now: boolean,
): Promise<boolean> {
  const { configure, forceRelease, shutdown, LockError } = require("lockweave") as Runtime;
  const { redis, close } = home.prefixed(prefix);
  try {
    configure({ redis, woven: false, logger: { warn: (line) => void process.stderr.write(`${line}\n`) } });
    const from = holders.map(({ storeValue }) => storeValue);
    // What only keeps others from it has no holder; what somebody else wrote may be known by its beginning alone.
    const isKnown = from.length > 0 && !from.some(isShortened);
    return (await forceRelease(key, isKnown ? { now, from } : { now })).length > 0;
  } catch (error) {
    throw error instanceof LockError ? new UsageError(error.message) : error;
  } finally {
    await shutdown({ patience: "0s" });
    close();
  }
}
