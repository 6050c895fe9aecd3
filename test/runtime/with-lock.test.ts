import { inspect } from "node:util";
import test from "ava";
import { obtain, tryObtain, withLock, type TryOptions } from "../../runtime/with-lock";
import { configure } from "../../runtime/config/configure";
import {
  LockKeyError,
  LockLostError,
  LockOptionError,
  LockWaitTimeoutError,
} from "../../runtime/base/errors";
import { lockKey } from "../../runtime/base/key";
import type { LockOptions } from "../../runtime/lock/settings";
import { currentLock, open, when } from "../../runtime/woven/woven";
import { Fleet } from "../support/fleet";

const fleet = new Fleet();
const warnings: string[] = [];

test.before(() => {
  configure(
    { store: fleet.store, clock: fleet.clock, logger: { warn: (line) => void warnings.push(line) } },
    "woven",
  );
});

test("withLock() holds the lock while the body runs, and returns the body's result", async (t) => {
  const result = await withLock("by-hand-1", {}, async (lock) => {
    t.is(lock.key, "by-hand-1");
    t.regex(lock.requestId, /^[0-9a-f]{32}$/);
    t.notThrows(() => lock.assertHeld());
    t.false(await fleet.isFree("by-hand-1"));
    return 42;
  });
  t.is(result, 42);
  t.true(await fleet.isFree("by-hand-1"));
});

test("withLock() accepts a synchronous body", async (t) => {
  t.is(await withLock("by-hand-2", {}, () => "result"), "result");
  await t.throwsAsync(
    withLock("by-hand-2", {}, () => {
      throw new Error("boom");
    }),
    { message: "boom" },
  );
  t.true(await fleet.isFree("by-hand-2"));
});

test("withLock() with the key of a tag waits for the tagged function", async (t) => {
  const key = lockKey("payOrder", "by-hand");
  const woven = open({ site: "OrderService.pay", businessFlag: "payOrder" }, "by-hand");
  t.is(woven.key, key);
  t.true(await woven.acquire());
  await t.throwsAsync(
    withLock(key, { retryTimes: 0 }, () => {}),
    {
      instanceOf: LockWaitTimeoutError,
      message:
        /^LOCK_WAIT_TIME_OUT: LOCK_payOrder_by-hand has been held in this process by OrderService\.pay for 0 ms and/,
    },
  );
  await woven.release();
});

test("withLock() and obtain() acquire no lock if `when` is false", async (t) => {
  const key = "by-hand-when";
  await withLock(key, { when: true }, async (outer) => {
    t.is(outer?.key, key);
    t.is(await withLock(key, { when: false }, (lock) => lock === undefined && "beside it"), "beside it");
    t.is(await obtain(key, { when: false }), undefined);
  });
  await using lock = await obtain(key, { when: true });
  t.false(await fleet.isFree(lock?.key ?? ""));
});

test("rejects a `when` that is not a boolean at run time", async (t) => {
  const condition: boolean = JSON.parse("0");
  const error = { instanceOf: LockOptionError, message: "Expected `when` to be true or false, got 0" };
  await t.throwsAsync(
    withLock("by-hand-when", { when: condition }, () => t.fail()),
    error,
  );
  t.throws(() => when(condition), error);
});

test("withLock() throws LockLostError, unless the body itself threw", async (t) => {
  await t.throwsAsync(
    withLock("by-hand-3", {}, () => fleet.endHold("by-hand-3")),
    { instanceOf: LockLostError },
  );
  await t.throwsAsync(
    withLock("by-hand-3", {}, async () => {
      await fleet.endHold("by-hand-3");
      throw new Error("boom");
    }),
    { message: "boom" },
  );
});

test.serial(
  "withLock() does not run the body if the lock expired before the event loop reached it",
  async (t) => {
    const busy = (): void => fleet.clock.freeze(150); // Both locks are granted together, and the first body blocks the event loop.
    const [first, second] = await Promise.allSettled([
      withLock("by-hand-late-1", { lockTime: "1s" }, busy),
      withLock("by-hand-late-2", { lockTime: "100ms" }, () => t.fail()),
    ]);
    t.is(first.status, "fulfilled");
    t.true(second.status === "rejected" && second.reason instanceof LockLostError);
    t.true(await fleet.isForgotten("by-hand-late-2"));
  },
);

test("withLock() and obtain() with onFailure=skip resolve to undefined", async (t) => {
  await fleet.acquireElsewhere("by-hand-4", 60_000);
  const options = { onFailure: "skip", retryTimes: 0 } as const;
  t.is(await withLock("by-hand-4", options, () => t.fail()), undefined);
  t.is(await obtain("by-hand-4", options), undefined);
});

test("withLock() acquires its own key again if it is reentrant", async (t) => {
  const options = { reentrant: true, retryTimes: 0 } as const;
  const depth = await withLock("by-hand-5", options, () => withLock("by-hand-5", options, () => 2));
  t.is(depth, 2);
  t.true(await fleet.isFree("by-hand-5"));
});

