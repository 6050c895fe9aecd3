/**
 * Milliseconds on the machine's monotonic clock, which all processes of the machine share: moments that
 * different processes took down can be compared. (`performance.now()` alone counts from each process's start.)
 */
export function now(): number {
  return OFFSET_MS + performance.now();
}

/** What happens between the two readings makes their difference too small, so the largest is the truest. */
const OFFSET_MS = Array.from(
  { length: 1_000 },
  () => Number(process.hrtime.bigint()) / 1e6 - performance.now(),
).reduce((largest, offset) => Math.max(largest, offset), -Infinity);
