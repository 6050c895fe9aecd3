import { once } from "node:events";
import { hostname } from "node:os";
import { join } from "node:path";
import test from "ava";
import type { Redis } from "ioredis";
import { PACKAGE } from "../hosts/project";
import { startRedis, startRedisAt, type RedisServer } from "../support/redis-server";
import { startSentinelGroup } from "../support/redis-sentinel";
import { startRedisCluster } from "../support/redis-cluster";
import { until } from "../support/until";
import { Programs } from "./programs";
import { inMatrixSerially, outsideMatrixSerially } from "../support/suites";

// `top`, `tail`, `inspect`, and `release` with real processes on a real server.

let server: RedisServer;
let admin: Redis;
let programs: Programs;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  programs = new Programs(server.url);
});
test.afterEach.always(async () => {
  await programs.end();
  await admin.flushall();
});
test.after.always(() => server.stop());

const lockweave: Programs["lockweave"] = (args, env) => programs.lockweave(args, env);
const program: Programs["program"] = (body, configuration) => programs.program(body, configuration);

interface Snapshot {
  readonly locks: readonly {
    readonly key: string;
    readonly state: string;
    readonly holders: readonly {
      readonly leftMs: number;
      readonly isRevoked: boolean;
      readonly process?: object;
      readonly site?: string;
      readonly forMs?: number;
    }[];
    readonly waiting: number;
    readonly waiters: readonly { readonly site?: string; readonly forMs?: number }[];
    readonly masters: number;
  }[];
  readonly keys: number;
  readonly commands: number;
  readonly isWhole: boolean;
}

async function snapshot(...args: readonly string[]): Promise<Snapshot> {
  const { stdout, stderr } = await lockweave(["top", "--json", ...args]);
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout) as Snapshot;
}

const hasWaiter = async (key: string): Promise<boolean> =>
  (await admin.zcard(`lockweave:1:queue:{${key}}`)) > 0;

outsideMatrixSerially(
  "top shows holders and waiters, with the host and pid that announced them",
  async (t) => {
    const holder = await program('await obtain(lockKey("pay", 1)); await obtain(lockKey("quiet"));');
    const waiter = await program('void withLock(lockKey("pay", 1), { waitTime: "60s" }, never);');
    await until(() => hasWaiter("LOCK_pay_1"));
    const { locks } = await snapshot();
    t.deepEqual(
      locks.map(({ key, state, waiting }) => [key, state, waiting]),
      [
        ["LOCK_pay_1", "held", 1],
        ["LOCK_quiet", "held", 0],
      ],
    );
    const host = hostname();
    t.like(locks[0]?.holders[0], { isRevoked: false, process: { host, pid: holder.pid } });
    t.like(locks[0]?.waiters[0], { host, pid: waiter.pid });
    const { stdout, code } = await lockweave(["top"]);
    t.is(code, 0);
    t.regex(stdout, /^2 held, 1 waiting, of 2 locks\. \d+ commands in \d+ ms, up to \d+ keys scanned\.\n/);
    t.regex(stdout, new RegExp(`LOCK_pay_1 +${host}/${holder.pid} +${host}/${waiter.pid}\\n`));
  },
);

inMatrixSerially(
  "top shows the number of a process without an announcement, and the value that another program wrote",
  async (t) => {
    await program('await obtain(lockKey("pay"));', `{ redis: ${JSON.stringify(server.url)} }`);
    await admin.set("LOCK_other", "somebody\nelse", "PX", 60_000);
    const id = (await admin.get("LOCK_pay")) ?? "";
    const { stdout } = await lockweave(["top"]);
    t.regex(stdout, new RegExp(`LOCK_pay +${id.slice(0, 12)} +-\\n`));
    t.regex(stdout, /LOCK_other +somebody\\u000aelse +-\n/);
  },
);