test("obtain() releases the lock at the end of the scope", async (t) => {
  {
    await using lock = await obtain("by-hand-6", { lockTime: "20s" });
    lock.assertHeld();
    t.false(await fleet.isFree("by-hand-6"));
  }
  t.true(await fleet.isFree("by-hand-6"));
});

test("obtain() releases the lock if the scope throws", async (t) => {
  const scope = async (): Promise<void> => {
    await using lock = await obtain("by-hand-7");
    lock.assertHeld();
    throw new Error("boom");
  };
  await t.throwsAsync(scope(), { message: "boom" });
  t.true(await fleet.isFree("by-hand-7"));
});

test("skipValue distinguishes a skipped call of withLock() from a result that is undefined", async (t) => {
  await using _ = await obtain("by-hand-skip");
  const skipping = { onFailure: "skip", wait: 0, skipValue: "skipped" } as const;
  const skipped: number | undefined | "skipped" = await withLock("by-hand-skip", skipping, () =>
    t.fail() ? 1 : undefined,
  );
  t.is(skipped, "skipped");
  t.is(await withLock("by-hand-skip 2", skipping, () => undefined), undefined);
  t.is(await withLock(["by-hand-skip", "by-hand-skip 2"], skipping, () => 5), "skipped");
  const conditional = { ...skipping, when: true };
  const either: 5 | "skipped" = await withLock("by-hand-skip", conditional, () => 5 as const);
  t.is(either, "skipped");
  t.is(await withLock("by-hand-skip", { ...conditional, when: false }, () => 5), 5);
});

test("obtain() and tryObtain() reject a skipValue", async (t) => {
  const options = { skipValue: "skipped" } as never;
  for (const acquire of [obtain, tryObtain]) {
    await t.throwsAsync(acquire("by-hand-skip 3", options), {
      instanceOf: LockOptionError,
      message: /^obtain\(\) has no option `skipValue`/,
    });
  }
});

test("obtain() with onFailure=skip leaves the scope without a lock if the key is held", async (t) => {
  await fleet.acquireElsewhere("by-hand-8", 60_000);
  await using lock = await obtain("by-hand-8", { onFailure: "skip", retryTimes: 0 });
  t.is(lock, undefined);
});

test("tryObtain() returns the lock if it is free, and undefined immediately if it is held", async (t) => {
  const commands = (): number =>
    fleet.store.acquireRequests.filter(({ key }) => key === "by-hand-try").length;
  {
    await using lock = await tryObtain("by-hand-try", { lockTime: "20s" });
    t.true((lock?.remaining() ?? 0) > 19_000);
    t.is(await tryObtain("by-hand-try"), undefined);
    t.is(commands(), 1, "a key that this process holds costs no command");
  }
  t.true(await fleet.isFree("by-hand-try"));
  await fleet.acquireElsewhere("by-hand-try", 60_000);
  t.is(await tryObtain("by-hand-try"), undefined);
  t.is(commands(), 2, "one command, and no ticket in the queue");
});

test("tryObtain() rejects the options for waiting", async (t) => {
  for (const name of ["retryTimes", "waitTime", "onFailure"]) {
    await t.throwsAsync(tryObtain("by-hand-try-2", { [name]: undefined }), {
      instanceOf: LockOptionError,
      message: `tryObtain() does not wait, so it has no option \`${name}\`. Fix: use obtain()`,
    });
  }
  await t.throwsAsync(tryObtain("by-hand-try-2", null as unknown as TryOptions), {
    instanceOf: LockOptionError,
  });
});

test("a lock can be released before the end of its scope", async (t) => {
  await using lock = await obtain("by-hand-9");
  await lock.release();
  t.true(await fleet.isFree("by-hand-9"));
  t.throws(() => lock.assertHeld(), { instanceOf: LockLostError });
});

test("obtain() and tryObtain() reject `autoUnlock: onError`, and name withLock() instead", async (t) => {
  for (const acquire of [obtain, tryObtain]) {
    await t.throwsAsync(acquire("by-hand-on-error", { autoUnlock: "onError" }), {
      code: "LOCK_BAD_OPTION",
      message:
        'obtain() cannot have `autoUnlock: "onError"`, because it does not learn whether its scope throws. Fix: use withLock()',
    });
  }
});

test("work that begins when its promise is awaited, as that of query builders, belongs to the body", async (t) => {
  const options = { reentrant: true, retryTimes: 0 } as const;
  const query: PromiseLike<string> = {
    // oxlint-disable-next-line unicorn/no-thenable -- The work starts when it is awaited.
    then: (onResult, onError) =>
      withLock("by-hand-lazy", options, () => "entered again").then(onResult, onError),
  };
  t.is(await withLock("by-hand-lazy", options, () => query), "entered again");
});

test("obtain() rejects `reentrant`, and names withLock() instead", async (t) => {
  await t.throwsAsync(obtain("by-hand-10", { reentrant: true }), {
    instanceOf: LockOptionError,
    message: "obtain() cannot be reentrant, because its scope is not a function. Fix: use withLock()",
  });
});

