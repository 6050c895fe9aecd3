import { AsyncLocalStorage } from "node:async_hooks";
import test from "ava";
import { withLock } from "../../runtime/with-lock";
import { configure, needsStore, shutdown } from "../../runtime/config/configure";
import type { Configuration } from "../../runtime/config/configuration";
import { locker } from "../../runtime/lock/locker";
import { LockMisconfiguredError, LockOptionError } from "../../runtime/base/errors";
import { memoryStore } from "../../runtime/stores/memory";
import type { Store, WholeStore } from "../../runtime/stores/port";
import { deferred } from "../support/deferred";
import { Fleet } from "../support/fleet";
import { startRedis, type RedisServer } from "../support/redis-server";
import { TamperedStore } from "../support/tampered-store";
import { until } from "../support/until";

// A development server runs `configure()` again when its file is saved. A process has one configuration, so these
// tests run serially.

const HERE = "my-app/src/hooks.server.ts";

test.afterEach.always(() => shutdown({ patience: "0ms" }));

/** A store, and a file that configures it. Each call creates another store, clock, and logger. */
function fileWith(fleet = new Fleet()): {
  readonly fleet: Fleet;
  readonly store: TamperedStore;
  save(changed?: Partial<Configuration>): void;
} {
  const store = new TamperedStore(memoryStore({ clock: fleet.clock }));
  const logger = { warn: (line: string) => void fleet.warnings.push(line) };
  const given: Configuration = { store, clock: fleet.clock, logger };
  return { fleet, store, save: (changed = {}) => configure({ ...given, ...changed }, "woven", HERE) };
}

const lockTimeNow = (): number => locker().defaults.lockTimeMs;

test.serial(
  "configure() called again with an equal configuration changes nothing and opens no connection",
  async (t) => {
    const server: RedisServer = await startRedis();
    t.teardown(server.stop);
    const watcher = server.client();
    const connections = async (): Promise<number> =>
      String(await watcher.client("LIST"))
        .trim()
        .split("\n").length;
    const save = (): void =>
      configure(
        { redis: server.url, stores: { other: server.url }, defaults: { lockTime: "3s" } },
        "woven",
        HERE,
      );
    save();
    const before = locker();
    await withLock("k", {}, () => {});
    await withLock("k", { store: "other" }, () => {});
    t.is(await connections(), 3);
    await withLock("k", {}, async () => {
      save();
      t.is(locker(), before);
      await withLock("l", {}, () => {});
    });
    t.is(locker(), before);
    t.is(await connections(), 3);
  },
);

test.serial("configure() called again with another URL closes the connections to the old one", async (t) => {
  const server: RedisServer = await startRedis();
  t.teardown(server.stop);
  const watcher = server.client();
  const databases = async (): Promise<string[]> =>
    String(await watcher.client("LIST"))
      .trim()
      .split("\n")
      .map((line) => / db=(\d+)/.exec(line)?.[1] ?? "")
      .toSorted();
  configure({ redis: `${server.url}/1` }, "woven", HERE);
  await withLock("k", {}, () => {});
  t.deepEqual(await databases(), ["0", "1"]);
  configure({ redis: `${server.url}/2` }, "woven", HERE);
  await withLock("k", {}, () => {});
  await until(async () => (await databases()).join() === "0,2");
  t.pass();
});

test.serial("the new configuration applies immediately if no lock is held or waited for", async (t) => {
  const [first, second] = [fileWith(), fileWith()];
  first.save({ announce: true, warnAfter: "5s" });
  await withLock("k", {}, () => {});
  t.true(first.fleet.clock.pendingTimers > 0);
  second.save({ defaults: { lockTime: "7s" } });
  t.is(lockTimeNow(), 7_000);
  await withLock("k", {}, () => {});
  t.is(second.store.acquireRequests.length, 1);
  t.is(first.store.acquireRequests.length, 1);
  t.is(first.store.listeners, 0);
  await until(() => first.store.closed);
  t.is(first.fleet.clock.pendingTimers, 0);
  t.deepEqual(first.fleet.warnings, []);
});

test.serial("configure() called from another file throws an error that names both files", (t) => {
  fileWith().save();
  const expected = (message: string): object => ({ instanceOf: LockMisconfiguredError, message });
  t.throws(
    () => configure({ store: memoryStore() }, "woven", "my-app/src/db.ts"),
    expected(
      "configure() was already called: in my-app/src/hooks.server.ts, and now in my-app/src/db.ts. Fix: call `await shutdown()` before you configure again",
    ),
  );
  t.throws(
    () => configure({ store: memoryStore() }, "woven"),
    expected("configure() was already called. Fix: call `await shutdown()` before you configure again"),
  );
});

