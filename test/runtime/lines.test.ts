import test, { type ExecutionContext } from "ava";
import {
  LockLostError,
  LockMisconfiguredError,
  LockUnreachableError,
  LockWaitTimeoutError,
} from "../../runtime/errors";
import { CLAIM_TIME_MS, FENCING_STRIDE } from "../../runtime/store";
import { deferred } from "../support/deferred";
import { Fleet, type FleetProcess } from "../support/fleet";
import { connectionRefused, lostOnTheWay, replyLost, TamperedStore } from "../support/tampered-store";

const KEY = "LOCK_payOrder_1";
const SECOND = 1_000;
const PATIENT = { retryTimes: 1_000, waitTime: "60s" } as const;

const idle = (): Promise<string> => Promise.resolve("done");

/** A body that runs until it is told to end. */
function job(): { body: () => Promise<string>; running: Promise<void>; end: () => void } {
  const running = deferred();
  const end = deferred();
  const body = async (): Promise<string> => {
    running.resolve();
    await end.promise;
    return "done";
  };
  return { body, running: running.promise, end: end.resolve };
}

/** Resolves when so much virtual time has passed. */
function passes(fleet: Fleet, ms: number): Promise<void> {
  return new Promise((resolve) => {
    fleet.clock.after(ms, resolve);
  });
}

async function nothingIsLeft(t: ExecutionContext, fleet: Fleet, ...processes: FleetProcess[]): Promise<void> {
  await fleet.clock.settle();
  t.true(await fleet.isForgotten(KEY), "nobody holds the key or waits for it");
  t.is(fleet.clock.pendingTimers, 0);
  t.true(processes.every(({ locker }) => locker.lines.isEmpty));
}

// ---- handing on inside the process ----------------------------------------------------------------------

test("nobody is overtaken in a process, whoever comes while a lock is handed on", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [came, served]: number[][] = [[], []];
  const call = async (n: number, children: number): Promise<void> => {
    came?.push(n);
    const more: Promise<void>[] = [];
    await process.call(KEY, PATIENT, async () => {
      served?.push(n);
      for (let child = 0; child < children; child += 1) more.push(call(n * 10 + child, children - 1));
      await passes(fleet, n % 7);
    });
    await Promise.all(more);
  };
  const all = Promise.all(Array.from({ length: 30 }, (_, n) => call(n + 1, 3)));
  await fleet.clock.advance(60 * SECOND);
  await all;
  t.true((came?.length ?? 0) > 400);
  t.deepEqual(served, came);
  await nothingIsLeft(t, fleet, process);
});

for (const { what, sectionMs, callers, inOneTurn } of [
  { what: "16 bodies in a row", sectionMs: 1, callers: 34, inOneTurn: [16, 16, 2] },
  { what: "64 bodies that take no time", sectionMs: 0, callers: 130, inOneTurn: [64, 64, 2] },
]) {
  test(`a lock is handed on without a command, to ${what} at most`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    const commands: number[] = [];
    const calls = Array.from({ length: callers }, () =>
      process.call(KEY, PATIENT, async () => {
        commands.push(fleet.store.commands);
        if (sectionMs > 0) await passes(fleet, sectionMs);
      }),
    );
    await fleet.clock.advance(SECOND);
    await Promise.all(calls);
    const stays = [1, 2, 3].map((sent) => commands.filter((count) => count === sent).length);
    t.deepEqual(stays, inOneTurn);
    t.is(fleet.store.commands, 4, "an acquire, two releases that hand on, and a release");
    await nothingIsLeft(t, fleet, process);
  });
}

test("a lock is handed on for 100 ms at most, before other processes have their turn", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const commands: number[] = [];
  const calls = Array.from({ length: 6 }, () =>
    process.call(KEY, PATIENT, async () => {
      commands.push(fleet.store.commands);
      await passes(fleet, 40);
    }),
  );
  await fleet.clock.advance(SECOND);
  await Promise.all(calls);
  t.deepEqual(commands, [1, 1, 1, 2, 2, 2]);
  await nothingIsLeft(t, fleet, process);
});