outsideMatrixSerially(
  "top shows any key that has waiters, other keys with --match, and prefixed keys with --prefix",
  async (t) => {
    await program(
      'await obtain(wholeKey`mutex:${7}`); void withLock(wholeKey`mutex:${7}`, { waitTime: "60s" }, never); await obtain(wholeKey`job:${1}`);',
    );
    await program(
      'await obtain(lockKey("pay"));',
      `{ redis: new (require(${JSON.stringify(join(PACKAGE, "node_modules/ioredis"))}).Redis)(${JSON.stringify(server.url)}, { keyPrefix: "app:" }), announce: true }`,
    );
    await program('void withLock(wholeKey`mutex:${7}`, { waitTime: "60s" }, never);');
    await until(() => hasWaiter("mutex:7"));
    t.deepEqual(
      (await snapshot()).locks.map(({ key }) => key),
      ["mutex:7"],
    );
    t.deepEqual((await snapshot("--match", "job:*")).locks.map(({ key }) => key).toSorted(), [
      "job:1",
      "mutex:7",
    ]);
    t.like((await snapshot("--prefix", "app:")).locks, [
      { key: "LOCK_pay", holders: [{ process: { host: hostname() } }] },
    ]);
  },
);

inMatrixSerially("top lists each process that holds a shared lock once, with its time left", async (t) => {
  await program(
    'await obtain(lockKey("read"), { mode: "read" }); await obtain(lockKey("read"), { mode: "read" });',
  );
  await program('await obtain(lockKey("read"), { mode: "read" });');
  const [lock] = (await snapshot()).locks;
  t.is(lock?.holders.length, 2);
  t.true(lock?.holders.every(({ leftMs }) => leftMs > 0 && leftMs <= 30_000));
});

inMatrixSerially(
  "top shows all of 1,000 locks among 51,000 keys without KEYS, scripts, or writes",
  async (t) => {
    const pipeline = admin.pipeline();
    for (let index = 0; index < 50_000; index += 1) pipeline.set(`cache:${index}`, "x");
    for (let index = 0; index < 1_000; index += 1)
      pipeline.set(`LOCK_many_${index}`, `${index}`.padStart(32, "0"), "PX", 60_000);
    await pipeline.exec();
    await admin.config("RESETSTAT");
    const { locks, keys, isWhole, commands } = await snapshot();
    t.deepEqual([locks.length, keys, isWhole], [1_000, 51_000, true]);
    const stats = await admin.info("commandstats");
    const asked = [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(
      ([, name = "", calls]) => [name, Number(calls)] as const,
    );
    t.false(asked.some(([name]) => ["keys", "eval", "evalsha", "set", "del"].includes(name)));
    t.true(commands > 4_000 && commands < 40_000);
  },
);

outsideMatrixSerially(
  "tail prints when a lock is acquired, waited for, revoked, and no longer held",
  async (t) => {
    const child = programs.start(["tail", "--json"]);
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => void (output += text));
    const changes = (): string[] =>
      output
        .split("\n")
        .slice(0, -1)
        .map((line) => {
          const { key, what, by } = JSON.parse(line) as {
            key: string;
            what: string;
            by?: { process?: { pid: number } };
          };
          return `${key} ${what} ${by?.process?.pid ?? ""}`.trim();
        });
    // The process acquires the lock after it has announced itself.
    await admin.set("LOCK_pay_1", "somebody");
    const holder = await program('void obtain(lockKey("pay", 1), { waitTime: "60s" });');
    await until(async () => (await admin.keys("lockweave:1:process:*")).length === 1);
    await admin.del("LOCK_pay_1");
    await until(() => changes().includes(`LOCK_pay_1 acquired ${holder.pid}`));
    await program('void withLock(lockKey("pay", 1), { waitTime: "60s" }, never);');
    await until(() => changes().includes("LOCK_pay_1 waited for"));
    t.is((await lockweave(["release", "LOCK_pay_1", "--yes"])).code, 0);
    await until(() => changes().includes(`LOCK_pay_1 revoked ${holder.pid}`)); // The key no longer contains the holder.
    t.false(changes().some((change) => change.includes(`no longer held ${holder.pid}`)));
    await admin.del("LOCK_pay_1");
    await until(() => changes().includes(`LOCK_pay_1 no longer held ${holder.pid}`));
  },
);

