import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import test, { type ExecutionContext } from "ava";
import { runCommand } from "./support/commands";
import { applyMigration } from "../runtime/stores/postgres/apply-migration";
import { startPostgres } from "./support/postgres-server";
import { startRedis, type RedisServer } from "./support/redis-server";
import { story } from "./support/story";
import { inMatrix, outsideMatrix, outsideMatrixSerially } from "./support/suites";

const run = promisify(execFile);
const root = resolve(__dirname, "..");
const EXAMPLES = join(root, "examples");

let redis: RedisServer;

test.before(async () => {
  redis = await startRedis();
});
test.after.always(async () => {
  await redis.stop();
  if (unprotected !== undefined) rmSync(join(await unprotected, ".."), { recursive: true });
});

/**
 * The output of an example if the machine stalled for longer than its wait budget or its lock time of one second. A caller
 * got no reply from Redis, or a writer of `fencing` lost its lock before it was stopped.
 */
const STALLED =
  /LOCK_UNREACHABLE|the store did not grant the lock|a writer failed before it read the balance: LOCK_LOST|writes 105: LOCK_LOST/;

/** Runs an example, and resolves to what it prints. */
async function play(file: string, env: NodeJS.ProcessEnv = {}, directory = EXAMPLES): Promise<string> {
  return await untilNotStalled(env, () => playOnce(file, env, directory));
}

async function playOnce(file: string, env: NodeJS.ProcessEnv, directory = EXAMPLES): Promise<string> {
  const { REDIS_URL: _, POSTGRES_URL: __, ...rest } = process.env;
  const { stdout, stderr } = await run(process.execPath, [join(directory, file)], {
    env: { ...rest, ...env },
  });
  if (stderr !== "") throw new Error(`${file} wrote to stderr:\n${stderr}`);
  if (STALLED.test(stdout)) throw new Error(`${file} stalled:\n${stdout}`);
  return stdout;
}

/** Runs an example again, in an empty database, if the machine stalled. */
async function untilNotStalled<T>({ REDIS_URL }: NodeJS.ProcessEnv, scenario: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await scenario();
    } catch (error) {
      if (REDIS_URL === undefined || !STALLED.test(String(error))) throw error;
      await run("redis-cli", ["-u", REDIS_URL, "flushdb"]);
    }
  }
}

let unprotected: Promise<string> | undefined;

/** Builds the examples once, without the comment of `stock` and the attribute of `fencing`. Resolves to their directory. */
function withoutProtection(): Promise<string> {
  unprotected ??= buildWithoutProtection();
  return unprotected;
}

async function buildWithoutProtection(): Promise<string> {
  const directory = copyOfExamples((file) => !isEmitted(file));
  remove(directory, "stock/shop.mts", / *\/\*\* @redisLock .*\*\/\n/);
  remove(directory, "fencing/account.mts", / fencing=true/);
  await compile(directory);
  return directory;
}

async function compile(directory: string): Promise<void> {
  const { code, stdout } = await runCommand("tspc", directory, []);
  if (code !== 0) throw new Error(stdout);
}

function remove(directory: string, file: string, words: RegExp): void {
  const text = readFileSync(join(directory, file), "utf8");
  const rest = text.replace(words, "");
  if (rest === text) throw new Error(`${file} has no ${String(words)}`);
  writeFileSync(join(directory, file), rest);
}

outsideMatrix("the committed output of the examples equals what tspc emits", async (t) => {
  const directory = copyOfExamples((file) => !isEmitted(file));
  t.teardown(() => rmSync(join(directory, ".."), { recursive: true }));
  await compile(directory);
  const emitted = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter(isEmitted);
  t.true(emitted.length >= 8);
  for (const file of emitted) {
    t.is(readFileSync(join(EXAMPLES, file), "utf8"), readFileSync(join(directory, file), "utf8"), file);
  }
});