test("two processes with a crowd each take turns, and nobody starves", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process()];
  const served: number[] = [];
  const calls = processes.flatMap((process, who) =>
    Array.from({ length: 50 }, () =>
      process.call(KEY, PATIENT, async () => {
        served.push(who);
        await passes(fleet, 1);
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
  await nothingIsLeft(t, fleet, ...processes);
});

test("a turn costs two commands: one to give the lock on, and one to take it", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process(), fleet.process()];
  const turns: { who: number; commands: number }[] = [];
  const calls = processes.flatMap((process, who) =>
    Array.from({ length: 50 }, () =>
      process.call(KEY, PATIENT, async () => {
        if (turns.at(-1)?.who !== who) turns.push({ who, commands: fleet.store.commands });
        await passes(fleet, 1);
      }),
    ),
  );
  await fleet.clock.advance(10 * SECOND);
  await Promise.all(calls);
  const first = 3; // Who waits asks first, and then gets in the queue.
  const costs = turns
    .slice(first + 1)
    .map(({ commands }, index) => commands - (turns[index + first]?.commands ?? NaN));
  t.true(costs.length >= 7);
  t.true(
    costs.every((cost) => cost === 2),
    costs.join(" "),
  );
  await nothingIsLeft(t, fleet, ...processes);
});

test("who was given the lock again before it knew that it had given it on takes it at once", async (t) => {
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
  // The reply to the release that gives the lock on comes late: after the other process has given it back.
  fleet.store.onRelease = async (send) => {
    fleet.store.onRelease = (resend) => resend();
    const reply = await send();
    await passes(fleet, 50);
    return reply;
  };
  holder.end();
  await fleet.clock.advance(50);
  await Promise.all([first, second, other]);
  t.deepEqual(entered, ["theirs", "ours"]);
  await nothingIsLeft(t, fleet, ours, theirs);
});

test("between two processes a lock goes to and fro without waiting for anything", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process(), fleet.process()];
  const startedAt = fleet.clock.now();
  await Promise.all(
    processes.flatMap((process) => Array.from({ length: 40 }, () => process.call(KEY, PATIENT, idle))),
  );
  t.is(fleet.clock.now(), startedAt, "no time passes here");
  await nothingIsLeft(t, fleet, ...processes);
});

test("each who is handed a lock has a requestId and a fencing token of its own, and the tokens rise", async (t) => {
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
  t.true(fleet.store.commands < 30, "they were handed on");
});

test("who did not ask for a fencing token has none, also when the lock that is handed on has one", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const tokens = await Promise.all(
    [true, false, true].map((fencing) => process.call(KEY, { fencing }, (lock) => lock.fencingToken)),
  );
  t.is(fleet.store.acquired.length, 1);
  const [first, none, third] = tokens;
  t.is(none, undefined);
  t.true((third ?? 0) > (first ?? 0) && (third ?? 0) < (first ?? 0) + FENCING_STRIDE);
});

for (const [what, first, second] of [
  ["another lock time", { lockTime: "20s" }, { lockTime: "40s" }],
  ["a fencing token", {}, { fencing: true }],
  ["no watchdog", {}, { watchdog: false }],
  ["a lock that was not watched", { watchdog: false }, {}],
  ["a lock that is left to expire", {}, { autoUnlock: false, lockTime: "30s" }],
] as const) {
  test(`who wants ${what} is not handed what the holder had, but has a whole stay of its own`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    const holder = process.call(KEY, { lockTime: "30s", ...first }, () => passes(fleet, 50));
    const next = process.call(KEY, { lockTime: "30s", ...second }, (lock) => lock.remaining());
    await fleet.clock.advance(50);
    await holder;
    t.is(fleet.store.releases, "autoUnlock" in second ? 1 : 2, "the holder's went by the store");
    const lockTimeMs = "lockTime" in second && second.lockTime === "40s" ? 40_000 : 30_000;
    t.is(await next, lockTimeMs * 0.99 - 2);
  });
}

