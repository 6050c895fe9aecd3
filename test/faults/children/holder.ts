import { withLock, configure } from "../../../runtime";
import type { ServerTarget } from "../../support/lock-server";
import { monotonicMs } from "../../support/monotonic";
import { report } from "./report";

// A process that holds one lock, or waits for it, until it is killed.

export interface HolderConfiguration {
  readonly target: ServerTarget;
  readonly key: string;
  readonly lockTime: `${number}ms`;
}

export type HolderReport =
  | { readonly event: "held" }
  | {
      readonly event: "aborted";
      /** On CLOCK_MONOTONIC, in milliseconds. */
      readonly at: number;
      /** The time until which it could trust its lock. */
      readonly believedUntil: number;
      /** The largest delay of its event loop, which a busy machine causes. */
      readonly worstLagMs: number;
    };

const TICK_MS = 5;

const { target, key, lockTime } = JSON.parse(process.argv[2] ?? "") as HolderConfiguration;
configure({ ...target, commandTimeout: "300ms", logger: { warn: () => {} }, woven: false });

void withLock(key, { lockTime, waitTime: "1m" }, async (lock) => {
  let [tickedAt, believedUntil, worstLagMs] = [monotonicMs(), 0, 0];
  const look = (): void => {
    const now = monotonicMs();
    worstLagMs = Math.max(worstLagMs, now - tickedAt - TICK_MS);
    tickedAt = now;
    if (lock.remaining() > 0) believedUntil = now + lock.remaining();
  };
  setInterval(look, TICK_MS);
  lock.signal.addEventListener("abort", () => {
    look();
    report({ event: "aborted", at: tickedAt, believedUntil, worstLagMs });
  });
  report({ event: "held" });
  await new Promise(() => {}); // Until the end of the process.
});