for (const server of ["the memory store", "Redis", "PostgreSQL"] as const) {
  const inSuite = server === "the memory store" ? outsideMatrix : inMatrix;
  const envOf: Readonly<Record<typeof server, (t: ExecutionContext) => Promise<NodeJS.ProcessEnv>>> = {
    "the memory store": () => Promise.resolve({}),
    Redis: () => Promise.resolve({ REDIS_URL: `${redis.url}/0` }),
    PostgreSQL: async (t) => {
      const { url, stop } = await startPostgres();
      t.teardown(stop);
      await applyMigration(url, "lockweave", "the server of the example");
      return { POSTGRES_URL: url };
    },
  };

  inSuite(`order-controller: on ${server}, the second client waits for the first one`, async (t) => {
    const lines = story(await play("order-controller/main.mjs", await envOf[server](t)));
    const retry = lines.slice(lines.findIndex((line) => line.includes("The work takes 6 s")) + 1);
    const name = "LOCK_retryOrder_Test001 (OrderController.testRetry)";
    const waits = `${name} ID waits`;
    t.deepEqual(
      retry.filter((line) => line !== waits && !line.startsWith("client")),
      [
        `${name} ID holds the lock after N ms`,
        "testRetry Test001: works",
        "testRetry Test001: done",
        `${name} ID released after N ms`,
        `${name} ID holds the lock after N ms`,
        "testRetry Test001: works",
        "testRetry Test001: done",
        `${name} ID released after N ms`,
      ],
    );
    // The second request may wait before the store has replied to the first.
    t.is(retry.filter((line) => line === waits).length, 1);
    t.true(retry.indexOf(waits) < retry.indexOf("testRetry Test001: done"));
    t.deepEqual(lines.filter((line) => line.startsWith("client")).toSorted(), [
      "client A gets 200: testBean 7/Test001: ok",
      'client A gets 200: testJson {"orderNo":"Test001","user":{"id":7}}: ok',
      "client A gets 200: testRetry Test001: ok",
      "client A gets 200: testValue Test001: ok",
      "client B gets 200: testRetry Test001: ok",
      "client B gets 200: testValue Test001: ok",
    ]);
    t.true(lines.includes("LOCK_payOrder_Test001 (OrderController.testValue) ID waits"));
    t.true(
      lines.includes("LOCK_userOrder_7,Test001 (OrderController.testBean) ID holds the lock after N ms"),
    );
    t.true(lines.includes("LOCK_payOrder_Test001 (OrderController.testJson) ID holds the lock after N ms"));
  });
}

outsideMatrix("npm start: reports that REDIS_URL and POSTGRES_URL are both set", async (t) => {
  const env = { ...process.env, REDIS_URL: redis.url, POSTGRES_URL: "postgres://localhost/database" };
  const failure = await t.throwsAsync(run(process.execPath, [join(EXAMPLES, "start.mjs")], { env }));
  t.regex(
    failure?.message ?? "",
    /\nBoth REDIS_URL and POSTGRES_URL are set\. Fix: set only one of them\.\n$/,
  );
});

inMatrix("npm start: names the command if the schema is missing in PostgreSQL", async (t) => {
  const { url, stop } = await startPostgres();
  t.teardown(stop);
  const { REDIS_URL: _, ...rest } = process.env;
  const env = { ...rest, POSTGRES_URL: url };
  const failed = run(process.execPath, [join(EXAMPLES, "start.mjs")], { env });
  const failure = await t.throwsAsync(failed, { instanceOf: Error });
  const { stdout } = failure as Error & { readonly stdout: string };
  t.regex(stdout, /Running the order controller on PostgreSQL:/);
  t.regex(stdout, /client [AB] gets 409: .* Fix: npx lockweave postgres --apply <url>\n$/);
});