test("a lock that is left to expire is so for its whole lock time, though others held it before", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const holder = process.call(KEY, { lockTime: "20s" }, () => passes(fleet, 90));
  const enteredAt = process.call(KEY, { lockTime: "20s", autoUnlock: false }, () => fleet.clock.now());
  await fleet.clock.advance(90);
  await holder;
  const freeAt = ((await enteredAt) ?? 0) + 20 * SECOND;
  await fleet.clock.advance(freeAt - fleet.clock.now() - 1);
  t.false(await fleet.isFree(KEY));
  await fleet.clock.advance(1);
  t.true(await fleet.isFree(KEY));
});

test("a lock that was handed on is renewed as long as anybody has it, and not longer", async (t) => {
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
  await nothingIsLeft(t, fleet, process);
});

test("a lock that is lost after it was handed on is told to its holder, and not to the one before", async (t) => {
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
  const earlier = await before;
  await second.running;
  t.like(earlier?.signal.reason, { message: `${KEY} is no longer held: it was released` });
  const [{ requestId } = { requestId: "" }] = fleet.store.acquired;
  await fleet.memory.release(KEY, requestId);
  await fleet.foreignHolder(KEY, 60 * SECOND);
  await fleet.clock.advance(10 * SECOND);
  t.true((await lost.promise) instanceof LockLostError);
  second.end();
  await outcome;
  t.is(fleet.warnings.filter((line) => line.includes("lost the lock")).length, 1);
});

test("a reentrant lock is handed on when its last body ends, and its inner bodies are not let into the next", async (t) => {
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
      // A stray of a lock that was handed on: the key is held here, and not by it.
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
  await fleet.clock.settle();
  next.end();
  await second;
  t.deepEqual(order, ["inner", "next", "stray"]);
  t.is(fleet.store.acquired.length, 1);
  await nothingIsLeft(t, fleet, process);
});

test("while shutting down nothing is handed on, and the key is free at the end", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const { body, running, end } = job();
  const holder = process.call(KEY, {}, body);
  await running;
  const next = t.throwsAsync(process.call(KEY, {}, idle), { code: "LOCK_CLOSED" });
  await fleet.clock.settle();
  process.locker.lines.close();
  end();
  t.is(await holder, "done");
  await next;
  await nothingIsLeft(t, fleet, process);
});

test("what is handed on while shutting down begins is given back", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRelease = async (send) => {
    const released = await send();
    process.locker.lines.close();
    return released;
  };
  const { body, running, end } = job();
  const holder = process.call(KEY, { watchdog: false }, body); // So it goes by the store.
  await running;
  const next = t.throwsAsync(process.call(KEY, {}, idle), { code: "LOCK_CLOSED" });
  end();
  await Promise.all([holder, next]);
  t.is(fleet.store.leaves > 0, true);
  await nothingIsLeft(t, fleet, process);
});

test("who is sent home by a shutdown asks nothing more", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    process.locker.lines.close();
    return reply;
  };
  await t.throwsAsync(process.call(KEY, {}, idle), { code: "LOCK_CLOSED" });
  t.is(fleet.store.waits.length, 0);
});

// ---- the process's place in the queue -------------------------------------------------------------------

test("when the one who took the process's place in the queue gives up, the next in line inherits it", async (t) => {
  const fleet = new Fleet();
  const [process, other] = [fleet.process(), fleet.process()];
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const order: string[] = [];
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "2s" }, idle));
  const heir = process.call(KEY, {}, () => order.push("heir"));
  await fleet.clock.advance(SECOND);
  const later = other.call(KEY, {}, () => order.push("later"));
  await fleet.clock.advance(2 * SECOND);
  await hasty;
  await fleet.foreignerLeaves(KEY);
  await Promise.all([heir, later]);
  t.deepEqual(order, ["heir", "later"]);
  await nothingIsLeft(t, fleet, process, other);
});

