import test from "ava";
import type { Redis } from "ioredis";
import { openHome, type Deployment } from "../../transformer/cli/live/deployment";
import { LockScanner } from "../../transformer/cli/live/lock-scanner";
import { take } from "../../transformer/cli/live/take";
import { Releases } from "../../transformer/cli/live/ui/releases";
import { UsageError } from "../../transformer/verify/usage-error";
import { startRedis, type RedisServer } from "../support/redis-server";
import { until } from "../support/until";
import { forbiddenIn, hostileTexts, PIECES } from "./hostile";
import { Programs } from "./programs";

// A Redis in which somebody else has written whatever he likes: the console prints it without harm, and ends with no stack trace.

let server: RedisServer;
let admin: Redis;
let programs: Programs;
let home: Deployment;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  home = await openHome([server.url]);
  programs = new Programs(server.url);
});
test.afterEach.always(async () => {
  await programs.end();
  await admin.flushall();
});
test.after.always(async () => {
  home.close();
  await server.stop();
});

/** All pieces at once, but for the one that no argument of a process can hold. */
const ALL = PIECES.join("").replaceAll("\0", "");
const TEXTS = [...hostileTexts(60), ALL];
const OPTIONS = { match: "LOCK_*", prefix: "" };
const PROCESS = "a".repeat(12);
const ID = "a".repeat(32);

/** Keys, values, queues and announcements. */
async function writeHostileLocks(): Promise<void> {
  for (const [index, text] of TEXTS.entries()) {
    const number = index.toString(16).padStart(12, "b");
    const id = number + "0".repeat(20);
    await admin.set(`LOCK_${text}`, index % 2 === 0 ? text : id, "PX", 600_000);
    await admin.zadd(`lockweave:2:queue:{LOCK_${text}}`, 1, `${id} ${text}`, 2, text);
    const locks = [{ key: `LOCK_${text}`, site: text, forMs: 5_000 }];
    const announcement = { host: text, pid: 7, version: text, holds: locks, waits: locks };
    await admin.set(`lockweave:2:process:${number}`, JSON.stringify(announcement), "PX", 60_000);
  }
}

test.serial("no command prints what would control a terminal", async (t) => {
  await writeHostileLocks();
  const outputs: Record<string, string> = {};
  const run = async (...args: readonly string[]): Promise<string> => {
    const { stdout, stderr } = await programs.lockweave(args);
    return (outputs[args.join(" ")] = stdout + stderr);
  };
  t.is((await run("top")).split("\n").length, TEXTS.length + 4);
  const { locks } = JSON.parse(await run("top", "--json")) as { locks: { key: string }[] };
  t.deepEqual(locks.map(({ key }) => key).toSorted(), TEXTS.map((text) => `LOCK_${text}`).toSorted());
  const key = `LOCK_${ALL}`;
  await run("inspect", key);
  t.is((JSON.parse(await run("inspect", key, "--json")) as { key: string }).key, key);
  await run("release", key);
  t.regex(await run("release", key, "--now", "--yes"), /\nFreed: it was held by /);
  await run("release", key);
  await run(key);
  await run("top", `--${key}`);
  await run("top", key);
  await run("top", "--redis", key);
  await run("ui", "--port", key);
  for (const [command, output] of Object.entries(outputs)) t.deepEqual(forbiddenIn(output), [], command);
});

test.serial("tail and ui print nothing that would control a terminal", async (t) => {
  for (const args of [["tail"], ["tail", "--json"]]) {
    await admin.flushall();
    const child = programs.start(args);
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => void (output += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => void (output += text));
    await admin.set("LOCK_first", ID);
    await until(() => output.includes("LOCK_first"));
    await writeHostileLocks();
    await until(() => output.split("\n").length > 2 * TEXTS.length);
    t.deepEqual(forbiddenIn(output), []);
  }
});

/** What the console sends. */
const COMMANDS = [
  "info",
  "scan",
  "dbsize",
  "getrange",
  "pttl",
  "zcount",
  "zrangebyscore",
  "strlen",
  "evalsha",
];

