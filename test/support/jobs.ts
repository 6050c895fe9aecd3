import { deferred } from "./deferred";
import type { VirtualClock } from "./virtual-clock";

/** A body that runs until the test ends it. */
export interface Job {
  readonly body: () => Promise<string>;
  /** Resolves when the body has started. */
  readonly running: Promise<void>;
  readonly end: () => void;
}

export function job(): Job {
  const running = deferred();
  const end = deferred();
  const body = async (): Promise<string> => {
    running.resolve();
    await end.promise;
    return "done";
  };
  return { body, running: running.promise, end: end.resolve };
}

/** A body with nothing to do. */
export const idle = (): Promise<string> => Promise.resolve("done");

/** Resolves when this much virtual time has passed. */
export function passes(clock: VirtualClock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}
