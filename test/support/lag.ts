import { monotonicMs } from "./monotonic";

const TICK_MS = 5;

/**
 * Watches by how much the event loop is late, which no code under test can be blamed for.
 *
 * @returns ends the watch, and tells the worst, in milliseconds
 */
export function startLagWatch(): () => number {
  let dueAt = monotonicMs() + TICK_MS;
  let worst = 0;
  const look = (): void => {
    const now = monotonicMs();
    worst = Math.max(worst, now - dueAt);
    dueAt = now + TICK_MS;
  };
  const timer = setInterval(look, TICK_MS);
  return () => {
    look();
    clearInterval(timer);
    return worst;
  };
}