test("who inherits a place with another lock time has its own, and renews by it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.foreignHolder(KEY, 5 * SECOND);
  const hasty = t.throwsAsync(process.call(KEY, { lockTime: "60s", retryTimes: 1, waitTime: "2s" }, idle));
  const remaining = process.call(KEY, { lockTime: "3s", fencing: true }, (lock) => {
    t.is(typeof lock.fencingToken, "number");
    return lock.remaining();
  });
  await fleet.clock.advance(5 * SECOND);
  await hasty;
  t.is(await remaining, 3_000 * 0.99 - 2);
  await nothingIsLeft(t, fleet, process);
});

test("the last of a process who gives up leaves the store's queue, and the others move up", async (t) => {
  const fleet = new Fleet();
  const [process, other] = [fleet.process(), fleet.process()];
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const hasty = [1, 2, 3].map((waitTime) =>
    t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: `${waitTime}s` }, idle)),
  );
  await fleet.clock.settle();
  const later = other.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(2_900);
  t.is(fleet.store.leaves, 0);
  await fleet.clock.advance(100);
  await Promise.all(hasty);
  t.is(fleet.store.leaves, 1);
  await fleet.foreignerLeaves(KEY);
  t.is(await later, fleet.clock.now(), "no claim of the one who left is waited for");
  await nothingIsLeft(t, fleet, process, other);
});

test("what the queue gives a process whose waiters have all left goes to the next one", async (t) => {
  const fleet = new Fleet();
  const [process, other] = [fleet.process(), fleet.process()];
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "1s" }, idle));
  await fleet.clock.settle();
  const later = other.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(500);
  fleet.store.onWait = lostOnTheWay; // The claim does not arrive.
  await fleet.foreignerLeaves(KEY);
  await fleet.clock.advance(600);
  await hasty;
  fleet.store.onWait = undefined;
  const startedAt = fleet.clock.now();
  await fleet.clock.advance(CLAIM_TIME_MS);
  t.true(((await later) ?? Infinity) - startedAt < CLAIM_TIME_MS);
  await nothingIsLeft(t, fleet, process, other);
});

test("a process that dies in the queue holds up the others for the time of a claim, and no longer", async (t) => {
  const fleet = new Fleet();
  const dead = new TamperedStore(fleet.memory);
  const [mortal, other] = [fleet.process({ store: dead }), fleet.process()];
  await fleet.foreignHolder(KEY, 60 * SECOND);
  void mortal.call(KEY, { retryTimes: 1, waitTime: "100s" }, () => t.fail()).catch(() => {});
  await fleet.clock.settle();
  const later = other.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(100);
  dead.onAny = lostOnTheWay;
  dead.onHint = () => {};
  await fleet.foreignerLeaves(KEY);
  const leftAt = fleet.clock.now();
  await fleet.clock.advance(5 * SECOND);
  const waitedMs = ((await later) ?? Infinity) - leftAt;
  t.true(waitedMs <= CLAIM_TIME_MS + SECOND, `${waitedMs} ms`);
});

test("a late grant to a process that has given up is given back, and a late place, too", async (t) => {
  for (const command of ["onAcquire", "onWait"] as const) {
    const fleet = new Fleet();
    const process = fleet.process();
    if (command === "onWait") await fleet.foreignHolder(KEY, 60 * SECOND);
    const arrival = deferred();
    fleet.store[command] = async (send) => {
      await arrival.promise;
      return await send();
    };
    const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "500ms" }, idle));
    await fleet.clock.advance(SECOND);
    await hasty;
    if (command === "onWait") await fleet.foreignerLeaves(KEY);
    arrival.resolve();
    await nothingIsLeft(t, fleet, process);
  }
});

test("a late grant comes to the first who waits now", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const arrival = deferred();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    await arrival.promise;
    return reply;
  };
  fleet.store.onWait = lostOnTheWay;
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "500ms" }, idle));
  const heir = process.call(KEY, {}, () => fleet.clock.now());
  await fleet.clock.advance(600);
  await hasty;
  arrival.resolve();
  t.is(await heir, fleet.clock.now(), "its own try, which is still under way, is not waited for");
  await fleet.clock.advance(SECOND);
  t.is(fleet.store.acquired[0]?.requestId, fleet.store.waits[0]?.requestId);
  await nothingIsLeft(t, fleet, process);
});

