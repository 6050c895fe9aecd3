import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { configure, quorumStore, shutdown, withLock, type Configuration } from "../../../runtime";
import type { HeldLock } from "../../../runtime/lock/held-lock";
import { openGlide } from "../../support/glide";
import { monotonicMs } from "../../support/monotonic";
import { report } from "./report";

// A process whose callers enter one lock again and again until SIGTERM, and report what they did and believed.

export interface CallersConfiguration {
  /** One URL, or the URLs of a quorum's masters. */
  readonly url: string | readonly string[];
  /** The library of the client that the process gives to `configure()`. By default, Lockweave connects to the URL itself. */
  readonly library?: LibraryName;
  /** Only for a quorum. */
  readonly longestLockTimeMs?: number;
  readonly key: string;
  readonly callers: number;
  readonly lockTimeMs: number;
  /** How long a caller rests at most between two sections. */
  readonly restMs: number;
  /** The longest time of a body that was not ordered to be long. Default 6. */
  readonly longestMs?: number;
}

/** All times are of CLOCK_MONOTONIC, in milliseconds. */
export type CallersReport =
  | { readonly event: "ready" }
  /** All calls have settled after SIGTERM. */
  | { readonly event: "ended" }
  | {
      readonly event: "entered";
      readonly id: number;
      readonly at: number;
      readonly believedUntil: number;
      readonly fencingToken: number;
      readonly isLong: boolean;
    }
  | { readonly event: "believes"; readonly id: number; readonly until: number }
  | { readonly event: "signaled" | "left" | "missed signal"; readonly id: number; readonly at: number }
  | { readonly event: "failed"; readonly code: string };

/** The client of one library, and how the process closes it. */
interface GivenClient {
  readonly redis: NonNullable<Configuration["redis"]>;
  close(): unknown;
}

export type LibraryName = keyof typeof LIBRARIES;

const LIBRARIES = {
  ioredis(address: string): GivenClient {
    const redis = new Redis(address);
    redis.on("error", () => {}); // The locks report it.
    return { redis, close: () => redis.disconnect() };
  },
  "node-redis"(address: string): GivenClient {
    const redis = createClient({ url: address });
    redis.on("error", () => {});
    redis.connect().catch(() => {});
    return { redis, close: () => redis.close() };
  },
  async glide(address: string): Promise<GivenClient> {
    const redis = await openGlide(Number(new URL(address).port));
    return { redis, close: () => redis.glide.close() };
  },
};

const {
  url,
  library,
  longestLockTimeMs = 60_000,
  key,
  callers,
  lockTimeMs,
  restMs,
  longestMs = 6,
} = JSON.parse(process.argv[2] ?? "") as CallersConfiguration;
let sections = 0;
let nextIsLong = false;
const ending = new AbortController();

const orders = createInterface({ input: process.stdin }).on("line", (order) => {
  if (order === "long") nextIsLong = true;
  // Blocks the event loop, like a long computation.
  if (order === "block") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1.6 * lockTimeMs);
});

void begin();

async function begin(): Promise<void> {
  const given = library !== undefined && typeof url === "string" ? await LIBRARIES[library](url) : undefined;
  const home =
    typeof url === "string"
      ? { redis: given?.redis ?? url }
      : { store: quorumStore(url, { longestLockTime: `${longestLockTimeMs}ms` }) };
  configure({ ...home, commandTimeout: "250ms", logger: { warn: () => {} }, woven: false });
  void once(process, "SIGTERM").then(async () => {
    ending.abort();
    orders.close();
    process.stdin.destroy();
    await shutdown();
    await everybody;
    report({ event: "ended" });
    await given?.close();
  });
  const everybody = Promise.all(Array.from({ length: callers }, enterAgainAndAgain));
  report({ event: "ready" });
}

async function enterAgainAndAgain(): Promise<void> {
  while (!ending.signal.aborted) {
    try {
      await withLock(key, { lockTime: `${lockTimeMs}ms`, waitTime: "20s", fencing: true }, body);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
      if (code !== "LOCK_CLOSED") report({ event: "failed", code });
      await pause(10);
    }
    await pause(Math.random() * restMs);
  }
}

/** Checks its lock at every step, and continues to its end even if the lock is over. */
async function body(lock: HeldLock): Promise<void> {
  const at = monotonicMs();
  const id = (sections += 1);
  const isLong = nextIsLong;
  nextIsLong = false;
  let believedUntil = at + lock.remaining();
  report({ event: "entered", id, at, believedUntil, fencingToken: lock.fencingToken, isLong });
  lock.signal.addEventListener("abort", () => report({ event: "signaled", id, at: monotonicMs() }));
  const endsAt = at + (isLong ? 2.2 * lockTimeMs : Math.random() * longestMs);
  while (monotonicMs() < endsAt) {
    await pause(2);
    const now = monotonicMs();
    const remainingMs = lock.remaining();
    if (remainingMs > 0 && now + remainingMs > believedUntil + 1) {
      believedUntil = now + remainingMs;
      report({ event: "believes", id, until: believedUntil });
    } else if (remainingMs === 0 && !lock.signal.aborted) {
      // The timer for the deadline is due by now, or within 2 ms. It runs before this one, however late both are.
      await pause(5);
      if (!lock.signal.aborted) report({ event: "missed signal", id, at: monotonicMs() });
    }
  }
  report({ event: "left", id, at: monotonicMs() });
}
