import test from "ava";
import { LockLostError, LockWaitTimeoutError } from "../../runtime/base/errors";
import { FENCING_STRIDE } from "../../runtime/stores/port";
import { deferred } from "../support/deferred";
import { Fleet, type FleetProcess } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import { connectionRefused, lostOnTheWay } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;
/** The longest time that the first caller that handed off waits until its lease is verified. */
const VERIFY_WITHIN_MS = 4;
const PATIENT = { retryTimes: 1_000, waitTime: "60s" } as const;

test("callers of one process enter in the order in which they came, even during hand-offs", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [came, served]: number[][] = [[], []];
  const call = async (n: number, children: number): Promise<void> => {
    came?.push(n);
    const more: Promise<void>[] = [];
    await process.call(KEY, PATIENT, async () => {
      served?.push(n);
      for (let child = 0; child < children; child += 1) more.push(call(n * 10 + child, children - 1));
      await passes(fleet.clock, n % 7);
    });
    await Promise.all(more);
  };
  const all = Promise.all(Array.from({ length: 30 }, (_, n) => call(n + 1, 3)));
  await fleet.clock.advance(60 * SECOND);
  await all;
  t.true((came?.length ?? 0) > 400);
  t.deepEqual(served, came);
  await fleet.leftNothing(t, KEY, process);
});

for (const { what, sectionMs, callers, inOneTurn } of [
  { what: "16 bodies in a row", sectionMs: 1, callers: 34, inOneTurn: [16, 16, 2] },
  { what: "64 bodies that take no time", sectionMs: 0, callers: 130, inOneTurn: [64, 64, 2] },
]) {
  test(`a lock is handed off without a command to at most ${what}`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    const commands: number[] = [];
    const calls = Array.from({ length: callers }, () =>
      process.call(KEY, PATIENT, async () => {
        commands.push(fleet.store.commands);
        if (sectionMs > 0) await passes(fleet.clock, sectionMs);
      }),
    );
    await fleet.clock.advance(SECOND);
    await Promise.all(calls);
    const turns = [1, 2, 3].map((sent) => commands.filter((count) => count === sent).length);
    t.deepEqual(turns, inOneTurn);
    t.is(fleet.store.commands, 4, "an acquire, two releases that rejoin the queue, and a release");
    await fleet.leftNothing(t, KEY, process);
  });
}

test("a process hands off a lock for at most 100 ms before other processes get their turn", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const commands: number[] = [];
  const calls = Array.from({ length: 6 }, () =>
    process.call(KEY, PATIENT, async () => {
      commands.push(fleet.store.commands);
      await passes(fleet.clock, 40);
    }),
  );
  await fleet.clock.advance(SECOND);
  await Promise.all(calls);
  t.deepEqual(commands, [1, 1, 1, 2, 2, 2]);
  await fleet.leftNothing(t, KEY, process);
});

test("two processes with many callers each take turns, and neither starves", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process()];
  const served: number[] = [];
  const calls = processes.flatMap((process, who) =>
    Array.from({ length: 50 }, () =>
      process.call(KEY, PATIENT, async () => {
        served.push(who);
        await passes(fleet.clock, 1);
      }),
    ),
  );
  await fleet.clock.advance(10 * SECOND);
  await Promise.all(calls);
  t.is(served.length, 100);
  let [longest, current] = [0, 0];
  served.forEach((who, index) => {
    current = who === served[index - 1] ? current + 1 : 1;
    const isContended = served.slice(index).includes(1 - who);
    if (isContended) longest = Math.max(longest, current);
  });
  t.true(longest <= 16, `${longest} in a row while the other process waited`);
  await fleet.leftNothing(t, KEY, ...processes);
});

test("waiters of other processes overtake a local waiter only once, and only if they came during the hold", async (t) => {
  const fleet = new Fleet();
  const [ours, theirs] = [fleet.process(), fleet.process()];
  const holder = job();
  const served: string[] = [];
  const wait = (process: FleetProcess, name: string): Promise<unknown> =>
    process.call(KEY, PATIENT, async () => {
      served.push(name);
      await passes(fleet.clock, SECOND);
    });
  const held = ours.call(KEY, PATIENT, holder.body);
  await holder.running;
  const calls = [wait(ours, "ours")];
  await fleet.clock.advance(SECOND);
  calls.push(wait(theirs, "later"), wait(fleet.process(), "last"));
  await fleet.clock.advance(SECOND); // Longer than the hand-off window inside a process.
  holder.end();
  await held;
  await fleet.clock.settle();
  t.deepEqual(served, ["later"]);
  calls.push(wait(theirs, "after the release"), wait(fleet.process(), "after the release"));
  await fleet.clock.advance(10 * SECOND);
  await Promise.all(calls);
  t.deepEqual(served, ["later", "last", "ours", "after the release", "after the release"]);
  await fleet.leftNothing(t, KEY, ours, theirs);
});

