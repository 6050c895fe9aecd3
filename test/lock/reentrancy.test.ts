import test from "ava";
import { LockLostError, LockUnreachableError, LockWaitTimeoutError } from "../../runtime/errors";
import { deferred } from "../support/deferred";
import { Fleet, FleetProcess } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import { connectionRefused, replyLate, replyLost } from "../support/tampered-store";

const KEY = "LOCK_account_1";
const REENTRANT = { reentrant: true } as const;

/** Whether a reentrant call that waits for nobody gets in. */
async function isLetIn(process: FleetProcess, key = KEY): Promise<boolean> {
  try {
    await process.call(key, { ...REENTRANT, retryTimes: 0 }, () => {});
    return true;
  } catch (error) {
    if (error instanceof LockWaitTimeoutError) return false;
    throw error;
  }
}

test("a function that holds the key may call another one on the same key", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const b = (): Promise<string | undefined> => process.call(KEY, REENTRANT, () => "b");
  t.is(await process.call(KEY, REENTRANT, async () => `a then ${await b()}`), "a then b");
  t.is(fleet.store.asked.length, 1);
  t.is(fleet.store.releases, 1);
  t.true(await fleet.isFree(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("a function may call itself on the same key", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const countDown = async (n: number): Promise<number> =>
    (await process.call(KEY, REENTRANT, async () => (n === 0 ? 0 : 1 + (await countDown(n - 1))))) ?? 0;
  t.is(await countDown(10), 10);
  t.is(fleet.store.asked.length, 1);
  t.true(await fleet.isFree(KEY));
});

test("the inner lock is the outer one: its requestId in the store, its token, deadline and signal", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, { ...REENTRANT, fencing: true }, (outer) =>
    process.call(KEY, { ...REENTRANT, fencing: true }, (inner) => {
      t.is(inner.fencingToken, outer.fencingToken);
      t.is(inner.remaining(), outer.remaining());
      t.is(inner.signal, outer.signal);
      t.notThrows(() => inner.assertHeld());
    }),
  );
});

test("the lock is kept between two inner calls, and given back once, at the end", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, async () => {
    for (let n = 0; n < 3; n += 1) {
      t.true(await isLetIn(process));
      t.false(await fleet.isFree(KEY));
    }
  });
  t.is(fleet.store.releases, 1);
});

test("an inner call that outlives the outer keeps the lock until its own end", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  let inner: Promise<unknown> | undefined;
  await process.call(KEY, REENTRANT, () => {
    inner = process.call(KEY, REENTRANT, async (lock) => {
      await end.promise;
      lock.assertHeld();
    });
  });
  t.is(fleet.store.releases, 0);
  t.false(await fleet.isFree(KEY));
  await fleet.clock.advance(60_000);
  t.false(await fleet.isFree(KEY), "and it is renewed");
  end.resolve();
  await inner;
  t.true(await fleet.isFree(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("an outer body that releases early, twice, does not take the lock from the inner one", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  let inner: Promise<unknown> | undefined;
  await process.call(KEY, REENTRANT, async (outer) => {
    inner = process.call(KEY, REENTRANT, async (lock) => {
      await end.promise;
      lock.assertHeld();
    });
    await outer.release();
    await outer.release();
  });
  t.false(await fleet.isFree(KEY));
  end.resolve();
  await t.notThrowsAsync(Promise.resolve(inner));
  t.true(await fleet.isFree(KEY));
});

test("after its own release, the inner lock is not held, though the outer is", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, async (outer) => {
    const inner = await process.call(KEY, REENTRANT, (lock) => lock);
    t.is(inner?.remaining(), 0);
    t.throws(() => inner?.assertHeld(), { instanceOf: LockLostError, message: /it was released/ });
    t.notThrows(() => outer.assertHeld());
  });
});

test("a concurrent caller beside the holder is not let in", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const order: string[] = [];
  const call = (name: string): Promise<unknown> =>
    process.call(KEY, REENTRANT, async () => {
      order.push(`${name} in`);
      await fleet.clock.settle(); // Let the others try to get in between.
      order.push(`${name} out`);
    });
  await Promise.all([call("a"), call("b"), call("c")]);
  t.deepEqual(order, ["a in", "a out", "b in", "b out", "c in", "c out"]);
});

test("a caller that called and did not wait is not inside", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [entered, end] = [deferred(), deferred()];
  const called = process.call(KEY, REENTRANT, async () => {
    entered.resolve();
    await end.promise;
  });
  await entered.promise;
  t.false(await isLetIn(process));
  end.resolve();
  await called;
});