outsideMatrixSerially("inspect shows one lock, even a free one", async (t) => {
  await program('await obtain(lockKey("pay", 1));');
  const { stdout } = await lockweave(["inspect", "LOCK_pay_1"]);
  t.regex(stdout, /LOCK_pay_1/);
  t.is((await lockweave(["inspect", "LOCK_none"])).stdout, "LOCK_none is free, and nobody waits for it.\n");
  t.like(JSON.parse((await lockweave(["inspect", "LOCK_pay_1", "--json"])).stdout), {
    key: "LOCK_pay_1",
    state: "held",
  });
});

outsideMatrixSerially(
  "release asks first, revokes a held lock, and frees it immediately only with --now",
  async (t) => {
    await program('await obtain(lockKey("pay", 1));');
    const refused = await lockweave(["release", "LOCK_pay_1"]);
    t.is(refused.code, 3);
    t.true(refused.stdout.endsWith("Nothing was changed. To confirm in advance, use `--yes`.\n"));
    t.regex((await admin.get("LOCK_pay_1")) ?? "", /^[0-9a-f]{32}$/);
    const revoked = await lockweave(["release", "LOCK_pay_1", "--yes"]);
    t.is(revoked.code, 0);
    t.regex(revoked.stdout, /\nRevoked: it was held by .*\n$/);
    t.regex((await admin.get("LOCK_pay_1")) ?? "", /^revoked:[0-9a-f]{24}$/);
    const freed = await lockweave(["release", "LOCK_pay_1", "--yes", "--now"]);
    t.is(freed.code, 0);
    t.is(await admin.get("LOCK_pay_1"), null);
    t.is(
      (await lockweave(["release", "LOCK_pay_1", "--yes"])).stdout,
      "LOCK_pay_1 is free: there is nothing to release.\n",
    );
  },
);

inMatrixSerially("--prefix is literal, even if it contains special characters of SCAN", async (t) => {
  const prefix = String.raw`a[bc]?*\:`;
  await admin.set(`${prefix}LOCK_pay`, "somebody", "PX", 60_000);
  await admin.zadd(`${prefix}lockweave:1:queue:{${prefix}mutex}`, 1, "f".repeat(32));
  await admin.set(String.raw`abx\:LOCK_alien`, "somebody", "PX", 60_000);
  const { locks } = await snapshot("--prefix", prefix);
  t.deepEqual(locks.map(({ key }) => key).toSorted(), ["LOCK_pay", "mutex"]);
});

inMatrixSerially("top shows each holder of a shared lock with its own time left", async (t) => {
  await program(
    'await obtain(lockKey("pay", 1), { mode: "read", lockTime: "20s" }); await obtain(lockKey("pay", 1), { mode: "read", lockTime: "10m" });',
  );
  const { locks } = await snapshot();
  const times = (locks[0]?.holders ?? []).map(({ leftMs }) => leftMs).toSorted((one, other) => one - other);
  t.is(times.length, 2);
  t.true((times[0] ?? NaN) <= 20_000 && (times[1] ?? NaN) > 500_000, times.join());
});

inMatrixSerially(
  "release with --prefix frees the lock of a client with that keyPrefix, and no other",
  async (t) => {
    await admin.mset("app:LOCK_pay", "a".repeat(32), "LOCK_pay", "b".repeat(32));
    t.is((await lockweave(["release", "LOCK_pay", "--prefix", "app:", "--yes", "--now"])).code, 0);
    t.deepEqual(await admin.mget("app:LOCK_pay", "LOCK_pay"), [null, "b".repeat(32)]);
  },
);

