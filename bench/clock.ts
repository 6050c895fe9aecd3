/**
 * Returns milliseconds on the machine's monotonic clock, which all its processes share. So times from different processes can be compared.
 * `performance.now()` alone counts from the start of each process.
 */
export function now(): number {
  return OFFSET_MS + performance.now();
}

/** Any delay between the two readings makes their difference too small, so the largest one is the most accurate. */
const OFFSET_MS = Array.from(
  { length: 1_000 },
  () => Number(process.hrtime.bigint()) / 1e6 - performance.now(),
).reduce((largest, offset) => Math.max(largest, offset), -Infinity);
