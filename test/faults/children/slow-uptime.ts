import os from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { configure, LockError, withLock } from "../../../runtime";
import { monotonicMs } from "../../support/monotonic";
import { report } from "./report";

// A process that loses more than the lock time whenever it reads the time since boot, as if it were stopped there.

export interface SlowUptimeConfiguration {
  readonly url: string;
  readonly key: string;
}

export type SlowUptimeReport =
  | { readonly event: "checked"; readonly check: string; readonly passed: boolean }
  | { readonly event: "began"; readonly afterMs: number; readonly remainingMs: number }
  | { readonly event: "ended"; readonly isLockError: boolean };

const LOCK_TIME_MS = 250;
const LOOKS_APART_MS = 20;

const { url, key } = JSON.parse(process.argv[2] ?? "") as SlowUptimeConfiguration;

const uptime = os.uptime.bind(os);
let isSlow = false;
os.uptime = () => {
  if (isSlow) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * LOCK_TIME_MS);
  return uptime();
};

const options = { lockTime: `${LOCK_TIME_MS}ms`, watchdog: false, waitTime: "1m" } as const;

function passes(check: () => boolean): boolean {
  try {
    return check();
  } catch {
    return false;
  }
}

async function main(): Promise<void> {
  configure({ redis: url, logger: { warn: () => {} }, woven: false });
  for (const check of ["remaining", "assertHeld", "signal"] as const) {
    await withLock(`${key}:${check}`, { ...options, onLost: "warn" }, async (lock) => {
      await pause(2 * LOOKS_APART_MS);
      isSlow = true;
      const passed = passes(() => {
        if (check === "signal") return !lock.signal.aborted;
        if (check === "remaining") return lock.remaining() > 0;
        lock.assertHeld();
        return true;
      });
      isSlow = false;
      report({ event: "checked", check, passed });
    });
  }
  await pause(2 * LOOKS_APART_MS);
  isSlow = true; // From here on also in the check before a body.
  const startedAt = monotonicMs();
  const call = withLock(key, { ...options, waitTime: "2s", retryTimes: 1 }, (lock) => {
    report({ event: "began", afterMs: monotonicMs() - startedAt, remainingMs: lock.remaining() });
  });
  const error: unknown = await call.catch((thrown: unknown) => thrown);
  report({ event: "ended", isLockError: error instanceof LockError });
  process.exit();
}

void main();
