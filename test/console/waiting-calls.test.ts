import { hostname } from "node:os";
import test, { type ExecutionContext } from "ava";
import { Client } from "pg";
import { migrationSql } from "../../runtime/stores/postgres/migration";
import { LockScanner } from "../../transformer/console/lock-scanner";
import { openDeployment, type Target } from "../../transformer/console/open-deployment";
import type { LockRow, Snapshot } from "../../transformer/console/snapshot";
import { startPostgres } from "../support/postgres-server";
import { startRedisCluster } from "../support/redis-cluster";
import { startRedis } from "../support/redis-server";
import { inMatrixSerially } from "../support/suites";
import { until } from "../support/until";
import { Programs } from "./programs";

// The console shows calls that wait, with real processes. The calls of a process that holds the lock have no ticket in the store.

const HELD_WITH_CALLS = `
  await take("OrderService.pay", "pay", 1);
  for (let call = 0; call < 12; call += 1) void take("OrderService.refund", "pay", 1);
  for (let call = 0; call < 7; call += 1) void withLock(lockKey("pay", 1), { waitTime: "10m" }, never);`;

/** Takes snapshots until one fits, and returns it. */
async function snapshotWith(target: Target, fits: (snapshot: Snapshot) => boolean): Promise<Snapshot> {
  const deployment = await openDeployment(target);
  try {
    const scanner = new LockScanner(deployment);
    let snapshot = await scanner.look();
    await until(async () => fits((snapshot = await scanner.look())));
    return snapshot;
  } finally {
    deployment.close();
  }
}

const inRedis = (url: string): Target => ({ redis: [url], match: "LOCK_*", prefix: "" });

/** Checks the calls of a holder, and then those of a second process, which has one ticket. */
async function showsCalls(t: ExecutionContext, url: string, target: Target): Promise<void> {
  const programs = new Programs(url);
  try {
    const holder = await programs.program(HELD_WITH_CALLS);
    const { locks, unknownProcesses } = await snapshotWith(target, (one) => one.locks[0]?.waiting === 19);
    t.is(unknownProcesses, 0);
    t.like(locks[0], { key: "LOCK_pay_1", state: "held", queued: 0 });
    t.like(locks[0]?.waiters, [{ pid: holder.pid, site: "OrderService.refund", calls: 19 }]);
    t.true((locks[0]?.waiters[0]?.forMs ?? 0) >= 1_000);
    const waiter = await programs.program(
      `for (let call = 0; call < 5; call += 1) void take("InvoiceJob.run", "pay", 1);`,
    );
    const both = await snapshotWith(target, (one) => one.locks[0]?.waiting === 24);
    t.is(both.locks[0]?.queued, 1);
    t.deepEqual(
      both.locks[0]?.waiters.map(({ pid, calls }) => [pid, calls]),
      [
        [waiter.pid, 5],
        [holder.pid, 19],
      ],
    );
    const name = (pid: number | undefined): string => `${hostname()}/${pid}`;
    const { stdout } = await programs.lockweave(["top"]);
    t.regex(stdout, /^1 held, 24 waiting, of 1 locks\. \d+ commands/);
    t.regex(stdout, /^24 +\d+\.\d s +held /m);
    t.true(
      stdout.includes(
        `${name(waiter.pid)} InvoiceJob.run (5 calls), ${name(holder.pid)} OrderService.refund (19 calls)\n`,
      ),
      stdout,
    );
    t.regex((await programs.lockweave(["inspect", "LOCK_pay_1"])).stdout, /^24 /m);
  } finally {
    await programs.end();
  }
}

test.serial(
  "top shows each call that waits for a lock in Redis, even in the process of the holder",
  async (t) => {
    const server = await startRedis();
    try {
      await showsCalls(t, server.url, inRedis(server.url));
    } finally {
      await server.stop();
    }
  },
);

