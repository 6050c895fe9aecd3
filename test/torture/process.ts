import { openSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { systemClock, type Clock } from "../../runtime/base/clock";
import type { Lock } from "../../runtime/lock/lock";
import { redisStore, redisStoreAt } from "../../runtime/stores/redis/redis";
import { FleetProcess } from "../support/fleet";
import { monotonicMs } from "../support/monotonic";
import { SeededRandom } from "../support/seeded-random";
import { retire } from "../support/retire";
import { withDefect, type Defect } from "./defects";
import type { Entry } from "./history";
import { Keys, nextPlan, type Plan } from "./plan";

// A process of the torture: its callers enter random locks until the parent says "finish". Each entry is written to a file immediately.

export interface ProcessConfiguration {
  readonly url: string;
  /** Whether Lockweave gets a client of the application or a URL. */
  readonly hasClient: boolean;
  readonly round: string;
  readonly seed: number;
  readonly callers: number;
  readonly file: string;
  readonly defect?: Defect | undefined;
}

export interface ProcessReport {
  readonly event: "ready" | "finished";
}

const configuration = JSON.parse(process.argv[2] ?? "") as ProcessConfiguration;
const { url, hasClient, round, seed, callers, file, defect } = configuration;
const log = openSync(file, "a");
const keys = new Keys(round);
const random = new SeededRandom(seed);
let calls = 0;
const finishing = new AbortController();
let wallClockMs = 0;

function note(entry: Entry): void {
  writeSync(log, `${JSON.stringify(entry)}\n`);
}

function report(event: ProcessReport["event"]): void {
  writeSync(1, `${JSON.stringify({ event } satisfies ProcessReport)}\n`);
}

for (const event of ["unhandledRejection", "uncaughtException"] as const) {
  process.on(event, (error: unknown) => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    note({ event: "complaint", at: monotonicMs(), text: `${event} ${text}` });
  });
}

// The wall clock steps when the parent says so. No belief may depend on it.
const dateNow = Date.now;
Date.now = () => dateNow() + wallClockMs;
const clock: Clock = {
  ...systemClock,
  epochMicroseconds: () => systemClock.epochMicroseconds() + wallClockMs * 1_000,
};

const client = hasClient ? new Redis(url) : undefined;
client?.on("error", () => {}); // Each command reports its own failure.
const store = client === undefined ? redisStoreAt(url) : redisStore(client);
const member = new FleetProcess({
  store: withDefect(defect, store),
  clock,
  commandTimeout: "250ms",
  logger: { warn: () => {} },
});

createInterface({ input: process.stdin }).on("line", (order) => {
  if (order === "finish") finishing.abort();
  else wallClockMs += Number(order);
});

async function main(): Promise<void> {
  const loops = Array.from({ length: callers }, () => callAgainAndAgain());
  report("ready");
  await Promise.all(loops);
  await retire(member);
  client?.disconnect();
  report("finished");
  process.stdin.destroy();
}

async function callAgainAndAgain(): Promise<void> {
  while (!finishing.signal.aborted) {
    await callOnce(nextPlan(random, keys));
    await pause(random.below(20));
  }
}

async function callOnce(plan: Plan): Promise<void> {
  const call = (calls += 1);
  const what = `${plan.keys.join(" and ")} with ${JSON.stringify(plan.options)}`;
  note({ event: "called", call, at: monotonicMs(), what });
  const aborter = new AbortController();
  const abort = setTimeout(() => aborter.abort(new Error("aborted")), plan.abortsAfterMs);
  if (plan.abortsAfterMs === undefined) clearTimeout(abort);
  const outcome = await run(plan, call, aborter.signal).then(
    (result) => result ?? "skipped",
    (error: unknown) => codeOf(error, aborter.signal),
  );
  clearTimeout(abort);
  note({ event: "ended", call, at: monotonicMs(), with: outcome });
}

async function run(plan: Plan, call: number, signal: AbortSignal): Promise<string | undefined> {
  const [key = ""] = plan.keys;
  if (!plan.isEach) return await member.call(key, plan.options, (lock) => body(lock, plan, call), { signal });
  const locks = member.locks(plan.keys, plan.options);
  while (!(await locks.acquire(signal))) if (!(await locks.retryCheck())) return undefined;
  try {
    locks.assertHeld();
    return await body(locks, plan, call);
  } catch (error) {
    throw locks.fail(error);
  } finally {
    await locks.release();
  }
}

type Held = Pick<Lock, "assertHeld" | "remaining" | "signal" | "extend"> & {
  readonly fencingToken: number | undefined;
};

/** Checks its lock at every step, and goes on working when the lock is lost. */
async function body(lock: Held, plan: Plan, call: number): Promise<string> {
  const at = monotonicMs();
  note({ event: "entered", call, at, keys: plan.keys, room: plan.room, fencingToken: lock.fencingToken });
  lock.signal.addEventListener("abort", () => note({ event: "lost", call, at: monotonicMs() }));
  const endsAt = at + plan.bodyMs;
  check(lock, call);
  if (plan.extendsTo !== undefined) await lock.extend(plan.extendsTo).catch(() => {}); // The next check finds a loss.
  if (plan.entersAgain && !plan.isEach) await enterAgain(plan);
  do {
    if (plan.blocksMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, plan.blocksMs);
    check(lock, call);
    await pause(2);
    check(lock, call);
  } while (monotonicMs() < endsAt);
  note({ event: "left", call, at: monotonicMs() });
  return "success";
}

function check(lock: Held, call: number): void {
  const at = monotonicMs();
  try {
    lock.assertHeld();
  } catch {
    return note({ event: "lost", call, at });
  }
  note({ event: "sure", call, at, until: at + lock.remaining() });
}

/** Enters the lock again. Only the async context that holds the lock can. */
async function enterAgain({ keys: [key = ""], options }: Plan): Promise<void> {
  if (options.reentrant !== true && options.mode !== "read") return;
  await member.call(key, options, () => pause(1)).catch(() => {}); // The next check finds a loss.
}

function codeOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted && error === signal.reason) return "aborted";
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

void main();
