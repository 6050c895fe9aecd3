import test from "ava";
import { LockLostError, LockUnreachableError, LockWaitTimeoutError } from "../../runtime/base/errors";
import { deferred } from "../support/deferred";
import { Fleet, FleetProcess } from "../support/fleet";
import { idle, job, passes } from "../support/jobs";
import { connectionRefused, replyLate, replyLost } from "../support/tampered-store";

const KEY = "LOCK_account_1";
const REENTRANT = { reentrant: true } as const;

/** Returns whether a reentrant call with no wait budget enters. */
async function canEnter(process: FleetProcess, key = KEY): Promise<boolean> {
  try {
    await process.call(key, { ...REENTRANT, retryTimes: 0 }, () => {});
    return true;
  } catch (error) {
    if (error instanceof LockWaitTimeoutError) return false;
    throw error;
  }
}

test("a function that holds a key may call another function on the same key", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const b = (): Promise<string | undefined> => process.call(KEY, REENTRANT, () => "b");
  t.is(await process.call(KEY, REENTRANT, async () => `a then ${await b()}`), "a then b");
  t.is(fleet.store.acquireRequests.length, 1);
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
  t.is(fleet.store.acquireRequests.length, 1);
  t.true(await fleet.isFree(KEY));
});

test("an inner lock shares the value, the fencing token, the deadline, and the signal of the outer lock", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, { ...REENTRANT, fencing: true }, (outer) =>
    process.call(KEY, { ...REENTRANT, fencing: true }, async (inner) => {
      t.is(inner.storeValue, outer.storeValue);
      t.is(await fleet.valueOf(KEY), inner.storeValue);
      t.is(inner.fencingToken, outer.fencingToken);
      t.is(inner.remaining(), outer.remaining());
      t.is(inner.signal, outer.signal);
      t.notThrows(() => inner.assertHeld());
    }),
  );
});

test("a lock is held between inner calls and released once at the end", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, async () => {
    for (let n = 0; n < 3; n += 1) {
      t.true(await canEnter(process));
      t.false(await fleet.isFree(KEY));
    }
  });
  t.is(fleet.store.releases, 1);
});

test("an inner call that outlives the outer call keeps the lock until it ends", async (t) => {
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
  t.false(await fleet.isFree(KEY), "the lock is renewed");
  end.resolve();
  await inner;
  t.true(await fleet.isFree(KEY));
  t.is(fleet.clock.pendingTimers, 0);
});

test("an outer body that releases early, even twice, does not release the lock of the inner body", async (t) => {
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

test("a released inner lock is not held, although the outer lock is", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, async (outer) => {
    const inner = await process.call(KEY, REENTRANT, (lock) => lock);
    t.is(inner?.remaining(), 0);
    t.throws(() => inner?.assertHeld(), { instanceOf: LockLostError, message: /it was released/ });
    t.notThrows(() => outer.assertHeld());
  });
});

test("a concurrent reentrant caller does not enter while the holder is inside", async (t) => {
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

test("a caller that does not await its locked call does not hold the lock", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [entered, end] = [deferred(), deferred()];
  const called = process.call(KEY, REENTRANT, async () => {
    entered.resolve();
    await end.promise;
  });
  await entered.promise;
  t.false(await canEnter(process));
  end.resolve();
  await called;
});

test("a detached task of the body may enter while the lock is held, but not after its release", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [during, after] = [deferred(), deferred()];
  const stray = async (): Promise<boolean[]> => {
    await during.promise;
    const first = await canEnter(process);
    await after.promise;
    return [first, await canEnter(process)];
  };
  let strayed: Promise<boolean[]> | undefined;
  await process.call(KEY, REENTRANT, async () => {
    strayed = stray();
    during.resolve();
    await fleet.clock.settle();
  });
  await fleet.acquireElsewhere(KEY, 60_000);
  after.resolve();
  t.deepEqual(await strayed, [true, false]);
});

test("a detached task of the body may not enter while the release is in flight", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const [sent, arrival] = [deferred(), deferred()];
  fleet.store.onRelease = async (send) => {
    const reply = await send();
    await fleet.acquireElsewhere(KEY, 60_000); // Another caller gets the key before the holder has the reply.
    sent.resolve();
    await arrival.promise;
    return reply;
  };
  let strayed: Promise<boolean> | undefined;
  const call = process.call(KEY, REENTRANT, () => {
    strayed = sent.promise.then(() => canEnter(process));
  });
  t.false(await Promise.race([sent.promise, call]).then(() => strayed));
  arrival.resolve();
  await call;
});

