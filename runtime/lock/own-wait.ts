import type { Holder } from "../queue/lease";
import { nameOf, type LockEvent } from "./events";

// A call that waits for a lock of its own caller. If that caller awaits the call, neither can end.

/** The caller around a call that holds the same key. */
export interface OwnCaller extends Holder {
  /** Whether its body is running, and has not lost the lock. */
  readonly isBodyInside: boolean;
}

/** How long a call may wait for its own caller before it warns. A call that nobody awaits often waits only until its caller ends. */
export const OWN_WAIT_MS = 1_000;

export function warningOfOwnWait(lock: LockEvent, caller: OwnCaller): string {
  return `${nameOf(lock)} is held by your own caller, ${nameOfCaller(caller)}. If that caller awaits this call, neither can end. Fix: ${fixOfOwnWait(caller)}`;
}

export function fixOfOwnWait(caller: OwnCaller): string {
  return `use reentrant=true in both places, or start this call after ${nameOfCaller(caller)} has ended`;
}

export function nameOfCaller({ site = "withLock()" }: OwnCaller): string {
  return site;
}
