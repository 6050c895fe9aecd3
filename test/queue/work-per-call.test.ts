import { growth, workOf, type Work } from "../support/work-counter"; // The first import, because it counts only code that is loaded later.
import { type ExecutionContext } from "ava";
import { AsyncResource } from "node:async_hooks";
import { runInside } from "../../runtime/lock/reentrancy";
import type { LockOptions } from "../../runtime/lock/settings";
import { KeyQueue } from "../../runtime/queue/key-queue";
import { newId, placing, renewal, request, TIMEOUT_MS } from "../store-contract/subject";
import { memoryStore } from "../../runtime/stores/memory";
import { batching } from "../support/batching-store";
import { deferred } from "../support/deferred";
import { Fleet, type FleetProcess } from "../support/fleet";
import { VirtualClock } from "../support/virtual-clock";
import { inMatrixSerially } from "../support/suites";

// These tests count the work of each call in the process while the holders and waiters grow. They do not measure time. A loop
// over all of them is a block of the runtime that runs more often. A failure names its function and line.

const KEY = "LOCK_pay_1";
const SECOND = 1_000;
/** The watchdog renews a lock when a third of its lock time is over. */
const UNTIL_RENEWAL_MS = 10 * SECOND;
/** A few milliseconds, in which the runtime confirms the holds of callers that left. */
const MOMENT_MS = 10;
const PATIENT = { retryTimes: 1_000, waitTime: "60s", lockTime: "30s" } as const;

const FEW = 10;
const MANY = 300;
/** A heap takes this many times more steps for many items than for few. A loop over all takes 30 times more. */
const HEAP_RATIO = Math.log2(MANY) / Math.log2(FEW);
/** A list that is compacted now and then takes this many steps for that, however many callers there are. */
const COMPACTION_STEPS = 20;

/** Some call draws the request IDs of the next few hundred calls, and which call that is depends on their number. */
const DRAWS_MANY_IDS = "runtime/base/request-id.ts:";

function mostStepsBesideMany(besideFew: number): number {
  return Math.max(besideFew * HEAP_RATIO, besideFew + COMPACTION_STEPS);
}

type Keys = string | readonly string[];

/** A call of a tagged function whose body runs until `leave()` is called. */
class Caller {
  isInside = false;
  /** Creates a call inside the body of this one. */
  enter: (() => Caller) | undefined;
  /** Resolves to the error of the call, if it has one. */
  readonly done: Promise<unknown>;
  readonly #end = deferred();
  readonly #patience = new AbortController();

  constructor(process: FleetProcess, keys: Keys, options: LockOptions) {
    this.done = this.#call(process, keys, options).catch((error: unknown) => error);
  }

  leave(): void {
    this.#end.resolve();
  }

  giveUp(): void {
    this.#patience.abort("away");
  }

