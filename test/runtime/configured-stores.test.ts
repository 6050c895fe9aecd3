import { subscribe, unsubscribe } from "node:diagnostics_channel";
import test from "ava";
import {
  configure,
  LockMisconfiguredError,
  LockOptionError,
  LockWaitTimeoutError,
  memoryStore,
  obtain,
  quorumStore,
  shutdown,
  withLock,
  type Configuration,
} from "../../runtime";
import { needsStore } from "../../runtime/config/configure";
import type { LockEvent } from "../../runtime/lock/events";
import { testLocks } from "../../runtime/testing";
import {
  acquire,
  currentLock,
  fail,
  open,
  release,
  retryCheck,
  runReentrant,
} from "../../runtime/woven/woven";
import { deferred } from "../support/deferred";
import { job } from "../support/jobs";
import { Masters } from "../support/masters";
import { startRedisCluster } from "../support/redis-cluster";
import { startRedis } from "../support/redis-server";

// Several stores in one process. A process has one configuration, so these tests run serially.

test.afterEach.always(() => shutdown({ patience: "0ms" }));

const IMPATIENT = { retryTimes: 0 };

/** Whether somebody holds the key. */
async function isBusy(key: string, store?: string): Promise<boolean> {
  const own = store === undefined ? {} : { store };
  const options = { ...IMPATIENT, lockTime: "500ms", onFailure: "skip", ...own } as const;
  return (await withLock(key, options, () => true)) === undefined;
}

test.serial("the same key is a separate lock in each store", async (t) => {
  configure({ store: memoryStore(), stores: { payments: memoryStore() } }, "woven");
  await withLock("k", {}, async () => {
    t.true(await isBusy("k"));
    t.true(await isBusy("k", "default"));
    t.false(await isBusy("k", "payments"));
    await withLock("k", { store: "payments" }, async () => void t.true(await isBusy("k", "payments")));
    t.false(await isBusy("k", "payments"));
  });
});

test.serial("locks use the store in the defaults, unless they name another one", async (t) => {
  const stores = { payments: memoryStore() };
  configure({ store: memoryStore(), stores, defaults: { store: "payments" } }, "woven");
  await withLock("k", {}, async () => {
    t.true(await isBusy("k", "payments"));
    t.false(await isBusy("k", "default"));
  });
});

test.serial("a reentrant lock is entered again only in its own store", async (t) => {
  configure({ store: memoryStore(), stores: { payments: memoryStore() } }, "woven");
  const again = { ...IMPATIENT, reentrant: true };
  await withLock("k", { ...again, store: "payments" }, async (outer) => {
    const inner = await withLock("k", { ...again, store: "payments" }, ({ storeValue }) => storeValue);
    t.is(inner, outer.storeValue);
    const other = await withLock("k", again, ({ storeValue }) => storeValue);
    t.not(other, outer.storeValue);
  });
  const held = await obtain("k", { store: "payments" });
  await t.throwsAsync(
    withLock("k", { ...again, store: "payments" }, () => {}),
    {
      instanceOf: LockWaitTimeoutError,
      message: /^LOCK_WAIT_TIME_OUT: k in payments has been held in this process/,
    },
  );
  t.is(await withLock("k", again, () => "free"), "free");
  await held.release();
});

/** As the transformer writes it: `@redisLock businessFlag=pay keyName=no store=payments reentrant=true` */
function pay(no: string, work: () => Promise<void>): Promise<void> {
  return locked({ site: "Orders.pay", businessFlag: "pay", store: "payments" }, no, work);
}

/** The same in the default store. */
function book(no: string, work: () => Promise<void>): Promise<void> {
  return locked({ site: "Orders.book", businessFlag: "pay" }, no, work);
}

async function locked(
  site: { readonly site: string; readonly businessFlag: string; readonly store?: string },
  no: string,
  work: () => Promise<void>,
): Promise<void> {
  const lock = open({ ...site, ...IMPATIENT, reentrant: true }, no);
  while (!(await acquire(lock))) await retryCheck(lock);
  try {
    await runReentrant(lock, async () => {
      currentLock(lock).assertHeld();
      await work();
    });
  } catch (error) {
    throw fail(lock, error);
  } finally {
    await release(lock);
  }
}