inMatrixSerially("top shows each call that waits for a lock in PostgreSQL", async (t) => {
  const server = await startPostgres();
  try {
    const admin = new Client({ connectionString: server.url });
    await admin.connect();
    await admin.query(migrationSql());
    await admin.end();
    await showsCalls(t, server.url, { postgres: server.url, match: "LOCK_*", schema: "lockweave" });
  } finally {
    await server.stop();
  }
});

inMatrixSerially("top shows each call that waits for a lock in a cluster", async (t) => {
  const cluster = await startRedisCluster(3);
  const [node] = cluster.nodes;
  const url = `redis://127.0.0.1:${node?.port}`;
  const programs = new Programs(url);
  const ioredis = JSON.stringify(require.resolve("ioredis"));
  const configuration = `{ redis: new (require(${ioredis}).Cluster)([{ host: "127.0.0.1", port: ${node?.port} }]), announce: true }`;
  try {
    await programs.program(HELD_WITH_CALLS, configuration);
    const { locks } = await snapshotWith(inRedis(url), (one) => one.locks[0]?.waiting === 19);
    t.like(locks[0]?.waiters, [{ site: "OrderService.refund", calls: 19 }]);
  } finally {
    await programs.end();
    await cluster.stop();
  }
});

test.serial(
  "top says how many processes do not announce their waiting calls, and counts unlisted calls",
  async (t) => {
    const server = await startRedis();
    const admin = server.client();
    const programs = new Programs(server.url);
    try {
      const [silent, announced] = ["a", "b"].map((digit) => digit.repeat(32));
      await admin.mset("LOCK_silent", silent ?? "", "LOCK_announced", announced ?? "");
      await admin.zadd("lockweave:1:queue:{LOCK_silent}", 1, silent ?? "");
      const about = {
        host: "vm",
        pid: 7,
        holds: [{ key: "LOCK_announced", forMs: 9_000 }],
        waits: [
          { key: "LOCK_announced", forMs: 5_000, calls: 3 },
          { key: "LOCK_announced", forMs: 5_000, calls: -3 },
          { key: "LOCK_other", forMs: 5_000, calls: 9 },
        ],
        unlisted: { holds: 0, calls: 40 },
      };
      await admin.set(`lockweave:1:process:${"b".repeat(12)}`, JSON.stringify(about), "PX", 60_000);
      const { stdout } = await programs.lockweave(["top"]);
      t.true(
        stdout.startsWith(
          "2 held, 4 waiting, of 2 locks. 40 more calls wait for locks that are not listed. The waiting calls of 1 process are not known. ",
        ),
        stdout,
      );
      t.regex(stdout, /^3 .* LOCK_announced +vm\/7 +vm\/7 \(3 calls\)$/m);
      t.regex(stdout, /^1 .* LOCK_silent +a{12} +a{12}$/m);
      for (const calls of [0, -1, 1.5, 1e300, "3", null, {}]) {
        const waits = [{ key: "LOCK_announced", forMs: 5_000, calls }];
        const invalid = { holds: about.holds, waits, unlisted: { calls } };
        await admin.set(`lockweave:1:process:${"b".repeat(12)}`, JSON.stringify(invalid), "PX", 60_000);
        const { locks, unlistedCalls } = await snapshotWith(inRedis(server.url), () => true);
        t.is(unlistedCalls, 0, JSON.stringify(calls));
        t.is(locks.find((one: LockRow) => one.key === "LOCK_announced")?.waiting, 1, JSON.stringify(calls));
      }
      // The process has acquired the lock since its announcement, so one of the calls that waited then is the holder now.
      const earlier = { waits: [{ key: "LOCK_announced", forMs: 5_000, calls: 3 }] };
      await admin.set(`lockweave:1:process:${"b".repeat(12)}`, JSON.stringify(earlier), "PX", 60_000);
      const { locks } = await snapshotWith(inRedis(server.url), () => true);
      t.like(
        locks.find(({ key }) => key === "LOCK_announced"),
        { waiting: 2, queued: 0, waiters: [{ calls: 2 }] },
      );
    } finally {
      await programs.end();
      await server.stop();
    }
  },
);
