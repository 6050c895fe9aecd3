import { readFileSync } from "node:fs";
import { once } from "node:events";
import { join } from "node:path";
import test from "ava";
import type { Redis } from "ioredis";
import { configure, obtain, shutdown, withLock, type LockError } from "lockweave";
import type * as Fixture from "./fixtures/tag-table/rows";
import { makeProject } from "./hosts/project";
import { deferred } from "./support/deferred";
import { startRedis, type RedisServer } from "./support/redis-server";
import { until } from "./support/until";

// Every row of the tag table, compiled by tspc and run on a real Redis. A row without an effect fails here.

let rows: Fixture.Rows;
let OrderBusyError: typeof Fixture.OrderBusyError;
let config: typeof Fixture.config;
let SKIPPED: typeof Fixture.SKIPPED;
let client: Redis;
let server: RedisServer;
const warnings: string[] = [];

test.before(async () => {
  server = await startRedis();
  client = server.client();
  const logger = { warn: (message: string) => warnings.push(message) };
  const payments = server.client({ keyPrefix: "payments:" });
  configure({ woven: false, redis: client, stores: { payments }, logger });
  const project = await makeProject({
    "package.json": "{}",
    "src/rows.ts": readFileSync(join(__dirname, "fixtures/tag-table/rows.ts"), "utf8"),
  });
  const { code, stdout } = await project.tspc();
  if (code !== 0) throw new Error(stdout);
  const compiled = require(project.path("out/rows.js")) as typeof Fixture;
  rows = new compiled.Rows();
  ({ OrderBusyError, SKIPPED, config } = compiled);
});

test.after.always(async () => {
  await shutdown();
  await server.stop();
});

const keys = async (): Promise<string[]> => (await client.keys("LOCK_*")).toSorted();

test.serial("businessFlag alone makes the key, and the key's value is the requestId", async (t) => {
  const requestId = await rows.flagAlone(async () => client.get("LOCK_payOrder"));
  t.regex(requestId ?? "", /^[0-9a-f]{32}$/);
  t.is(await client.exists("LOCK_payOrder"), 0);
});

test.serial("keyName: makes the same key as the Java @RedisLock annotation", async (t) => {
  t.deepEqual(await rows.keyName("Test001", keys), ["LOCK_payOrder_Test001"]);
});

test.serial(
  "keyName: accepts several paths, `this`, destructured parameters, and a quoted expression",
  async (t) => {
    const order = { orderNo: "Test001", user: { id: 7 } };
    t.deepEqual(await rows.severalPaths(order, { sku: "gold" }, [{ count: 2 }], keys), [
      "LOCK_payOrder_acme,7,gold,2",
    ]);
  },
);

test.serial(
  "keyName: calls with different values run together, and calls with the same value take turns",
  async (t) => {
    const inner = await rows.keyName("A", () => rows.keyName("B", keys));
    t.deepEqual(inner, ["LOCK_payOrder_A", "LOCK_payOrder_B"]);
    const order: string[] = [];
    await Promise.all(
      ["first", "second"].map((name) =>
        rows.keyName("A", async () => {
          order.push(`${name} in`);
          await client.ping();
          order.push(`${name} out`);
        }),
      ),
    );
    t.deepEqual(order, ["first in", "first out", "second in", "second out"]);
  },
);

test.serial("keyType=VALUE: uses the value itself", async (t) => {
  t.deepEqual(await rows.keyTypeValue(17, keys), ["LOCK_payOrder_17"]);
});

test.serial("keyType=CLASS with keyClass and fieldName: uses fields of an object", async (t) => {
  t.deepEqual(await rows.keyTypeClass({ orderNo: "Test001", user: { id: 7 } }, keys), [
    "LOCK_payOrder_7,Test001",
  ]);
});

test.serial(
  "keyType=JSON with fieldName: reads a field of JSON text, of a Map, and of the result of toJSON()",
  async (t) => {
    const expected = ["LOCK_payOrder_7"];
    t.deepEqual(await rows.keyTypeJson('{"user":{"id":7}}', keys), expected);
    t.deepEqual(await rows.keyTypeJson(new Map([["user", new Map([["id", 7]])]]), keys), expected);
    t.deepEqual(await rows.keyTypeJson({ toJSON: () => ({ user: { id: 7 } }) }, keys), expected);
  },
);