test.serial("events name the store, and log lines name it unless it is the default", async (t) => {
  const lines: string[] = [];
  const logger = {
    warn: (line: string) => void lines.push(line),
    debug: (line: string) => void lines.push(line),
  };
  configure({ store: memoryStore(), stores: { payments: memoryStore() }, logger }, "woven");
  const seen: string[] = [];
  const note = (message: unknown, name: string | symbol): void => {
    const { key, store, site } = message as LockEvent;
    seen.push(`${String(name)} ${key} ${store} ${site}`);
  };
  for (const step of ["grant", "release"]) subscribe(`lockweave:${step}`, note);
  t.teardown(() => ["grant", "release"].forEach((step) => unsubscribe(`lockweave:${step}`, note)));
  await pay("7", () => book("7", () => pay("7", async () => {})));
  t.deepEqual(seen, [
    "lockweave:grant LOCK_pay_7 payments Orders.pay",
    "lockweave:grant LOCK_pay_7 default Orders.book",
    "lockweave:release LOCK_pay_7 default Orders.book",
    "lockweave:release LOCK_pay_7 payments Orders.pay",
  ]);
  t.deepEqual(
    lines.map((line) => line.replace(/ [0-9a-f]{8} .*/, "")),
    [
      "LOCK_pay_7 in payments (Orders.pay)",
      "LOCK_pay_7 (Orders.book)",
      "LOCK_pay_7 (Orders.book)",
      "LOCK_pay_7 in payments (Orders.pay)",
    ],
  );
});

test.serial("a warning of a store begins with the name of the store", async (t) => {
  const warnings: string[] = [];
  const warned = deferred();
  const logger = { warn: (line: string) => (warnings.push(line), warned.resolve()) };
  configure({ store: memoryStore(), stores: { payments: "redis://127.0.0.1:1" }, logger }, "woven");
  const lock = withLock("k", { ...IMPATIENT, store: "payments" }, () => {});
  await t.throwsAsync(lock, {
    code: "LOCK_UNREACHABLE",
    message: /^k in payments: the store did not grant the lock/,
  });
  await warned.promise;
  t.regex(warnings[0] ?? "", /^payments: there is no connection to Redis: /);
});

test.serial("a body can acquire a lock of another store while shutdown() waits", async (t) => {
  configure({ store: memoryStore(), stores: { payments: memoryStore() } }, "woven");
  for (const [outer, inner] of [
    ["default", "payments"],
    ["payments", "default"],
  ] as const) {
    configureAnew();
    const { body, running, end } = job();
    const work = withLock("outer", { store: outer }, async () => {
      await body();
      return await withLock("inner", { store: inner }, () => "both");
    });
    await running;
    const closed = shutdown();
    end();
    t.is(await work, "both");
    await closed;
    await t.throwsAsync(
      withLock("k", { store: inner }, () => {}),
      { code: "LOCK_CLOSED" },
    );
  }
});

function configureAnew(): void {
  void shutdown({ patience: "0ms" });
  configure({ store: memoryStore(), stores: { payments: memoryStore() } }, "woven");
}

test.serial(
  "one process uses memory, a node, a cluster, and a quorum, and shutdown() closes only its own connections",
  async (t) => {
    const [one, masters, cluster] = [await startRedis(), await Masters.start(3), await startRedisCluster()];
    t.teardown(() => Promise.all([one.stop(), masters.stop(), cluster.stop()]));
    const stores = {
      node: one.client(),
      byUrl: one.url,
      cluster: cluster.cluster(),
      list: masters.urls,
      quorum: quorumStore(masters.urls, { longestLockTime: "3s" }), // A new master does not count before that time has passed.
    };
    configure({ store: memoryStore(), stores }, "woven");
    await withLock("first", { store: "quorum", waitTime: "60s", lockTime: "3s" }, () => {}); // The masters count from here on.
    const names = ["default", "node", "byUrl", "cluster", "quorum"];
    for (const store of names) {
      await withLock("k", { store, lockTime: "3s" }, async () => {
        const busy: string[] = [];
        for (const other of names) if (await isBusy("k", other)) busy.push(other);
        // Two stores on one server share their locks.
        t.deepEqual(busy, store === "node" || store === "byUrl" ? ["node", "byUrl"] : [store]);
      });
    }
    await shutdown();
    const list = String(await one.client().client("LIST"));
    t.is(list.trim().split("\n").length, 2, "the caller's client, and the client that lists them");
    t.is(await stores.cluster.ping(), "PONG");
  },
);

// ---- unknown stores -------------------------------------------------------------------------------------

const NOT_THERE =
  'There is no store `ledger`, which Ledger.book uses: configure() has only `default`, `payments`. Fix: call configure({ ..., stores: { ledger: "redis://..." } })';

test.serial("a module whose tag names an unknown store throws when it is loaded", (t) => {
  configure({ store: memoryStore(), stores: { payments: memoryStore() } }, "woven");
  t.notThrows(() => needsStore("payments", "Orders.pay"));
  t.notThrows(() => needsStore("default", "Orders.book"));
  t.throws(() => needsStore("ledger", "Ledger.book"), {
    instanceOf: LockMisconfiguredError,
    message: NOT_THERE,
  });
});

