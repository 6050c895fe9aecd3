import { checkedKey } from "../base/key";
import { locker } from "../config/configure";
import { LockOptionError } from "../base/errors";
import { holdersOf, inspectKey, type InspectedHolder } from "../diagnostics/holders";
import { isOptions, readOptions } from "../base/options";
import { formatValue } from "../base/format-value";
import { isReserved } from "../stores/value";

/** The state of a lock, which may be a moment old. */
export interface InspectedLock {
  /** The full key. */
  readonly key: string;
  /** The name of its store. */
  readonly store: string;
  /** `next`: free, but reserved for the next waiter. `closed`: free, but closed by `lockAtLeast`. */
  readonly state: "held" | "free" | "next" | "closed";
  /** Its holders. Several may hold a lock with `permits` or `mode: "read"`. */
  readonly holders: readonly InspectedHolder[];
  /**
   * The number of waiters in the store queue, up to 1,000. It does not include waiters in local queues. `undefined` if the store does not
   * know.
   */
  readonly waiting: number | undefined;
  /** The number of waiting calls in this process. */
  readonly waitingHere: number;
}

/**
 * Reports who holds a lock, until when, and how many callers wait. It changes nothing.
 *
 * @param key the full key, as `lockKey()` makes it
 * @throws {LockUnreachableError} if the store did not reply
 * @throws {LockMisconfiguredError} if the store has no `admin` group
 */
export async function inspect(
  key: string,
  options: { readonly store?: string } = {},
): Promise<InspectedLock> {
  const name = checkedKey(key);
  const { locker: of } = locker().callSite(storeIn(options), "inspect()", []).made;
  const { holds, waiting } = await inspectKey(of, name);
  const { waiting: waitingHere } = of.queues.hereOf(name);
  const holders = holdersOf(of, name, holds);
  const [other] = holds;
  const otherwise = other === undefined ? "free" : isReserved(other.value) ? "next" : "closed";
  const state = holders.length > 0 ? "held" : otherwise;
  return { key: name, store: of.name, state, holders, waiting, waitingHere };
}

function storeIn(options: object): object {
  const expected = (): LockOptionError =>
    new LockOptionError(`Expected inspect(key) or inspect(key, { store }), got ${formatValue(options)}`);
  if (!isOptions(options)) throw expected();
  return readOptions(options, ["store"], expected);
}