test.serial("lockTime: is 30 s by default, and accepts seconds or a unit", async (t) => {
  const pttl = (key: string) => async (): Promise<number> => client.pttl(key);
  const seconds = async (row: Promise<number>): Promise<number> => Math.ceil((await row) / 1000);
  t.is(await seconds(rows.defaults(pttl("LOCK_defaults"))), 30);
  t.is(await seconds(rows.lockTime(pttl("LOCK_lockTime"))), 7);
  t.is(await seconds(rows.lockTimeWithUnit(pttl("LOCK_lockTime"))), 120);
});

test.serial(
  "expressions: each call evaluates them, and a wrong value ends the call before the body",
  async (t) => {
    const seconds = async (): Promise<number> => Math.ceil((await client.pttl("LOCK_config")) / 1000);
    t.is(await rows.lockTimeFromConfig(seconds), 7);
    config.lockTime = "2m";
    t.is(await rows.lockTimeFromConfig(seconds), 120);
    const value = async (): Promise<string> => (await client.get("LOCK_config")) ?? "";
    t.regex(await rows.secondsFromConfig(value), /^shared:permits:/);
    config.limit = 1;
    t.regex(await rows.secondsFromConfig(value), /^[0-9a-f]{32}$/);
    t.is(await rows.secondsFromConfig(seconds), 9);
    for (const [lockTime, expected] of [
      ["5", "a duration"],
      ["1ms", "at least 100 ms"],
      ["25h", "at most 24 hours"],
    ] as const) {
      config.lockTime = lockTime as typeof config.lockTime;
      await t.throwsAsync(
        rows.lockTimeFromConfig(async () => t.fail()),
        {
          code: "LOCK_BAD_OPTION",
          message: new RegExp(`^@redisLock of Rows\\.lockTimeFromConfig: .*${expected}`),
        },
      );
    }
    config.limit = 0;
    await t.throwsAsync(
      rows.secondsFromConfig(async () => t.fail()),
      {
        code: "LOCK_BAD_OPTION",
        message: /^@redisLock of Rows\.secondsFromConfig: Expected `permits` to be a whole/,
      },
    );
    t.is(await client.exists("LOCK_config"), 0);
  },
);

/** Runs a row while another caller holds its key. */
async function whileHeld<T>(row: () => Promise<T>): Promise<T> {
  await client.set("LOCK_impatient", "somebody else");
  try {
    return await row();
  } finally {
    await client.del("LOCK_impatient");
  }
}

test.serial("onFailure=throw throws after the wait budget of retryTimes and waitTime", async (t) => {
  let error: LockError | undefined;
  // The budget is 100 ms. If the machine stalls for so long, the call ends without a reply from Redis.
  do error = await whileHeld(() => t.throwsAsync<LockError>(rows.onFailureThrow(async () => t.fail())));
  while (error?.code === "LOCK_UNREACHABLE");
  t.like(error, { name: "LockWaitTimeoutError", code: "LOCK_WAIT_TIME_OUT" });
  t.regex(error?.message ?? "", /retryTimes=2, waitTime=50ms/);
});

test.serial("wait: is the whole wait budget", async (t) => {
  let error: LockError | undefined;
  // If the machine stalls for the 150 ms of the budget, the call ends without a reply from Redis.
  do error = await whileHeld(() => t.throwsAsync<LockError>(rows.wait(async () => t.fail())));
  while (error?.code === "LOCK_UNREACHABLE");
  t.like(error, { name: "LockWaitTimeoutError", code: "LOCK_WAIT_TIME_OUT" });
  t.regex(error?.message ?? "", /\(wait=150ms\)/);
  t.is(await rows.wait(async () => "runs when it can"), "runs when it can");
});

test.serial("wait=0 tries once, and wait=forever waits until the key is free", async (t) => {
  const waiting = await whileHeld(async () => {
    await t.throwsAsync(
      rows.waitNever(async () => t.fail()),
      { code: "LOCK_WAIT_TIME_OUT" },
    );
    const call = rows.waitForever(async () => "done");
    await client.ping(); // The call has found the key taken.
    return { call };
  });
  t.is(await waiting.call, "done");
});

