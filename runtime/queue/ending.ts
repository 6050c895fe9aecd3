import type { ReleaseReply } from "../stores/port";
import type { Lease } from "./lease";
import { lossOf, unconfirmed, type Loss } from "./loss";
import type { QueueContext } from "./queue-context";
import type { Ended } from "./hand-off-turn";

/** A lease that is being released. */
export interface Ending {
  readonly lease: Lease;
  /** Whether the release was sent before the deadline of the lease. */
  readonly isBeforeDeadline: boolean;
  readonly ended: Ended;
  isOver: boolean;
}

/**
 * Reports to all holders of the lease whether they held it to its end, according to the reply of the store.
 *
 * @param finish called once, in any case
 * @param afterwards called after the holders know, for example to grant the lock to the next waiter
 */
export function concludeEnd(
  { clock }: Pick<QueueContext, "clock">,
  ending: Ending,
  reply: ReleaseReply,
  finish: () => void,
  afterwards = (): void => {},
): void {
  const { lease, isBeforeDeadline } = ending;
  const loss = reply.released
    ? undefined
    : lossOf(lease.requestId, reply.holder, isBeforeDeadline, lease.untilExpiry(clock.now()) > 0);
  end(ending, loss, afterwards, finish);
}

/** Reports an unknown outcome, and retries the release until the store replies, because the key may still be held. */
export function leaveUnconfirmed(
  { clock, renewals, releaseRetries }: Pick<QueueContext, "clock" | "renewals" | "releaseRetries">,
  ending: Ending,
  error: unknown,
  finish: () => void,
  onReply: () => void,
): void {
  const { lease } = ending;
  const sendAgain = (): void =>
    releaseRetries.release(lease.releaseRequest(clock.now()), renewals.maxLockTimeMs(lease), onReply);
  end(ending, unconfirmed(error), sendAgain, finish);
}

/** Ends the hold exactly once, even if a callback throws. */
function end(ending: Ending, loss: Loss | undefined, afterwards: () => void, finish: () => void): void {
  if (ending.isOver) return;
  ending.isOver = true;
  try {
    ending.lease.turn?.reportAll(loss);
    ending.ended(loss);
    afterwards();
  } finally {
    finish();
  }
}