test("a lost lock cannot be entered again", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outcome = t.throwsAsync(
    process.call(KEY, { ...REENTRANT, watchdog: false, lockTime: "1s" }, async () => {
      fleet.clock.freeze(1_000); // No timer has run.
      await fleet.acquireElsewhere(KEY, 60_000);
      t.false(await canEnter(process));
    }),
    { instanceOf: LockLostError },
  );
  await outcome;
});

test("a non-reentrant call waits even inside the lock", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, () =>
    t.throwsAsync(
      process.call(KEY, { retryTimes: 0 }, () => {}),
      { instanceOf: LockWaitTimeoutError },
    ),
  );
});

test("a reentrant call waits inside a non-reentrant lock", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, {}, async () => t.false(await canEnter(process)));
});

test("nested locks on different keys are separate, and each can be entered again in any order", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, REENTRANT, () =>
    process.call("LOCK_account_2", REENTRANT, async () => {
      t.is(fleet.store.acquireRequests.length, 2);
      t.true(await canEnter(process));
      t.true(await canEnter(process, "LOCK_account_2"));
      t.is(fleet.store.acquireRequests.length, 2);
      t.true(await canEnter(process, "LOCK_account_3"));
      t.is(fleet.store.acquireRequests.length, 3);
    }),
  );
  t.true(await fleet.isFree(KEY));
  t.true(await fleet.isFree("LOCK_account_2"));
  t.is(fleet.clock.pendingTimers, 0);
});

test("another configuration in the same async context cannot enter the lock", async (t) => {
  const fleet = new Fleet();
  const [process, other] = [fleet.process(), fleet.process()];
  await process.call(KEY, REENTRANT, async () => t.false(await canEnter(other)));
});

