/**
 * Milliseconds on the monotonic clock. On Linux that is CLOCK_MONOTONIC of the whole machine: what two processes
 * read can be compared.
 */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
