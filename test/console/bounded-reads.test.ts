import { spawn } from "node:child_process";
import { join } from "node:path";
import test from "ava";
import type { Redis } from "ioredis";
import { PACKAGE } from "../hosts/project";
import { startRedis, type RedisServer } from "../support/redis-server";
import { ofScript } from "../support/terminal";
import { until } from "../support/until";
import { Programs } from "./programs";
import { inMatrixSerially } from "../support/suites";

// The console uses a bounded number of bytes and commands, whatever Redis contains.

const CLI = join(PACKAGE, "dist/transformer/cli/main.js");
const BYTES = 100_000_000;
const LOCKS = 200_000;

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

/** The bytes that the server sends while something runs. */
async function sentWhile(run: () => Promise<unknown>): Promise<number> {
  const sent = async (): Promise<number> =>
    Number(/^total_net_output_bytes:(\d+)/m.exec(await admin.info("stats"))?.[1]);
  const before = await sent();
  await run();
  return (await sent()) - before;
}

inMatrixSerially(
  "top, inspect, and release do not read very long holds and announcements as a whole",
  async (t) => {
    const id = "a".repeat(32);
    await admin.set("LOCK_pay", id, "PX", 600_000);
    await admin.setrange(`lockweave:1:process:${id.slice(0, 12)}`, BYTES, "x");
    await admin.setrange("LOCK_long", BYTES, "x");
    for (const args of [["top"], ["top", "--json"], ["inspect", "LOCK_pay"]]) {
      const sent = await sentWhile(async () => {
        const { code, stdout } = await programs.lockweave(args);
        t.is(code, 0);
        t.regex(stdout, /LOCK_pay/);
      });
      t.true(sent < 1_000_000, `${args.join(" ")}: ${sent} bytes`);
    }
    const sent = await sentWhile(() => programs.lockweave(["release", "LOCK_long", "--now", "--yes"]));
    t.true(sent < 3_000_000, `${sent} bytes`);
    t.is(await admin.exists("LOCK_long"), 1);
  },
);

async function fill(): Promise<void> {
  await admin.call(
    "EVAL",
    `for i = 1, ${LOCKS} do redis.call("SET", "LOCK_many_" .. i, string.format("%032x", i)) end
redis.call("ZADD", "lockweave:1:queue:{LOCK_many_${LOCKS}}", 1, string.rep("f", 32))`,
    0,
  );
}

inMatrixSerially(
  "top shows 10,000 of 200,000 locks, those with waiters first, and prints how many it left out",
  async (t) => {
    await fill();
    const { stdout } = await programs.lockweave(["top", "--json"]);
    const { locks, leftOut, isWhole, commands } = JSON.parse(stdout) as {
      locks: { key: string; waiting: number }[];
      leftOut: number;
      isWhole: boolean;
      commands: number;
    };
    t.like(locks[0], { key: `LOCK_many_${LOCKS}`, waiting: 1 });
    t.true(isWhole && locks.length >= 10_000 && locks.length <= 10_001, String(locks.length));
    t.true(leftOut >= LOCKS - 10_000 && leftOut < LOCKS, String(leftOut));
    t.true(commands < 45_000, String(commands));
    const text = (await programs.lockweave(["top"])).stdout;
    t.regex(text, /About 19\d{4} more locks are not shown\. Use `--match` to select locks\.\n/);
  },
);

inMatrixSerially("top in a terminal draws its first screen with a bounded number of commands", async (t) => {
  await fill();
  const command = [process.execPath, CLI, "top", "--redis", server.url];
  const terminal = spawn("script", ofScript(command));
  let shown = "";
  terminal.stdout.setEncoding("utf8").on("data", (text: string) => void (shown += text));
  await until(() => shown.includes(" keys scanned"));
  const [, commands = ""] = /(\d+) commands in/.exec(shown) ?? [];
  terminal.kill();
  t.true(Number(commands) < 45_000, shown);
});
