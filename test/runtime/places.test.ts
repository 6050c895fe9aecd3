import { subscribe, unsubscribe } from "node:diagnostics_channel";
import test from "ava";
import {
  configure,
  LockMisconfiguredError,
  LockOptionError,
  LockWaitTimeoutError,
  memoryStore,
  needsStore,
  obtain,
  quorumStore,
  shutdown,
  withLock,
  type Configuration,
} from "../../runtime";
import type { LockEvent } from "../../runtime/lock/events";
import { testLocks } from "../../runtime/testing";
import { acquire, currentLock, fail, open, release, retryCheck, runReentrant } from "../../runtime/woven";
import { deferred } from "../support/deferred";
import { job } from "../support/jobs";
import { Masters } from "../support/masters";
import { startRedisCluster } from "../support/redis-cluster";
import { startRedis } from "../support/redis-server";

// Several places of locks in one process. One configuration is in force in a process: these tests take turns.

test.afterEach.always(() => shutdown({ patience: "0ms" }));

const IMPATIENT = { retryTimes: 0 };

/** Lets in nobody else as long as it is held. */
async function isBusy(key: string, store?: string): Promise<boolean> {
  const own = store === undefined ? {} : { store };
  const options = { ...IMPATIENT, lockTime: "500ms", onFailure: "skip", ...own } as const;
  return (await withLock(key, options, () => true)) === undefined;
}

test.serial("a key is another lock in each store", async (t) => {
  configure({ store: memoryStore(), stores: { payments: memoryStore() } }, "woven");
  await withLock("k", {}, async () => {
    t.true(await isBusy("k"));
    t.true(await isBusy("k", "default"));
    t.false(await isBusy("k", "payments"));
    await withLock("k", { store: "payments" }, async () => void t.true(await isBusy("k", "payments")));
    t.false(await isBusy("k", "payments"));
  });
});

test.serial(
  "the store of a project's locks is that of its defaults, unless they name another one",
  async (t) => {
    const stores = { payments: memoryStore() };
    configure({ store: memoryStore(), stores, defaults: { store: "payments" } }, "woven");
    await withLock("k", {}, async () => {
      t.true(await isBusy("k", "payments"));
      t.false(await isBusy("k", "default"));
    });
  },
);

