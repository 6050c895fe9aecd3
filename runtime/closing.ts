import type { Locker } from "./lock/locker";
import type { Loss } from "./queue/loss";
import type { Store } from "./stores/port";

/** Ends the locks of all stores of a configuration, and closes the stores. It waits for bodies for at most `patienceMs`: see `shutdown()`. */
export async function drainAndClose({ queues, all }: Locker, patienceMs: number): Promise<void> {
  const lockers = [...all.values()];
  const others = lockers.map((each) => each.queues).filter((each) => each !== queues);
  await queues.drain(patienceMs, others);
  all.fallSilent(); // Not before: who drains for long is asked after most.
  for (const each of lockers) each.queues.revokeAll(SHUT_DOWN);
  await closeStores(lockers, () => []);
}

/**
 * Closes the stores of a configuration of which no lock is held or waited for.
 *
 * @param inUse returns the configurations that go on. A store that one of them has, too, stays open.
 */
export async function closeIdle({ all }: Locker, inUse: () => readonly Locker[]): Promise<void> {
  const lockers = [...all.values()];
  all.fallSilent();
  for (const { queues } of lockers) queues.close();
  await closeStores(lockers, inUse);
}

function storesOf({ all }: Locker): Store[] {
  return Array.from(all.values(), ({ store }) => store);
}

async function closeStores(lockers: readonly Locker[], inUse: () => readonly Locker[]): Promise<void> {
  // What cannot be given back by then expires by itself.
  await Promise.all(lockers.map((each) => each.queues.settled()));
  // Not before: meanwhile another configuration may have come into force that has one of them again.
  const kept = new Set(inUse().flatMap((each) => storesOf(each)));
  // One that fails, or throws at once, keeps no other one open.
  const unused = lockers.filter(({ store }) => !kept.has(store));
  const closed = await Promise.allSettled(unused.map(async ({ store }) => await store.close()));
  for (const one of closed) if (one.status === "rejected") throw one.reason;
}

const SHUT_DOWN: Loss = {
  outcome: "revoked",
  because: "shutdown() released it, because the body outlasted the patience",
  isEarly: false,
};
