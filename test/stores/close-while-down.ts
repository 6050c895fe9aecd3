import type { ExecutionContext } from "ava";
import type { Store } from "../../runtime/stores/port";
import { newKey } from "../store-contract/subject";
import { deferred } from "../support/deferred";
import { FleetProcess } from "../support/fleet";

/**
 * Ends a waiter, a holder, and the store while no server answers.
 *
 * @param stop stops all servers
 */
export async function closeWhileDown(
  t: ExecutionContext,
  store: Store,
  stop: () => Promise<unknown>,
): Promise<void> {
  const process = new FleetProcess({ store, logger: { warn: () => {} } });
  const [began, ended] = [deferred(), deferred()];
  const key = newKey();
  const holder = process.call(key, {}, async () => {
    began.resolve();
    await ended.promise;
  });
  await began.promise;
  const waiter = process.call(key, { retryTimes: 1, waitTime: "10m" }, () => t.fail());
  await stop();
  process.close();
  await t.throwsAsync(waiter, { code: "LOCK_CLOSED" });
  ended.resolve();
  await holder;
  await store.close?.();
}
