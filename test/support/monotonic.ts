/**
 * Milliseconds on the monotonic clock. On Linux this is CLOCK_MONOTONIC of the whole machine, so the readings of two
 * processes can be compared.
 */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