  async #call(process: FleetProcess, keys: Keys, given: LockOptions): Promise<void> {
    const options = { ...PATIENT, ...given };
    const lock = typeof keys === "string" ? process.lock(keys, options) : process.locks(keys, options);
    while (!(await lock.acquire(this.#patience.signal))) if (!(await lock.retryCheck())) return;
    this.isInside = true;
    await runInside(options.reentrant === true ? lock.locks : [], () => {
      this.enter = AsyncResource.bind(() => new Caller(process, keys, given));
      return this.#end.promise;
    });
    await lock.release();
  }
}

/** The callers of one process. */
class World {
  readonly fleet = new Fleet();
  readonly process: FleetProcess;

  /** @param sendsTogether whether the store accepts batches of commands */
  constructor(sendsTogether: boolean) {
    const { memory, clock } = this.fleet;
    const logger = { warn: () => {} };
    this.process = this.fleet.process({ clock, logger, ...(sendsTogether && { store: batching(memory) }) });
  }

  call(keys: Keys, options: LockOptions = {}): Caller {
    return new Caller(this.process, keys, options);
  }

  crowd(count: number, keysOf: (n: number) => Keys, options: LockOptions = {}): readonly Caller[] {
    return Array.from({ length: count }, (_, n) => this.call(keysOf(n), options));
  }

  advance(ms: number): Promise<void> {
    return this.fleet.clock.advance(ms);
  }
}

/** Operations by name, which run one after the other. Each returns whether it had its effect. */
type Operations = Readonly<Record<string, () => Promise<boolean>>>;

/** Runs the operations alongside few and many others, and compares the work of each. */
async function compare(
  t: ExecutionContext,
  beside: (count: number) => Promise<Operations>,
): Promise<readonly string[]> {
  const measure = async (count: number): Promise<ReadonlyMap<string, Work>> => {
    const works = new Map<string, Work>();
    for (const [name, operation] of Object.entries(await beside(count))) {
      let isDone = false;
      const work = await workOf(async () => (isDone = await operation()));
      t.true(isDone, `${name} beside ${count}`);
      works.set(name, work);
    }
    return works;
  };
  const few = await measure(FEW);
  return Array.from(await measure(MANY)).flatMap(([name, work]) => {
    const before = few.get(name);
    const grown = before === undefined ? [] : growth(before, work, mostStepsBesideMany);
    const ofCalls = grown.filter(({ where }) => !where.startsWith(DRAWS_MANY_IDS));
    return ofCalls.map(({ where, few: first, many }) => `${name}: ${where} ran ${first} times, then ${many}`);
  });
}

function costsTheSame(title: string, beside: (world: World, count: number) => Promise<Operations>): void {
  for (const sendsTogether of [false, true]) {
    const how = sendsTogether ? ", with a store that accepts batches" : "";
    inMatrixSerially(`${title}${how}`, async (t) => {
      const grown = await compare(t, (count) => beside(new World(sendsTogether), count));
      t.is(grown.join("\n"), "");
    });
  }
}

/** Calls with no wait budget and returns whether the call was refused. */
async function isRefused(world: World, keys: Keys, options: LockOptions): Promise<boolean> {
  const caller = world.call(keys, { ...options, retryTimes: 0 });
  await world.advance(MOMENT_MS);
  return (await caller.done) instanceof Error;
}

/** Makes a waiter give up. Returns whether it was waiting and ended with the reason of its abort. */
async function givesUp(world: World, caller: Caller | undefined): Promise<boolean> {
  if (caller === undefined || caller.isInside) return false;
  caller.giveUp();
  await world.advance(MOMENT_MS);
  return (await caller.done) === "away";
}

/** Makes a holder leave. Returns whether it was inside and held its lock to the end. */
async function leaves(world: World, caller: Caller | undefined): Promise<boolean> {
  if (caller?.isInside !== true) return false;
  caller.leave();
  await world.advance(MOMENT_MS);
  return (await caller.done) === undefined;
}

async function entersAndLeaves(world: World, keys: Keys, options: LockOptions = {}): Promise<boolean> {
  const caller = world.call(keys, options);
  await world.advance(MOMENT_MS);
  return await leaves(world, caller);
}

// ---- many waiters -------------------------------------------------------------------------------------

const WAITERS: readonly { readonly who: string; readonly keys: Keys; readonly options: LockOptions }[] = [
  { who: "an exclusive lock", keys: KEY, options: {} },
  { who: "a reentrant lock", keys: KEY, options: { reentrant: true } },
  { who: "a lock of a reader", keys: KEY, options: { mode: "read" } },
  { who: "a lock with permits", keys: KEY, options: { permits: 3 } },
  { who: "a lock of several keys", keys: ["LOCK_a", KEY, "LOCK_z"], options: {} },
];

for (const { who, keys, options } of WAITERS) {
  for (const isHeldHere of [true, false]) {
    const holder = isHeldHere ? "this process holds the key" : "another process holds the key";
    costsTheSame(
      `each call of ${who} costs the same with few and with many waiters, if ${holder}`,
      async (world, count) => {
        const first = isHeldHere ? world.call(KEY) : undefined;
        if (first === undefined) await world.fleet.acquireElsewhere(KEY, 100 * SECOND);
        await world.advance(MOMENT_MS);
        const crowd = [...world.crowd(count, () => keys, options)];
        await world.advance(200);
        const operations: Operations = {
          "a call that waits": async () => {
            crowd.push(world.call(keys, options));
            await world.advance(MOMENT_MS);
            return crowd.at(-1)?.isInside === false;
          },
          "a refused call": () => isRefused(world, keys, options),
          "a waiter that gives up": () => givesUp(world, crowd.splice(count / 2, 1)[0]),
          "the first waiter that gives up": () => givesUp(world, crowd.shift()),
          "the last waiter that gives up": () => givesUp(world, crowd.pop()),
          "the time of a renewal": async () => {
            await world.advance(UNTIL_RENEWAL_MS + SECOND);
            return first?.isInside !== false;
          },
        };
        // When a reader enters, all the readers that wait enter with it.
        if (options.mode === "read") return operations;
        return {
          ...operations,
          "a release to the next waiter": async () => {
            first?.leave();
            if (first === undefined) await world.fleet.releaseElsewhere(KEY);
            await world.advance(MOMENT_MS);
            return crowd[0]?.isInside === true;
          },
          "a hand-off": () => leaves(world, crowd.shift()),
          "a release through the store queue": async () => {
            await world.advance(200); // Then the turn of this process is over.
            return await leaves(world, crowd.shift());
          },
        };
      },
    );
  }
}

// ---- many holders -------------------------------------------------------------------------------------

const HOLDERS: readonly { readonly who: string; readonly options: LockOptions }[] = [
  { who: "readers", options: { mode: "read" } },
  { who: "callers with permits", options: { permits: 1_000 } },
  { who: "readers without a watchdog", options: { mode: "read", watchdog: false } },
];

for (const { who, options } of HOLDERS) {
  costsTheSame(`each call costs the same with few and with many ${who} inside`, async (world, count) => {
    const crowd = [...world.crowd(count, () => KEY, options)];
    await world.advance(200);
    return {
      "a call that joins and leaves": () => entersAndLeaves(world, KEY, options),
      "a holder that leaves": () => leaves(world, crowd.splice(count / 2, 1)[0]),
      "the first holder that leaves": () => leaves(world, crowd.shift()),
      "a refused call": () => isRefused(world, KEY, {}),
      "a writer that waits and gives up": async () => {
        const writer = world.call(KEY);
        await world.advance(SECOND);
        return await givesUp(world, writer);
      },
      "the time of a renewal": async () => {
        await world.advance(UNTIL_RENEWAL_MS + SECOND);
        return crowd[0]?.isInside === true;
      },
    };
  });
}

costsTheSame(
  "each call costs the same with few and many bodies inside a reentrant lock",
  async (world, count) => {
    const outer = world.call(KEY, { reentrant: true });
    await world.advance(MOMENT_MS);
    const inner = Array.from({ length: count }, () => outer.enter?.());
    await world.advance(200);
    return {
      "a body that enters again and leaves": async () => {
        const caller = outer.enter?.();
        await world.advance(MOMENT_MS);
        return await leaves(world, caller);
      },
      "a body that leaves": () => leaves(world, inner.shift()),
      "a refused call": () => isRefused(world, KEY, {}),
      "the time of a renewal": async () => {
        await world.advance(UNTIL_RENEWAL_MS + SECOND);
        return inner[0]?.isInside === true;
      },
    };
  },
);

// ---- many keys ----------------------------------------------------------------------------------------

costsTheSame(
  "each call costs the same with few and with many other keys with holders and waiters",
  async (world, count) => {
    const keyOf = (n: number): string => `LOCK_pay_other_${n}`;
    const holders = [...world.crowd(count, keyOf)];
    await world.advance(MOMENT_MS);
    const waiters = [...world.crowd(count, keyOf)];
    await world.advance(200);
    const [holder, waiter] = [holders[0], waiters[0]];
    return {
      "an exclusive lock": () => entersAndLeaves(world, KEY),
      "a reentrant lock": () => entersAndLeaves(world, KEY, { reentrant: true }),
      "the lock of a reader": () => entersAndLeaves(world, KEY, { mode: "read" }),
      "a lock with permits": () => entersAndLeaves(world, KEY, { permits: 3 }),
      "a lock of several keys": () => entersAndLeaves(world, ["LOCK_a", KEY, "LOCK_z"]),
      "a refused call": () => isRefused(world, keyOf(1), {}),
      "a call that waits and gives up": async () => {
        const caller = world.call(keyOf(1), {});
        await world.advance(MOMENT_MS);
        return await givesUp(world, caller);
      },
      "a waiter that wakes up for its next try": async () => {
        const caller = world.call(keyOf(1), { waitTime: "1s" });
        await world.advance(1.5 * SECOND);
        return await givesUp(world, caller);
      },
      "a hand-off": async () => (await leaves(world, holder)) && waiter?.isInside === true,
      "a last release": () => leaves(world, waiter),
    };
  },
);

costsTheSame(
  "a release during a shutdown costs the same with few and with many locks",
  async (world, count) => {
    const holders = [...world.crowd(count, (n) => `LOCK_pay_other_${n}`)];
    await world.advance(MOMENT_MS);
    void world.process.locker.manager.drain(60 * SECOND);
    return { "a release": () => leaves(world, holders.pop()) };
  },
);

// ---- the memory store ---------------------------------------------------------------------------------

for (const { who, permits } of [
  { who: "one caller", permits: 1 },
  { who: "readers", permits: Infinity },
  { who: "callers with permits", permits: 1_000 },
]) {
  inMatrixSerially(
    `each command of ${who} costs the memory store the same with few and with many other callers`,
    async (t) => {
      const grown = await compare(t, async (count) => {
        const store = memoryStore({ clock: new VirtualClock() });
        const isShared = permits > 1;
        const how = { permits, lockTimeMs: 60_000 };
        const take = async (key: string, requestId: string): Promise<boolean> =>
          (await store.acquire(request(key, requestId, how), TIMEOUT_MS)).acquired;
        const isQueued = async (key: string, place: string, as = permits): Promise<boolean> =>
          !(await store.queue.enqueue(placing(key, place, { permits: as }), TIMEOUT_MS)).acquired;
        const drop = async (key: string, requestId: string): Promise<boolean> =>
          (await store.release({ key, requestId, permits }, TIMEOUT_MS)).released;

        const [quiet, busy] = ["LOCK_quiet", "LOCK_busy"];
        const [own, other, place, next] = [newId(), newId(), newId(), newId()];
        const holders = [own, other, ...Array.from({ length: isShared ? count : 0 }, newId)];
        for (const holder of isShared ? holders : [own]) {
          for (const key of [quiet, busy]) t.true(await take(key, holder));
        }
        for (let n = 0; n < count; n += 1) t.true(await isQueued(busy, newId(), 1));
        t.true(await isQueued(quiet, next, isShared ? 2 : 1));
        await store.queue.dequeue(quiet, next, TIMEOUT_MS);
        return {
          "a join": async () => (await take(quiet, next)) === isShared,
          "a release": async () => await drop(quiet, isShared ? next : own),
          "a refused call": async () => !(await take(busy, newId())),
          "a call that waits": () => isQueued(busy, place),
          "a call that still waits": () => isQueued(busy, place),
          "a waiter that gives up": async () => {
            await store.queue.dequeue(busy, place, TIMEOUT_MS);
            return true;
          },
          "a renewal": async () => {
            const [reply] = await store.renew([{ ...renewal(busy, own, 90_000), permits }], TIMEOUT_MS);
            return reply !== undefined && "renewed" in reply && reply.renewed;
          },
          "a peek": async () => (await store.peek([busy], TIMEOUT_MS))[0] !== undefined,
          "a release beside waiters": () => drop(busy, isShared ? other : own),
          "a revocation": async () =>
            (await store.admin.revoke({ key: busy, requestId: own }, TIMEOUT_MS)) === isShared,
        };
      });
      t.is(grown.join("\n"), "");
    },
  );
}

// ---- planted defects ----------------------------------------------------------------------------------

const { join } = KeyQueue.prototype;

for (const { what, plant, found } of [
  {
    what: "a loop over all waiters",
    plant(this: KeyQueue, waiter: Parameters<typeof join>[0]): void {
      for (const other of this.waiters()) if (other === waiter) return;
      join.call(this, waiter);
    },
    found: /^a call that waits: runtime\/base\/fifo\.ts:\d+ keys ran 9 times, then 299$/m,
  },
  {
    what: "a built-in function that iterates over all waiters",
    plant(this: KeyQueue, waiter: Parameters<typeof join>[0]): void {
      if (![...this.waiters()].includes(waiter)) join.call(this, waiter);
    },
    found: /^a call that waits: runtime\/queue\/lock-manager\.ts:\d+ \(includes\) ran 10 times, then 300$/m,
  },
]) {
  inMatrixSerially(`the comparison finds ${what}`, async (t) => {
    t.teardown(() => {
      KeyQueue.prototype.join = join;
    });
    KeyQueue.prototype.join = plant;
    const grown = await compare(t, async (count) => {
      const world = new World(false);
      await world.fleet.acquireElsewhere(KEY, 100 * SECOND);
      world.crowd(count, () => KEY);
      await world.advance(MOMENT_MS);
      return {
        "a call that waits": async () => {
          const caller = world.call(KEY);
          await world.advance(MOMENT_MS);
          return !caller.isInside;
        },
      };
    });
    t.regex(grown.join("\n"), found);
  });
}
