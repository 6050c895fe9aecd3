import type { FleetProcess } from "./fleet";

/** Ends it as `shutdown()` ends a process that has no patience: what is not given back by then is not sent again. */
export async function retire({ locker }: Pick<FleetProcess, "locker">): Promise<void> {
  const { queues, store } = locker;
  queues.close();
  await queues.settled();
  await store.close();
}