test.serial("who holds a key in one store is let in again there, and waits for it in another", async (t) => {
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
      message: /^LOCK_WAIT_TIME_OUT: k in payments is held in this process/,
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

test.serial("events name the store, and the time line does where it has a name of its own", async (t) => {
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

test.serial("what a store warns of is told with its name", async (t) => {
  const warnings: string[] = [];
  const told = deferred();
  const logger = { warn: (line: string) => (warnings.push(line), told.resolve()) };
  configure({ store: memoryStore(), stores: { payments: "redis://127.0.0.1:1" }, logger }, "woven");
  const lock = withLock("k", { ...IMPATIENT, store: "payments" }, () => {});
  await t.throwsAsync(lock, {
    code: "LOCK_UNREACHABLE",
    message: /^k in payments: the store could not be asked/,
  });
  await told.promise;
  t.regex(warnings[0] ?? "", /^payments: there is no connection to Redis: /);
});

test.serial(
  "who is inside a lock of one store gets one of another store while shutdown() waits",
  async (t) => {
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
  },
);

function configureAnew(): void {
  void shutdown({ patience: "0ms" });
  configure({ store: memoryStore(), stores: { payments: memoryStore() } }, "woven");
}

test.serial(
  "one node, a cluster and a quorum stand beside memory, and shutdown() closes what is ours",
  async (t) => {
    const [one, masters, cluster] = [await startRedis(), await Masters.start(3), await startRedisCluster()];
    t.teardown(() => Promise.all([one.stop(), masters.stop(), cluster.stop()]));
    const stores = {
      node: one.client(),
      byUrl: one.url,
      cluster: cluster.cluster(),
      list: masters.urls,
      quorum: quorumStore(masters.urls, { longestLockTime: "3s" }), // Before that time a new master does not count.
    };
    configure({ store: memoryStore(), stores }, "woven");
    await withLock("first", { store: "quorum", waitTime: "60s", lockTime: "3s" }, () => {}); // The masters count.
    const names = ["default", "node", "byUrl", "cluster", "quorum"];
    for (const store of names) {
      await withLock("k", { store, lockTime: "3s" }, async () => {
        const busy: string[] = [];
        for (const other of names) if (await isBusy("k", other)) busy.push(other);
        // Two names of one server are one place.
        t.deepEqual(busy, store === "node" || store === "byUrl" ? ["node", "byUrl"] : [store]);
      });
    }
    await shutdown();
    const list = String(await one.client().client("LIST"));
    t.is(list.trim().split("\n").length, 2, "of the caller's client, and this one");
    t.is(await stores.cluster.ping(), "PONG");
  },
);

// ---- names that are not there ---------------------------------------------------------------------------

const NOT_THERE =
  'There is no store `ledger`, which Ledger.book asks for: configure() is given `default`, `payments`. Add it: configure({ ..., stores: { ledger: "redis://..." } }).';

test.serial("a module whose tag names a store that is not configured fails when it is loaded", (t) => {
  configure({ store: memoryStore(), stores: { payments: memoryStore() } }, "woven");
  t.notThrows(() => needsStore("payments", "Orders.pay"));
  t.notThrows(() => needsStore("default", "Orders.book"));
  t.throws(() => needsStore("ledger", "Ledger.book"), {
    instanceOf: LockMisconfiguredError,
    message: NOT_THERE,
  });
});

test.serial(
  "configure() fails for a tag of a module that was loaded before, and opens nothing",
  async (t) => {
    needsStore("ledger", "Ledger.book", "Ledger.close");
    const stores = { payments: "redis://127.0.0.1:1" };
    const asked = NOT_THERE.replace("Ledger.book asks", "Ledger.book, Ledger.close ask");
    t.throws(() => configure({ store: memoryStore(), stores }, "woven"), {
      instanceOf: LockMisconfiguredError,
      message: asked,
    });
    configure({ store: memoryStore(), stores: { payments: memoryStore(), ledger: memoryStore() } }, "woven");
    t.is(await withLock("k", { store: "ledger" }, () => "there"), "there");
  },
);

test.serial("a name by hand that is not there is refused at its call", async (t) => {
  configure({ store: memoryStore(), stores: { payments: memoryStore(), ledger: memoryStore() } }, "woven");
  await t.throwsAsync(
    withLock("k", { store: "Payments" }, () => {}),
    {
      instanceOf: LockMisconfiguredError,
      message:
        /^There is no store `Payments`: configure\(\) is given `default`, `payments`, `ledger`\. Add it: /,
    },
  );
  await t.throwsAsync(
    withLock("k", { store: "pay ments" }, () => {}),
    { instanceOf: LockOptionError, message: /^Expected `store` to be the name of a store: / },
  );
});

/** What the tags of modules ask for that were loaded above. */
const NEEDED = { payments: memoryStore(), ledger: memoryStore() };

for (const [what, configuration, message] of [
  ["stores that are no object", { stores: ["redis://a"] }, /^Expected `stores` to be an object such as /],
  [
    "a store called default",
    { stores: { ...NEEDED, default: memoryStore() } },
    /^The store `default` is that of `redis` or/,
  ],
  [
    "a name with a blank",
    { stores: { ...NEEDED, "a b": memoryStore() } },
    /^Expected the names of `stores` to be .* 'a b'$/,
  ],
  [
    "what is no place",
    { stores: { ...NEEDED, payments: { host: "h" } } },
    /^Expected `stores.payments` to be an ioredis client/,
  ],
  [
    "what is half a store",
    { stores: { ...NEEDED, payments: { acquire() {} } } },
    /^Expected `stores.payments` to be a store .*`renew`/,
  ],
  [
    "stores alone",
    { store: undefined, stores: NEEDED },
    /got neither \(`store` is undefined\): it is for the locks that name no store$/,
  ],
] as const) {
  test.serial(`configure refuses ${what}`, (t) => {
    const given = { store: memoryStore(), ...configuration };
    t.throws(() => configure(given as unknown as Configuration, "woven"), {
      instanceOf: LockOptionError,
      message,
    });
  });
}

test.serial("a default that names a store that is not there is refused", (t) => {
  const stores = { payments: memoryStore(), ledger: memoryStore() };
  t.throws(() => configure({ store: memoryStore(), stores, defaults: { store: "audit" } }, "woven"), {
    instanceOf: LockMisconfiguredError,
    message: /^There is no store `audit`, which configure\(\{ defaults \}\) asks for: /,
  });
});

test.serial("when one of the places cannot be, no connection to another one is left open", async (t) => {
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

test.serial("nor is one when what is found out later cannot be", async (t) => {
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

test.serial("in unit tests every store that a tag names is there, with locks of its own", async (t) => {
  await using locks = testLocks({}, "woven");
  needsStore("ledger", "Ledger.book");
  await pay("7", () =>
    book("7", async () => void t.deepEqual(locks.held, ["LOCK_pay_7 in payments", "LOCK_pay_7"])),
  );
  t.deepEqual(locks.taken, ["LOCK_pay_7 in payments", "LOCK_pay_7"]);
  await locks.reset();
  await pay("7", async () => {});
  t.deepEqual(locks.taken, ["LOCK_pay_7 in payments"]);
});