test.serial("signal: ends the wait with its reason, and an undefined signal ends nothing", async (t) => {
  const controller = new AbortController();
  const reason = new Error("the client went away");
  await whileHeld(async () => {
    const call = rows.signal(controller, async () => t.fail());
    await client.ping(); // The call has found the key taken.
    controller.abort(reason);
    t.is(await t.throwsAsync(call), reason);
  });
  t.is(await t.throwsAsync(rows.signal(controller, async () => t.fail())), reason, "it is already aborted");
  t.is(await rows.signal(undefined, async () => "done"), "done");
  t.is(await client.exists("LOCK_impatient"), 0);
});

test.serial("onFailure=skip resolves to undefined and does not run the body", async (t) => {
  t.is(await whileHeld(() => rows.onFailureSkip(async () => t.fail())), undefined);
  t.is(await rows.onFailureSkip(async () => "runs when it can"), "runs when it can");
});

test.serial(
  "skipValue: a skipped call returns the value, and other calls return the result of the body",
  async (t) => {
    t.is(await whileHeld(() => rows.skipValue(async () => t.fail())), SKIPPED);
    t.is(await rows.skipValue(async () => undefined), undefined);
  },
);

test.serial("onFailure=OrderBusyError throws that class, with the reason as its cause", async (t) => {
  const error = await whileHeld(() => t.throwsAsync(rows.onFailureClass(async () => t.fail())));
  t.true(error instanceof OrderBusyError);
  t.like(error?.cause, { code: "LOCK_WAIT_TIME_OUT" });
});

test.serial("onLost: a lost lock throws at the caller, or only warns with onLost=warn", async (t) => {
  const steal = async (): Promise<string> => {
    await client.set("LOCK_lost", "a stranger");
    return "done";
  };
  t.like(await t.throwsAsync(rows.onLostThrow(steal)), { code: "LOCK_LOST" });
  await client.del("LOCK_lost");
  warnings.length = 0;
  t.is(await rows.onLostWarn(steal), "done");
  t.regex(warnings.join(), /LOCK_lost.* was lost before the body ended \(another caller holds it\)/);
  t.is(await client.get("LOCK_lost"), "a stranger");
});

test.serial(
  "key: the template makes the whole key, and other holders of that key exclude the call",
  async (t) => {
    const inside = async (): Promise<string[]> => await client.keys("mutex:*");
    t.deepEqual(await rows.key({ orderNo: "Test001", user: { id: 7 } }, inside), ["mutex:Test001/7"]);
    await client.set("mutex:Test001/7", "another library's", "PX", 60_000);
    await t.throwsAsync(rows.key({ orderNo: "Test001", user: { id: 7 } }, inside), {
      code: "LOCK_WAIT_TIME_OUT",
    });
    await client.del("mutex:Test001/7");
  },
);

test.serial("when: the body runs without a lock if the condition is false", async (t) => {
  const order = (id: number): Fixture.Order => ({ orderNo: "Test001", user: { id } });
  const inside = async (lock: string | undefined): Promise<unknown> => [
    lock,
    await client.keys("LOCK_when_*"),
  ];
  t.deepEqual(await rows.when(order(101), inside), ["LOCK_when_Test001", ["LOCK_when_Test001"]]);
  t.deepEqual(await rows.when(order(100), inside), [undefined, []]);
  const beside = await rows.when(order(101), () => rows.when(order(100), inside));
  t.deepEqual(beside, [undefined, ["LOCK_when_Test001"]]);
});

test.serial("watchdog: the key is renewed until the body ends", async (t) => {
  /** Returns whether the key is still there after three renewals. */
  const outlivesRenewals = (): Promise<boolean> =>
    rows.watchdog(async () => {
      let renewals = 0;
      let before = await client.pttl("LOCK_watchdog");
      await until(async () => {
        const now = await client.pttl("LOCK_watchdog");
        if (now > before) renewals += 1;
        before = now;
        return renewals === 3 || now < 0;
      });
      return (await client.exists("LOCK_watchdog")) === 1;
    });
  let outcome: boolean | LockError;
  // The lock time is 300 ms. If the machine stalls for so long, the lock is lost.
  do outcome = await outlivesRenewals().catch((error: LockError) => error);
  while (typeof outcome !== "boolean" && outcome.code === "LOCK_LOST");
  t.is(outcome, true);
  t.is(await client.exists("LOCK_watchdog"), 0);
});

