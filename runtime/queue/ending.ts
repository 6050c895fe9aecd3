import type { ReleaseReply } from "../stores/port";
import type { Lease } from "./lease";
import { lossOf, unconfirmed, type Loss } from "./loss";
import type { QueueContext } from "./queue-context";
import type { Ended } from "./hand-off-turn";

/** A lease that is being released. */
export interface Ending {
  readonly lease: Lease;
  readonly isBeforeItsTime: boolean;
  readonly ended: Ended;
  isOver: boolean;
}

/**
 * Reports to all holders of the lease whether it lasted to its end, as the store has answered.
 *
 * @param finish called once, in any case
 * @param go called after the holders know, for example to grant the lock to the next waiter
 */
export function concludeEnd(
  { clock }: Pick<QueueContext, "clock">,
  ending: Ending,
  reply: ReleaseReply,
  finish: () => void,
  go = (): void => {},
): void {
  const { lease, isBeforeItsTime } = ending;
  const loss = reply.released
    ? undefined
    : lossOf(lease.requestId, reply.holder, isBeforeItsTime, lease.untilExpiry(clock.now()) > 0);
  end(ending, loss, go, finish);
}

/** The store has not answered, so the key may still be held. The release is retried until the store answers. */
export function leaveUnconfirmed(
  { clock, renewals, releaseRetries }: Pick<QueueContext, "clock" | "renewals" | "releaseRetries">,
  ending: Ending,
  error: unknown,
  finish: () => void,
  onAnswer: () => void,
): void {
  const { lease } = ending;
  const sendAgain = (): void =>
    releaseRetries.release(lease.releaseRequest(clock.now()), renewals.mostLockTimeMs(lease), onAnswer);
  end(ending, unconfirmed(error), sendAgain, finish);
}

/** Ends the hold exactly once, even if a callback throws. */
function end(ending: Ending, loss: Loss | undefined, go: () => void, finish: () => void): void {
  if (ending.isOver) return;
  ending.isOver = true;
  try {
    ending.lease.turn?.tellAll(loss);
    ending.ended(loss);
    go();
  } finally {
    finish();
  }
}