test("a task that strayed from the body is let in while the lock is held, and not after its release", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [during, after] = [deferred(), deferred()];
  const stray = async (): Promise<boolean[]> => {
    await during.promise;
    const first = await isLetIn(process);
    await after.promise;
    return [first, await isLetIn(process)];
  };
  let strayed: Promise<boolean[]> | undefined;
  await process.call(KEY, REENTRANT, async () => {
    strayed = stray();
    during.resolve();
    await fleet.clock.settle();
  });
  await fleet.foreignHolder(KEY, 60_000);
  after.resolve();
  t.deepEqual(await strayed, [true, false]);
});

test("a task that strayed from the body is not let in while the release is under way", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [sent, arrival] = [deferred(), deferred()];
  fleet.store.onDrop = async (send) => {
    const reply = await send();
    await fleet.foreignHolder(KEY, 60_000); // Free for others, before the holder has the reply.
    sent.resolve();
    await arrival.promise;
    return reply;
  };
  let strayed: Promise<boolean> | undefined;
  const call = process.call(KEY, REENTRANT, () => {
    strayed = sent.promise.then(() => isLetIn(process));
  });
  t.false(await Promise.race([sent.promise, call]).then(() => strayed));
  arrival.resolve();
  await call;
});

test("a lost lock lets nobody in again", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outcome = t.throwsAsync(
    process.call(KEY, { ...REENTRANT, watchdog: false, lockTime: "1s" }, async () => {
      fleet.clock.freeze(1_000); // No timer has run.
      await fleet.foreignHolder(KEY, 60_000);
      t.false(await isLetIn(process));
    }),
    { instanceOf: LockLostError },
  );
  await outcome;
});

test("a call that is not reentrant waits, also inside the lock", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, () =>
    t.throwsAsync(
      process.call(KEY, { retryTimes: 0 }, () => {}),
      { instanceOf: LockWaitTimeoutError },
    ),
  );
});

test("a reentrant call inside a lock that is not reentrant waits, too", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, {}, async () => t.false(await isLetIn(process)));
});

test("other keys are locks of their own, in any order of nesting", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, () =>
    process.call("LOCK_account_2", REENTRANT, async () => {
      t.is(fleet.store.asked.length, 2);
      t.true(await isLetIn(process));
      t.true(await isLetIn(process, "LOCK_account_2"));
      t.is(fleet.store.asked.length, 2);
      t.true(await isLetIn(process, "LOCK_account_3"));
      t.is(fleet.store.asked.length, 3);
    }),
  );
  t.true(await fleet.isFree(KEY));
  t.true(await fleet.isFree("LOCK_account_2"));
  t.is(fleet.clock.pendingTimers, 0);
});

test("another configuration in the same async context is another world", async (t) => {
  const fleet = new Fleet();
  const [process, other] = [fleet.process(), fleet.process()];
  await process.call(KEY, REENTRANT, async () => t.false(await isLetIn(other)));
});

test("an inner body's error ends the inner call only", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, async (outer) => {
    await t.throwsAsync(
      process.call(KEY, REENTRANT, () => Promise.reject(new Error("inner"))),
      { message: "inner" },
    );
    outer.assertHeld();
  });
  t.true(await fleet.isFree(KEY));
});

test("acquire() twice enters once", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, async () => {
    const inner = process.lock(KEY, REENTRANT);
    t.deepEqual(await Promise.all([inner.acquire(), inner.acquire(), inner.retryCheck()]), [
      true,
      true,
      true,
    ]);
    await inner.release();
  });
  await fleet.leftNothing(t, KEY, process);
});

test("one that is released before it is let in is not let in", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, async () => {
    const inner = process.lock(KEY, { ...REENTRANT, lockTime: "60s" });
    const entering = inner.acquire();
    await inner.release();
    t.false(await entering);
    t.is(inner.remaining(), 0);
  });
  await fleet.leftNothing(t, KEY, process);
});

test("one that cannot be had on its terms after the outer body has left gives the lock back", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRenew = connectionRefused;
  let inner: Promise<unknown> = Promise.resolve();
  await process.call(KEY, REENTRANT, () => {
    inner = t.throwsAsync(
      process.call(KEY, { ...REENTRANT, lockTime: "60s" }, () => t.fail()),
      { instanceOf: LockUnreachableError, message: /on its terms, too: connect ECONNREFUSED$/ },
    );
  });
  await inner;
  await fleet.leftNothing(t, KEY, process);
});

