import test from "ava";
import type { Redis } from "ioredis";
import { openDeployment } from "../../transformer/console/open-deployment";
import type { Deployment } from "../../transformer/console/port/deployment";
import { LockScanner } from "../../transformer/console/lock-scanner";
import { releaseByForce } from "../../transformer/console/force-release";
import { Releases } from "../../transformer/console/ui/releases";
import { UsageError } from "../../transformer/terminal/usage-error";
import { startRedis, type RedisServer } from "../support/redis-server";
import { until } from "../support/until";
import { forbiddenIn, hostileTexts, PIECES } from "../cli/hostile";
import { Programs } from "./programs";
import { inMatrixSerially } from "../support/suites";

// The console prints whatever another program wrote to Redis without harm, and never ends with a stack trace.

let server: RedisServer;
let admin: Redis;
let programs: Programs;
let deployment: Deployment;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  deployment = await openDeployment({ redis: [server.url], match: "*", prefix: "" });
  programs = new Programs(server.url);
});
test.afterEach.always(async () => {
  await programs.end();
  await admin.flushall();
});
test.after.always(async () => {
  deployment.close();
  await server.stop();
});

/** All pieces at once, except NUL, which no argument of a process can contain. */
const ALL = PIECES.join("").replaceAll("\0", "");
const TEXTS = [...hostileTexts(60), ALL];
const PROCESS = "a".repeat(12);
const ID = "a".repeat(32);

/** Writes hostile keys, values, queues, and announcements. */
async function writeHostileLocks(): Promise<void> {
  for (const [index, text] of TEXTS.entries()) {
    const number = index.toString(16).padStart(12, "b");
    const id = number + "0".repeat(20);
    await admin.set(`LOCK_${text}`, index % 2 === 0 ? text : id, "PX", 600_000);
    await admin.zadd(`lockweave:1:queue:{LOCK_${text}}`, 1, `${id} ${text}`, 2, text);
    const locks = [{ key: `LOCK_${text}`, site: text, forMs: 5_000 }];
    const announcement = { host: text, pid: 7, version: text, holds: locks, waits: locks };
    await admin.set(`lockweave:1:process:${number}`, JSON.stringify(announcement), "PX", 60_000);
  }
}

inMatrixSerially("no command prints terminal control characters", async (t) => {
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

inMatrixSerially("tail prints no terminal control characters, as text or as JSON", async (t) => {
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

/** The Redis commands that the console sends. */
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

/** Values that no Lockweave process announces. */
const WRONG: Readonly<Record<string, (name: string) => Promise<unknown>>> = {
  "a list": (name) => admin.rpush(name, "a"),
  "a hash": (name) => admin.hset(name, "a", "b"),
  "a sorted set": (name) => admin.zadd(name, 1, "a"),
  "a stream": (name) => admin.xadd(name, "*", "a", "b"),
  "invalid JSON": (name) => admin.set(name, "{"),
  "bytes that are not text": (name) => admin.set(name, Buffer.from([0xff, 0x00, 0xfe])),
};

for (const [what, write] of Object.entries(WRONG)) {
  inMatrixSerially(`the scanner still shows a lock if its holder's announcement is ${what}`, async (t) => {
    await admin.set("LOCK_pay", ID, "PX", 600_000);
    await write(`lockweave:1:process:${PROCESS}`);
    const { locks } = await new LockScanner(deployment).look();
    t.deepEqual(locks[0]?.holders[0]?.process, { number: PROCESS });
    t.is((await new LockScanner(deployment).lookAtOne("LOCK_pay"))?.row.key, "LOCK_pay");
  });

  inMatrixSerially(
    `the scanner shows ${what} in place of a lock and its queue as held, and release refuses it`,
    async (t) => {
      await write("LOCK_pay");
      await write("lockweave:1:queue:{LOCK_pay}");
      t.is((await new LockScanner(deployment).lookAtOne("LOCK_pay"))?.row.state, "held");
      await new LockScanner(deployment).look();
      t.is(typeof (await new Releases(deployment).ask("LOCK_pay", false)), "string");
      t.is(await admin.exists("LOCK_pay"), 1);
    },
  );
}

inMatrixSerially("top lists a lock without an error if an announcement is a sorted set", async (t) => {
  await admin.set("LOCK_pay", ID, "PX", 600_000);
  await admin.zadd(`lockweave:1:process:${PROCESS}`, 1, "a");
  const { code, stdout, stderr } = await programs.lockweave(["top"]);
  t.deepEqual([code, stderr], [0, ""]);
  t.regex(stdout, new RegExp(`LOCK_pay +${PROCESS}`));
});

/** Returns the message of a `UsageError`, or an empty text if there is no error. Marks any other error as a fault. */
async function endsWithMessage(run: Promise<unknown>): Promise<string> {
  return await run.then(
    () => "",
    (error: unknown) => (error instanceof UsageError ? error.message : `a fault: ${String(error)}`),
  );
}

const BLIND = "redis://blind:secret@";

for (const command of COMMANDS) {
  inMatrixSerially(
    `the console ${command === "strlen" ? "works" : "reports NOPERM"} for a Redis user without ${command}`,
    async (t) => {
      await admin.set("LOCK_pay", ID, "PX", 600_000);
      await admin.call(
        "ACL",
        "SETUSER",
        "blind",
        "reset",
        "on",
        ">secret",
        "~*",
        "&*",
        "+@all",
        `-${command}`,
      );
      const url = server.url.replace("redis://", BLIND);
      const message = await endsWithMessage(
        (async () => {
          const blind = await openDeployment({ redis: [url], match: "*", prefix: "" });
          try {
            await new LockScanner(blind).look();
            const seen = await new LockScanner(blind).lookAtOne("LOCK_pay");
            if (seen !== undefined) await releaseByForce(blind, seen, true);
          } finally {
            blind.close();
          }
        })(),
      );
      t.regex(message, command === "strlen" ? /^$/ : /NOPERM/);
    },
  );
}

inMatrixSerially("top prints the NOPERM message and no stack trace if Redis forbids a command", async (t) => {
  await admin.call("ACL", "SETUSER", "blind", "reset", "on", ">secret", "~*", "&*", "+@all", "-dbsize");
  const { code, stderr } = await programs.lockweave([
    "top",
    "--redis",
    server.url.replace("redis://", BLIND),
  ]);
  t.is(code, 2);
  t.regex(stderr, /^lockweave: The locks cannot be read: NOPERM .*\n$/);
});

inMatrixSerially("a Redis user who may not read announcements still sees the locks", async (t) => {
  await admin.set("LOCK_pay", ID, "PX", 600_000);
  const keys = ["~LOCK_*", "~lockweave:1:queue*"];
  await admin.call("ACL", "SETUSER", "blind", "reset", "on", ">secret", ...keys, "&*", "+@all");
  const blind = await openDeployment({
    redis: [server.url.replace("redis://", BLIND)],
    match: "*",
    prefix: "",
  });
  const { locks } = await new LockScanner(blind).look();
  blind.close();
  t.deepEqual(locks[0]?.holders[0]?.process, { number: PROCESS });
});