test.serial("watchdog=false: the key expires after lockTime, and the caller gets LOCK_LOST", async (t) => {
  const work = rows.watchdogOff(() => until(async () => (await client.exists("LOCK_watchdog")) === 0));
  t.like(await t.throwsAsync(work), { code: "LOCK_LOST" });
});

test.serial("lockAtLeast: the key stays closed to all callers after a short body", async (t) => {
  t.is(await rows.lockAtLeast(async () => "done"), "done");
  const left = await client.pttl("LOCK_nightly");
  t.true(left > 0 && left <= 10_000);
  t.regex((await client.get("LOCK_nightly")) ?? "", /^closed:[0-9a-f]{32}$/);
  t.is(await rows.lockAtLeast(async () => t.fail()), undefined);
});

test.serial("holdAtMost: a hanging body is renewed until then, and its signal aborts", async (t) => {
  const hang = async (): Promise<{ readonly heldMs: number; readonly error: LockError | undefined }> => {
    let heldMs = 0;
    const error = await t.throwsAsync<LockError>(
      rows.holdAtMost(async ({ signal }) => {
        const since = performance.now();
        await once(signal, "abort");
        heldMs = performance.now() - since;
        await until(async () => (await client.exists("LOCK_holdAtMost")) === 0);
      }),
    );
    return { heldMs, error };
  };
  let outcome = await hang();
  // The lock time is 300 ms. If the machine stalls for so long, the lock is lost earlier.
  while (outcome.error?.message.includes("its deadline passed") === true) outcome = await hang();
  t.like(outcome.error, { code: "LOCK_LOST" });
  t.regex(outcome.error?.message ?? "", /its holdAtMost has passed/);
  t.true(outcome.heldMs > 400, "longer than the lock time");
});

test.serial("autoUnlock=false: the key remains until it expires", async (t) => {
  await rows.autoUnlockOff(async () => {});
  const left = await client.pttl("LOCK_autoUnlock");
  t.true(left > 0 && left <= 20_000);
});

test.serial(
  "autoUnlock=onError: a body that throws may run again, and one that succeeds may not",
  async (t) => {
    const failed = await t.throwsAsync(rows.autoUnlockOnError(() => Promise.reject(new Error("declined"))));
    t.is(failed?.message, "declined");
    t.is(await client.exists("LOCK_onError"), 0);
    t.is(await rows.autoUnlockOnError(async () => "done"), "done");
    t.is(await rows.autoUnlockOnError(async () => "again"), undefined);
    const left = await client.pttl("LOCK_onError");
    t.true(left > 300_000 && left <= 600_000, String(left));
  },
);

test.serial(
  "release=background: the caller does not wait for the release, and the key becomes free soon after",
  async (t) => {
    const other = server.client();
    t.is(await rows.releaseInBackground(() => client.get("LOCK_release").then((value) => value?.length)), 32);
    await rows.releaseInBackground(async () => {
      await other.client("PAUSE", 300, "WRITE");
    });
    t.is(await other.exists("LOCK_release"), 1);
    await until(async () => (await other.exists("LOCK_release")) === 0);
  },
);

test.serial("reentrant: the holder can enter again, but only with the attribute", async (t) => {
  t.is(await rows.reentrant(() => rows.reentrant(() => rows.reentrant(async () => "inside"))), "inside");
  t.is(await client.exists("LOCK_reentrant"), 0);
  const error = await t.throwsAsync(rows.reentrant(() => rows.notReentrant(async () => t.fail())));
  t.like(error, { code: "LOCK_WAIT_TIME_OUT" });
});

test.serial("fencing: each holder gets a larger token than the one before", async (t) => {
  const token = async (value: number | undefined): Promise<number> => value ?? NaN;
  const first = await rows.fencing(token);
  t.true((await rows.fencing(token)) > first);
  t.is(await rows.fencingOff(async (value) => value), undefined);
});

