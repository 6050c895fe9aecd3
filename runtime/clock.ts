import { performance } from "node:perf_hooks";
import { LockOptionError } from "./errors";
import { shown } from "./shown";

/** Cancels a timer. Calling it again, or after the timer ran, does nothing. */
export type CancelTimer = () => void;

/** All the time that the runtime knows. Tests replace it to run under virtual time. */
export interface Clock {
  /** Milliseconds on a clock that never jumps. */
  now(): number;
  /** Microseconds since 1970, for fencing tokens. */
  epochMicroseconds(): number;
  /** Runs `callback` once, `delayMs` from now and never earlier. The timer keeps the process alive. */
  after(delayMs: number, callback: () => void): CancelTimer;
  /** The same, but the timer alone does not keep the process alive. */
  afterInBackground(delayMs: number, callback: () => void): CancelTimer;
}

/** @throws {LockOptionError} when it is none */
export function assertClock(clock: Clock): void {
  const missing = ["now", "epochMicroseconds", "after", "afterInBackground"].find(
    (name) => typeof (clock as unknown as Record<string, unknown> | null)?.[name] !== "function",
  );
  if (missing === undefined) return;
  throw new LockOptionError(`Expected \`clock\` to have a function \`${missing}\`, got ${shown(clock, 0)}`);
}

export const systemClock: Clock = {
  now: () => performance.now(),
  epochMicroseconds: () => Math.round((performance.timeOrigin + performance.now()) * 1000),
  after(delayMs, callback) {
    const timer = setTimeout(callback, neverEarly(delayMs));
    return () => clearTimeout(timer);
  },
  afterInBackground(delayMs, callback) {
    const timer = setTimeout(callback, neverEarly(delayMs)).unref();
    return () => clearTimeout(timer);
  },
};

/** Node cuts delays, and its own clock, to whole milliseconds: a timer could run before `now()` is there. */
function neverEarly(delayMs: number): number {
  return Math.ceil(delayMs) + 1;
}
