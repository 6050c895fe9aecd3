import type { FleetProcess } from "./fleet";

/** Ends a process like `shutdown()` without patience. Unconfirmed releases are not sent again. */
export async function retire({ locker }: Pick<FleetProcess, "locker">): Promise<void> {
  const { manager, store } = locker;
  manager.close();
  await manager.settled();
  await store.close?.();
}
