import { checkedKey } from "./key";
import { locker } from "./configure";
import { LockOptionError } from "./errors";
import { holdersOf, inspected, type InspectedHolder } from "./holders";
import { isOptions, readOptions } from "./options";
import { shown } from "./shown";
import { isReserved } from "./stores/value";

/** A lock as it was a moment ago. */
export interface InspectedLock {
  readonly key: string;
  /** The name of the store that it lives in. */
  readonly store: string;
  /**
   * `held` by somebody; `free`; `next`: kept for one who waits, who is told; `closed` for a time, after one with
   * `lockAtLeast`.
   */
  readonly state: "held" | "free" | "next" | "closed";
  readonly holders: readonly InspectedHolder[];
  /** How many have a place in its queue, not counting those who wait for their own process; `undefined` where the store cannot tell. */
  readonly waiting: number | undefined;
  /** How many calls of this process do. */
  readonly waitingHere: number;
}

/**
 * Looks at a lock, and changes nothing: who holds it, for how long yet, and who waits.
 *
 * @param key the full name of the lock, as `lockKey()` makes it
 * @throws {LockUnreachableError} when the store did not answer
 */
export async function inspect(
  key: string,
  options: { readonly store?: string } = {},
): Promise<InspectedLock> {
  const name = checkedKey(key);
  const { locker: of } = locker().callSite(storeIn(options), "inspect()", []).made;
  const { holds, waiting } = await inspected(of, name);
  const { waiting: waitingHere } = of.queues.hereOf(name);
  const holders = holdersOf(of, name, holds);
  const [other] = holds;
  const otherwise = other === undefined ? "free" : isReserved(other.value) ? "next" : "closed";
  const state = holders.length > 0 ? "held" : otherwise;
  return { key: name, store: of.name, state, holders, waiting, waitingHere };
}

function storeIn(options: object): object {
  const expected = (): LockOptionError =>
    new LockOptionError(`Expected inspect(key) or inspect(key, { store }), got ${shown(options)}`);
  if (!isOptions(options)) throw expected();
  return readOptions(options, ["store"], expected);
}
