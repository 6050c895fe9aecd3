import { uptime } from "node:os";
import { performance } from "node:perf_hooks";
import { LockOptionError } from "./errors";
import { readFrom } from "./options";
import { inRoot, rooted } from "./root-context";
import { formatValue } from "./format-value";

/** Cancels a timer. Calling it again, or after the timer ran, does nothing. */
export type CancelTimer = () => void;

/** A timer that can be set and cleared again and again at almost no cost. */
export interface Timer {
  /** Runs the callback once, at this time on the clock and never earlier. Replaces an earlier time. */
  set(at: number): void;
  clear(): void;
}

/** The only source of time for the runtime. Tests replace it to run under virtual time. */
export interface Clock {
  /** Returns milliseconds on a clock that never jumps. On Linux, it stands still while the machine is suspended. */
  now(): number;
  /**
   * Returns the milliseconds since the machine started. This clock also counts while the machine is suspended, and ignores corrections of
   * the system time. It may advance in steps of up to a second. Without it, the runtime does not notice a suspension if `now()` stands
   * still meanwhile.
   */
  sinceBoot?(): number;
  /** Returns the microseconds since 1970, for fencing tokens. */
  epochMicroseconds(): number;
  /** Runs `callback` once, `delayMs` from now and never earlier. The timer keeps the process alive. */
  after(delayMs: number, callback: () => void): CancelTimer;
  /** Runs `callback` once like `after()`, but the timer does not keep the process alive. */
  afterInBackground(delayMs: number, callback: () => void): CancelTimer;
  /** Creates a timer that keeps the process alive while it is set. */
  timer(callback: () => void): Timer;
  /** Creates a timer that does not keep the process alive. */
  timerInBackground(callback: () => void): Timer;
  /**
   * Runs `callback` after the process has read what has already arrived. After a stall, timers run before the replies that wait in the
   * socket. Without this method, timers may run first.
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

/** @throws {LockOptionError} if it is not a clock */
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

/** Runs `callback` after the process has read what has already arrived. Runs it immediately on a clock that cannot wait for that. */
export function afterIo(clock: Clock, callback: () => void): void {
  if (clock.afterIo === undefined) callback();
  else clock.afterIo(callback);
}

/** A timer that fires later than this after its time shows that the process was blocked. */
const BLOCKED_MS = 500;

/**
 * Calls `callback` when the time for replies is over. If the process was blocked until then, replies may have arrived that it could not read. So the
 * time starts again.
 *
 * @returns a function that cancels this
 */
export function afterUnblocked(clock: Clock, delayMs: number, callback: () => void): CancelTimer {
  let cancel: CancelTimer;
  const begin = (): void => {
    const dueAt = clock.now() + delayMs;
    cancel = clock.afterInBackground(delayMs, () => {
      if (clock.now() > dueAt + BLOCKED_MS) begin();
      else callback();
    });
  };
  begin();
  return () => cancel();
}

/** The clock of the system. Its timers run in the root context. */
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
  // After its timers, Node polls for I/O, and then runs immediates.
  afterIo: (callback) =>
    void inRoot(() => (typeof setImmediate === "function" ? setImmediate(callback) : setTimeout(callback))),
};

/** The type of a timer. Test environments such as jsdom replace Node's timers with a browser's, which are numbers. */
type SystemTimeout = NodeJS.Timeout | (number & { ref?: undefined; unref?: undefined });

/**
 * A timer that stays armed when it is cleared, and checks only when it fires whether there is still something to do. Arming and disarming a timer of
 * Node for each command would be a large part of the cost of an uncontended lock.
 */
class SystemTimer implements Timer {
  readonly #callback: () => void;
  readonly #isInBackground: boolean;
  #at: number | undefined;
  #armed: SystemTimeout | undefined;
  #firesAt = 0;

  constructor(callback: () => void, isInBackground: boolean) {
    this.#callback = callback;
    this.#isInBackground = isInBackground;
  }

  set(at: number): void {
    this.#at = at;
    if (this.#armed === undefined || at < this.#firesAt) this.#arm(at);
    else if (!this.#isInBackground) this.#armed.ref?.();
  }

  clear(): void {
    this.#at = undefined;
    this.#armed?.unref?.();
  }

  #arm(at: number): void {
    clearTimeout(this.#armed);
    const delayMs = neverEarly(Math.max(at - performance.now(), 0));
    this.#armed = inRoot(() => setTimeout(this.#onFire, delayMs));
    this.#firesAt = at;
    if (this.#isInBackground) this.#armed.unref?.();
  }

  readonly #onFire = (): void => {
    const at = this.#at;
    this.#armed = undefined;
    if (at === undefined) return;
    if (at > performance.now()) return this.#arm(at);
    this.#at = undefined;
    this.#callback();
  };
}

/** Returns the same clock with timers that run in the root context, whatever context the clock uses. */
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

/** The optional methods. They are listed here so that the compiler reports a new method of `Clock` that `inRootContext` does not wrap. */
type OptionalParts = Pick<Clock, "sinceBoot" | "afterIo">;

function timerInRoot(timer: Timer): Timer {
  return { set: (at) => inRoot(() => timer.set(at)), clear: () => timer.clear() };
}

/**
 * Rounds a delay up. Node truncates delays and its own clock to whole milliseconds, so a timer could fire before `now()` reaches its time.
 */
function neverEarly(delayMs: number): number {
  return Math.ceil(delayMs) + 1;
}
