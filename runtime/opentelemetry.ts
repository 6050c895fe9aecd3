import { observeLocksWith, type ObserveOptions } from "./diagnostics/observe-locks";

export type { ObserveOptions } from "./diagnostics/observe-locks";

/**
 * Creates a span for each lock of this process, from the acquire call to the release, as a child of the active span. Also records metrics
 * of all locks by function (`lockweave.site`) and store (`lockweave.store`).
 *
 * @returns a function that stops this
 */
export function observeLocks(options: ObserveOptions = {}): () => void {
  return observeLocksWith(require("@opentelemetry/api") as typeof import("@opentelemetry/api"), options);
}