/** Values that no process of ours announces. */
const WRONG: Readonly<Record<string, (name: string) => Promise<unknown>>> = {
  "a list": (name) => admin.rpush(name, "a"),
  "a hash": (name) => admin.hset(name, "a", "b"),
  "a sorted set": (name) => admin.zadd(name, 1, "a"),
  "a stream": (name) => admin.xadd(name, "*", "a", "b"),
  "no JSON": (name) => admin.set(name, "{"),
  "bytes that are no text": (name) => admin.set(name, Buffer.from([0xff, 0x00, 0xfe])),
};

for (const [what, write] of Object.entries(WRONG)) {
  test.serial(`${what} in the place of an announcement hides no lock`, async (t) => {
    await admin.set("LOCK_pay", ID, "PX", 600_000);
    await write(`lockweave:2:process:${PROCESS}`);
    const { locks } = await new LockScanner(OPTIONS).look(home);
    t.deepEqual(locks[0]?.holders[0]?.process, { number: PROCESS });
    t.is((await new LockScanner(OPTIONS).lookAtOne(home, "LOCK_pay"))?.row.key, "LOCK_pay");
  });

  test.serial(`${what} in the place of a lock and its queue is shown, and left alone`, async (t) => {
    await write("LOCK_pay");
    await write("lockweave:2:queue:{LOCK_pay}");
    t.is((await new LockScanner(OPTIONS).lookAtOne(home, "LOCK_pay"))?.row.state, "held");
    await new LockScanner(OPTIONS).look(home);
    t.is(typeof (await new Releases(home, OPTIONS).ask("LOCK_pay", false)), "string");
    t.is(await admin.exists("LOCK_pay"), 1);
  });
}

test.serial("a sorted set in the place of an announcement ends no command with a stack trace", async (t) => {
  await admin.set("LOCK_pay", ID, "PX", 600_000);
  await admin.zadd(`lockweave:2:process:${PROCESS}`, 1, "a");
  const { code, stdout, stderr } = await programs.lockweave(["top"]);
  t.deepEqual([code, stderr], [0, ""]);
  t.regex(stdout, new RegExp(`LOCK_pay +${PROCESS}`));
});

/** Whatever the command is, it ends as it should, or with a message for its user. */
async function endsWithMessage(run: Promise<unknown>): Promise<string> {
  return await run.then(
    () => "",
    (error: unknown) => (error instanceof UsageError ? error.message : `a fault: ${String(error)}`),
  );
}

const BLIND = "redis://blind:secret@";

for (const command of COMMANDS) {
  test.serial(`a user without ${command} gets a message`, async (t) => {
    await admin.set("LOCK_pay", ID, "PX", 600_000);
    await admin.call("ACL", "SETUSER", "blind", "reset", "on", ">secret", "~*", "&*", "+@all", `-${command}`);
    const url = server.url.replace("redis://", BLIND);
    const told = await endsWithMessage(
      (async () => {
        const blind = await openHome([url]);
        try {
          await new LockScanner(OPTIONS).look(blind);
          const seen = await new LockScanner(OPTIONS).lookAtOne(blind, "LOCK_pay");
          if (seen !== undefined) await take(blind, "", seen, true);
        } finally {
          blind.close();
        }
      })(),
    );
    t.regex(told, command === "strlen" ? /^$/ : /NOPERM/);
  });
}

test.serial("a command that is forbidden ends with the message and no stack trace", async (t) => {
  await admin.call("ACL", "SETUSER", "blind", "reset", "on", ">secret", "~*", "&*", "+@all", "-dbsize");
  const { code, stderr } = await programs.lockweave([
    "top",
    "--redis",
    server.url.replace("redis://", BLIND),
  ]);
  t.is(code, 2);
  t.regex(stderr, /^lockweave: The locks cannot be read: NOPERM .*\nSee `lockweave --help`\.\n$/);
});

test.serial("a user who may not read announcements sees the locks", async (t) => {
  await admin.set("LOCK_pay", ID, "PX", 600_000);
  const keys = ["~LOCK_*", "~lockweave:2:queue*"];
  await admin.call("ACL", "SETUSER", "blind", "reset", "on", ">secret", ...keys, "&*", "+@all");
  const blind = await openHome([server.url.replace("redis://", BLIND)]);
  const { locks } = await new LockScanner(OPTIONS).look(blind);
  blind.close();
  t.deepEqual(locks[0]?.holders[0]?.process, { number: PROCESS });
});
