import type { Locker } from "../lock/locker";
import type { Loss } from "../queue/loss";
import type { Store } from "../stores/port";

/**
 * Ends the locks of all stores of a configuration, and closes the stores. It waits for bodies for at most `patienceMs`: see `shutdown()`.
 *
 * @param inUse returns the configurations that stay in use. A store that one of them also has stays open
 */
export async function drainAndClose(
  { manager, all }: Locker,
  patienceMs: number,
  inUse: () => readonly Locker[],
): Promise<void> {
  const lockers = [...all.values()];
  const others = lockers.map((each) => each.manager).filter((each) => each !== manager);
  await manager.drain(patienceMs, others);
  all.stopAnnouncing(); // People often inspect a process that drains for a long time, so its announcement ends only now.
  for (const each of lockers) each.manager.revokeAll(SHUT_DOWN);
  await closeStores(lockers, inUse);
}

/**
 * Closes the stores of a configuration whose locks are neither held nor waited for.
 *
 * @param inUse returns the configurations that stay in use. A store that one of them also has stays open
 */
export async function closeIdle({ all }: Locker, inUse: () => readonly Locker[]): Promise<void> {
  const lockers = [...all.values()];
  all.stopAnnouncing();
  for (const { manager } of lockers) manager.close();
  await closeStores(lockers, inUse);
}

function storesOf({ all }: Locker): Store[] {
  return Array.from(all.values(), ({ store }) => store);
}

async function closeStores(lockers: readonly Locker[], inUse: () => readonly Locker[]): Promise<void> {
  // A lock that cannot be released by then expires by itself.
  await Promise.all(lockers.map((each) => each.manager.settled()));
  // This must come last: a configuration that has one of the stores may have come into force in the meantime.
  const kept = new Set(inUse().flatMap((each) => storesOf(each)));
  // A store that fails to close must not keep the others open.
  const unused = lockers.filter(({ store }) => !kept.has(store));
  const closed = await Promise.allSettled(unused.map(async ({ store }) => await store.close?.()));
  for (const outcome of closed) if (outcome.status === "rejected") throw outcome.reason;
}

const SHUT_DOWN: Loss = {
  outcome: "revoked",
  because: "shutdown() revoked it, because the body ran longer than `patience` allows",
  isEarly: false,
};