test("a place that is inherited while the first try is under way does not make the lock seem longer than it is", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAcquire = async (send) => {
    await passes(fleet, 100);
    return await send();
  };
  const abandoned = process.lock(KEY, { lockTime: "1s" });
  const asked = abandoned.acquire();
  const { body, running, end } = job();
  let [remainingMs, token]: [number, number | undefined] = [0, undefined];
  const heir = process.call(KEY, { lockTime: "10s", watchdog: false, fencing: true }, async (lock) => {
    remainingMs = lock.remaining();
    token = lock.fencingToken;
    return await body();
  });
  await fleet.clock.advance(50);
  await abandoned.release();
  await fleet.clock.advance(SECOND);
  t.false(await asked);
  await running;
  await fleet.clock.advance(remainingMs - SECOND);
  t.false(await fleet.isFree(KEY), "as long as the holder believes to hold it, nobody else can");
  t.is(typeof token, "number");
  end();
  await heir;
  await nothingIsLeft(t, fleet, process);
});

test("a lock that came by a late reply is held, though a later try was refused for good", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const arrival = deferred();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    await arrival.promise;
    return reply;
  };
  fleet.store.onWait = async () => {
    arrival.resolve();
    await fleet.clock.settle();
    throw new LockMisconfiguredError("NOPERM");
  };
  const call = process.call(KEY, {}, (lock) => lock.remaining() > 0);
  await fleet.clock.advance(2 * SECOND);
  t.true(await call);
  await nothingIsLeft(t, fleet, process);
});

test("a late second grant of a lock that is left to expire does not free it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const arrival = deferred();
  fleet.store.onAcquire = async (send) => {
    const reply = await send();
    await arrival.promise;
    return reply;
  };
  fleet.store.onWait = (send) => send();
  const call = process.call(KEY, { autoUnlock: false, lockTime: "20s" }, idle);
  await fleet.clock.advance(1_100);
  t.is(await call, "done");
  arrival.resolve();
  await fleet.clock.settle();
  t.is(fleet.store.leaves, 0);
  t.false(await fleet.isFree(KEY));
});

test("two slow commands of one try do not take longer than the wait budget", async (t) => {
  const fleet = new Fleet();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  fleet.store.onAny = async (send) => {
    await passes(fleet, 490);
    return await send();
  };
  const startedAt = fleet.clock.now();
  const gaveUpAt = fleet
    .process()
    .call(KEY, { retryTimes: 1, waitTime: "500ms" }, idle)
    .then(
      () => 0,
      () => fleet.clock.now(),
    );
  await fleet.clock.advance(5 * SECOND);
  const tookMs = (await gaveUpAt) - startedAt;
  t.true(tookMs >= 500 && tookMs <= 750, `${tookMs} ms`);
});

// ---- losing a lock --------------------------------------------------------------------------------------

test("when the holder loses its lock, those who wait here go on, and its late release touches nobody", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [late, next] = [job(), job()];
  const overdue = t.throwsAsync(process.call(KEY, { lockTime: "6s" }, late.body), {
    instanceOf: LockLostError,
  });
  await late.running;
  const waiting = [process.call(KEY, PATIENT, next.body), process.call(KEY, PATIENT, idle)];
  fleet.store.onRenew = lostOnTheWay;
  await fleet.clock.advance(6 * SECOND);
  await next.running;
  fleet.store.onRenew = (send) => send();
  late.end();
  await overdue;
  await fleet.clock.advance(60 * SECOND);
  t.false(await fleet.isFree(KEY));
  next.end();
  t.deepEqual(await Promise.all(waiting), ["done", "done"]);
  await nothingIsLeft(t, fleet, process);
});

