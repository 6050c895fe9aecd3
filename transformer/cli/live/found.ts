import { isClosed, isReserved, isRevoked, sharesIn } from "../../../runtime/stores/value";
import type { HolderRow, LockRow } from "./look";
import { shortened } from "./shortened";

/** What a server has of one lock. */
export interface Found {
  readonly key: string;
  readonly state: LockRow["state"];
  readonly holders: readonly (Pick<HolderRow, "storeValue" | "leftMs" | "isRevoked"> & {
    /** The number of the process. */
    readonly process: string | undefined;
  })[];
  readonly waiting: number;
  /** The numbers of the processes of the first. */
  readonly waiters: readonly string[];
  /** The full text of each hold, reservation or closing that the key contains: the condition for taking it. */
  readonly values: readonly string[];
}

/**
 * @param value what the key holds, if anything
 * @param waiters the first places in its queue
 */
export function foundOf(
  key: string,
  value: unknown,
  leftMs: number,
  waiting: number,
  waiters: readonly unknown[],
): Found {
  const holds = typeof value === "string" ? (sharesOf(value, leftMs) ?? [{ value, leftMs }]) : [];
  const holders = holds.filter((hold) => !isReserved(hold.value) && !isClosed(hold.value));
  const [other] = holds;
  const otherwise = other === undefined ? "free" : isReserved(other.value) ? "next" : "closed";
  return {
    key,
    state: holders.length > 0 ? "held" : otherwise,
    holders: holders.map((hold) => ({
      storeValue: shortened(hold.value),
      process: isRevoked(hold.value) ? undefined : processIn(hold.value),
      leftMs: hold.leftMs,
      isRevoked: isRevoked(hold.value),
    })),
    waiting,
    waiters: waiters
      .map((entry) => processIn(String(entry).slice(0, 32)))
      .filter((number) => number !== undefined),
    values: holds.map((hold) => hold.value),
  };
}

interface Hold {
  readonly value: string;
  readonly leftMs: number;
}

/** Each has a time of its own; the key ends with the last of them, by which the server's clock is known. */
function sharesOf(value: string, leftMs: number): readonly Hold[] | undefined {
  const shares = sharesIn(value);
  const last = Math.max(...(shares ?? []).map(({ expiresAt }) => expiresAt));
  return shares
    ?.map(({ requestId, expiresAt }) => ({ value: requestId, leftMs: leftMs - (last - expiresAt) }))
    .filter((share) => share.leftMs >= 0);
}

/** The number of the process that an id of ours is from. */
function processIn(id: string): string | undefined {
  return /^[0-9a-f]{32}$/.test(id) ? id.slice(0, 12) : undefined;
}
