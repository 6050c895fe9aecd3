import test from "ava";
import { InFlight } from "../../runtime/commands/in-flight";
import { LockLostError } from "../../runtime/base/errors";
import type { Loss } from "../../runtime/queue/loss";
import { Lease, type Holder } from "../../runtime/queue/lease";
import { Renewals } from "../../runtime/queue/renewals";
import { Certainty } from "../../runtime/base/certainty";
import { withCheckedReplies } from "../../runtime/stores/checked-store";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { leaseQueue } from "../support/lease-queue";
import { passes } from "../support/jobs";
import { connectionRefused, lostOnTheWay } from "../support/tampered-store";

const SECOND = 1_000;

interface Keeper {
  readonly fleet: Fleet;
  readonly renewals: Renewals;
  /** Returns a lease that the store granted and that is renewed from now on. */
  keep(key: string, lockTimeMs?: number, onLost?: Holder["onLost"], holdAtMostMs?: number): Promise<Lease>;
}

/** Returns renewals with a command timeout of one second. */
function keeper(): Keeper {
  const fleet = new Fleet();
  const { clock, store, memory } = fleet;
  const leases: Lease[] = [];
  const inFlight = new InFlight(clock, SECOND);
  const renewals = new Renewals(
    clock,
    withCheckedReplies(store),
    inFlight,
    new Certainty(clock),
    () => leases,
  );
  return {
    fleet,
    renewals,
    async keep(key, lockTimeMs = 30_000, onLost = () => {}, holdAtMostMs = Infinity) {
      const requestId = `holder of ${key}`;
      const lease = new Lease(leaseQueue(key), requestId, lockTimeMs, undefined, true);
      const isAutoUnlocked = true;
      lease.holder = {
        site: undefined,
        heldSince: 0,
        staysUntil: 0,
        mayHoldUntil: clock.now() + holdAtMostMs,
        isInUse: true,
        isAutoUnlocked,
        onHandedOff: () => {},
        onRenewed: () => false,
        onLost,
      };
      lease.prove(clock.now(), lockTimeMs);
      await memory.acquire({ key, requestId, lockTimeMs, fencing: false }, SECOND);
      leases.push(lease);
      renewals.keep(lease, clock.now());
      return lease;
    },
  };
}

const timeLeft = (fleet: Fleet, lease: Lease): number => new Certainty(fleet.clock).timeLeft(lease);
const isSure = (fleet: Fleet, lease: Lease): boolean => timeLeft(fleet, lease) > 0;

test("ten thousand locks that were acquired at about the same time share one timer and one renewal", async (t) => {
  const { fleet, renewals, keep } = keeper();
  const leases: Lease[] = [];
  for (let n = 0; n < 10_000; n += 1) {
    leases.push(await keep(`lock ${n}`));
    if (n % 100 === 0) await fleet.clock.advance(5); // Half a second in all.
  }
  t.is(fleet.clock.pendingTimers, 1);
  await fleet.clock.advance(10 * SECOND);
  t.deepEqual(fleet.store.renewed, [10_000]);
  t.is(fleet.clock.pendingTimers, 1);
  await fleet.clock.advance(50 * SECOND);
  t.true(fleet.store.renewals <= 6, `${fleet.store.renewals}`);
  t.true(leases.every((lease) => isSure(fleet, lease)));
  for (const lease of leases) renewals.stop(lease);
  t.is(fleet.clock.pendingTimers, 0);
});

test("a lock is renewed up to its holdAtMost and then reported as lost", async (t) => {
  const { fleet, keep } = keeper();
  const losses: Loss[] = [];
  const lease = await keep("limited", 3_000, (loss) => void losses.push(loss), 10_000);
  await fleet.clock.advance(9_900);
  t.true(isSure(fleet, lease));
  t.true(fleet.store.renewals <= 10, `${fleet.store.renewals}`);
  await fleet.clock.advance(100);
  t.deepEqual(
    losses.map(({ because }) => because),
    ["its holdAtMost has passed"],
  );
  t.false(isSure(fleet, lease));
  t.true(await fleet.isFree("limited"));
  t.is(fleet.clock.pendingTimers, 0);
});

test("each lock is renewed after a third of its own lock time", async (t) => {
  const { fleet, keep } = keeper();
  const short = await keep("short", 3_000);
  const long = await keep("long", 60_000);
  await fleet.clock.advance(999);
  t.is(fleet.store.renewals, 0);
  await fleet.clock.advance(1);
  t.deepEqual(fleet.store.renewed, [1]);
  await fleet.clock.advance(19 * SECOND);
  t.is(fleet.store.renewed.filter((count) => count === 2).length, 1, "together when they are due together");
  t.is(fleet.store.renewals, 20);
  t.true(isSure(fleet, short) && isSure(fleet, long));
  await fleet.clock.advance(600 * SECOND);
  t.true(isSure(fleet, short) && isSure(fleet, long));
});

