import { openSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import type { Pool } from "pg";
import { systemClock, type Clock } from "../../runtime/base/clock";
import type { Lock } from "../../runtime/lock/lock";
import { Lease } from "../../runtime/queue/lease";
import type { WholeStore } from "../../runtime/stores/port";
import type { LockOptions } from "../../runtime/lock/settings";
import { FleetProcess } from "../support/fleet";
import { monotonicMs } from "../support/monotonic";
import { SeededRandom } from "../support/seeded-random";
import { retire } from "../support/retire";
import { withDefect, type Defect } from "./defects";
import type { Entry } from "./history";
import { endsUnheard, innerPlan, isQueued, Keys, nextOverrun, nextPlan, type Plan } from "./plan";
import { openTarget, type StoreTarget } from "./target";

// A process of the torture: its callers enter random locks until the parent says "finish". Each entry is written to a file immediately.

export interface ProcessConfiguration {
  readonly target: StoreTarget;
  readonly round: string;
  readonly seed: number;
  readonly callers: number;
  readonly file: string;
  /** Options that all calls have. */
  readonly options: LockOptions;
  readonly hasSharedLocks: boolean;
  readonly defect?: Defect | undefined;
  /** Whether all calls are of a kind that often outlives its lock. */
  readonly overruns?: boolean | undefined;
}

export interface ProcessReport {
  readonly event: "ready" | "finished";
}

const configuration = JSON.parse(process.argv[2] ?? "") as ProcessConfiguration;
const {
  target,
  round,
  seed,
  callers,
  file,
  options: optionsOfAll,
  hasSharedLocks,
  defect,
  overruns = false,
} = configuration;
const log = openSync(file, "ax");
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

let guardPool: Pool | undefined;
let closeOthers = async (): Promise<void> => {};

function openStore(): WholeStore {
  const opened = openTarget(target);
  guardPool = opened.guardPool;
  closeOthers = opened.close;
  return opened.store;
}

/** Records each reply that grants or renews a hold. */
function recordProofs(): void {
  const { prove } = Lease.prototype;
  Lease.prototype.prove = function recorded(this: Lease, sentAt, lockTimeMs, trustedSince) {
    prove.call(this, sentAt, lockTimeMs, trustedSince);
    const [earliest, now, at] = [monotonicMs(), systemClock.now(), monotonicMs()];
    // Rounded so that the belief lasted at least until `sureUntil`, and none is legal after `until`.
    const sureUntil = earliest + Math.max(this.sureUntil(-Infinity) - now, 0);
    note({ event: "proven", at, hold: this.requestId, sureUntil, until: at + sentAt + lockTimeMs - now });
  };
}

/** The calls of abort listeners that have not ended. */
const onLoss = new Set<Promise<void>>();

function track(call: Promise<void>): void {
  const done = call.finally(() => onLoss.delete(done));
  onLoss.add(done);
}

recordProofs();
const member = new FleetProcess({
  store: withDefect(defect, openStore),
  clock,
  commandTimeout: "250ms",
  logger: { warn: () => {} },
});

createInterface({ input: process.stdin }).on("line", (order) => {
  if (order === "finish") finishing.abort();
  else wallClockMs = Number(order);
});

async function main(): Promise<void> {
  const loops = Array.from({ length: callers }, () => callAgainAndAgain());
  report("ready");
  await Promise.all(loops);
  while (onLoss.size > 0) await Promise.all(onLoss);
  await retire(member);
  await closeOthers();
  report("finished");
  process.stdin.destroy();
}

async function callAgainAndAgain(): Promise<void> {
  while (!finishing.signal.aborted) {
    const plan = overruns
      ? nextOverrun(random, keys)
      : nextPlan(random, keys, keys.own(seed), hasSharedLocks);
    await callOnce(plan);
    await pause(random.below(20));
  }
}

/** @param isTopLevel whether it is not a call by the body or the abort listener of another one */
async function callOnce(planned: Plan, isTopLevel = true): Promise<void> {
  const plan = { ...planned, options: { ...planned.options, ...optionsOfAll } };
  const call = (calls += 1);
  const what = `${plan.keys.join(" and ")} with ${JSON.stringify(plan.options)}`;
  const queue = isTopLevel && isQueued(plan) ? plan.keys[0] : undefined;
  note({ event: "called", call, at: monotonicMs(), what, queue, endsUnheard: endsUnheard(plan) });
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

type Held = Pick<Lock, "assertHeld" | "remaining" | "signal" | "extend" | "guard" | "storeValue"> & {
  readonly fencingToken: number | undefined;
};

/** Checks its lock at every step, and goes on working when the lock is lost. */
async function body(lock: Held, plan: Plan, call: number): Promise<string> {
  const at = monotonicMs();
  note({ event: "entered", call, at, keys: plan.keys, room: plan.room, fencingToken: lock.fencingToken });
  const { locksOnLoss } = plan;
  lock.signal.addEventListener("abort", () => {
    note({ event: "lost", call, at: monotonicMs() });
    if (locksOnLoss !== undefined) track(callOnce(innerPlan(locksOnLoss), false));
  });
  const endsAt = at + plan.bodyMs;
  check(lock, call);
  if (plan.extendsTo !== undefined) await lock.extend(plan.extendsTo).catch(() => {}); // The next check finds a loss.
  if (plan.entersAgain && !plan.isEach) await enterAgain(plan);
  if (plan.locksInside !== undefined) await callOnce(innerPlan(plan.locksInside), false);
  do {
    if (plan.blocksMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, plan.blocksMs);
    check(lock, call);
    await pause(2);
    check(lock, call);
  } while (monotonicMs() < endsAt);
  // The lock may be lost by now. Then the transaction must not commit if anybody has acquired the lock since.
  if (plan.guards && guardPool !== undefined) await commitGuarded(lock, call, guardPool);
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
  note({ event: "sure", call, at, until: at + lock.remaining(), hold: lock.storeValue });
}

/** Enters the lock again. Only the async context that holds the lock can. */
async function enterAgain({ keys: [key = ""], options }: Plan): Promise<void> {
  if (options.reentrant !== true && options.mode !== "read") return;
  await member.call(key, options, () => pause(1)).catch(() => {}); // The next check finds a loss.
}

/** Commits a transaction that guards the lock. The server decides whether it can. */
async function commitGuarded(lock: Held, call: number, pool: Pool): Promise<void> {
  const client = await pool.connect().catch(() => undefined);
  if (client === undefined) return; // The server is down.
  client.on("error", () => {}); // The next query rejects.
  try {
    await client.query("BEGIN");
    await lock.guard((sql) => client.query(sql));
    await pause(random.below(100));
    const at = monotonicMs();
    const { command } = await client.query("COMMIT");
    // After a canceled statement, COMMIT rolls back without an error.
    if (command === "COMMIT") note({ event: "committed", call, at });
    client.release();
  } catch {
    client.release(true); // The lock is lost, or the connection is broken.
  }
}

function codeOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted && error === signal.reason) return "aborted";
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

void main();