for (const server of ["the memory store", "Redis"]) {
  // The examples use the same keys, so each gets its own database.
  const inSuite = server === "Redis" ? inMatrix : outsideMatrix;
  const env = (database = 0): NodeJS.ProcessEnv =>
    server === "Redis" ? { REDIS_URL: `${redis.url}/${database}` } : {};

  inSuite(`reentrant: on ${server}, nested calls reenter the lock and a sibling call waits`, async (t) => {
    t.deepEqual((await play("reentrant/reentrant.cjs", env(1))).trim().split("\n"), [
      "transfer of 5 + 25 begins",
      "  5 withdrawn, 95 left",
      "  10 withdrawn, 85 left",
      "  10 withdrawn, 75 left",
      "  5 withdrawn, 70 left",
      "transfer of 5 + 25 ends",
      "transfer of 7 begins",
      "  7 withdrawn, 63 left",
      "transfer of 7 ends",
    ]);
  });

  inSuite(`by-hand: on ${server}, withLock() and obtain() lock without a tag`, async (t) => {
    t.deepEqual((await play("by-hand/by-hand.mjs", env(2))).trim().split("\n"), [
      "withLock: paid",
      "withLock: holds LOCK_payOrder_Test001, fencing token drawn: true",
      "withLock: returned receipt",
      "await using: holds LOCK_payOrder_Test001",
      "a second caller that skips its body: undefined",
      "a second caller that waits: LOCK_WAIT_TIME_OUT",
      "after the block: LOCK_payOrder_Test001 is free again",
    ]);
  });

  inSuite(`current-lock: on ${server}, the body reads its lock`, async (t) => {
    t.is(await play("current-lock/current-lock.mjs", env(3)), "acme: 7, fencing token drawn: true\n");
  });

  inSuite(`cache: on ${server}, readers run together and a writer runs alone`, async (t) => {
    t.deepEqual((await play("cache/main.mjs", env(6))).trimEnd().split("\n"), [
      "0 readers while the prices are replaced",
      "0 readers while the prices are replaced",
      "before: 6, 6, 6, 6",
      "after: 60, 60",
      "several read at once: true",
    ]);
  });

  inSuite(`rate: on ${server}, permits limit how many bodies run at once`, async (t) => {
    t.is(await play("rate/main.mjs", env(7)), "12 mails over at most 3 connections\n");
  });

  inSuite(`transfer: on ${server}, a thousand transfers in all directions keep the sum`, async (t) => {
    t.deepEqual((await play("transfer/main.mjs", env(8))).trimEnd().split("\n"), [
      "with the comment: 1000 transfers, a total of 3000",
      "without it: another total",
    ]);
  });

  inSuite(`telemetry: on ${server}, each lock becomes a span`, async (t) => {
    const lines = (await play("telemetry/main.mjs", env(5))).trimEnd().split("\n");
    const withoutDetails = lines.map((line) => line.replace(/(LOCK_WAIT_TIME_OUT): .*/, "$1"));
    t.deepEqual(withoutDetails.toSorted(), [
      "LockWaitTimeoutError: LOCK_WAIT_TIME_OUT",
      "Test001 is paid",
      "Test002 is paid",
      "lock LOCK_payOrder_Test001: grant, renew; released",
      "lock LOCK_payOrder_Test001: grant; released",
      "lock LOCK_payOrder_Test001: wait; given up",
      "lock LOCK_payOrder_Test002: grant; released",
    ]);
  });
}

outsideMatrixSerially(
  "stock: four processes oversell without the comment and end at exactly zero with it",
  async (t) => {
    const [careless = "", locked = ""] = (await play("stock/main.mjs", { REDIS_URL: redis.url })).split("\n");
    t.true(soldOf(careless) > 100, careless);
    t.is(
      locked,
      "with the comment:    100 in stock, 200 requests: 100 sold, 100 refused, 0 left in the record",
    );
  },
);

outsideMatrixSerially("stock: oversells if the comment is removed", async (t) => {
  const env = { REDIS_URL: redis.url };
  const [, unlocked = ""] = (await play("stock/main.mjs", env, await withoutProtection())).split("\n");
  t.true(soldOf(unlocked) > 100, unlocked);
});