test("each turn of a process costs two commands", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process(), fleet.process()];
  const turns: { who: number; commands: number }[] = [];
  const calls = processes.flatMap((process, who) =>
    Array.from({ length: 50 }, () =>
      process.call(KEY, PATIENT, async () => {
        if (turns.at(-1)?.who !== who) turns.push({ who, commands: fleet.store.commands });
        await passes(fleet.clock, 1);
      }),
    ),
  );
  await fleet.clock.advance(10 * SECOND);
  await Promise.all(calls);
  const first = 3; // Each waiter tries once before it joins the queue.
  const costs = turns
    .slice(first + 1)
    .map(({ commands }, index) => commands - (turns[index + first]?.commands ?? NaN));
  t.true(costs.length >= 7);
  t.true(
    costs.every((cost) => cost === 2),
    costs.join(" "),
  );
  await fleet.leftNothing(t, KEY, ...processes);
});

test("a process that is granted the lock again before the reply to its release uses it immediately", async (t) => {
  const fleet = new Fleet();
  const [ours, theirs] = [fleet.process(), fleet.process()];
  const holder = job();
  const first = ours.call(KEY, PATIENT, holder.body);
  await fleet.clock.settle();
  const entered: string[] = [];
  const second = ours.call(KEY, PATIENT, async () => void entered.push("ours"));
  await fleet.clock.advance(101); // The turn is over.
  const other = theirs.call(KEY, PATIENT, async () => void entered.push("theirs"));
  await fleet.clock.settle();
  // The reply to the release comes late, after the other process has released the lock.
  fleet.store.onRelease = async (send) => {
    fleet.store.onRelease = (resend) => resend();
    const reply = await send();
    await passes(fleet.clock, 50);
    return reply;
  };
  holder.end();
  await fleet.clock.advance(50);
  await Promise.all([first, second, other]);
  t.deepEqual(entered, ["theirs", "ours"]);
  await fleet.leftNothing(t, KEY, ours, theirs);
});

test("a lock moves between processes without any delay", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process(), fleet.process()];
  const startedAt = fleet.clock.now();
  await Promise.all(
    processes.flatMap((process) => Array.from({ length: 40 }, () => process.call(KEY, PATIENT, idle))),
  );
  t.is(fleet.clock.now(), startedAt, "no time passes here");
  await fleet.leftNothing(t, KEY, ...processes);
});

test("each hand-off has its own requestId and a higher fencing token", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process()];
  const seen: { requestId: string; token: number }[] = [];
  await Promise.all(
    processes.flatMap((process) =>
      Array.from({ length: 40 }, () =>
        process.call(KEY, { ...PATIENT, fencing: true }, (lock) => {
          t.true(lock.remaining() > 0);
          seen.push({ requestId: lock.requestId, token: lock.fencingToken ?? 0 });
        }),
      ),
    ),
  );
  t.is(new Set(seen.map(({ requestId }) => requestId)).size, 80);
  const tokens = seen.map(({ token }) => token);
  t.deepEqual(
    tokens,
    tokens.toSorted((a, b) => a - b),
  );
  t.is(new Set(tokens).size, 80);
  t.true(fleet.store.commands < 30, "the locks were handed off");
});

test("a caller without fencing gets no token even if the handed-off lock has one", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const tokens = await Promise.all(
    [true, false, true].map((fencing) => process.call(KEY, { fencing }, (lock) => lock.fencingToken)),
  );
  t.is(fleet.store.acquireRequests.length, 1);
  const [first, none, third] = tokens;
  t.is(none, undefined);
  t.true((third ?? 0) > (first ?? 0) && (third ?? 0) < (first ?? 0) + FENCING_STRIDE);
});

for (const [what, first, second] of [
  ["another lock time", { lockTime: "20s" }, { lockTime: "40s" }],
  ["a fencing token", {}, { fencing: true }],
  ["replicas", {}, { replicas: 1 }],
  ["no replicas", { replicas: 1 }, {}],
  ["no watchdog", {}, { watchdog: false }],
  ["a watchdog that the holder lacks", { watchdog: false }, {}],
  ["a lock that is left to expire", {}, { autoUnlock: false, lockTime: "30s" }],
] as const) {
  test(`a waiter that asks for ${what} gets a new hold with its full lock time, not a hand-off`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    const holder = process.call(KEY, { lockTime: "30s", ...first }, () => passes(fleet.clock, 50));
    const next = process.call(KEY, { lockTime: "30s", ...second }, (lock) => lock.remaining());
    await fleet.clock.advance(50);
    await holder;
    t.is(fleet.store.releases, "autoUnlock" in second ? 1 : 2, "the holder released through the store");
    const lockTimeMs = "lockTime" in second && second.lockTime === "40s" ? 40_000 : 30_000;
    t.is(await next, lockTimeMs * 0.99 - 2);
  });
}