// ---- the stricter contract of the two ------------------------------------------------------------------------

test("an inner body that asks for a fencing token has one, which the outer one then has, too", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, async (outer) => {
    t.is(outer.fencingToken, undefined);
    await process.call(KEY, { ...REENTRANT, fencing: true }, (inner) => {
      t.is(typeof inner.fencingToken, "number");
      t.is(outer.fencingToken, inner.fencingToken);
    });
  });
  const earlier = fleet.clock.epochMicroseconds();
  await process.call(KEY, { fencing: true }, (lock) => t.true((lock.fencingToken ?? 0) > earlier));
  await fleet.leftNothing(t, KEY, process);
});

test("the tokens rise also where an inner body drew one for a lock that had been handed on", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const tokens: number[] = [];
  const fenced = { ...REENTRANT, fencing: true } as const;
  await Promise.all([
    process.call(KEY, REENTRANT, idle),
    process.call(KEY, REENTRANT, () =>
      process.call(KEY, fenced, ({ fencingToken = 0 }) => void tokens.push(fencingToken)),
    ),
    process.call(KEY, fenced, ({ fencingToken = 0 }) => void tokens.push(fencingToken)),
  ]);
  await process.call(KEY, fenced, ({ fencingToken = 0 }) => void tokens.push(fencingToken));
  t.is(tokens.length, 3);
  t.deepEqual(
    tokens,
    tokens.toSorted((a, b) => a - b),
  );
  t.is(new Set(tokens).size, 3);
});

test("an inner body with a longer lock time has it from its beginning, and it is renewed by it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, { ...REENTRANT, lockTime: "3s" }, (outer) =>
    process.call(KEY, { ...REENTRANT, lockTime: "60s" }, async (inner) => {
      t.is(inner.remaining(), 60_000 * 0.99 - 2);
      t.is(outer.remaining(), inner.remaining());
      fleet.store.onRenew = connectionRefused;
      await fleet.clock.advance(50_000);
      t.notThrows(() => inner.assertHeld());
      t.false(await fleet.isFree(KEY), "the store has it for so long, too");
    }),
  );
  await fleet.leftNothing(t, KEY, process);
});

test("an inner body with a shorter lock time takes nothing away, and nothing is sent for it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, { ...REENTRANT, lockTime: "60s" }, () =>
    process.call(KEY, { ...REENTRANT, lockTime: "3s" }, (inner) => {
      t.is(inner.remaining(), 60_000 * 0.99 - 2);
    }),
  );
  t.is(fleet.store.commands, 2);
});

test("an inner body with the watchdog has the lock kept, though the outer one does without", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, { ...REENTRANT, watchdog: false, lockTime: "3s" }, () =>
    process.call(KEY, { ...REENTRANT, lockTime: "3s" }, async (inner) => {
      await fleet.clock.advance(60_000);
      t.notThrows(() => inner.assertHeld());
      t.false(await fleet.isFree(KEY));
    }),
  );
  await fleet.leftNothing(t, KEY, process);
});

test("everybody inside is told of a loss, each as it wants to be", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const warn = { ...REENTRANT, onLost: "warn" } as const;
  const ends: string[] = [];
  const outer = process.call(KEY, warn, async () => {
    await t.throwsAsync(
      process.call(KEY, REENTRANT, async (throwing) => {
        await process.call(KEY, warn, async (warning) => {
          warning.signal.addEventListener("abort", () => ends.push("signal"));
          await fleet.takeAway(KEY);
          await fleet.clock.advance(10_000); // It is renewed then.
          t.throws(() => throwing.assertHeld(), { instanceOf: LockLostError });
        });
        ends.push("the innermost");
      }),
      { instanceOf: LockLostError, message: /its key disappeared early/ },
    );
    ends.push("the middle");
    return "result";
  });
  t.is(await outer, "result");
  t.deepEqual(ends, ["signal", "the innermost", "the middle"]);
  t.is(fleet.warnings.filter((line) => line.includes("was lost before its work was done")).length, 2);
  await fleet.leftNothing(t, KEY, process);
});

test("where the outer body would let it pass, the inner one's loss is thrown to it all the same, by whoever leaves last", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const end = deferred();
  let inner: Promise<unknown> = Promise.resolve();
  await process.call(KEY, { ...REENTRANT, onLost: "warn", watchdog: false, lockTime: "3s" }, () => {
    inner = t.throwsAsync(
      process.call(KEY, { ...REENTRANT, watchdog: false }, () => end.promise),
      { instanceOf: LockLostError },
    );
  });
  await fleet.clock.settle();
  await fleet.takeAway(KEY);
  end.resolve();
  await inner;
  await fleet.leftNothing(t, KEY, process);
});