test("a body that outlasts its lock counts as under way, though another has the key by now", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const late = job();
  const overdue = t.throwsAsync(process.call(KEY, { lockTime: "2s", watchdog: false }, late.body));
  await late.running;
  const next = process.call(KEY, {}, idle);
  await fleet.clock.advance(2 * SECOND);
  t.is(await next, "done");
  t.false(process.locker.lines.isEmpty, "shutdown() waits for it");
  late.end();
  await overdue;
  await nothingIsLeft(t, fleet, process);
});

test("when the holder learns that its lock is gone, those who wait here go on at once", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const { body, running, end } = job();
  const overdue = t.throwsAsync(process.call(KEY, { lockTime: "30s" }, body), { instanceOf: LockLostError });
  await running;
  const startedAt = fleet.clock.now();
  const next = process.call(KEY, PATIENT, () => fleet.clock.now());
  await fleet.memory.release(KEY, fleet.store.acquired[0]?.requestId ?? "");
  await fleet.clock.advance(10 * SECOND); // It is renewed then.
  t.is(await next, startedAt + 10 * SECOND);
  end();
  await overdue;
  await nothingIsLeft(t, fleet, process);
});

test("a lock whose release is under way is not renewed any more, and not told to be lost", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process({ commandTimeout: "20s" });
  const holder = process.call(KEY, { lockTime: "30s" }, () => passes(fleet, 9 * SECOND));
  const next = process.call(KEY, PATIENT, idle);
  fleet.store.onRelease = async (send) => {
    const released = await send();
    await passes(fleet, 5 * SECOND);
    return released;
  };
  await fleet.clock.advance(30 * SECOND);
  await Promise.all([holder, next]);
  t.is(fleet.store.renewals, 0);
  t.deepEqual(fleet.warnings, []);
  await nothingIsLeft(t, fleet, process);
});

test("a lock that is half over is not handed on, but had anew", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRenew = connectionRefused;
  const holder = process.call(KEY, { lockTime: "100ms" }, () => passes(fleet, 60));
  const remaining = process.call(KEY, { lockTime: "100ms" }, (lock) => lock.remaining());
  await fleet.clock.advance(60);
  await holder;
  t.is(await remaining, 100 * 0.99 - 2);
});

// ---- a bad network --------------------------------------------------------------------------------------

for (const [what, fate] of [
  ["its reply is lost", replyLost],
  ["it is lost itself", lostOnTheWay],
] as const) {
  test(`a release with others in line goes well in the end when ${what}`, async (t) => {
    const fleet = new Fleet();
    const process = fleet.process();
    const { body, running, end } = job();
    const holder = process.call(KEY, { watchdog: false, lockTime: "3s" }, body); // So it goes by the store.
    await running;
    const order: number[] = [];
    const waiting = [1, 2, 3].map((n) => process.call(KEY, PATIENT, () => order.push(n)));
    fleet.store.onRelease = fate;
    end();
    await fleet.clock.advance(SECOND);
    t.is(await holder, "done", "what became of its release is nobody's business here");
    fleet.store.onRelease = (send) => send();
    await fleet.clock.advance(3 * SECOND);
    await Promise.all(waiting);
    t.deepEqual(order, [1, 2, 3]);
    t.regex(fleet.warnings.join("\n"), /the release was not confirmed/);
    await nothingIsLeft(t, fleet, process);
  });
}

test("a late reply to a release that handed the lock on gives it to the first who waits", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const { body, running, end } = job();
  const holder = process.call(KEY, { watchdog: false }, body);
  await running;
  const next = process.call(KEY, {}, () => fleet.clock.now());
  const arrival = deferred();
  fleet.store.onRelease = async (send) => {
    const released = await send();
    await arrival.promise;
    return released;
  };
  fleet.store.onWait = lostOnTheWay;
  end();
  await fleet.clock.advance(1_500);
  t.is(await holder, "done");
  arrival.resolve();
  t.is(await next, fleet.clock.now(), "its own try, which is still under way, is not waited for");
  await fleet.clock.advance(SECOND);
  await nothingIsLeft(t, fleet, process);
});

