import { isClosed, isReserved, isRevoked } from "../../../runtime/stores/value";
import { shortened } from "./shortened";

/** One value of a lock's key: a hold, a reservation, a closed key, or what another program wrote. */
export interface StoredValue {
  readonly value: string;
  /** The length of the whole value, if only its beginning was read. */
  readonly bytes?: number | undefined;
  /** Negative if it does not expire. */
  readonly leftMs: number;
  /** The backends of the transactions that guard the hold, such as `backend 4711`. Only PostgreSQL has guards. */
  readonly guardedBy?: string | undefined;
}

/** A hold, as a store records it. */
export interface StoredHold {
  /** The value in the store, shortened. */
  readonly storeValue: string;
  /** The number of the process that holds the lock. */
  readonly process: string | undefined;
  readonly leftMs: number;
  readonly isRevoked: boolean;
  /** See {@link StoredValue}. `undefined` if no transaction guards the hold. */
  readonly guardedBy: string | undefined;
}

/** The data that a store has for a lock. */
export interface StoredLock {
  readonly key: string;
  readonly state: "held" | "free" | "next" | "closed";
  readonly holders: readonly StoredHold[];
  readonly waiting: number;
  /** The numbers of the processes of the first waiters. */
  readonly waiters: readonly string[];
  /** The complete value of each hold, reservation, or closed key. A forced release requires that these have not changed. */
  readonly values: readonly string[];
  /** The reason why the lock cannot be released by force: a sentence without its subject, which is the key. */
  readonly refusal: string | undefined;
}

/**
 * Returns the data of a lock.
 *
 * @param waiters the first entries of its queue, which begin with the number of a process
 */
export function storedLockOf(
  key: string,
  stored: readonly StoredValue[],
  {
    waiting,
    waiters,
    refusal,
  }: { waiting: number; waiters: readonly unknown[]; refusal?: string | undefined },
): StoredLock {
  const holds = stored.filter(({ value }) => !isReserved(value) && !isClosed(value));
  const [other] = stored;
  const unheldState = other === undefined ? "free" : isReserved(other.value) ? "next" : "closed";
  return {
    key,
    state: holds.length > 0 ? "held" : unheldState,
    holders: holds.map(({ value, bytes, leftMs, guardedBy }) => ({
      storeValue: shortened(value, bytes),
      process: isRevoked(value) ? undefined : processIn(value),
      leftMs,
      isRevoked: isRevoked(value),
      guardedBy,
    })),
    waiting,
    waiters: waiters
      .map((entry) => processIn(String(entry).slice(0, 32)))
      .filter((number) => number !== undefined),
    values: stored.map(({ value }) => value),
    refusal,
  };
}

/** Returns the number of the process that created the request ID. */
function processIn(id: string): string | undefined {
  return /^[0-9a-f]{32}$/.test(id) ? id.slice(0, 12) : undefined;
}