test.serial("configure() without a call site always throws when called a second time", (t) => {
  configure({ store: memoryStore() }, "woven");
  for (const callSite of [undefined, HERE]) {
    t.throws(() => configure({ store: memoryStore() }, "woven", callSite), {
      instanceOf: LockMisconfiguredError,
      message: "configure() was already called. Fix: call `await shutdown()` before you configure again",
    });
  }
});

test.serial("no body runs under the new configuration while one runs under the old one", async (t) => {
  const [first, second] = [fileWith(), fileWith(new Fleet())];
  first.save();
  const [entered, end] = [deferred(), deferred()];
  const story: string[] = [];
  const body = (name: string) => async (): Promise<void> => {
    story.push(`${name} begins`);
    if (name === "first") {
      entered.resolve();
      await end.promise;
    }
    story.push(`${name} ends`);
  };
  const one = withLock("k", {}, body("first"));
  await entered.promise;
  second.save();
  const two = withLock("k", {}, body("second"));
  await withLock("another", {}, () => void story.push("another key"));
  end.resolve();
  await Promise.all([one, two]);
  const three = withLock("k", {}, body("third"));
  await three;
  t.deepEqual(story, [
    "first begins",
    "another key",
    "first ends",
    "second begins",
    "second ends",
    "third begins",
    "third ends",
  ]);
  t.is(first.store.closed, true);
  t.is(second.store.acquireRequests.length, 1, "the third alone");
});

for (const keys of ["k", ["k", "l"]]) {
  test.serial(`the new configuration applies when the last waiter gives up (${String(keys)})`, async (t) => {
    const [first, second] = [fileWith(), fileWith()];
    first.save();
    await first.store.acquire(
      { key: "k", requestId: "0".repeat(32), lockTimeMs: 60_000, fencing: false },
      1_000,
    );
    const controller = new AbortController();
    const waiting = withLock(keys, { signal: controller.signal }, () => t.fail());
    await first.fleet.clock.settle();
    second.save({ defaults: { lockTime: "7s" } });
    t.not(lockTimeNow(), 7_000);
    controller.abort(new Error("gone"));
    await t.throwsAsync(waiting, { message: "gone" });
    t.is(lockTimeNow(), 7_000);
  });
}

test.serial("the new configuration waits for a release in the background", async (t) => {
  const [first, second] = [fileWith(), fileWith()];
  first.save();
  const arrival = deferred();
  first.store.onRelease = async (send) => {
    await arrival.promise;
    return await send();
  };
  await withLock("k", { release: "background" }, () => {});
  second.save({ defaults: { lockTime: "7s" } });
  t.not(lockTimeNow(), 7_000);
  arrival.resolve();
  await first.fleet.clock.settle();
  t.is(lockTimeNow(), 7_000);
});

test.serial("the new configuration also waits for locks in the named stores", async (t) => {
  const [first, second] = [fileWith(), fileWith()];
  first.save({ stores: { payments: memoryStore({ clock: first.fleet.clock }) } });
  const [entered, end] = [deferred(), deferred()];
  const body = withLock("k", { store: "payments" }, async () => {
    entered.resolve();
    await end.promise;
  });
  await entered.promise;
  second.save({ defaults: { lockTime: "7s" } });
  t.not(lockTimeNow(), 7_000);
  end.resolve();
  await body;
  t.is(lockTimeNow(), 7_000);
});

test.serial(
  "the new configuration waits for a caller of several keys that is briefly in no queue",
  async (t) => {
    const [first, second] = [fileWith(), fileWith()];
    first.save();
    const foreigner = { key: "k1", requestId: "0".repeat(32) };
    await first.store.acquire({ ...foreigner, lockTimeMs: 60_000, fencing: false }, 1_000);
    const arrival = deferred();
    first.store.onAcquire = async (send) => {
      await arrival.promise;
      return await send();
    };
    const both = withLock(["k1", "k2"], {}, () => "both");
    await first.fleet.clock.settle();
    second.save({ defaults: { lockTime: "7s" } });
    // Its first attempt fails. It then leaves both queues, and joins the queue of the first key again.
    arrival.resolve();
    await first.fleet.clock.settle();
    t.not(lockTimeNow(), 7_000);
    await first.store.release(foreigner, 1_000);
    await first.fleet.clock.advance(1_000);
    t.is(await both, "both");
    t.is(lockTimeNow(), 7_000);
  },
);