test("an entry into a lock whose time is over is refused at once, and sends nothing", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, { ...REENTRANT, lockTime: "10s" }, async () => {
    fleet.clock.freeze(10_000); // No timer has run.
    const before = fleet.store.commands + fleet.store.looks;
    for (const options of [REENTRANT, { ...REENTRANT, fencing: true, lockTime: "60s" }] as const) {
      await t.throwsAsync(
        process.call(KEY, options, () => t.fail()),
        { instanceOf: LockLostError, message: "LOCK_account_1 is not held: its deadline passed" },
      );
    }
    t.is(fleet.store.commands + fleet.store.looks, before);
  });
  await t.throwsAsync(outer, { instanceOf: LockLostError });
  await fleet.leftNothing(t, KEY, process);
});

test("an entry on whose terms the store cannot be asked fails, and the outer body goes on", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRenew = connectionRefused;
  const outer = process.call(KEY, REENTRANT, async (lock) => {
    const error = await t.throwsAsync(
      process.call(KEY, { ...REENTRANT, fencing: true }, () => t.fail()),
      { instanceOf: LockUnreachableError },
    );
    t.like(error?.cause, { message: "connect ECONNREFUSED" });
    t.notThrows(() => lock.assertHeld());
    return "result";
  });
  t.is(await outer, "result");
  await fleet.leftNothing(t, KEY, process);
});

test("an entry that finds the key in other hands is refused, and everybody inside is told", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, REENTRANT, async (lock) => {
    const { signal } = lock;
    await fleet.takeAway(KEY);
    await fleet.foreignHolder(KEY, 60_000);
    await t.throwsAsync(
      process.call(KEY, { ...REENTRANT, fencing: true }, () => t.fail()),
      { instanceOf: LockLostError, message: /somebody else holds it/ },
    );
    t.true(signal.aborted);
  });
  await t.throwsAsync(outer, { instanceOf: LockLostError, message: /somebody else holds it/ });
});

test("a renewal that was sent before an entry made the lock longer, and is answered after it, does not shorten it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, { ...REENTRANT, lockTime: "30s" }, async (outer) => {
    const arrival = deferred();
    fleet.store.onRenew = async (send) => {
      await arrival.promise;
      return await send();
    };
    await fleet.clock.advance(10_000);
    t.is(fleet.store.renewals, 1);
    fleet.store.onRenew = (send) => send();
    await process.call(KEY, { ...REENTRANT, lockTime: "60s" }, async (inner) => {
      arrival.resolve();
      await fleet.clock.settle();
      t.is(inner.remaining(), 60_000 * 0.99 - 2);
      t.is(outer.remaining(), inner.remaining());
      fleet.store.onRenew = connectionRefused;
      await fleet.clock.advance(59_000);
      t.false(await fleet.isFree(KEY), "the store has it for so long, too");
    });
  });
  await fleet.leftNothing(t, KEY, process);
});

test("what an entry made longer, and nobody heard of, is given back for as long as the store may have it", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, { ...REENTRANT, lockTime: "300ms", watchdog: false }, async () => {
    fleet.store.onRenew = replyLost;
    fleet.store.onDrop = connectionRefused;
    await process.call(KEY, { ...REENTRANT, lockTime: "60s" }, () => t.fail());
  });
  const told = t.throwsAsync(outer);
  await fleet.clock.advance(3_000);
  await told;
  t.false(await fleet.isFree(KEY), "the store has it for 60 s");
  fleet.store.onDrop = (send) => send();
  await fleet.clock.advance(1_000);
  t.true(await fleet.isFree(KEY));
  await fleet.leftNothing(t, KEY, process);
});

test("an abort while the lock is entered again on longer terms ends that entry at once", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRenew = async (send) => {
    await passes(fleet.clock, 800);
    return await send();
  };
  const controller = new AbortController();
  const outer = process.call(KEY, { lockTime: "20s", reentrant: true }, async () => {
    const startedAt = fleet.clock.now();
    fleet.clock.after(10, () => controller.abort(new Error("the client went away")));
    const inner = process.call(KEY, { lockTime: "60s", reentrant: true }, () => t.fail(), controller);
    await t.throwsAsync(inner, { message: "the client went away" });
    return fleet.clock.now() - startedAt;
  });
  await fleet.clock.advance(5_000);
  t.is(await outer, 10);
  await fleet.leftNothing(t, KEY, process);
});