inMatrixSerially("top shows the function and the duration of a long hold and a long wait", async (t) => {
  const holder = await program('await take("OrderService.pay", "pay", 1);');
  const waiter = await program('void take("OrderService.pay", "pay", 1);');
  await until(() => hasWaiter("LOCK_pay_1"));
  const onlyLock = async (): Promise<Snapshot["locks"][number]> => {
    const [lock] = (await snapshot()).locks;
    if (lock === undefined) throw new Error("top does not show the lock");
    return lock;
  };
  await until(async () => (await onlyLock()).waiters.some(({ forMs = 0 }) => forMs >= 1_000));
  const { holders, waiters } = await onlyLock();
  t.like(holders[0], { process: { pid: holder.pid }, site: "OrderService.pay" });
  t.like(waiters[0], { pid: waiter.pid, site: "OrderService.pay" });
  const { stdout } = await lockweave(["top"]);
  t.regex(stdout, new RegExp(`^1 +\\d+\\.\\d s +held +\\d+\\.\\d s .*${holder.pid} OrderService\\.pay`, "m"));
});

inMatrixSerially("top shows no duration for an unannounced lock that it has not seen before", async (t) => {
  await admin.set("LOCK_pay", "a".repeat(32), "PX", 60_000);
  t.regex((await lockweave(["top"])).stdout, /^0 +- +held +- +\d+\.\d s +LOCK_pay +a{12} +-$/m);
});

inMatrixSerially("top ignores an invalid announcement", async (t) => {
  await admin.set("LOCK_pay", "a".repeat(32), "PX", 60_000);
  for (const said of [
    "no JSON",
    "[]",
    "null",
    '{"host":7,"pid":1e300,"holds":[7,{"key":7},{"key":"LOCK_pay","forMs":-1}]}',
    '{"holds":{}}',
  ]) {
    await admin.set(`lockweave:1:process:${"a".repeat(12)}`, said, "PX", 60_000);
    const [lock] = (await snapshot()).locks;
    t.deepEqual(lock?.holders[0]?.process, { number: "a".repeat(12) }, said);
    t.is(lock?.holders[0]?.forMs, undefined, said);
  }
});

inMatrixSerially("top shortens very long texts, and prints no escape characters", async (t) => {
  const escape = "\u001B[2J";
  await admin.set("LOCK_big", escape + "x".repeat(2_000_000), "PX", 60_000);
  await admin.set("LOCK_pay", "a".repeat(32), "PX", 60_000);
  const said = {
    host: escape + "h".repeat(100_000),
    pid: 7,
    holds: [{ key: "LOCK_pay", site: escape + "s".repeat(100_000), forMs: 5_000 }],
  };
  await admin.set(`lockweave:1:process:${"a".repeat(12)}`, JSON.stringify(said), "PX", 60_000);
  const { stdout } = await lockweave(["top"]);
  t.true(stdout.length < 10_000);
  t.false(stdout.includes("\u001B"));
  t.true(stdout.includes("x... (2000004 bytes)"));
});

outsideMatrixSerially("top and release find the master through Sentinel", async (t) => {
  const group = await startSentinelGroup(1, 1);
  try {
    await group.client().set("LOCK_pay_1", "0".repeat(32), "PX", 60_000);
    const { locks } = await snapshot("--redis", group.url);
    t.deepEqual(
      locks.map(({ key }) => key),
      ["LOCK_pay_1"],
    );
    t.is((await lockweave(["release", "LOCK_pay_1", "--redis", group.url, "--yes", "--now"])).code, 0);
    t.is(await group.client().get("LOCK_pay_1"), null);
  } finally {
    await group.stop();
  }
});

inMatrixSerially("tail reports a lost server, and continues when it is back", async (t) => {
  const other = await startRedis();
  const child = programs.start(["tail", "--redis", other.url]);
  let [output, errors] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (output += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (errors += text));
  await other.client().set("LOCK_one", "0".repeat(32), "PX", 60_000);
  await until(() => output.includes("LOCK_one acquired"));
  await other.stop();
  await until(() => errors.includes("The locks cannot be read: "));
  const again = await startRedisAt(other.port);
  await again.client().set("LOCK_two", "1".repeat(32), "PX", 60_000);
  await until(() => output.includes("LOCK_two acquired"));
  t.is(child.exitCode, null);
  await again.stop();
});

