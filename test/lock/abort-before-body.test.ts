import { subscribe, unsubscribe } from "node:diagnostics_channel";
import test from "ava";
import { configure } from "../../runtime/config/configure";
import type { LockEvents } from "../../runtime/lock/events";
import { obtain, withLock, type Keys, type WithLockOptions } from "../../runtime/with-lock";
import * as lockweave from "../../runtime/woven/woven";
import { Fleet } from "../support/fleet";

// Calls whose signal aborts between the grant of the lock and the start of the body.

const fleet = new Fleet();
const reason = new Error("the client went away");
/** No kind of lock needs more promise jobs from its grant to its body. */
const MOST_JOBS = 25;

test.before(() => {
  configure({ store: fleet.store, clock: fleet.clock }, "woven");
});

type Options = Omit<WithLockOptions, "signal" | "when">;

interface Call {
  readonly key: Keys;
  readonly options?: Options;
}

const CALLS: Readonly<Record<string, Call>> = {
  "one key": { key: "gap" },
  "several keys": { key: ["gap", "gap-2", "gap-3"] },
  "a reader": { key: "gap", options: { mode: "read" } },
  "a lock with permits": { key: "gap", options: { permits: 3 } },
  "a reentrant lock": { key: "gap", options: { reentrant: true } },
  "a lock that may be skipped": { key: "gap", options: { onFailure: "skip", onUnreachable: "skip" } },
  "a lock without a wait budget": { key: "gap", options: { wait: 0 } },
  "a lock that is released in the background": { key: "gap", options: { release: "background" } },
  "a lock with lockAtLeast": { key: "gap", options: { lockAtLeast: "20s" } },
  "a lock that would not be released": { key: "gap", options: { autoUnlock: false } },
  "a lock that only an error releases": { key: "gap", options: { autoUnlock: "onError" } },
};

/** Aborts some promise jobs after the grant of the last key. */
async function abortedAfterGrant<Result>(
  key: Keys,
  jobs: number,
  run: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  let missing = [key].flat().length;
  const onGrant = (event: unknown): void => {
    if (![key].flat().includes((event as LockEvents["lockweave:grant"]).key)) return;
    missing -= 1;
    if (missing === 0) void abortLater(controller, jobs);
  };
  subscribe("lockweave:grant", onGrant);
  try {
    return await run(controller.signal);
  } finally {
    unsubscribe("lockweave:grant", onGrant);
  }
}

async function abortLater(controller: AbortController, jobs: number): Promise<void> {
  for (let job = 0; job < jobs; job += 1) await Promise.resolve();
  controller.abort(reason);
}

/** Runs the calls with an abort after each possible number of promise jobs. Returns the results in that order. */
async function afterEachNumberOfJobs(
  key: Keys,
  run: (signal: AbortSignal) => Promise<boolean>,
): Promise<(boolean | string)[]> {
  const results: (boolean | string)[] = [];
  for (let jobs = 0; jobs <= MOST_JOBS; jobs += 1) {
    const end = abortedAfterGrant(key, jobs, run).catch((error: unknown) =>
      error === reason ? "rejected" : String(error),
    );
    await fleet.clock.settle();
    results.push(await end);
    await fleet.clock.settle();
    for (const one of [key].flat()) if (!(await fleet.isFree(one))) results.push(`${one} is not free`);
    await fleet.clock.advance(60_000);
  }
  return results;
}

/** Whether all early aborts reject and all late ones let the body run to its end. */
function isSplitOnce(results: readonly (boolean | string)[]): boolean {
  const first = results.indexOf(false);
  const rejected = results.slice(0, first);
  return (
    first > 0 &&
    rejected.every((one) => one === "rejected") &&
    results.slice(first).every((one) => one === false)
  );
}

const canStay = (options: Options = {}): boolean =>
  options.autoUnlock !== undefined || options.lockAtLeast !== undefined;

for (const [kind, { key, options }] of Object.entries(CALLS)) {
  test.serial(`the body never begins after an abort: ${kind}`, async (t) => {
    const results = await afterEachNumberOfJobs(
      key,
      async (signal) =>
        await (withLock(key, { ...options, signal }, () => signal.aborted) as Promise<boolean>),
    );
    const jobs = results.filter((result) => !canStay(options) || result !== "gap is not free");
    t.true(isSplitOnce(jobs), JSON.stringify(results));
    const firstStay = results.indexOf("gap is not free");
    t.true(firstStay === -1 || firstStay > results.lastIndexOf("rejected"), "a declined lock is released");
  });
}

test.serial("obtain() rejects and releases the lock if its signal aborts after the grant", async (t) => {
  const results = await afterEachNumberOfJobs("gap", async (signal) => {
    await using lock = await obtain("gap", { signal });
    return signal.aborted && lock.remaining() === 0;
  });
  t.true(isSplitOnce(results), JSON.stringify(results));
});

test.serial("the body of a reentrant call inside another never begins after an abort", async (t) => {
  const reentrant = { reentrant: true } as const;
  for (let jobs = 0; jobs <= MOST_JOBS; jobs += 1) {
    const controller = new AbortController();
    const { signal } = controller;
    await withLock("gap-r", reentrant, async (outer) => {
      void abortLater(controller, jobs);
      const inner = withLock("gap-r", { ...reentrant, signal }, () => signal.aborted);
      t.true([false, reason].includes(await inner.catch((error: unknown) => error as Error)));
      outer.assertHeld();
    });
    t.true(await fleet.isFree("gap-r"));
  }
});

for (const [kind, options] of Object.entries({
  "one key": {},
  "several keys": { each: true },
  "a reentrant lock": { reentrant: true },
  "a lock with lockAtLeast": { lockAtLeast: "20s" },
} as const)) {
  test.serial(`the body of a tagged function never begins after an abort: ${kind}`, async (t) => {
    const results = await afterEachNumberOfJobs("LOCK_gap_1", async (signal) => {
      const site = { site: "pay", businessFlag: "gap", ...options, signal };
      const lock = lockweave.open(site, "1");
      while (!(await lockweave.acquire(lock))) await lockweave.retryCheck(lock);
      try {
        if ("reentrant" in options) {
          return await lockweave.runReentrant(lock, () => Promise.resolve(signal.aborted));
        }
        lockweave.assertHeld(lock);
        return signal.aborted;
      } catch (error) {
        throw lockweave.fail(lock, error);
      } finally {
        await lockweave.release(lock);
      }
    });
    const jobs = results.filter(
      (result) => !("lockAtLeast" in options) || result !== "LOCK_gap_1 is not free",
    );
    t.true(isSplitOnce(jobs), JSON.stringify(results));
  });
}