test.serial("an invalid configuration throws and changes nothing", async (t) => {
  const [first, second] = [fileWith(), fileWith()];
  first.save();
  const before = locker();
  for (const changed of [
    { commandTimeout: "1ms" },
    { shutdownOn: ["SIGNAL"] },
    { openReleases: -1 },
    { stores: { payments: "localhost" } },
    { defaults: { store: "nowhere" } },
    { url: "x" },
  ]) {
    t.throws(() => second.save(changed as Partial<Configuration>));
    t.is(locker(), before, JSON.stringify(changed));
  }
  t.throws(() => configure("redis://localhost" as Configuration, "woven", HERE), {
    instanceOf: LockOptionError,
  });
  t.is(second.store.listeners, 0);
  t.false(first.store.closed);
  t.is(await withLock("k", {}, () => "result"), "result");
  t.is(first.store.acquireRequests.length, 1);
});

/** Runs `saves` while a lock of the current configuration is held. */
async function whileHeld(saves: () => void): Promise<void> {
  const [entered, end] = [deferred(), deferred()];
  const body = withLock("held", { watchdog: false, lockTime: "1h" }, async () => {
    entered.resolve();
    await end.promise;
  });
  await entered.promise;
  try {
    saves();
  } finally {
    end.resolve();
    await body;
  }
}

test.serial("the last of several configure() calls applies when the lock is released", async (t) => {
  const [first, second, third] = [fileWith(), fileWith(), fileWith()];
  first.save();
  await whileHeld(() => {
    second.save();
    second.save();
    t.throws(() => third.save({ openReleases: -1 }));
    t.false(second.store.closed);
    third.save({ defaults: { lockTime: "9s" } });
    t.is(second.store.listeners, 0);
    t.not(lockTimeNow(), 9_000);
  });
  t.is(lockTimeNow(), 9_000);
  await shutdown();
  t.deepEqual(
    [first, second, third].map(({ store }) => store.closed),
    [true, true, true],
  );
});

test.serial(
  "a configure() call that reverts the pending change keeps the current configuration",
  async (t) => {
    const [first, second] = [fileWith(), fileWith()];
    first.save();
    const before = locker();
    await whileHeld(() => {
      second.save();
      first.save();
    });
    t.is(locker(), before);
    await until(() => second.store.closed);
    t.false(first.store.closed);
    t.is(second.fleet.clock.pendingTimers + first.fleet.clock.pendingTimers, 0);
  },
);

test.serial("a store that both configurations use stays open", async (t) => {
  const first = fileWith();
  first.save();
  await whileHeld(() => {
    first.save({ defaults: { lockTime: "5s" } });
    first.save({ defaults: { lockTime: "6s" } });
  });
  first.save({ defaults: { lockTime: "7s" } });
  await first.fleet.clock.settle();
  t.is(lockTimeNow(), 7_000);
  t.false(first.store.closed);
  t.is(first.store.listeners, 1);
  await shutdown();
  t.true(first.store.closed);
});

test.serial("a store that is configured again before it closes stays open", async (t) => {
  const [first, second] = [fileWith(), fileWith()];
  first.save();
  second.save();
  first.save();
  await until(() => second.store.closed);
  t.false(first.store.closed);
  t.is(await withLock("k", {}, () => "result"), "result");
  await shutdown();
  t.true(first.store.closed);
});

test.serial("shutdown() discards a pending configuration and closes its stores", async (t) => {
  const [first, second] = [fileWith(), fileWith()];
  first.save();
  const [entered, end] = [deferred(), deferred()];
  const body = withLock("k", {}, async () => {
    entered.resolve();
    await end.promise;
  });
  await entered.promise;
  second.save({ defaults: { lockTime: "7s" } });
  const down = shutdown();
  end.resolve();
  await Promise.all([body, down]);
  t.not(lockTimeNow(), 7_000);
  t.true(first.store.closed);
  t.true(second.store.closed);
  t.is(first.fleet.clock.pendingTimers, 0);
});

test.serial("shutdown() waits until the stores of earlier configurations are closed", async (t) => {
  const closing = deferred();
  const slow: WholeStore = Object.assign(memoryStore(), { close: () => closing.promise });
  configure({ store: slow }, "woven", HERE);
  fileWith().save();
  fileWith().save();
  let isDown = false;
  const down = shutdown().then(() => (isDown = true));
  await new Promise(setImmediate);
  t.false(isDown);
  closing.resolve();
  await down;
  t.true(isDown);
});