test("a later lock is renewed in time even if the timer is set for an earlier one", async (t) => {
  const { fleet, renewals, keep } = keeper();
  const first = await keep("first", 60_000);
  await fleet.clock.advance(5 * SECOND);
  const second = await keep("second", 3_000);
  await fleet.clock.advance(SECOND);
  t.is(fleet.store.renewals, 1);
  renewals.stop(second);
  await fleet.clock.advance(14 * SECOND);
  t.is(fleet.store.renewals, 2);
  t.true(isSure(fleet, first));
});

test("only deleted and stolen locks are lost in a renewal of many, and the others are kept", async (t) => {
  const { fleet, renewals, keep } = keeper();
  const leases: Lease[] = [];
  for (let n = 0; n < 10; n += 1) leases.push(await keep(`lock ${n}`));
  await fleet.endHold("lock 3");
  await fleet.endHold("lock 7");
  await fleet.acquireElsewhere("lock 7", 600_000);
  await fleet.clock.advance(10 * SECOND);
  t.deepEqual(
    leases.flatMap(({ loss }, n) => (loss === undefined ? [] : [[n, loss.outcome, loss.because]])),
    [
      [
        3,
        "deleted",
        "its key disappeared early: it was deleted, evicted, or lost with the data of the store",
      ],
      [7, "stolen", "another caller holds it"],
    ],
  );
  await fleet.clock.advance(10 * SECOND);
  t.deepEqual(fleet.store.renewed, [10, 8]);
  for (const lease of leases) renewals.stop(lease);
  t.is(fleet.clock.pendingTimers, 0);
});

test("only the locks without an answer are retried soon after a renewal of many", async (t) => {
  const { fleet, keep } = keeper();
  const leases: Lease[] = [];
  for (let n = 0; n < 10; n += 1) leases.push(await keep(`lock ${n}`));
  fleet.store.onRenew = async (send) =>
    (await send()).map((reply, n) => (n < 4 ? new Error("TRYAGAIN") : reply));
  await fleet.clock.advance(10 * SECOND);
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(SECOND);
  t.deepEqual(fleet.store.renewed, [10, 4]);
  t.true(leases.every((lease) => isSure(fleet, lease)));
  await fleet.clock.advance(600 * SECOND);
  t.true(leases.every((lease) => isSure(fleet, lease)));
});

test("a lease counts as unanswered if the store sends fewer replies than leases", async (t) => {
  const { fleet, keep } = keeper();
  const leases = [await keep("answered"), await keep("other")];
  fleet.store.onRenew = async (send) => (await send()).slice(0, 1);
  await fleet.clock.advance(11 * SECOND);
  t.deepEqual(fleet.store.renewed, [2, 1]);
  t.true(leases.every((lease) => isSure(fleet, lease)));
});

for (const [what, fate] of [
  ["is rejected", connectionRefused],
  ["has no reply", lostOnTheWay],
] as const) {
  test(`each lock is lost at its deadline to the millisecond if every renewal ${what}`, async (t) => {
    const { fleet, keep } = keeper();
    fleet.store.onRenew = fate;
    for (const lockTimeMs of [100, 1_000, 3_333, 30_000]) {
      let lostAt = 0;
      await keep(`${lockTimeMs}`, lockTimeMs, () => (lostAt = fleet.clock.now()));
      const expectedAt = fleet.clock.now() + lockTimeMs * 0.99 - 2;
      await fleet.clock.advance(lockTimeMs);
      t.true(
        Math.abs(lostAt - expectedAt) < 1,
        `${lockTimeMs}: lost at ${lostAt}, expected at ${expectedAt}`,
      );
    }
    t.is(fleet.clock.pendingTimers, 0);
  });
}

test("a renewal that succeeds at the last moment keeps the lock and removes its deadline timer", async (t) => {
  const { fleet, renewals, keep } = keeper();
  const lease = await keep("lock");
  fleet.store.onRenew = connectionRefused;
  await fleet.clock.advance(28_900);
  t.is(fleet.clock.pendingTimers, 2, "the next try and the deadline");
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(700);
  t.is(timeLeft(fleet, lease) > 28_000, true);
  t.is(fleet.clock.pendingTimers, 1);
  await fleet.clock.advance(300 * SECOND);
  t.true(isSure(fleet, lease));
  renewals.stop(lease);
  t.is(fleet.clock.pendingTimers, 0);
});

test("a renewed lock time counts from before the renewal was sent, however long the reply took", async (t) => {
  const { fleet, keep } = keeper();
  const lease = await keep("lock");
  fleet.store.onRenew = async (send) => {
    const replies = await send();
    await passes(fleet.clock, 800);
    return replies;
  };
  await fleet.clock.advance(10_800);
  t.is(timeLeft(fleet, lease), 30_000 * 0.99 - 2 - 800);
});

test("an expiring lock does not shorten the wait for the reply that keeps the others", async (t) => {
  const { fleet, keep } = keeper();
  const long = await keep("long", 30_000);
  await fleet.clock.advance(6_100);
  const short = await keep("short", 3_000);
  fleet.store.onRenew = connectionRefused;
  await fleet.clock.advance(2_850);
  fleet.store.onRenew = async (send) => {
    const replies = await send();
    await passes(fleet.clock, 80);
    return replies;
  };
  await fleet.clock.advance(50);
  t.is(fleet.store.renewed.at(-1), 2, "the short lock has its last try, and the long one is due");
  await fleet.clock.advance(100);
  t.regex(short.loss?.because ?? "", /deadline passed/);
  t.true(timeLeft(fleet, long) > 29_000);
});

