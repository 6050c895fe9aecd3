import { hostname } from "node:os";
import test from "ava";
import { Client } from "pg";
import {
  configure,
  inspect,
  lockKey,
  LockWaitTimeoutError,
  redisStore,
  shutdown,
  type Configuration,
} from "../../runtime";
import { findHolder } from "../../runtime/diagnostics/announced-holder";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { Fleet, FleetProcess } from "../support/fleet";
import { startPostgres, type PostgresServer } from "../support/postgres-server";
import { startRedis, type RedisServer } from "../support/redis-server";
import { lostOnTheWay } from "../support/tampered-store";
import { until } from "../support/until";

// What a process learns about a holder in another process that announces itself.

const SECOND = 1_000;
const US = { host: hostname(), pid: process.pid };

let redis: RedisServer;
let postgres: PostgresServer;
test.before(async () => {
  [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  const admin = new Client(postgres.url);
  await admin.connect();
  await admin.query(migrationSql("lockweave"));
  await admin.end();
});
test.afterEach.always(() => shutdown({ patience: "0s" }));
test.after.always(() => Promise.all([redis.stop(), postgres.stop()]));

const STORES: Readonly<Record<string, () => Configuration>> = {
  Redis: () => ({ redis: redis.url }),
  PostgreSQL: () => ({ postgres: postgres.url }),
};

async function withProcesses(
  configurations: readonly Configuration[],
  use: (...processes: FleetProcess[]) => Promise<void>,
): Promise<void> {
  const processes = configurations.map((one) => new FleetProcess({ logger: { warn: () => {} }, ...one }));
  try {
    await use(...processes);
  } finally {
    for (const { locker } of processes) {
      locker.all.stopAnnouncing();
      await locker.store.close?.();
    }
  }
}

for (const [name, configuration] of Object.entries(STORES)) {
  test.serial(
    `${name}: the error of a waiter names the announced process that holds the lock, and its function`,
    async (t) => {
      const announcing = { ...configuration(), announce: true };
      await withProcesses([announcing, announcing], async (holder, waiter) => {
        const key = lockKey("named", name);
        await holder.call(
          key,
          { lockTime: "1m" },
          async (one) => {
            const value = one.storeValue ?? "";
            await until(async () => (await findHolder(waiter.locker, key, value))?.site !== undefined);
            const error = await t.throwsAsync(
              waiter.call(key, { wait: 0 }, () => t.fail(), { site: "OrderService.cancel" }),
              { instanceOf: LockWaitTimeoutError },
            );
            t.deepEqual(error.holder, { storeValue: value, ...US, site: "OrderService.pay" });
            const start = `LOCK_WAIT_TIME_OUT: ${key} (OrderService.cancel) is held by process ${US.pid} on ${US.host} (OrderService.pay) and did not become free within `;
            t.true(error.message.startsWith(start), error.message);
          },
          { site: "OrderService.pay" },
        );
      });
    },
  );
}

test.serial(
  "inspect() reports what the process of a holder announced, and nothing of a revoked hold",
  async (t) => {
    const store = redisStore(redis.client());
    configure({ woven: false, store });
    await withProcesses([{ redis: redis.url, announce: true }], async (holder) => {
      const key = lockKey("inspected", "elsewhere");
      await holder
        .call(
          key,
          { lockTime: "5m" },
          async ({ storeValue: requestId = "" }) => {
            await until(async () => (await inspect(key)).holders[0]?.elsewhere?.site !== undefined);
            t.like((await inspect(key)).holders, [
              { here: undefined, elsewhere: { ...US, site: "Orders.pay" } },
            ]);
            await store.admin.revoke({ key, requestId }, SECOND);
            t.like((await inspect(key)).holders, [{ isRevoked: true, elsewhere: undefined }]);
          },
          { site: "Orders.pay" },
        )
        .catch(() => {});
    });
  },
);

/** A fleet whose store has this announcement of the foreign holder of `LOCK_pay`. Counts how often it is read. */
async function withAnnouncement(
  announced: (processNumber: string) => Promise<string | undefined>,
): Promise<{ fleet: Fleet; reads: string[] }> {
  const fleet = new Fleet();
  const reads: string[] = [];
  Object.assign(fleet.store.admin, {
    announced: (processNumber: string) => {
      reads.push(processNumber);
      return announced(processNumber);
    },
  });
  await fleet.acquireElsewhere("LOCK_pay", 600 * SECOND);
  return { fleet, reads };
}

const ABOUT = JSON.stringify({
  host: "web-2",
  pid: 4711,
  holds: [{ key: "LOCK_pay", site: "Orders.pay", forMs: 2_000 }],
});
const NAMED = { storeValue: "0".repeat(32), host: "web-2", pid: 4711, site: "Orders.pay" };
const UNNAMED = { storeValue: "0".repeat(32) };

test("callers that look up one hold at the same time share a command", async (t) => {
  const { fleet, reads } = await withAnnouncement(async () => ABOUT);
  const process = fleet.process({ announce: true });
  const { findHolder: find = async () => undefined } = process.locker;
  const found = await Promise.all(Array.from({ length: 50 }, () => find("LOCK_pay", UNNAMED.storeValue)));
  t.deepEqual([...new Set(found)], [{ host: "web-2", pid: 4711, site: "Orders.pay" }]);
  t.deepEqual(reads, ["0".repeat(12)]);
  await find("LOCK_pay", UNNAMED.storeValue);
  t.is(reads.length, 2);
  process.locker.all.stopAnnouncing();
});

test("a process that does not announce itself, or skips the body, sends no further command", async (t) => {
  const { fleet, reads } = await withAnnouncement(async () => ABOUT);
  const silent = fleet.process();
  const error = await t.throwsAsync(silent.call("LOCK_pay", { wait: 0 }, () => t.fail()));
  t.deepEqual((error as LockWaitTimeoutError).holder, UNNAMED);
  const process = fleet.process({ announce: true });
  t.is(await process.call("LOCK_pay", { wait: 0, onFailure: "skip" }, () => t.fail()), undefined);
  t.deepEqual(reads, []);
  process.locker.all.stopAnnouncing();
});

test("a lookup without a reply delays the error by the command timeout", async (t) => {
  const { fleet } = await withAnnouncement(() => lostOnTheWay());
  const process = fleet.process({ announce: true, commandTimeout: "800ms" });
  const began = fleet.clock.now();
  let tookMs = 0;
  const call = process
    .call("LOCK_pay", { wait: 0 }, () => t.fail())
    .catch((error: unknown) => {
      tookMs = fleet.clock.now() - began;
      return error as LockWaitTimeoutError;
    });
  await fleet.clock.advance(3 * SECOND);
  const error = await call;
  t.deepEqual(error?.holder, UNNAMED);
  t.regex(error?.message ?? "", /is held by another caller and did not become free/);
  t.is(tookMs, 800);
  process.locker.all.stopAnnouncing();
});

test("a failed lookup, and an announcement that Lockweave did not write, leave the holder unnamed", async (t) => {
  const texts: readonly (() => Promise<string | undefined>)[] = [
    () => Promise.reject(new Error("ECONNRESET")),
    async () => undefined,
    ...["", "{", "null", "[]", `{"host":"a"}`, `{"host":"a\\nb","pid":1}`, `{"host":"a","pid":"1"}`].map(
      (text) => async () => text,
    ),
    async () => JSON.stringify({ host: "h".repeat(201), pid: 1 }),
    async () => JSON.stringify({ host: "a", pid: 1, more: "x".repeat(300_000) }),
  ];
  for (const text of texts) {
    const { fleet } = await withAnnouncement(text);
    const process = fleet.process({ announce: true });
    const error = await t.throwsAsync(process.call("LOCK_pay", { wait: 0 }, () => t.fail()));
    t.deepEqual((error as LockWaitTimeoutError).holder, UNNAMED);
    process.locker.all.stopAnnouncing();
  }
  const { fleet } = await withAnnouncement(
    async () => `{"host":"a","pid":1,"holds":[null,1,{"key":"LOCK_pay","site":"\\u001b[31mred"}]}`,
  );
  const process = fleet.process({ announce: true });
  const error = await t.throwsAsync(process.call("LOCK_pay", { wait: 0 }, () => t.fail()));
  t.deepEqual((error as LockWaitTimeoutError).holder, { ...UNNAMED, host: "a", pid: 1 });
  process.locker.all.stopAnnouncing();
});

test("an own error class gets the name of the holder in its message, and a lock of several keys frees the others", async (t) => {
  const { fleet } = await withAnnouncement(async () => ABOUT);
  const process = fleet.process({ announce: true });
  class Busy extends Error {}
  await t.throwsAsync(
    process.call("LOCK_pay", { wait: 0 }, () => t.fail(), { Failure: Busy }),
    {
      instanceOf: Busy,
      message: /is held by process 4711 on web-2 \(Orders\.pay\)/,
    },
  );
  const locks = process.locks(["LOCK_pay", "LOCK_a"], { wait: 0 });
  const error = await t.throwsAsync(async () => {
    while (!(await locks.acquire())) await locks.retryCheck();
  });
  t.deepEqual((error as LockWaitTimeoutError).holder, NAMED);
  t.true(await fleet.isFree("LOCK_a"));
  process.locker.all.stopAnnouncing();
});

test("a warning about a slow waiter names the announced process that holds the lock", async (t) => {
  const { fleet } = await withAnnouncement(async () => ABOUT);
  const process = fleet.process({ warnAfter: "1s" });
  const call = t.throwsAsync(process.call("LOCK_pay", { wait: "5s" }, () => t.fail()));
  await fleet.clock.advance(6 * SECOND);
  await call;
  t.regex(
    fleet.warnings.join("\n"),
    /has waited for the lock for .*: it is held by process 4711 on web-2 \(Orders\.pay\)/,
  );
  process.locker.all.stopAnnouncing();
});