test("when the one to whom a release should hand on gives up meanwhile, nothing is left", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const { body, running, end } = job();
  const holder = process.call(KEY, { watchdog: false }, body);
  await running;
  const hasty = t.throwsAsync(process.call(KEY, { retryTimes: 1, waitTime: "200ms" }, idle));
  await fleet.clock.advance(100);
  fleet.store.onRelease = async (send) => {
    await passes(fleet, 300);
    return await send();
  };
  end();
  await fleet.clock.advance(SECOND);
  await Promise.all([holder, hasty]);
  await nothingIsLeft(t, fleet, process);
});

test("hints that are wrong, doubled or for nobody do no harm", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process()];
  fleet.store.onHint = (deliver) => {
    deliver();
    deliver();
  };
  let inside = 0;
  const calls = processes.flatMap((process) =>
    Array.from({ length: 40 }, () =>
      process.call(KEY, PATIENT, async (lock) => {
        inside += 1;
        t.is(inside, 1);
        fleet.store.hint(undefined);
        fleet.store.hint(lock.requestId);
        fleet.store.hint("no such request");
        for (const { requestId } of fleet.store.waits.slice(-3)) fleet.store.hint(requestId);
        await passes(fleet, 3);
        inside -= 1;
      }),
    ),
  );
  await fleet.clock.advance(20 * SECOND);
  await Promise.all(calls);
  await nothingIsLeft(t, fleet, ...processes);
});

test("without any hint, the second look finds what the queue gave, before it is taken away again", async (t) => {
  const fleet = new Fleet();
  const processes = [fleet.process(), fleet.process()];
  fleet.store.onHint = () => {};
  const startedAt = fleet.clock.now();
  const calls = processes.flatMap((process) =>
    Array.from({ length: 20 }, () => process.call(KEY, PATIENT, () => passes(fleet, 30))),
  );
  await fleet.clock.advance(60 * SECOND);
  await Promise.all(calls);
  t.true(fleet.clock.now() - startedAt <= 60 * SECOND);
  await nothingIsLeft(t, fleet, ...processes);
});

test("after an outage, those who wait are served in their order", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const order: number[] = [];
  const waiting = [1, 2, 3].map((n) => process.call(KEY, PATIENT, () => order.push(n)));
  await fleet.clock.advance(SECOND);
  fleet.store.onAny = connectionRefused;
  await fleet.clock.advance(30 * SECOND);
  await fleet.foreignerLeaves(KEY);
  await fleet.clock.advance(5 * SECOND);
  t.deepEqual(order, []);
  fleet.store.onAny = (send) => send();
  await fleet.clock.advance(200);
  await Promise.all(waiting);
  t.deepEqual(order, [1, 2, 3]);
  await nothingIsLeft(t, fleet, process);
});

test("in an outage every waiter learns in its own time that the store is unreachable", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await fleet.foreignHolder(KEY, 60 * SECOND);
  const startedAt = fleet.clock.now();
  const ends = [1, 2, 3].map(async (seconds) => {
    await t.throwsAsync(process.call(KEY, { retryTimes: seconds, waitTime: "1s" }, idle), {
      instanceOf: LockUnreachableError,
    });
    return fleet.clock.now() - startedAt;
  });
  await fleet.clock.settle();
  fleet.store.onAny = lostOnTheWay;
  await fleet.clock.advance(5 * SECOND);
  for (const [index, tookMs] of (await Promise.all(ends)).entries()) {
    t.true(tookMs >= (index + 1) * SECOND && tookMs <= (index + 1) * SECOND + 250, `${tookMs} ms`);
  }
  t.is(fleet.clock.pendingTimers, 0);
});

test("who waits behind one whom the store never answered is told so, and not that somebody held the lock", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onAcquire = lostOnTheWay;
  const waits = ["900ms", "300ms"].map((waitTime) =>
    t.throwsAsync(
      process.call(KEY, { retryTimes: 1, waitTime: waitTime as "900ms" }, () => t.fail()),
      { instanceOf: LockUnreachableError },
    ),
  );
  await fleet.clock.advance(5 * SECOND);
  await Promise.all(waits);
  await nothingIsLeft(t, fleet, process);
});