test("a lock with autoUnlock=false lasts for its whole lock time even if it followed another holder", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const holder = process.call(KEY, { lockTime: "20s" }, () => passes(fleet.clock, 90));
  const enteredAt = process.call(KEY, { lockTime: "20s", autoUnlock: false }, () => fleet.clock.now());
  await fleet.clock.advance(90);
  await holder;
  const freeAt = ((await enteredAt) ?? 0) + 20 * SECOND;
  await fleet.clock.advance(freeAt - fleet.clock.now() - 1);
  t.false(await fleet.isFree(KEY));
  await fleet.clock.advance(1);
  t.true(await fleet.isFree(KEY));
});

test("a handed-off lock is renewed until its last holder releases it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [first, second] = [job(), job()];
  const calls = [process.call(KEY, {}, first.body), process.call(KEY, {}, second.body)];
  await first.running;
  first.end();
  await second.running;
  t.is(fleet.store.commands, 1);
  await fleet.clock.advance(100 * SECOND);
  t.is(fleet.store.renewals, 10);
  t.false(await fleet.isFree(KEY));
  second.end();
  await Promise.all(calls);
  await fleet.leftNothing(t, KEY, process);
});

test("a loss after a hand-off is reported to the current holder, not to the previous one", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [second, lost] = [job(), deferred<unknown>()];
  const before = process.call(KEY, {}, (lock) => lock);
  const outcome = t.throwsAsync(
    process.call(KEY, {}, async (lock) => {
      lock.signal.addEventListener("abort", () => lost.resolve(lock.signal.reason));
      await second.body();
    }),
    { instanceOf: LockLostError },
  );
  await second.running;
  await fleet.clock.advance(VERIFY_WITHIN_MS);
  const earlier = await before;
  t.like(earlier?.signal.reason, { message: `${KEY} is no longer held: it was released` });
  await fleet.endHold(KEY);
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  await fleet.clock.advance(10 * SECOND);
  t.true((await lost.promise) instanceof LockLostError);
  second.end();
  await outcome;
  t.is(fleet.warnings.filter((line) => line.includes("lost the lock")).length, 1);
});

test("a reentrant lock is handed off after its last body, and detached tasks cannot enter again", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const reentrant = { reentrant: true } as const;
  const order: string[] = [];
  const end = deferred();
  const outer = process.call(KEY, reentrant, async () => {
    const inner = process.call(KEY, reentrant, async () => {
      await end.promise;
      order.push("inner");
    });
    void inner.then(async () => {
      // A detached task of a handed-off lock. Another caller of this process holds the key now.
      await t.throwsAsync(
        process.call(KEY, { ...reentrant, retryTimes: 0 }, () => t.fail()),
        { instanceOf: LockWaitTimeoutError },
      );
      order.push("stray");
    });
  });
  const [next] = [job()];
  const second = process.call(KEY, reentrant, async () => {
    order.push("next");
    return await next.body();
  });
  await outer;
  t.deepEqual(order, []);
  end.resolve();
  await next.running;
  await fleet.clock.advance(VERIFY_WITHIN_MS);
  next.end();
  await second;
  t.deepEqual(order, ["inner", "next", "stray"]);
  t.is(fleet.store.acquireRequests.length, 1);
  await fleet.leftNothing(t, KEY, process);
});

// ---- callers that handed off -------------------------------------------------------------------------------

test("a hand-off hides no loss: both the previous and the current holder get the error", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [first, second] = [job(), job()];
  const before = t.throwsAsync(process.call(KEY, {}, first.body), {
    instanceOf: LockLostError,
    message: /another caller holds it/,
  });
  await first.running;
  const aborted = deferred();
  const next = t.throwsAsync(
    process.call(KEY, {}, (lock) => {
      lock.signal.addEventListener("abort", () => aborted.resolve());
      return second.body();
    }),
    { instanceOf: LockLostError, message: /another caller holds it/ },
  );
  await fleet.endHold(KEY); // Deleted during the first body, and another process holds the key.
  await fleet.acquireElsewhere(KEY, 60 * SECOND);
  first.end();
  await second.running;
  await fleet.clock.advance(VERIFY_WITHIN_MS);
  await Promise.all([before, aborted.promise]); // No more time passes here.
  second.end();
  await next;
  await fleet.releaseElsewhere(KEY);
  await fleet.leftNothing(t, KEY, process);
});