/** The lines of one of the two runs of `fencing`, without the numbers that differ between runs. */
function fencingStory(output: string, title: string): string[] {
  const lines = output
    .split("\n")
    .map((line) => line.replaceAll(/\d{16}/g, "N").replace(/[\d.]+ s /, "N s "));
  return lines.slice(lines.indexOf(title) + 1).slice(0, 4);
}

const UP_TO_THE_LATE_WRITE = [
  "  writer 1 holds the lock, reads 100, and is stopped (SIGSTOP)",
  "  writer 2 acquires the lock N s later, reads 100, and writes 105: done",
];
const THE_LATE_WRITE_LANDS = [
  ...UP_TO_THE_LATE_WRITE,
  "  writer 1 continues (SIGCONT) and writes 110 too late: LOCK_LOST",
  "  the balance is 110, the late write overwrote the deposit of writer 2",
];

outsideMatrixSerially(
  "fencing: the late write of a stopped writer succeeds without the token and fails with it",
  async (t) => {
    const output = await play("fencing/main.mjs", { REDIS_URL: `${redis.url}/4` });
    t.deepEqual(fencingStory(output, "Without the token:"), THE_LATE_WRITE_LANDS);
    t.deepEqual(fencingStory(output, "With the token:"), [
      ...UP_TO_THE_LATE_WRITE,
      "  writer 1 continues (SIGCONT) and writes 110 too late: the ledger rejects the write: token N is older than N",
      "  the balance is 105, the late write was rejected",
    ]);
  },
);

outsideMatrixSerially(
  "fencing: the late write succeeds if the attribute is removed from the tag",
  async (t) => {
    const env = { REDIS_URL: `${redis.url}/4` };
    const output = await play("fencing/main.mjs", env, await withoutProtection());
    t.deepEqual(fencingStory(output, "With the token:"), THE_LATE_WRITE_LANDS);
  },
);

for (const example of ["stock", "fencing"]) {
  outsideMatrix(`${example}: reports that it needs a Redis server`, async (t) => {
    const { REDIS_URL: _, ...env } = process.env;
    const main = join(EXAMPLES, example, "main.mjs");
    const failure = await t.throwsAsync(run(process.execPath, [main], { env }));
    t.regex(failure?.message ?? "", /needs a real server: REDIS_URL=/);
  });
}

function soldOf(line: string): number {
  return Number(/(\d+) sold/.exec(line)?.[1]);
}

function isEmitted(file: string): boolean {
  return /\.[mc]js$/.test(file);
}

/** Copies the examples to a directory where `lockweave` and `ioredis` resolve as for a user. */
function copyOfExamples(filter: (file: string) => boolean): string {
  const home = mkdtempSync(join(tmpdir(), "lockweave-examples-"));
  const directory = join(home, "examples");
  cpSync(EXAMPLES, directory, { recursive: true, filter });
  symlinkSync(join(root, "node_modules"), join(home, "node_modules"));
  symlinkSync(join(root, "dist"), join(home, "dist"));
  symlinkSync(join(root, "package.json"), join(home, "package.json"));
  return directory;
}

outsideMatrix("cron: if several machines start a job one after the other, only one runs it", async (t) => {
  const env = { REDIS_URL: `${redis.url}/9` };
  const machines = await untilNotStalled(env, async () => {
    const outputs: string[] = [];
    for (let machine = 0; machine < 3; machine += 1) outputs.push(await playOnce("cron/cron.mjs", env));
    return outputs.map((output) => output.trim());
  });
  t.deepEqual(machines, [
    "wrote the report for 2026-01-31",
    "another machine wrote the report",
    "another machine wrote the report",
  ]);
  t.is((await play("cron/cron.mjs")).trim(), "wrote the report for 2026-01-31");
});
