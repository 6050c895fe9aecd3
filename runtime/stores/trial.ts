import type { AcquireRequest, ReleaseRequest, Store } from "./port";

/** The lock of a trial. Nobody else uses its key. */
export type TrialLock = Pick<AcquireRequest, "key" | "lockTimeMs" | "replicas">;

/** Sends a command with the time that it has for its reply. */
type Ask = <Reply>(send: (timeoutMs: number) => Promise<Reply>) => Promise<Reply>;

/**
 * Acquires a lock, enqueues a waiter for it, renews it, and releases it. The release notifies the waiter, which then leaves. So nothing is
 * left in the store, and the user needs all permissions of a lock.
 *
 * @throws if the store does not accept one of the commands
 */
export async function tryStore(store: Store, lock: TrialLock, newId: () => string, ask: Ask): Promise<void> {
  const { queue } = store;
  const { key } = lock;
  const hold = { ...lock, requestId: newId(), fencing: false };
  const waiter = { ...hold, requestId: newId(), ticket: newId() };
  const release = async ({ requestId }: Pick<ReleaseRequest, "requestId">): Promise<boolean> =>
    (await ask((timeoutMs) => store.release({ key, requestId }, timeoutMs))).released;
  await release({ requestId: newId() }); // A user who may not release must not get a hold.
  const unreleased = new Set([hold]);
  try {
    const { acquired } = await ask((timeoutMs) => store.acquire(hold, timeoutMs));
    if (!acquired) throw new Error("it did not grant a lock that nobody holds");
    if (queue !== undefined && (await ask((timeoutMs) => queue.enqueue(waiter, timeoutMs))).acquired)
      unreleased.add(waiter); // The hold has expired, because the store is very slow.
    const [renewal] = await ask((timeoutMs) => store.renew([hold], timeoutMs));
    if (renewal instanceof Error) throw renewal;
    if (renewal?.renewed !== true) throw new Error("it did not renew a lock that it had granted");
    if (!(await release(hold))) throw new Error("it did not release a lock that it had granted");
    unreleased.delete(hold);
  } finally {
    const cleanUp = Array.from(unreleased, release);
    if (queue !== undefined) cleanUp.push(ask((timeoutMs) => dequeue(queue, key, waiter.ticket, timeoutMs)));
    await Promise.allSettled(cleanUp); // A command that fails here leaves only data that expires soon.
  }
}

async function dequeue(
  queue: NonNullable<Store["queue"]>,
  key: string,
  ticket: string,
  timeoutMs: number,
): Promise<boolean> {
  await queue.dequeue(key, ticket, timeoutMs);
  return true;
}