test("a caller that handed off returns after the store confirms the key, while the next one runs", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const answer = deferred();
  fleet.store.onPeek = async (send) => {
    await answer.promise;
    return await send();
  };
  const [first, second] = [job(), job()];
  let isDone = false;
  const before = process.call(KEY, {}, first.body).then(() => (isDone = true));
  await first.running;
  const next = process.call(KEY, {}, second.body);
  first.end();
  await second.running;
  await fleet.clock.advance(999);
  t.false(isDone);
  answer.resolve();
  await before;
  second.end();
  await next;
  await fleet.leftNothing(t, KEY, process);
});

test("one peek verifies all hand-offs of the last few milliseconds, but none after it was sent", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const answers = [deferred(), deferred()];
  fleet.store.onPeek = async (send) => {
    const reply = await send();
    await answers[fleet.store.peeks - 1]?.promise;
    return reply;
  };
  const jobs = [job(), job(), job(), job()];
  const done: number[] = [];
  const calls = jobs.map(({ body }, n) => process.call(KEY, {}, body).then(() => done.push(n)));
  for (const [n, { running, end }] of jobs.slice(0, 3).entries()) {
    await running;
    end();
    if (n === 1) await fleet.clock.advance(VERIFY_WITHIN_MS);
  }
  await jobs[3]?.running;
  await fleet.clock.settle();
  t.is(fleet.store.peeks, 1, "one peek for the first two");
  t.deepEqual(done, []);
  answers[0]?.resolve();
  await fleet.clock.settle();
  t.deepEqual(done, [0, 1]);
  await fleet.clock.advance(VERIFY_WITHIN_MS);
  t.is(fleet.store.peeks, 2);
  answers[1]?.resolve();
  await fleet.clock.settle();
  t.deepEqual(done, [0, 1, 2]);
  jobs[3]?.end();
  await Promise.all(calls);
  t.is(fleet.store.peeks, 2);
  await fleet.leftNothing(t, KEY, process);
});

test("peeks that are answered out of order settle each caller that handed off once", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const answers = [deferred(), deferred()];
  fleet.store.onPeek = async (send) => {
    const reply = await send();
    await answers[fleet.store.peeks - 1]?.promise;
    return reply;
  };
  const jobs = [job(), job(), job()];
  const done: number[] = [];
  const calls = jobs.map(({ body }, n) => process.call(KEY, {}, body).then(() => done.push(n)));
  for (const { running, end } of jobs.slice(0, 2)) {
    await running;
    end();
    await fleet.clock.advance(VERIFY_WITHIN_MS);
  }
  await jobs[2]?.running;
  t.is(fleet.store.peeks, 2);
  answers[1]?.resolve();
  await fleet.clock.settle();
  t.deepEqual(done, [0, 1]);
  answers[0]?.resolve();
  await fleet.clock.settle();
  t.deepEqual(done, [0, 1]);
  jobs[2]?.end();
  await Promise.all(calls);
  await fleet.leftNothing(t, KEY, process);
});

test("bodies that take almost no time are verified by the final release, without a peek", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  t.is((await Promise.all(Array.from({ length: 60 }, () => process.call(KEY, {}, idle)))).length, 60); // No time passes here.
  t.is(fleet.store.peeks, 0);
  await fleet.leftNothing(t, KEY, process);
});

test("a caller that handed off succeeds even if the peek has no answer", async (t) => {
  for (const fate of [connectionRefused, lostOnTheWay]) {
    const fleet = new Fleet();
    const process = fleet.process();
    fleet.store.onPeek = fate;
    const [first, second] = [job(), job()];
    const before = process.call(KEY, {}, first.body);
    await first.running;
    const next = process.call(KEY, {}, second.body);
    first.end();
    await second.running;
    await fleet.clock.advance(SECOND + VERIFY_WITHIN_MS);
    t.is(await before, "done");
    second.end();
    t.is(await next, "done");
    await fleet.leftNothing(t, KEY, process);
  }
});

test("a caller that handed off does not wait for an unanswered peek if its lease has ended", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onPeek = lostOnTheWay;
  t.deepEqual(await Promise.all([1, 2, 3].map(() => process.call(KEY, {}, idle))), ["done", "done", "done"]); // No time passes here.
  await fleet.clock.advance(SECOND);
  await fleet.leftNothing(t, KEY, process);
});

test("storeValue is also the value of the key after a hand-off", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const seen: { requestId: string; storeValue: string | undefined; value: string | undefined }[] = [];
  await Promise.all(
    Array.from({ length: 64 }, () =>
      process.call(KEY, {}, async ({ requestId, storeValue }) => {
        seen.push({ requestId, storeValue, value: await fleet.valueOf(KEY) });
      }),
    ),
  );
  t.true(seen.every(({ storeValue, value }) => storeValue !== undefined && storeValue === value));
  t.is(new Set(seen.map(({ requestId }) => requestId)).size, 64);
  t.is(new Set(seen.map(({ storeValue }) => storeValue)).size, 1, "all in one hold");
});