test.serial("store: the key is in the named store, separate from the key in the default store", async (t) => {
  const inside = (): Promise<string[]> => client.keys("*LOCK_store");
  t.deepEqual(await rows.store(inside), ["payments:LOCK_store"]);
  t.deepEqual(await rows.storeDefault(inside), ["LOCK_store"]);
  const both = await rows.store(() => rows.storeDefault(inside));
  t.deepEqual(both.toSorted(), ["LOCK_store", "payments:LOCK_store"]);
});

test.serial("replicas: a master without replicas refuses the lock, and keeps no key", async (t) => {
  const error = await t.throwsAsync(rows.replicas(async () => t.fail()));
  t.like(error, { code: "LOCK_UNREACHABLE" });
  t.regex(
    error?.message ?? "",
    /0 of 1 replicas confirmed|replicas did not answer in time|no reply from the store/,
  );
  await until(async () => (await client.exists("LOCK_replicas")) === 0);
});

test.serial(
  "onUnreachable=skip does not run the body, and keeps no key, in a tag and in withLock()",
  async (t) => {
    t.is(await rows.onUnreachableSkip(async () => t.fail()), undefined);
    const options = { replicas: 1, wait: "400ms", onUnreachable: "skip" } as const;
    t.is(await withLock("LOCK_replicas", options, () => t.fail()), undefined);
    t.is(await obtain("LOCK_replicas", options), undefined);
    await until(async () => (await client.exists("LOCK_replicas")) === 0);
    await client.set("LOCK_replicas", "somebody else");
    await t.throwsAsync(
      rows.onUnreachableSkip(async () => t.fail()),
      { code: "LOCK_WAIT_TIME_OUT" },
    );
    await client.del("LOCK_replicas");
  },
);

test.serial("mode=read shares the lock with other readers, and mode=write holds it alone", async (t) => {
  const busy = { code: "LOCK_WAIT_TIME_OUT" };
  const end = deferred();
  let inside = 0;
  const reading = async (): Promise<void> => {
    inside += 1;
    await end.promise;
  };
  const readers = [rows.read(reading), rows.read(reading)];
  await until(() => Promise.resolve(inside === 2));
  t.is(await client.get("LOCK_mode"), "shared:readers");
  await t.throwsAsync(
    rows.write(async () => t.fail()),
    busy,
  );
  end.resolve();
  await Promise.all(readers);
  await rows.write(() =>
    t.throwsAsync(
      rows.read(async () => t.fail()),
      busy,
    ),
  );
  t.is(await client.exists("LOCK_mode"), 0);
});

test.serial("mode=read can be entered again in its own context, but not with mode=write", async (t) => {
  t.is(await rows.read(() => rows.read(async () => "again")), "again");
  await t.throwsAsync(
    rows.read(() => rows.write(async () => t.fail())),
    { code: "LOCK_MISCONFIGURED" },
  );
});

test.serial("each=true locks every part and every element of an array, or nothing", async (t) => {
  const each = async (): Promise<string[]> => (await client.keys("LOCK_each_*")).toSorted();
  t.deepEqual(await rows.each("b", "a", each), ["LOCK_each_a", "LOCK_each_b"]);
  t.deepEqual(await rows.eachElement(["y", "x", "y"], each), ["LOCK_each_3", "LOCK_each_x", "LOCK_each_y"]);
  await rows.each("b", "c", async () => {
    const busy = { code: "LOCK_WAIT_TIME_OUT" };
    await t.throwsAsync(
      rows.each("a", "b", async () => t.fail()),
      busy,
    );
    t.deepEqual(await each(), ["LOCK_each_b", "LOCK_each_c"]);
  });
  await t.throwsAsync(
    rows.each("", "b", async () => t.fail()),
    { code: "LOCK_BAD_KEY" },
  );
  t.deepEqual(await each(), []);
});

test.serial("permits=2 lets two callers in at once, and no third", async (t) => {
  const end = deferred();
  const two = [rows.permits(() => end.promise), rows.permits(() => end.promise)];
  await until(async () => (await client.get("LOCK_permits")) === "shared:permits:2");
  await t.throwsAsync(
    rows.permits(async () => t.fail()),
    { code: "LOCK_WAIT_TIME_OUT" },
  );
  end.resolve();
  await Promise.all(two);
  t.is(await client.exists("LOCK_permits"), 0);
});