outsideMatrixSerially(
  "an error names an unreachable server without its password, a missing URL, or a missing key",
  async (t) => {
    const { code, stderr } = await lockweave(["top", "--redis", "redis://:secret@127.0.0.1:1"]);
    t.is(code, 2);
    t.regex(stderr, /^lockweave: Cannot read redis:\/\/127\.0\.0\.1:1: .*ECONNREFUSED.*\.\n/);
    t.false(stderr.includes("secret"));
    t.regex(
      (await lockweave(["top"], { REDIS_URL: "" })).stderr,
      /Expected `--redis <url>` or `--postgres <url>`/,
    );
    t.regex((await lockweave(["inspect"])).stderr, /Expected the key of a lock/);
  },
);

inMatrixSerially(
  "inspect reports a lock that the user may not read, instead of calling it free",
  async (t) => {
    await admin.set("LOCK_pay", "0".repeat(32), "PX", 60_000);
    await admin.call("ACL", "SETUSER", "blind", "on", ">secret", "~*", "&*", "+@all", "-getrange");
    const { code, stdout, stderr } = await lockweave([
      "inspect",
      "LOCK_pay",
      "--redis",
      server.url.replace("redis://", "redis://blind:secret@"),
    ]);
    t.is(code, 2);
    t.is(stdout, "");
    t.regex(stderr, /^lockweave: The locks cannot be read: NOPERM/);
    t.is((await snapshot("--match", "LOCK_queue*")).locks.length, 0);
    await admin.set("LOCK_queue_1", "0".repeat(32), "PX", 60_000);
    t.is((await snapshot("--match", "LOCK_queue*")).locks.length, 1);
  },
);

inMatrixSerially("tail exits silently with 0 when its output is closed", async (t) => {
  const child = programs.start(["tail"]);
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => void (errors += text));
  await admin.set("LOCK_pay_0", "0".repeat(32), "PX", 60_000);
  await once(child.stdout, "data");
  child.stdout.destroy();
  const ended = once(child, "exit");
  await admin.set("LOCK_pay_1", "0".repeat(32), "PX", 60_000);
  t.deepEqual(await ended, [0, null]);
  t.is(errors, "");
});

inMatrixSerially(
  "top reads all masters of a quorum, and shows how many of them have each lock",
  async (t) => {
    const others = [await startRedis(), await startRedis()];
    const servers = [server, ...others];
    try {
      for (const one of servers) await one.client().set("LOCK_pay_1", "0".repeat(32), "PX", 60_000);
      await server.client().set("LOCK_pay_2", "1".repeat(32), "PX", 60_000);
      const { locks } = await snapshot(...servers.flatMap(({ url }) => ["--redis", url]));
      t.deepEqual(
        locks.map(({ key, masters }) => [key, masters]),
        [
          ["LOCK_pay_1", 3],
          ["LOCK_pay_2", 1],
        ],
      );
    } finally {
      for (const other of others) await other.stop();
    }
  },
);

