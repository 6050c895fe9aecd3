import { once } from "node:events";
import { configure, shutdown, withLock } from "../../../runtime";
import { report } from "./report";

// A process that holds and waits for many locks, and shuts down upon SIGTERM.

export interface ShutdownConfiguration {
  readonly url: string;
  readonly keys: readonly string[];
  /** The number of waiters for each key. */
  readonly waiters: number;
  /** Whether bodies end upon SIGTERM, or only when they lose their lock. */
  readonly endsInTime: boolean;
}

export type ShutdownReport =
  { readonly event: "held" } | { readonly event: "body ended" | "waiter ended"; readonly with: string };

const { url, keys, waiters, endsInTime } = JSON.parse(process.argv[2] ?? "") as ShutdownConfiguration;
const isPostgres = url.startsWith("postgres:");
configure({ ...(isPostgres ? { postgres: url } : { redis: url }), logger: { warn: () => {} }, woven: false });

const sigterm = once(process, "SIGTERM");
const lifeline = setInterval(() => {}, 60_000); // An application has something that keeps it alive.

for (const key of keys) void hold(key);

async function hold(key: string): Promise<void> {
  const held = withLock(key, {}, async (lock) => {
    for (let count = 0; count < waiters; count += 1) void wait(key);
    report({ event: "held" });
    if (endsInTime) await sigterm;
    else await once(lock.signal, "abort");
  });
  report({ event: "body ended", with: await held.then(() => "success", codeOf) });
}

async function wait(key: string): Promise<void> {
  const waited = withLock(key, { waitTime: "1m" }, () => {});
  report({ event: "waiter ended", with: await waited.then(() => "success", codeOf) });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

void sigterm.then(async () => {
  clearInterval(lifeline);
  await shutdown({ patience: "500ms" });
});
