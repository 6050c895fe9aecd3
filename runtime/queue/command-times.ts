import type { Lease } from "./lease";
import type { Waiter } from "./waiter";

// The time limits of the commands that acquire and renew locks. `InFlight` ends each command when its time is over.

/** The shortest time that a command gets, even if less is left of a wait budget or of a lock time. */
export const LEAST_COMMAND_TIME_MS = 200;

/** The pause before the next try while the store does not reply in time. */
export const UNREACHABLE_PAUSE_MS = 100;

/** The time that one command of the waiter may take. A caller with no wait budget still waits for one reply, at most the usual timeout. */
export function acquireTimeoutMs(waiter: Waiter, now: number, usualTimeoutMs: number): number {
  const patienceMs = waiter.isPatient ? 0 : usualTimeoutMs;
  const until = Math.min(waiter.budgetEndsAt + patienceMs, waiter.answerBy);
  return Math.max(until - now, LEAST_COMMAND_TIME_MS);
}

/** The time that a renewal of the lease may take. It leaves time for another one, if possible. */
export function renewalTimeoutMs({ lockTimeMs }: Lease, usualTimeoutMs: number): number {
  return Math.min(Math.max(lockTimeMs / 3, LEAST_COMMAND_TIME_MS), usualTimeoutMs);
}
