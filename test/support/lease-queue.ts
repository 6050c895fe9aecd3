import type { LeaseQueue } from "../../runtime/queue/lease";

/** Returns the queue of a lease that no caller releases. */
export function leaseQueue(key: string): LeaseQueue {
  const unexpected = (): never => {
    throw new Error(`${key} was released`);
  };
  return { key, release: unexpected, leaveToExpire: unexpected };
}
