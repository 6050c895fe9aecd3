import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import test from "ava";
import { forceRelease, obtain, shutdown, withLock, type LockEvents } from "../../runtime";
import { configure } from "../../runtime/config/configure";
import type { Configuration } from "../../runtime/config/configuration";
import { Fleet } from "../support/fleet";
import { passes } from "../support/jobs";

// The async context in which user code runs. Callers share timers, batches, and replies, so a context could leak.

const REENTRANT = { reentrant: true } as const;
/** The caller's own context, like the request ID of a web framework. */
const caller = new AsyncLocalStorage<string>();
const CHANNELS = [
  "lockweave:acquire",
  "lockweave:wait",
  "lockweave:grant",
  "lockweave:give-up",
  "lockweave:renew",
  "lockweave:lost",
  "lockweave:release",
] as const satisfies readonly (keyof LockEvents)[];

function bySpelling(one = "", other = ""): number {
  return one < other ? -1 : 1;
}

/** Records in which callers' contexts each listener and log function runs: `lockweave:lost` → `x`. */
class ContextRecorder {
  readonly by = new Map<string, Set<string>>();
  readonly logger = {
    debug: () => this.note("debug"),
    warn: () => this.note("warn"),
  };
  readonly #listen = (_: unknown, name: string | symbol): void => this.note(String(name));