test("what was asked for an entry that an abort ended asks nothing of who has the lock by then", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const confirmed = deferred();
  const renew = fleet.store.renew.bind(fleet.store);
  const replicas: (number | undefined)[] = [];
  fleet.store.renew = (requests, timeoutMs) => {
    replicas.push(...requests.map((request) => request.replicas));
    return renew(requests, timeoutMs);
  };
  fleet.store.onRenew = replyLate(confirmed.promise);
  const controller = new AbortController();
  const next = job();
  const outer = process.call(KEY, REENTRANT, async () => {
    const inner = process.call(KEY, { ...REENTRANT, replicas: 1 }, () => t.fail(), controller);
    await fleet.clock.settle();
    controller.abort(new Error("the client went away"));
    await t.throwsAsync(inner, { message: "the client went away" });
  });
  const handedOff = process.call(KEY, {}, next.body);
  await next.running;
  confirmed.resolve();
  fleet.store.onRenew = (send) => send();
  await fleet.clock.advance(15_000);
  t.deepEqual(replicas, [1, undefined]);
  next.end();
  await Promise.all([outer, handedOff]);
  await fleet.leftNothing(t, KEY, process);
});

test("the tokens rise also where two inner bodies drew one at a time, whichever is heard first", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const fenced = { ...REENTRANT, fencing: true } as const;
  const heard = [deferred(), deferred()];
  const tokens: number[] = [];
  const note = ({ fencingToken = 0 }: { readonly fencingToken: number | undefined }): void =>
    void tokens.push(fencingToken);
  let draws = 0;
  fleet.store.onRenew = async (send) => {
    const own = heard[draws];
    draws += 1;
    return own === undefined ? await send() : await replyLate(own.promise)(send);
  };
  const outer = process.call(KEY, REENTRANT, async () => {
    const first = process.call(KEY, fenced, note);
    await fleet.clock.settle();
    const second = process.call(KEY, fenced, note);
    await fleet.clock.settle();
    for (const { resolve } of heard.toReversed()) {
      resolve();
      await fleet.clock.settle();
    }
    await Promise.all([first, second]);
  });
  const next = process.call(KEY, fenced, note);
  await Promise.all([outer, next]);
  t.is(tokens.length, 3);
  const [one = 0, other = 0, later = 0] = tokens;
  t.true(later > Math.max(one, other), tokens.join(" "));
  await fleet.leftNothing(t, KEY, process);
});

test("an entry with replicas rests on nothing that was asked of the master alone, and is answered later", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const extended = deferred();
  const lockTime = "30s";
  await process.call(KEY, { ...REENTRANT, lockTime }, async (outer) => {
    fleet.store.onRenew = replyLate(extended.promise);
    const extending = outer.extend("10m");
    fleet.store.onRenew = (send) => send();
    await process.call(KEY, { ...REENTRANT, lockTime, replicas: 1 }, async (inner) => {
      fleet.store.onRenew = connectionRefused; // No replica is heard of.
      extended.resolve();
      await t.throwsAsync(extending, { instanceOf: LockUnreachableError });
      t.true(inner.remaining() <= 30_000, `${inner.remaining()} ms`);
    });
  });
  await fleet.leftNothing(t, KEY, process);
});

test("nor does it rest on a renewal that was under way when it asked", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const renewed = deferred();
  const confirmed = deferred();
  const call = process.call(KEY, { ...REENTRANT, lockTime: "30s" }, async () => {
    await passes(fleet.clock, 9_900);
    const askedAt = fleet.clock.now();
    fleet.store.onRenew = replyLate(confirmed.promise);
    const inner = process.call(KEY, { ...REENTRANT, lockTime: "30s", replicas: 1 }, async (lock) => {
      fleet.store.onRenew = connectionRefused; // No replica is heard of.
      renewed.resolve();
      await passes(fleet.clock, 100);
      return fleet.clock.now() + lock.remaining() - askedAt;
    });
    fleet.store.onRenew = replyLate(renewed.promise);
    await passes(fleet.clock, 300);
    confirmed.resolve();
    return await inner;
  });
  await fleet.clock.advance(11_000);
  t.is(await call, 29_698, "what the replicas know of");
  await fleet.leftNothing(t, KEY, process);
});
