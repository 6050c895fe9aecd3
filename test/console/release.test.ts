import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import test from "ava";
import type { Redis } from "ioredis";
import { openDeployment } from "../../transformer/console/open-deployment";
import type { Deployment } from "../../transformer/console/port/deployment";
import { Releases } from "../../transformer/console/ui/releases";
import { PACKAGE } from "../hosts/project";
import { holdsOf } from "../support/auxiliary-keys";
import { startRedis, type RedisServer } from "../support/redis-server";
import { ofScript } from "../support/terminal";
import { until } from "../support/until";

// `release` and `ui` release only what they showed with the question.

const CLI = join(PACKAGE, "dist/transformer/cli/main.js");
const KEY = "LOCK_pay";

let server: RedisServer;
let admin: Redis;
let deployment: Deployment;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  deployment = await openDeployment({ redis: [server.url], match: "*", prefix: "" });
});
test.afterEach.always(() => admin.flushall());
test.after.always(async () => {
  deployment.close();
  await server.stop();
});

const id = (digit: string): string => digit.repeat(32);

/** Writes a value to the key, or the holds of readers. */
async function put(what: string | readonly string[]): Promise<void> {
  await admin.del(holdsOf(KEY));
  const readers = typeof what === "string" ? [] : what;
  for (const reader of readers) await admin.zadd(holdsOf(KEY), Date.now() + 600_000, reader);
  if (readers.length > 0) await admin.pexpire(holdsOf(KEY), 600_000);
  await admin.set(KEY, typeof what === "string" ? what : "shared:readers", "PX", 600_000);
}

/** The value of the key, and the holds of readers. */
async function contents(): Promise<string> {
  return [await admin.get(KEY), ...(await admin.zrange(holdsOf(KEY), "0", "-1"))].join(" ");
}

/** Each form of value that a key can contain. The value may change from any form to any other between the question and the answer. */
const FORMS: Readonly<Record<string, () => string | readonly string[]>> = {
  "a hold": () => id("a"),
  "another hold": () => id("b"),
  "a revoked hold": () => `revoked:${id("c").slice(8)}`,
  "one reader": () => [id("d")],
  "two other readers": () => [id("e"), id("f")],
  "a closed key": () => `closed:${id("a")}`,
  "a key closed by another": () => `closed:${id("b")}`,
  "a reservation": () => `reserved:${id("a")}`,
  "another reservation": () => `reserved:${id("b")}`,
  "text of another program": () => "somebody else",
  "long text of another program": () => `${"x".repeat(5_000)} 1`,
  "long text that ends differently": () => `${"x".repeat(5_000)} 2`,
};

for (const now of [true, false]) {
  test.serial(
    `${now ? "freeing" : "revoking"} changes nothing if the value of the key changed after the prompt`,
    async (t) => {
      const releases = new Releases(deployment);
      let asked = 0;
      for (const [shown, before] of Object.entries(FORMS)) {
        for (const [found, after] of Object.entries(FORMS)) {
          if (shown === found) continue;
          const title = `${shown}, then ${found}`;
          await put(before());
          const question = await releases.ask(KEY, now);
          if (typeof question === "string") continue;
          asked += 1;
          await put(after());
          const value = await contents();
          const said = await releases.confirm(question.confirmation);
          t.is(await contents(), value, title);
          t.regex(said, /nothing was changed/, title);
        }
      }
      t.true(asked >= (now ? 12 : 5) * 11, String(asked));
    },
  );
}

test.serial("freeing deletes the key if its value is still the one that was shown", async (t) => {
  const releases = new Releases(deployment);
  for (const [shown, value] of Object.entries(FORMS)) {
    await put(value());
    const question = await releases.ask(KEY, true);
    if (typeof question === "string") throw new Error(`${shown}: ${question}`);
    t.regex(await releases.confirm(question.confirmation), /^Freed: it was /, shown);
    t.is(await admin.get(KEY), null, shown);
  }
});

test.serial("a reader that joins after the prompt keeps its hold", async (t) => {
  const releases = new Releases(deployment);
  const [first, second] = [id("a"), id("b")];
  await put([first]);
  const question = await releases.ask(KEY, true);
  if (typeof question === "string") throw new Error(question);
  await put([first, second]);
  t.regex(await releases.confirm(question.confirmation), /^Freed: /);
  t.is(await contents(), `shared:readers ${second}`);
});

test.serial("revoking without --now refuses a key whose holder cannot be notified", async (t) => {
  const releases = new Releases(deployment);
  for (const [shown, why] of [
    ["a closed key", /^Nobody holds LOCK_pay: it is closed by `lockAtLeast`\. Fix: /],
    ["a reservation", /^Nobody holds LOCK_pay: it is reserved for the next waiter\. Fix: /],
    ["text of another program", /^LOCK_pay contains a value that Lockweave did not write.*Fix: /],
  ] as const) {
    await put(FORMS[shown]?.() ?? "");
    const answer = await releases.ask(KEY, false);
    t.regex(typeof answer === "string" ? answer : "a question", why);
  }
});

test.serial("freeing refuses a value that cannot be compared, and leaves it unchanged", async (t) => {
  const releases = new Releases(deployment);
  for (const value of [Buffer.from([0xff, 0xfe]), Buffer.alloc(1_500_000, "x")]) {
    await admin.set(KEY, value);
    const answer = await releases.ask(KEY, true);
    t.regex(typeof answer === "string" ? answer : "a question", /Fix: delete the key with redis-cli/);
    t.true((await admin.getBuffer(KEY))?.equals(value));
  }
});

test.serial(
  "release in a terminal changes nothing if the holder changed before the confirmation",
  async (t) => {
    const command = [process.execPath, CLI, "release", KEY, "--now", "--redis", server.url];
    await admin.set(KEY, `closed:${id("a")}`, "PX", 600_000);
    const terminal = spawn("script", ofScript(command));
    let shown = "";
    terminal.stdout.setEncoding("utf8").on("data", (text: string) => void (shown += text));
    const ended = once(terminal, "exit");
    await until(() => shown.includes("[y/N]"));
    await admin.set(KEY, id("b"), "PX", 600_000);
    terminal.stdin.write("y\n");
    await ended;
    t.regex(shown, /nothing was changed/);
    t.is(await admin.get(KEY), id("b"));
  },
);