test("an inner body's error ends only the inner call", async (t) => {
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

test("repeated acquire() calls on an inner lock enter once", async (t) => {
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

test("an inner lock that is released before it enters does not enter", async (t) => {
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

test("an inner call whose options cannot be applied after the outer body ended releases the lock", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  fleet.store.onRenew = connectionRefused;
  let inner: Promise<unknown> = Promise.resolve();
  await process.call(KEY, REENTRANT, () => {
    inner = t.throwsAsync(
      process.call(KEY, { ...REENTRANT, lockTime: "60s" }, () => t.fail()),
      { instanceOf: LockUnreachableError, message: /the lock that it reenters: connect ECONNREFUSED$/ },
    );
  });
  await inner;
  await fleet.leftNothing(t, KEY, process);
});

// ---- stricter options of an inner body -----------------------------------------------------------------------

test("an inner body that asks for a fencing token gets one, and the outer body also sees it", async (t) => {
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

test("tokens keep rising after an inner body draws one for a handed-off lock", async (t) => {
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

test("an inner body with a longer lock time extends the lock before it starts", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, { ...REENTRANT, lockTime: "3s" }, (outer) =>
    process.call(KEY, { ...REENTRANT, lockTime: "60s" }, async (inner) => {
      t.is(inner.remaining(), 60_000 * 0.99 - 2);
      t.is(outer.remaining(), inner.remaining());
      fleet.store.onRenew = connectionRefused;
      await fleet.clock.advance(50_000);
      t.notThrows(() => inner.assertHeld());
      t.false(await fleet.isFree(KEY), "the store keeps the key this long, too");
    }),
  );
  await fleet.leftNothing(t, KEY, process);
});

test("an inner body with a shorter lock time changes nothing and sends no command", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  await process.call(KEY, { ...REENTRANT, lockTime: "60s" }, () =>
    process.call(KEY, { ...REENTRANT, lockTime: "3s" }, (inner) => {
      t.is(inner.remaining(), 60_000 * 0.99 - 2);
    }),
  );
  t.is(fleet.store.commands, 2);
});

test("the watchdog of an inner body keeps the lock of an outer body without one", async (t) => {
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

test("each nested body learns of a loss according to its own onLost", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const warn = { ...REENTRANT, onLost: "warn" } as const;
  const ends: string[] = [];
  const outer = process.call(KEY, warn, async () => {
    await t.throwsAsync(
      process.call(KEY, REENTRANT, async (throwing) => {
        await process.call(KEY, warn, async (warning) => {
          warning.signal.addEventListener("abort", () => ends.push("signal"));
          await fleet.endHold(KEY);
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
  t.is(fleet.warnings.filter((line) => line.includes("was lost before the body ended")).length, 2);
  await fleet.leftNothing(t, KEY, process);
});

test("an inner body that ends last throws the loss even if the outer body uses onLost=warn", async (t) => {
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
  await fleet.endHold(KEY);
  end.resolve();
  await inner;
  await fleet.leftNothing(t, KEY, process);
});

test("a reentrant call into an expired lock fails immediately and sends nothing", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, { ...REENTRANT, lockTime: "10s" }, async () => {
    fleet.clock.freeze(10_000); // No timer has run.
    const before = fleet.store.commands + fleet.store.peeks;
    for (const options of [REENTRANT, { ...REENTRANT, fencing: true, lockTime: "60s" }] as const) {
      await t.throwsAsync(
        process.call(KEY, options, () => t.fail()),
        { instanceOf: LockLostError, message: "LOCK_account_1 is not held: its deadline passed" },
      );
    }
    t.is(fleet.store.commands + fleet.store.peeks, before);
  });
  await t.throwsAsync(outer, { instanceOf: LockLostError });
  await fleet.leftNothing(t, KEY, process);
});

test("a reentrant call fails if the store is unreachable for its options, and the outer body continues", async (t) => {
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

test("a reentrant call that finds another holder fails, and the outer body learns of the loss", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, REENTRANT, async (lock) => {
    const { signal } = lock;
    await fleet.endHold(KEY);
    await fleet.acquireElsewhere(KEY, 60_000);
    await t.throwsAsync(
      process.call(KEY, { ...REENTRANT, fencing: true }, () => t.fail()),
      { instanceOf: LockLostError, message: /another caller holds it/ },
    );
    t.true(signal.aborted);
  });
  await t.throwsAsync(outer, { instanceOf: LockLostError, message: /another caller holds it/ });
});

test("a late reply to an earlier renewal does not shorten a lock that a reentrant call has extended", async (t) => {
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
      t.false(await fleet.isFree(KEY), "the store keeps the key this long, too");
    });
  });
  await fleet.leftNothing(t, KEY, process);
});

test("a release is retried for as long as a reentrant call's unconfirmed extension may last", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const outer = process.call(KEY, { ...REENTRANT, lockTime: "300ms", watchdog: false }, async () => {
    fleet.store.onRenew = replyLost;
    fleet.store.onRelease = connectionRefused;
    await process.call(KEY, { ...REENTRANT, lockTime: "60s" }, () => t.fail());
  });
  const outcome = t.throwsAsync(outer);
  await fleet.clock.advance(3_000);
  await outcome;
  t.false(await fleet.isFree(KEY), "the store keeps the key for 60 s");
  fleet.store.onRelease = (send) => send();
  await fleet.clock.advance(1_000);
  t.true(await fleet.isFree(KEY));
  await fleet.leftNothing(t, KEY, process);
});

test("an abort while a reentrant call extends the lock ends that call immediately", async (t) => {
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

test("the replicas option of an aborted reentrant call does not apply to the next holder", async (t) => {
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

test("tokens keep rising after two inner bodies draw one at the same time, in any order of replies", async (t) => {
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

test("a reentrant call with replicas does not count an earlier extension that only the master confirms", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const extended = deferred();
  const lockTime = "30s";
  await process.call(KEY, { ...REENTRANT, lockTime }, async (outer) => {
    fleet.store.onRenew = replyLate(extended.promise);
    const extending = outer.extend("10m");
    fleet.store.onRenew = (send) => send();
    await process.call(KEY, { ...REENTRANT, lockTime, replicas: 1 }, async (inner) => {
      fleet.store.onRenew = connectionRefused; // No replica confirms it.
      extended.resolve();
      await fleet.clock.advance(50);
      t.true(inner.remaining() <= 30_000, `${inner.remaining()} ms`);
      fleet.store.onRenew = (send) => send();
      await fleet.clock.advance(100);
      await extending;
      t.true(inner.remaining() > 30_000);
    });
  });
  await fleet.leftNothing(t, KEY, process);
});

test("a reentrant call with replicas does not count a renewal that was in flight when it started", async (t) => {
  const fleet = new Fleet();
  const process = fleet.process();
  const renewed = deferred();
  const confirmed = deferred();
  const call = process.call(KEY, { ...REENTRANT, lockTime: "30s" }, async () => {
    await passes(fleet.clock, 9_900);
    const askedAt = fleet.clock.now();
    fleet.store.onRenew = replyLate(confirmed.promise);
    const inner = process.call(KEY, { ...REENTRANT, lockTime: "30s", replicas: 1 }, async (lock) => {
      fleet.store.onRenew = connectionRefused; // No replica confirms it.
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
  t.is(await call, 29_698, "only what the replicas have confirmed counts");
  await fleet.leftNothing(t, KEY, process);
});
