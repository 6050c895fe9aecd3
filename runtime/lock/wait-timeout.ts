import {
  LockUnreachableError,
  LockWaitTimeoutError,
  errorMessage,
  type LockErrorHolder,
} from "../base/errors";
import type { Obstacle } from "../queue/key-queue";
import { FIX_OF_BUSY_LOCK, fixOfKey, stateOfKey } from "../stores/key-state";
import { isLockweaveHold } from "../stores/value";
import { lockOf, nameOf, type LockEvent } from "./events";
import type { AnnouncedHolder } from "./locker";
import { fixOfOwnWait, nameOfCaller, type OwnCaller } from "./own-wait";
import type { Settings } from "./settings";

/** Why a waiter does not hold the key, if the store has replied. */
export type BusyKey = Exclude<Obstacle, { kind: "store" }>;

/** Returns how long a caller waited, and its budget, in words. */
export function waitedFor({ retryTimes, waitTimeMs, waitMs }: Settings, pastMs: number): string {
  const budget =
    waitMs === undefined ? `retryTimes=${retryTimes}, waitTime=${waitTimeMs}ms` : `wait=${waitMs}ms`;
  return `within ${Math.round(pastMs)} ms (${budget})`;
}

/**
 * Returns the error of a caller whose wait budget is over while the store does not reply.
 *
 * @param waited how long it waited, in words
 */
export function storeUnreachable(lock: LockEvent, error: unknown, waited: string): LockUnreachableError {
  const message = `${nameOf(lock)}: the store did not grant the lock ${waited}: ${errorMessage(error)}`;
  return new LockUnreachableError(message, { ...lockOf(lock), cause: error });
}

/**
 * Returns the error of a caller whose wait budget is over.
 *
 * @param caller the caller around it that holds the key
 * @param waited how long it waited, in words
 * @param now the time on the monotonic clock
 * @param elsewhere what the process of a holder elsewhere announced
 */
export function waitTimeout(
  lock: LockEvent,
  busy: BusyKey,
  caller: OwnCaller | undefined,
  waited: string,
  now: number,
  elsewhere?: AnnouncedHolder,
): LockWaitTimeoutError {
  const state = caller === undefined ? stateOf(busy, now, elsewhere) : stateOfCaller(caller, now);
  const holder = caller === undefined ? holderIn(busy, elsewhere) : { pid: process.pid, site: caller.site };
  return new LockWaitTimeoutError(
    `LOCK_WAIT_TIME_OUT: ${nameOf(lock)} ${state} and did not become free ${waited}. Fix: ${fixOf(busy, caller)}`,
    { ...lockOf(lock), holder },
  );
}

/** Returns the name of a holder for a message: process 4711 on web-2 (OrderService.pay). */
export function holderName({ host, pid, site }: AnnouncedHolder): string {
  return `process ${pid} on ${host}${site === undefined ? "" : ` (${site})`}`;
}

function stateOf(busy: BusyKey, now: number, elsewhere: AnnouncedHolder | undefined): string {
  if (elsewhere !== undefined) return `is held by ${holderName(elsewhere)}`;
  if (busy.kind === "held elsewhere") return stateOfKey(busy.value);
  if (busy.kind === "asked for here") return "has an earlier waiter in this process";
  const { site, heldSince } = busy.holder;
  return `has been held in this process${site === undefined ? "" : ` by ${site}`} for ${Math.round(now - heldSince)} ms`;
}

function stateOfCaller(caller: OwnCaller, now: number): string {
  return `has been held by your own caller, ${nameOfCaller(caller)}, for ${Math.round(now - caller.heldSince)} ms`;
}

function fixOf(busy: BusyKey, caller: OwnCaller | undefined): string {
  if (caller !== undefined) return fixOfOwnWait(caller);
  return busy.kind === "held elsewhere" ? fixOfKey(busy.value) : FIX_OF_BUSY_LOCK;
}

/** Returns what is known about the holder. */
function holderIn(busy: BusyKey, elsewhere: AnnouncedHolder | undefined): LockErrorHolder | undefined {
  if (busy.kind === "asked for here") return undefined;
  if (busy.kind === "held here") return { pid: process.pid, site: busy.holder.site };
  const { value } = busy;
  // A value of another program may be secret, and errors are logged.
  return value !== undefined && isLockweaveHold(value) ? { storeValue: value, ...elsewhere } : undefined;
}
