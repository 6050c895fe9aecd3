import type { Home } from "./home";

type Runtime = typeof import("../../../runtime/index");

/** What is asked of who is about to take a lock from its holders. */
export function takeQuestion(now: boolean): string {
  return now
    ? "Free it at once? A body may be at work under it, and another one would run beside it."
    : "Revoke it? Its holder is told, and its key is free when its body has ended, or its time is over.";
}

/**
 * @param prefix the `keyPrefix` of the client that took the lock
 * @param now free the key at once, though a body may be at work under it
 * @returns whether somebody held it
 */
export async function take(home: Home, prefix: string, key: string, now: boolean): Promise<boolean> {
  const { configure, forceRelease, shutdown } = require("lockweave") as Runtime;
  const { redis, close } = home.prefixed(prefix);
  try {
    configure({ redis, woven: false, logger: { warn: (line) => void process.stderr.write(`${line}\n`) } });
    return (await forceRelease(key, { now })).length > 0;
  } finally {
    await shutdown({ patience: "0s" });
    close();
  }
}