for (const key of ["", undefined, null, 7, {}] as unknown as string[]) {
  test(`withLock() and obtain() reject the key ${inspect(key)}`, async (t) => {
    const expected = {
      instanceOf: LockKeyError,
      message: `Expected the lock key to be a non-empty string, got ${inspect(key)}`,
    };
    await t.throwsAsync(
      withLock(key, {}, () => {}),
      expected,
    );
    await t.throwsAsync(obtain(key), expected);
  });
}

for (const options of [null, "30s", 7] as unknown as LockOptions[]) {
  test(`withLock() and obtain() reject the options ${inspect(options)}`, async (t) => {
    const expected = {
      instanceOf: LockOptionError,
      message: `Expected lock options to be an object such as { lockTime: "30s" }, got ${inspect(options)}`,
    };
    await t.throwsAsync(
      withLock("k", options, () => {}),
      expected,
    );
    await t.throwsAsync(obtain("k", options), expected);
  });
}

test("withLock() needs no options, with one key and with several", async (t) => {
  const one: string = await withLock("no-options", (lock) => lock.key);
  t.is(one, "no-options");
  const both = await withLock(["no-options-a", "no-options-b"], (lock) => lock.remaining() > 0);
  t.true(both);
});

test("withLock() with options has the type of its body's result, unless it may skip the body", async (t) => {
  const one: string = await withLock("typed", { lockTime: "5s" }, (lock) => lock.key);
  const both: string = await withLock(["typed-a", "typed-b"], { lockTime: "5s" }, (lock) => lock.key);
  t.deepEqual([one, both], ["typed", "typed-a typed-b"]);
  const skips = { onFailure: "skip" } as const;
  // @ts-expect-error -- A call that skips its body returns `undefined`.
  const skipped: string = await withLock(["typed-a", "typed-b"], skips, (lock) => lock.key);
  t.is(skipped, "typed-a typed-b");
});

test("withLock() without a body throws an error that names the argument", async (t) => {
  const untyped = withLock as unknown as (key: string, options: unknown) => Promise<unknown>;
  await t.throwsAsync(untyped("k", {}), {
    instanceOf: LockOptionError,
    message:
      "Expected `body` of withLock(key, body) or withLock(key, options, body) to be a function, got undefined",
  });
});

test("withLock() rejects an invalid option before it sends anything", async (t) => {
  await t.throwsAsync(
    withLock("by-hand-11", { lockTime: "1" as "1s" }, () => {}),
    { instanceOf: LockOptionError, message: /Expected `lockTime`/ },
  );
  t.false(fleet.store.acquireRequests.some(({ key }) => key === "by-hand-11"));
});

test("currentLock() outside of woven code throws an error that says where it works", (t) => {
  t.throws(() => currentLock(), {
    code: "LOCK_NOT_WOVEN",
    message: /in the body of a woven function with @redisLock/,
  });
});

test.after("no timer and no ticket remains", (t) => {
  t.is(fleet.clock.pendingTimers, 0);
  t.is(fleet.store.enqueueRequests.length, 0, "no caller joined a queue");
});

for (const key of ["lockweave:", "lockweave:1:queue:{LOCK_payOrder_1}"]) {
  test(`withLock() and obtain() reject ${key}, because Lockweave keeps that prefix for its queues`, async (t) => {
    const expected = {
      instanceOf: LockKeyError,
      message: `Expected a lock key that does not begin with "lockweave:", which is reserved for Lockweave's queues, got '${key}'`,
    };
    await t.throwsAsync(
      withLock(key, {}, () => t.fail()),
      expected,
    );
    await t.throwsAsync(obtain(key), expected);
    t.false(fleet.store.acquireRequests.some((request) => request.key === key));
  });
}

test("lockKey() never makes a key with the prefix of the queues", (t) => {
  t.is(lockKey("lockweave:1:queue", "a"), "LOCK_lockweave:1:queue_a");
});

test("withLock() rejects a list of keys with a hole, and does not run the body", async (t) => {
  const keys = ["LOCK_hole_a", "LOCK_hole_b"];
  Reflect.deleteProperty(keys, 0);
  for (const list of [keys, Array<string>(1)])
    await t.throwsAsync(
      withLock(list, {}, () => t.fail()),
      { instanceOf: LockKeyError, message: /got undefined/ },
    );
});

for (const [what, signal] of Object.entries({
  "has no removeEventListener()": Object.assign(new EventTarget(), {
    aborted: false,
    removeEventListener: undefined,
  }),
  "throws in addEventListener()": Object.assign(new EventTarget(), {
    aborted: false,
    addEventListener() {
      throw new Error("no listeners");
    },
  }),
  "throws in removeEventListener()": Object.assign(new EventTarget(), {
    aborted: false,
    removeEventListener() {
      throw new Error("no removal");
    },
  }),
})) {
  test(`the next caller gets the key after a call with a signal that ${what}`, async (t) => {
    const key = `LOCK_signal ${what}`;
    const options = { signal: signal as unknown as AbortSignal };
    const outcome = await withLock(key, options, () => "inside").catch((error: unknown) => error);
    t.true(outcome === "inside" || outcome instanceof LockOptionError, String(outcome));
    t.is(await withLock(key, { retryTimes: 0 }, () => "next"), "next");
  });
}