test("a short lock survives one lost renewal", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRenew = (send) => (fleet.store.renewals === 1 ? lostOnTheWay() : send());
  const call = process.call("LOCK_short_1", { lockTime: "1s" }, async (lock) => {
    await passes(fleet.clock, 3 * SECOND);
    lock.assertHeld();
    return "done";
  });
  await fleet.clock.advance(3 * SECOND);
  t.is(await call, "done");
  t.deepEqual(fleet.warnings, []);
  await fleet.leftNothing(t, "LOCK_short_1", process);
});

test("stop() is final, even for a renewal that is in flight or will be retried", async (t) => {
  const { fleet, renewals, keep } = keeper();
  const [one, other] = [await keep("one"), await keep("other")];
  const arrival = deferred();
  fleet.store.onRenew = async () => {
    await arrival.promise;
    return [{ renewed: false, holder: "somebody else" }, { renewed: true }];
  };
  await fleet.clock.advance(10 * SECOND);
  renewals.stop(one);
  arrival.resolve();
  await fleet.clock.settle();
  t.is(one.loss, undefined);
  fleet.store.onRenew = connectionRefused;
  await fleet.clock.advance(10 * SECOND);
  t.is(fleet.store.renewed.at(-1), 1);
  renewals.stop(other);
  t.is(fleet.clock.pendingTimers, 0);
  await fleet.clock.advance(100 * SECOND);
  t.is(other.loss, undefined);
});

test("a lease that is stopped during a renewal and kept again follows its new schedule", async (t) => {
  const { fleet, renewals, keep } = keeper();
  const lease = await keep("lock");
  const arrival = deferred();
  fleet.store.onRenew = async (send) => {
    await arrival.promise;
    return await send();
  };
  await fleet.clock.advance(10 * SECOND);
  renewals.stop(lease);
  renewals.keep(lease, fleet.clock.now());
  arrival.resolve();
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(9_999);
  t.is(fleet.store.renewals, 1);
  await fleet.clock.advance(1);
  t.is(fleet.store.renewals, 2);
  renewals.stop(lease);
  t.is(fleet.clock.pendingTimers, 0);
});

test("a process that was frozen loses expired locks and renews the others immediately", async (t) => {
  const { fleet, keep } = keeper();
  const short = await keep("short", 9_000);
  const long = await keep("long", 30_000);
  fleet.clock.freeze(15 * SECOND);
  await fleet.clock.settle();
  t.regex(short.loss?.because ?? "", /deadline passed/);
  t.is(fleet.store.renewals, 1);
  t.true(timeLeft(fleet, long) > 29_000);
});

test("a lock that is released in another lock's abort listener is not reported as lost", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const ended = deferred();
  const lost = process.call("first", { lockTime: "3s" }, async (lock) => {
    await process.call("second", { lockTime: "30s" }, async (other) => {
      lock.signal.addEventListener("abort", () => void other.release().then(ended.resolve));
      fleet.clock.freeze(10 * SECOND); // Both are due, one to expire and one to be renewed.
      await ended.promise;
    });
  });
  const outcome = t.throwsAsync(lost, { instanceOf: LockLostError });
  await fleet.clock.advance(0);
  await outcome;
  await fleet.clock.settle();
  t.is(fleet.warnings.filter((line) => line.includes("lost the lock")).length, 1, fleet.warnings.join("\n"));
  t.true(await fleet.isForgotten("second"));
  t.is(fleet.clock.pendingTimers, 0);
});

test("a lock with a short lock time does not shorten the wait for the reply that keeps another", async (t) => {
  const { fleet, keep } = keeper();
  const long = await keep("long", 30_000);
  await fleet.clock.advance(9_900);
  await keep("short", 300);
  fleet.store.onRenew = async (send) => {
    const replies = await send();
    await passes(fleet.clock, 400); // Longer than the short lock waits for a reply.
    return replies;
  };
  await fleet.clock.advance(500);
  t.is(timeLeft(fleet, long), 30_000 * 0.99 - 2 - 400);
});

test("a lock that waits for a slow replica does not delay the renewal of one that needs none", async (t) => {
  const { fleet, keep } = keeper();
  const plain = await keep("plain", 30_000);
  const replicated = await keep("replicated", 30_000);
  replicated.replicas = 1;
  let commands = 0;
  fleet.store.onRenew = async (send) => {
    commands += 1;
    if (commands > 1) await passes(fleet.clock, 900);
    return await send();
  };
  await fleet.clock.advance(10_000);
  t.deepEqual(fleet.store.renewed, [1, 1]);
  t.is(timeLeft(fleet, plain), 30_000 * 0.99 - 2, "its own reply has arrived");
});
