import { monotonicMs } from "./monotonic";

const TICK_MS = 5;

/**
 * Measures how late the event loop is, so that a test can ignore delays that the machine causes.
 *
 * @returns a function that stops the measurement and returns the longest delay in milliseconds
 */
export function startLagWatch(): () => number {
  let dueAt = monotonicMs() + TICK_MS;
  let worst = 0;
  const measure = (): void => {
    const now = monotonicMs();
    worst = Math.max(worst, now - dueAt);
    dueAt = now + TICK_MS;
  };
  const timer = setInterval(measure, TICK_MS);
  return () => {
    measure();
    clearInterval(timer);
    return worst;
  };
}
