import { uptime } from "node:os";
import { performance } from "node:perf_hooks";
import { LockOptionError } from "./errors";
import { readFrom } from "./options";
import { inRoot, rooted } from "./root-context";
import { formatValue } from "./format-value";

/** Cancels a timer. Calling it again, or after the timer ran, does nothing. */
export type CancelTimer = () => void;

/** One that is set and cleared time and again, at next to no cost. */
export interface Timer {
  /** Runs the callback once, at this time on the clock and never earlier, whatever it was set to before. */
  set(at: number): void;
  clear(): void;
}

/** All the time that the runtime knows. Tests replace it to run under virtual time. */
export interface Clock {
  /** Milliseconds on a clock that never jumps. On Linux it stands still while the machine is suspended. */
  now(): number;
  /**
   * Milliseconds since the machine started, which also count while it is suspended and follow no correction of the
   * clock; they may stand still for up to a second at a time. Without it, a suspension is not noticed where `now()`
   * stands still meanwhile.
   */
  sinceBoot?(): number;
  /** Microseconds since 1970, for fencing tokens. */
  epochMicroseconds(): number;
  /** Runs `callback` once, `delayMs` from now and never earlier. The timer keeps the process alive. */
  after(delayMs: number, callback: () => void): CancelTimer;
  /** The same, but the timer alone does not keep the process alive. */
  afterInBackground(delayMs: number, callback: () => void): CancelTimer;
  /** While it is set it keeps the process alive. */
  timer(callback: () => void): Timer;
  /** It alone does not keep the process alive. */
  timerInBackground(callback: () => void): Timer;
  /**
   * Runs `callback` after the process has read what has already arrived for it. After a stall, timers run before the
   * replies that lie in the socket. A clock without it gives them no such chance.
   */
  afterIo?(callback: () => void): void;
}

const FUNCTIONS = [
  "now",
  "epochMicroseconds",
  "after",
  "afterInBackground",
  "timer",
  "timerInBackground",
] satisfies (keyof Clock)[];

/** @throws {LockOptionError} when it is none */
export function assertClock(clock: Clock): void {
  readFrom("The option `clock`", () => assertFunctions(clock));
}

function assertFunctions(clock: Clock): void {
  const missing = FUNCTIONS.find(
    (name) => typeof (clock as unknown as Record<string, unknown> | null)?.[name] !== "function",
  );
  if (missing !== undefined) {
    throw new LockOptionError(
      `Expected \`clock\` to have a function \`${missing}\`, got ${formatValue(clock)}`,
    );
  }
  for (const name of ["sinceBoot", "afterIo"] as const) {
    const optional: unknown = clock[name];
    if (optional === undefined || typeof optional === "function") continue;
    throw new LockOptionError(`Expected \`clock.${name}\` to be a function, got ${formatValue(optional)}`);
  }
}

/** Runs `callback` after what has already arrived was read, or at once on a clock that cannot wait for that. */
export function afterIo(clock: Clock, callback: () => void): void {
  if (clock.afterIo === undefined) callback();
  else clock.afterIo(callback);
}

/** Its timers run in the root context. */
export const systemClock: Clock = {
  now: () => performance.now(),
  sinceBoot: () => uptime() * 1000,
  epochMicroseconds: () => Math.round((performance.timeOrigin + performance.now()) * 1000),
  after(delayMs, callback) {
    const timer = inRoot(() => setTimeout(callback, neverEarly(delayMs)));
    return () => clearTimeout(timer);
  },
  afterInBackground(delayMs, callback) {
    const timer: SystemTimeout = inRoot(() => setTimeout(callback, neverEarly(delayMs)));
    timer.unref?.();
    return () => clearTimeout(timer);
  },
  timer: (callback) => new SystemTimer(callback, false),
  timerInBackground: (callback) => new SystemTimer(callback, true),
  // A timer that calls this is followed by a poll for I/O, and immediates run after that.
  afterIo: (callback) =>
    void inRoot(() => (typeof setImmediate === "function" ? setImmediate(callback) : setTimeout(callback))),
};

/** What a timer is here. Test environments such as jsdom replace Node's timers with a browser's, which are numbers. */
type SystemTimeout = NodeJS.Timeout | (number & { ref?: undefined; unref?: undefined });

/**
 * To arm and disarm one of Node's timers for each command is a good part of what a lone lock costs. So this one
 * leaves it armed when it is cleared, and sees when it rings whether there is still something to do.
 */
class SystemTimer implements Timer {
  readonly #callback: () => void;
  readonly #isInBackground: boolean;
  #at: number | undefined;
  #armed: SystemTimeout | undefined;
  #ringsAt = 0;

  constructor(callback: () => void, isInBackground: boolean) {
    this.#callback = callback;
    this.#isInBackground = isInBackground;
  }

  set(at: number): void {
    this.#at = at;
    if (this.#armed === undefined || at < this.#ringsAt) this.#arm(at);
    else if (!this.#isInBackground) this.#armed.ref?.();
  }

  clear(): void {
    this.#at = undefined;
    this.#armed?.unref?.();
  }

  #arm(at: number): void {
    clearTimeout(this.#armed);
    const delayMs = neverEarly(Math.max(at - performance.now(), 0));
    this.#armed = inRoot(() => setTimeout(this.#ring, delayMs));
    this.#ringsAt = at;
    if (this.#isInBackground) this.#armed.unref?.();
  }

  readonly #ring = (): void => {
    const at = this.#at;
    this.#armed = undefined;
    if (at === undefined) return;
    if (at > performance.now()) return this.#arm(at);
    this.#at = undefined;
    this.#callback();
  };
}

/** The same clock, but its timers run in the root context, whatever context it runs them in itself. */
export function inRootContext(clock: Clock): Clock {
  if (clock === systemClock) return clock;
  const needed = {
    now: () => clock.now(),
    epochMicroseconds: () => clock.epochMicroseconds(),
    after: (delayMs, callback) => inRoot(() => clock.after(delayMs, rooted(callback))),
    afterInBackground: (delayMs, callback) =>
      inRoot(() => clock.afterInBackground(delayMs, rooted(callback))),
    timer: (callback) => timerInRoot(clock.timer(rooted(callback))),
    timerInBackground: (callback) => timerInRoot(clock.timerInBackground(rooted(callback))),
  } satisfies Required<Omit<Clock, keyof OptionalParts>>;
  const optional: OptionalParts = {
    ...(clock.sinceBoot && { sinceBoot: () => clock.sinceBoot?.() ?? NaN }),
    ...(clock.afterIo && { afterIo: (callback) => inRoot(() => clock.afterIo?.(rooted(callback))) }),
  };
  return { ...needed, ...optional };
}

/** What is optional is named here, so that the compiler asks for whatever a clock gets besides. */
type OptionalParts = Pick<Clock, "sinceBoot" | "afterIo">;

function timerInRoot(timer: Timer): Timer {
  return { set: (at) => inRoot(() => timer.set(at)), clear: () => timer.clear() };
}

/** Node cuts delays, and its own clock, to whole milliseconds: a timer could run before `now()` is there. */
function neverEarly(delayMs: number): number {
  return Math.ceil(delayMs) + 1;
}