inMatrixSerially(
  "top names a dead master of a quorum and reads the others, and release needs a majority",
  async (t) => {
    const others = [await startRedis(), await startRedis()];
    const urls = [server, ...others].flatMap(({ url }) => ["--redis", url]);
    try {
      await others[0]?.stop();
      for (const one of [server, others[1]])
        await one?.client().set("LOCK_pay_1", "0".repeat(32), "PX", 60_000);
      const { stdout, stderr } = await lockweave(["top", "--json", ...urls]);
      t.regex(
        stderr,
        /^lockweave: Cannot read redis:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED.*\. Lockweave reads the other masters\.\n$/,
      );
      t.like(JSON.parse(stdout), { masters: 3, unanswered: 1, locks: [{ key: "LOCK_pay_1", masters: 2 }] });
      t.regex((await lockweave(["inspect", "LOCK_pay_1", ...urls])).stdout, /LOCK_pay_1/);
      // The last master started a short time ago, so it does not grant locks yet. The first one may.
      const refused = await lockweave(["release", "LOCK_pay_1", "--yes", "--now", ...urls]);
      t.is(refused.code, 2);
      t.regex(
        refused.stderr,
        /\nlockweave: LOCK_pay_1: .*only [01] of 3 masters agreed, but 2 must.*\nSee .*\n$/,
      );
      await others[1]?.stop();
      const alone = await lockweave(["top", "--json", ...urls]);
      t.deepEqual([alone.code, alone.stdout], [2, ""]);
      t.regex(alone.stderr, /Cannot read .*: .*ECONNREFUSED.*\.\n/);
    } finally {
      for (const other of others) await other.stop();
    }
  },
);

inMatrixSerially("top reads a whole cluster through one node", async (t) => {
  const cluster = await startRedisCluster(3);
  try {
    const client = cluster.cluster();
    for (let index = 0; index < 30; index += 1)
      await client.set(`LOCK_pay_${index}`, "0".repeat(32), "PX", 60_000);
    const [node] = client.nodes("master");
    const { host, port } = node?.options ?? {};
    const { locks } = await snapshot("--redis", `redis://${host}:${port}`);
    t.is(locks.length, 30);
  } finally {
    await cluster.stop();
  }
});

outsideMatrixSerially(
  "only a process with announce: true writes an announcement, which expires within 60 s",
  async (t) => {
    await program('await obtain(lockKey("pay", 1));');
    const [name = ""] = await admin.keys("lockweave:1:process:*");
    t.regex(name, /^lockweave:1:process:[0-9a-f]{12}$/);
    t.is(name.slice(-12), ((await admin.get("LOCK_pay_1")) ?? "").slice(0, 12));
    const left = await admin.pttl(name);
    t.true(left > 0 && left <= 60_000);
    await program('await obtain(lockKey("pay", 2));', `{ redis: ${JSON.stringify(server.url)} }`);
    t.is((await admin.keys("lockweave:1:process:*")).length, 1);
  },
);

async function announcedKeys(): Promise<string[][]> {
  const names = await admin.keys("lockweave:1:process:*");
  const said = await Promise.all(names.map((name) => admin.get(name)));
  return said
    .map((text) => (JSON.parse(text ?? "{}") as { holds?: { key: string }[] }).holds ?? [])
    .map((holds) => holds.map(({ key }) => key))
    .toSorted(([one = ""], [other = ""]) => one.localeCompare(other));
}

inMatrixSerially("two configurations in one process each announce only their own holds", async (t) => {
  await program(`
    await obtain(lockKey("one"));
    for (const file of Object.keys(require.cache)) if (!file.includes("node_modules")) delete require.cache[file];
    delete globalThis[Symbol.for("lockweave.copies")]; // Otherwise both share one configuration.
    const other = require(${JSON.stringify(join(PACKAGE, "dist/runtime/index.js"))});
    other.configure({ woven: false, redis: ${JSON.stringify(server.url)}, announce: true });
    await other.obtain(other.lockKey("two"));`);
  await until(async () => (await announcedKeys()).filter((keys) => keys.length > 0).length === 2);
  t.deepEqual(await announcedKeys(), [["LOCK_one"], ["LOCK_two"]]);
});

inMatrixSerially("a process that shuts down still announces what it holds", async (t) => {
  await program(`
    await obtain(lockKey("pay"));
    const { shutdown } = require(${JSON.stringify(join(PACKAGE, "dist/runtime/index.js"))});
    void shutdown({ patience: "60s" });`);
  await until(async () => (await announcedKeys()).some((keys) => keys.includes("LOCK_pay")));
  t.is(await admin.exists("LOCK_pay"), 1);
});
