import test, { type ExecutionContext } from "ava";
import type { LockOptions } from "../../runtime/lock/settings";
import { Holds } from "../../runtime/stores/quorum/holds";
import { deferred } from "../support/deferred";
import { Fleet, type FleetProcess } from "../support/fleet";
import { inTheMiddleOf } from "../support/in-the-middle-of";
import { StoppingClock, Stops } from "../support/stopping-clock";
import { SuspendableClock } from "../support/suspendable-clock";

// A process can be stopped between any two reads of its clocks. Each check is repeated here with a stop before each of its
// reads. The stop is longer than the lock time, so no check may pass after it.

const LOCK_TIME_MS = 1_000;
const STOP_MS = 5_000;
const LOCK: LockOptions = { lockTime: `${LOCK_TIME_MS}ms` };

interface World {
  readonly fleet: Fleet;
  readonly clock: StoppingClock;
  readonly stops: Stops;
  readonly process: FleetProcess;
}

function newWorld(): World {
  const fleet = new Fleet(new SuspendableClock());
  const stops = new Stops(() => fleet.clock.freeze(STOP_MS));
  const clock = new StoppingClock(fleet.clock, stops.beforeRead);
  return { fleet, clock, stops, process: fleet.process({ clock, logger: { warn: () => {} } }) };
}

/** Runs the check without a stop, and then once for each of its reads. */
async function atEachRead(
  t: ExecutionContext,
  arrange: (world: World) => Promise<() => boolean | Promise<boolean>>,
): Promise<void> {
  const passes = async (nth = 0): Promise<readonly [passes: boolean, reads: number]> => {
    const world = newWorld();
    const check = await arrange(world);
    world.stops.arm(nth);
    return [await check(), world.stops.reads];
  };
  const [passesUnstopped, reads] = await passes();
  t.true(passesUnstopped);
  t.true(reads >= 3, "it reads the time since boot, and the monotonic clock before and after");
  for (let nth = 1; nth <= reads; nth += 1) {
    const [passesStopped] = await passes(nth);
    t.false(passesStopped, `stopped before read ${nth} of ${reads}`);
  }
}

async function held({ process, fleet }: World, key: string): Promise<ReturnType<FleetProcess["lock"]>> {
  const lock = process.lock(key, LOCK);
  await lock.acquire();
  await fleet.clock.advance(50);
  return lock;
}

async function allHeld({ process, fleet }: World): Promise<ReturnType<FleetProcess["locks"]>> {
  const locks = process.locks(["one", "two", "three"], LOCK);
  await locks.acquire();
  await locks.locks[2]?.extend("1m"); // The last lock that is checked outlasts the others.
  await fleet.clock.advance(50);
  return locks;
}

function doesNotThrow(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

test("remaining() is 0 if the lock expires between its clock reads", async (t) => {
  await atEachRead(t, async (world) => {
    const lock = await held(world, "remaining");
    return () => lock.remaining() > 0;
  });
});

test("assertHeld() throws if the lock expires between its clock reads", async (t) => {
  await atEachRead(t, async (world) => {
    const lock = await held(world, "assertHeld");
    return () => doesNotThrow(() => lock.assertHeld());
  });
});

test("remaining() of several locks is 0 if any of them expires between its clock reads", async (t) => {
  await atEachRead(t, async (world) => {
    const locks = await allHeld(world);
    return () => locks.remaining() > 0;
  });
});

test("assertHeld() of several locks throws if any of them expires between its clock reads", async (t) => {
  await atEachRead(t, async (world) => {
    const locks = await allHeld(world);
    return () => doesNotThrow(() => locks.assertHeld());
  });
});

test("each check of several locks reads the clock once", async (t) => {
  const world = newWorld();
  const locks = await allHeld(world);
  locks.remaining(); // The time since boot is read at most once in 20 ms.
  world.stops.arm(0);
  t.true(locks.remaining() > 0);
  locks.assertHeld();
  t.is(world.stops.reads, 2);
});

test("a waiter does not enter if its lock expires between the clock reads of the entry check", async (t) => {
  const key = "stopped gate";
  await atEachRead(t, async ({ process, fleet, stops }) => {
    const reply = deferred();
    fleet.store.onAcquire = async (send) => {
      const taken = await send();
      await reply.promise;
      return taken;
    };
    inTheMiddleOf(t, "lockweave:grant", key, () => stops.ignore());
    const acquired = process.lock(key, LOCK).acquire();
    await fleet.clock.settle();
    return async () => {
      reply.resolve();
      return await acquired;
    };
  });
});

test("a lock that expires between its holder's clock reads is not handed off", async (t) => {
  const key = "stopped hand-off";
  await atEachRead(t, async (world) => {
    const holder = await held(world, key);
    const next = world.process.lock(key, LOCK);
    await next.acquire();
    await world.fleet.clock.advance(25); // Long enough for another clock read, and short enough for a hand-off.
    let isHandedOff = false;
    inTheMiddleOf(
      t,
      "lockweave:release",
      key,
      () => (isHandedOff = true),
      ({ outcome }) => outcome === "handed off",
    );
    return () => {
      void holder.release().catch(() => {});
      return isHandedOff;
    };
  });
});

test("a quorum does not count a hold that expires between its clock reads", async (t) => {
  await atEachRead(t, async ({ clock, fleet }) => {
    const holds = new Holds(clock, { all: 3, majority: 2 }, 60_000);
    const requestId = "1".padStart(32, "0");
    const hold = holds.begin({ key: "quorum", requestId, lockTimeMs: LOCK_TIME_MS, fencing: false });
    await fleet.clock.advance(50);
    return () => holds.isSure(hold);
  });
});