  constructor() {
    for (const name of CHANNELS) subscribe(name, this.#listen);
  }

  note(what: string): void {
    let seen = this.by.get(what);
    if (seen === undefined) this.by.set(what, (seen = new Set()));
    seen.add(caller.getStore() ?? "nobody");
  }

  /** Stops listening and returns what was recorded. */
  end(): Record<string, string[]> {
    for (const name of CHANNELS) unsubscribe(name, this.#listen);
    return Object.fromEntries([...this.by].map(([what, seen]) => [what, [...seen].toSorted(bySpelling)]));
  }
}

let current = new Fleet();

function start(more: Omit<Configuration, "redis"> = {}): Fleet {
  const fleet = new Fleet();
  current = fleet;
  configure({ woven: false, store: fleet.memory, clock: fleet.clock, logger: { warn() {} }, ...more });
  return fleet;
}

test.afterEach.always(async () => {
  await Promise.all([shutdown({ patience: "0s" }), current.clock.advance(10_000)]);
});

/** Counts the bodies that are inside at the same time. */
class Room {
  most = 0;
  #inside = 0;

  async stay(fleet: Fleet, ms: number): Promise<void> {
    this.#inside += 1;
    this.most = Math.max(this.most, this.#inside);
    await passes(fleet.clock, ms);
    this.#inside -= 1;
  }
}

test.serial(
  "an abort listener does not run in the context of the body whose commands armed the timer",
  async (t) => {
    const fleet = start();
    const room = new Room();
    let fromListener: Promise<void> | undefined;
    const y = withLock("y", { lockTime: "600ms", holdAtMost: "1500ms", onLost: "warn" }, async (lock) => {
      lock.signal.addEventListener("abort", () => {
        fromListener = withLock("k", REENTRANT, () => room.stay(fleet, 30));
      });
      await passes(fleet.clock, 2_500);
    });
    await fleet.clock.advance(20);
    const x = withLock("k", REENTRANT, async () => {
      const others: Promise<void>[] = [];
      for (let n = 0; n < 60; n += 1) {
        others.push(withLock(`z${n}`, { lockTime: "300ms" }, () => passes(fleet.clock, 200)));
        await room.stay(fleet, 30);
      }
      await Promise.all(others);
    });
    await fleet.clock.advance(10_000);
    await Promise.all([x, y]);
    t.truthy(fromListener);
    await fromListener;
    t.is(room.most, 1);
  },
);

test.serial(
  "forceRelease() in a body runs the lock's abort listeners outside that body's context",
  async (t) => {
    const fleet = start();
    const room = new Room();
    const seen: (string | undefined)[] = [];
    let fromListener: Promise<void> | undefined;
    const y = caller.run("y", () => obtain("y"));
    await fleet.clock.settle();
    const held = await y;
    caller
      .run("reader", () => held.signal)
      .addEventListener("abort", () => {
        seen.push(caller.getStore());
        fromListener = withLock("k", REENTRANT, () => room.stay(fleet, 30));
      });
    const x = caller.run("x", () =>
      withLock("k", REENTRANT, async () => {
        t.is((await forceRelease("y")).length, 1);
        await room.stay(fleet, 100);
      }),
    );
    await fleet.clock.advance(1_000);
    await x;
    await fromListener;
    t.deepEqual(seen, ["reader"]);
    t.is(room.most, 1);
    await held.release();
  },
);

test.serial(
  "an abort listener that acquires a write lock waits for another caller's read lock",
  async (t) => {
    const fleet = start();
    let fromListener: Promise<string> | undefined;
    const held = await obtain("y");
    held.signal.addEventListener("abort", () => {
      fromListener = withLock("k", { mode: "write" }, () => "written");
    });
    const reading = withLock("k", { mode: "read" }, async () => {
      await forceRelease("y");
      await passes(fleet.clock, 100);
    });
    await fleet.clock.advance(1_000);
    await reading;
    t.is(await fromListener, "written");
    await held.release();
  },
);

test.serial("events and log lines run outside every caller's context, except `acquire` events", async (t) => {
  const seen = new ContextRecorder();
  const fleet = start({ logger: seen.logger });
  const call = (name: string, key: string, options: object, ms: number): Promise<unknown> =>
    caller.run(name, () => withLock(key, options, () => passes(fleet.clock, ms)).catch(() => {}));
  const calls = [
    call("first", "one", { lockTime: "300ms" }, 1_000),
    call("second", "one", {}, 10), // Gets the lock handed off.
    call("third", "one", {}, 10),
    call("impatient", "one", { retryTimes: 1, waitTime: "50ms" }, 10),
    call("loser", "two", { lockTime: "300ms", watchdog: false }, 1_000),
    caller.run("warned", () =>
      withLock("three", { lockTime: "300ms", watchdog: false, onLost: "warn" }, async (lock) => {
        lock.signal.addEventListener("abort", () => {});
        await passes(fleet.clock, 1_000);
      }),
    ),
    call("several", "four", {}, 10),
    caller.run("several", () => withLock(["five", "six"], {}, () => passes(fleet.clock, 10))),
  ];
  await fleet.clock.advance(5_000);
  await Promise.all(calls);
  const { "lockweave:acquire": acquire, ...others } = seen.end();
  t.deepEqual(acquire, ["first", "impatient", "loser", "second", "several", "third", "warned"]);
  const names = [...CHANNELS.filter((name) => name !== "lockweave:acquire"), "debug", "warn"];
  t.deepEqual(others, Object.fromEntries(names.map((name) => [name, ["nobody"]])));
});

test.serial(
  "a listener that enters its own context does not change the context of later events",
  async (t) => {
    const fleet = start();
    const seen: (string | undefined)[] = [];
    const enter = (): void => {
      seen.push(caller.getStore());
      caller.enterWith("entered");
    };
    subscribe("lockweave:release", enter);
    t.teardown(() => unsubscribe("lockweave:release", enter));
    for (let n = 0; n < 3; n += 1) await withLock("k", {}, () => {});
    await fleet.clock.settle();
    t.deepEqual(seen, [undefined, undefined, undefined]);
  },
);

test.serial("a waiter's failure class is constructed in the waiter's own context", async (t) => {
  const fleet = start();
  const held = await obtain("k");
  const seen: (string | undefined)[] = [];
  class Busy extends Error {
    constructor(message: string) {
      super(message);
      seen.push(caller.getStore());
    }
  }
  const process = fleet.process();
  const wait = { retryTimes: 2, waitTime: "50ms" } as const;
  const waiting = ["a", "b"].map((name) =>
    caller.run(name, () => process.call("k", wait, () => t.fail(), { Failure: Busy })),
  );
  await Promise.all([
    fleet.clock.advance(1_000),
    ...waiting.map((one) => t.throwsAsync(one, { instanceOf: Busy })),
  ]);
  t.deepEqual([...new Set(seen)].toSorted(bySpelling), ["a", "b"]);
  await held.release();
});

test.serial("many listeners on a lock's signal cause no leak warning", async (t) => {
  start();
  const warnings: Error[] = [];
  const warn = (warning: Error): void => void warnings.push(warning);
  process.on("warning", warn);
  t.teardown(() => process.off("warning", warn));
  for (const key of ["k", ["k", "l"]]) {
    const held = await obtain(key);
    for (let n = 0; n < 30; n += 1) held.signal.addEventListener("abort", () => {});
    await held.release();
  }
  await new Promise(setImmediate);
  t.deepEqual(warnings, []);
});

test.serial("the signal of a multi-key lock aborts in the context that first read it", async (t) => {
  const fleet = start();
  const held = await obtain(["k", "l"]);
  caller.run("other", () => held.locks.map(({ signal }) => signal));
  const seen: (string | undefined)[] = [];
  caller.run("reader", () => held.signal).addEventListener("abort", () => seen.push(caller.getStore()));
  await caller.run("revoker", () => forceRelease("l"));
  t.true(held.signal.aborted);
  t.is(held.signal.reason, held.locks[1]?.signal.reason);
  t.deepEqual(seen, ["reader"]);
  await fleet.clock.settle();
  await held.release();
  t.true(held.signal.aborted);
});
