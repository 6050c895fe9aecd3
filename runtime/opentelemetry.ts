import { observeLocksWith, type ObserveOptions } from "./observe-locks";

export type { ObserveOptions } from "./observe-locks";

/**
 * Makes a span of each lock of this process, from the moment it is asked for to its release, as a child of the span that is
 * active there; and metrics of all, by the function that asks (`lockweave.site`) and the store (`lockweave.store`).
 *
 * @returns ends it
 */
export function observeLocks(options: ObserveOptions = {}): () => void {
  return observeLocksWith(require("@opentelemetry/api") as typeof import("@opentelemetry/api"), options);
}