test.serial(
  "configure() throws if a module that is already loaded needs a store that is missing",
  async (t) => {
    needsStore("ledger", "Ledger.book", "Ledger.close");
    const stores = { payments: "redis://127.0.0.1:1" };
    const asked = NOT_THERE.replace("Ledger.book uses", "Ledger.book, Ledger.close use");
    t.throws(() => configure({ store: memoryStore(), stores }, "woven"), {
      instanceOf: LockMisconfiguredError,
      message: asked,
    });
    configure({ store: memoryStore(), stores: { payments: memoryStore(), ledger: memoryStore() } }, "woven");
    t.is(await withLock("k", { store: "ledger" }, () => "there"), "there");
  },
);

test.serial("withLock() rejects an unknown store", async (t) => {
  configure({ store: memoryStore(), stores: { payments: memoryStore(), ledger: memoryStore() } }, "woven");
  await t.throwsAsync(
    withLock("k", { store: "Payments" }, () => {}),
    {
      instanceOf: LockMisconfiguredError,
      message:
        /^There is no store `Payments`: configure\(\) has only `default`, `payments`, `ledger`\. Fix: call configure/,
    },
  );
  await t.throwsAsync(
    withLock("k", { store: "pay ments" }, () => {}),
    { instanceOf: LockOptionError, message: /^Expected `store` to be the name of a store \(/ },
  );
});

/** The stores that the modules loaded above need. */
const NEEDED = { payments: memoryStore(), ledger: memoryStore() };

for (const [what, configuration, message] of [
  ["stores that are not an object", { stores: ["redis://a"] }, /^Expected `stores` to be an object such as /],
  [
    "a store called default",
    { stores: { ...NEEDED, default: memoryStore() } },
    /^`stores` cannot contain `default`, because that is the name of the store in `redis`, `postgres`, or/,
  ],
  [
    "a name with a space",
    { stores: { ...NEEDED, "a b": memoryStore() } },
    /^Expected the names in `stores` to consist of .* 'a b'$/,
  ],
  [
    "connection options as a store",
    { stores: { ...NEEDED, payments: { host: "h" } } },
    /^Expected `stores.payments` to be a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun/,
  ],
  [
    "a store without renew()",
    { stores: { ...NEEDED, payments: { acquire() {} } } },
    /^Expected `stores.payments` to be a store .*`renew`/,
  ],
  [
    "only named stores",
    { store: undefined, stores: NEEDED },
    /got none \(`store` is undefined\), for locks that name no store$/,
  ],
] as const) {
  test.serial(`configure() rejects ${what}`, (t) => {
    const given = { store: memoryStore(), ...configuration };
    t.throws(() => configure(given as unknown as Configuration, "woven"), {
      instanceOf: LockOptionError,
      message,
    });
  });
}

test.serial("configure() rejects defaults that name an unknown store", (t) => {
  const stores = { payments: memoryStore(), ledger: memoryStore() };
  t.throws(() => configure({ store: memoryStore(), stores, defaults: { store: "audit" } }, "woven"), {
    instanceOf: LockMisconfiguredError,
    message: /^There is no store `audit`, which configure\(\{ defaults \}\) uses: /,
  });
});

test.serial("configure() leaves no connection open if the address of one store is invalid", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const stores = { payments: server.url, ledger: memoryStore(), audit: "http://nowhere" };
  t.throws(() => configure({ redis: server.url, stores }, "woven"), {
    message: /^Expected `stores.audit` to be/,
  });
  t.is(
    String(await server.client().client("LIST"))
      .trim()
      .split("\n").length,
    1,
  );
});

test.serial("configure() leaves no connection open if a later check fails", async (t) => {
  const server = await startRedis();
  t.teardown(server.stop);
  const redis = server.url;
  const stores = { payments: memoryStore(), ledger: memoryStore() };
  t.throws(() => configure({ redis, stores, openReleases: -1 }, "woven"), { message: /openReleases/ });
  const ledger = Object.assign(memoryStore(), { listen: () => undefined as never });
  t.throws(() => configure({ redis, stores: { ...stores, ledger } }, "woven"), { message: /listen/ });
  const connections = String(await server.client().client("LIST"))
    .trim()
    .split("\n");
  t.is(connections.length, 1);
});

test.serial("testLocks() provides every store that a tag names, each with its own locks", async (t) => {
  await using locks = testLocks({}, "woven");
  needsStore("ledger", "Ledger.book");
  await pay("7", () =>
    book("7", async () => void t.deepEqual(locks.held, ["LOCK_pay_7 in payments", "LOCK_pay_7"])),
  );
  t.deepEqual(locks.acquired, ["LOCK_pay_7 in payments", "LOCK_pay_7"]);
  await locks.reset();
  await pay("7", async () => {});
  t.deepEqual(locks.acquired, ["LOCK_pay_7 in payments"]);
});