test.serial("logs a warning if a store of the earlier configuration cannot be closed", async (t) => {
  const warnings: string[] = [];
  const broken: WholeStore = Object.assign(memoryStore(), {
    close: () => Promise.reject(new Error("it is stuck")),
  });
  configure({ store: broken, logger: { warn: (line) => void warnings.push(line) } }, "woven", HERE);
  fileWith().save();
  await shutdown();
  t.deepEqual(warnings, [
    "configure(): a store of the earlier configuration could not be closed: it is stuck",
  ]);
});

test.serial("listens only to the signals of the current configuration", async (t) => {
  const [first, second] = [fileWith(), fileWith()];
  const listeners = (): number[] => ["SIGUSR2", "SIGHUP"].map((signal) => process.listenerCount(signal));
  const [usr2 = 0, hup = 0] = listeners();
  first.save({ shutdownOn: ["SIGUSR2"] });
  t.deepEqual(listeners(), [usr2 + 1, hup]);
  await whileHeld(() => {
    second.save({ shutdownOn: ["SIGHUP"] });
    t.deepEqual(listeners(), [usr2 + 1, hup]);
  });
  t.deepEqual(listeners(), [usr2, hup + 1]);
  await shutdown();
  t.deepEqual(listeners(), [usr2, hup]);
});

test.serial("logs after 10 s which locks delay the new configuration", async (t) => {
  const [first, second] = [fileWith(), fileWith()];
  first.save();
  const end = deferred();
  const bodies = ["a", "b", "c", "d", "e", "f", "g"].map((key) => withLock(key, {}, () => end.promise));
  await first.fleet.clock.settle();
  second.save();
  await first.fleet.clock.advance(9_999);
  t.deepEqual(first.fleet.warnings, []);
  await first.fleet.clock.advance(1);
  t.deepEqual(first.fleet.warnings, [
    "configure(): the earlier configuration stays in force until no lock is held or waited for. These keys are still in use: a, b, c, d, e and 2 more. Fix: if their functions do not end, restart the process",
  ]);
  end.resolve();
  await Promise.all(bodies);
  await until(() => first.store.closed);
  t.is(first.fleet.clock.pendingTimers, 0);
});

test.serial("stores are closed outside of any caller's async context", async (t) => {
  const requests = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const save = (): void => {
    const close = (): Promise<void> => Promise.resolve(void seen.push(requests.getStore()));
    configure({ store: Object.assign(memoryStore(), { close }) }, "woven", HERE);
  };
  const saveInRequest = (): void => requests.run("a request", save);
  save();
  saveInRequest(); // Closes the first store.
  await requests.run("another request", () =>
    whileHeld(() => {
      saveInRequest(); // Is pending.
      saveInRequest(); // Closes the pending store. The release of the lock closes the current one.
    }),
  );
  await shutdown();
  t.deepEqual(seen, [undefined, undefined, undefined, undefined]);
});

test.serial("a store is used with the optional methods that it has at the latest configure()", async (t) => {
  const ours = memoryStore();
  const calls: string[] = [];
  const store: Store = {
    acquire: (request, timeoutMs) => ours.acquire(request, timeoutMs),
    renew: (requests, timeoutMs) => ours.renew(requests, timeoutMs),
    release: (request, timeoutMs) => ours.release(request, timeoutMs),
    peek: (keys, timeoutMs) => ours.peek(keys, timeoutMs),
  };
  configure({ store }, "woven", HERE);
  await shutdown();
  Object.assign(store, {
    listen: () => (calls.push("listen"), () => {}),
    close: () => Promise.resolve(void calls.push("close")),
  });
  configure({ store }, "woven", HERE);
  await shutdown();
  t.deepEqual(calls, ["listen", "close"]);
});

// This test is last, because the process remembers which stores modules need.
test.serial("a module can need a store of the pending configuration", async (t) => {
  const [first, second] = [fileWith(), fileWith()];
  first.save();
  await whileHeld(() => {
    second.save({ stores: { ledger: memoryStore() } });
    t.notThrows(() => needsStore("ledger", "Ledger.post"));
  });
  t.is(locker().all.get("ledger")?.name, "ledger");
  first.save();
  t.deepEqual(
    first.fleet.warnings,
    [
      'configure(): There is no store `ledger`, which Ledger.post uses: configure() has only `default`. Fix: call configure({ ..., stores: { ledger: "redis://..." } })',
    ],
    "a warning and no error, because the module may have changed as well",
  );
});
