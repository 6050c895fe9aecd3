import { checkedKey } from "../base/key";
import { locker } from "../lock/locker";
import { LockOptionError } from "../base/errors";
import { holdersOf, inspectKey, withAnnounced, type InspectedHolder } from "../diagnostics/holders";
import { isOptions, readOptions } from "../base/options";
import type { InspectedHold } from "../stores/port";
import { formatValue } from "../base/format-value";
import { isGuarded, isReserved } from "../stores/value";

/** The state of a lock, which may be a moment old. */
export interface InspectedLock {
  /** The full key. */
  readonly key: string;
  /** The name of its store. */
  readonly store: string;
  /**
   * `next`: free, but reserved for the next waiter. `closed`: free, but closed by `lockAtLeast`. `guarded`: the hold is over, but nobody can
   * acquire the lock until the transaction that guards it ends.
   */
  readonly state: "held" | "free" | "next" | "closed" | "guarded";
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
 * Reports the holders of a lock, their deadlines, and the number of waiters. Changes nothing.
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
  const { locker: storeLocker } = locker().callSites.find(storeIn(options), "inspect()", []).made;
  const { holds, waiting } = await inspectKey(storeLocker, name);
  const { waiting: waitingHere } = storeLocker.manager.hereOf(name);
  const holders = await withAnnounced(storeLocker, name, holdersOf(storeLocker, name, holds));
  const state = holders.length > 0 ? "held" : stateWithoutHolders(holds);
  return { key: name, store: storeLocker.name, state, holders, waiting, waitingHere };
}

function stateWithoutHolders(holds: readonly InspectedHold[]): InspectedLock["state"] {
  if (holds.length === 0) return "free";
  if (holds.some(({ value }) => isGuarded(value))) return "guarded";
  return holds.some(({ value }) => isReserved(value)) ? "next" : "closed";
}

function storeIn(options: object): object {
  const expected = (): LockOptionError =>
    new LockOptionError(`Expected inspect(key) or inspect(key, { store }), got ${formatValue(options)}`);
  if (!isOptions(options)) throw expected();
  return readOptions(options, ["store"], expected);
}
