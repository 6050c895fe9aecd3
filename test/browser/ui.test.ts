import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import type { Redis } from "ioredis";
import { chromium, type Browser, type Page } from "playwright-core";
import { processName } from "../../runtime/stores/redis/keys";
import { PACKAGE } from "../hosts/project";
import { startRedis, type RedisServer } from "../support/redis-server";
import { until } from "../support/until";
import { Programs } from "../console/programs";
import { isMatrix } from "../support/suites";

// The page of `ui` in a real browser, and all commands with a thousand locks of a hundred processes. `SCREENSHOTS=1`
// creates the pictures in `docs/images` again.

const inBrowser = isMatrix ? test.serial : test.serial.skip;

let server: RedisServer;
let admin: Redis;
let browser: Browser;
let programs: Programs;
let workers: ChildProcess[] = [];

test.before(async () => {
  if (!isMatrix) return;
  server = await startRedis();
  admin = server.client();
  programs = new Programs(server.url);
  browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--no-sandbox", // Chromium has no sandbox as root.
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
});
test.afterEach.always(async () => {
  if (!isMatrix) return;
  await Promise.all(workers.map(endOf));
  workers = [];
  await programs.end();
  await admin.flushall();
});
test.after.always(async () => {
  if (!isMatrix) return;
  await browser.close();
  await server.stop();
});

async function endOf(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null) return;
  const ended = once(worker, "exit");
  worker.kill("SIGKILL");
  await ended;
}

async function addressOf(): Promise<string> {
  const child = programs.start(["ui"]);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (output += text));
  await until(() => output.includes("Ctrl-C"));
  return /^Open (\S+)\n/.exec(output)?.[1] ?? "";
}

interface Opened {
  readonly page: Page;
  /** The errors on the page. */
  readonly errors: readonly string[];
}

async function open(url: string): Promise<Opened> {
  const page = await browser.newPage({ viewport: { width: 1_200, height: 800 } });
  const errors: string[] = [];
  page.on("pageerror", (error) => void errors.push(error.message));
  page.on("console", (message) => void (message.type() === "error" && errors.push(message.text())));
  await page.goto(url);
  return { page, errors };
}

inBrowser("the page shows locks as they change, and removes the token from its address", async (t) => {
  const { page, errors } = await open(await addressOf());
  await page.getByText("No locks are held or waited for.").waitFor();
  t.false(page.url().includes("token"));
  const holder = await programs.program('await take("OrderService.pay", "pay", 1);');
  const row = page.locator("#locks tr", { hasText: "LOCK_pay_1" });
  await row.getByText(`/${holder.pid}`).waitFor();
  await row.getByText("OrderService.pay").waitFor();
  await programs.program('void take("OrderService.pay", "pay", 1);');
  await page.locator("#heat tr", { hasText: "LOCK_pay_1" }).waitFor();
  await page.getByText("1 held, 1 waiting, of 1 lock").waitFor();
  await page.reload();
  await row.waitFor();
  await page.getByLabel("Show locks whose key contains").fill("nothing");
  await row.waitFor({ state: "detached" });
  t.deepEqual(errors, []);
});

inBrowser("the page of a lock shows its holders and waiters, and the holder during each wait", async (t) => {
  const { page, errors } = await open(await addressOf());
  const holder = await programs.program('await obtain(lockKey("pay", 1));');
  const waiter = await programs.program('void take("OrderService.pay", "pay", 1);');
  await page.getByRole("link", { name: "LOCK_pay_1" }).first().click();
  await page.getByRole("heading", { name: "LOCK_pay_1" }).waitFor();
  await page.locator(`#line tr:has-text("${holder.pid}") rect.holds`).waitFor();
  await page.locator(`#line tr:has-text("${waiter.pid}") rect.waits`).waitFor();
  await page
    .locator("#waits tr", { hasText: `/${waiter.pid}` })
    .getByText(`/${holder.pid}`)
    .waitFor();
  await page.goBack();
  await page.locator("#lock").waitFor({ state: "hidden" });
  t.deepEqual(errors, []);
});

inBrowser("the page revokes and frees a lock only after a confirmation", async (t) => {
  const { page, errors } = await open(await addressOf());
  await programs.program('await obtain(lockKey("pay", 1));');
  const held = await admin.get("LOCK_pay_1");
  await page.getByRole("link", { name: "LOCK_pay_1" }).first().click();
  await page.getByRole("button", { name: "Revoke …" }).click();
  await page.getByText("Revoke it? Lockweave notifies its holder").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  t.is(await admin.get("LOCK_pay_1"), held);
  await page.getByRole("button", { name: "Revoke …" }).click();
  await page.getByRole("button", { name: "Revoke it" }).click();
  await page.getByText("Revoked: it was held by").waitFor();
  t.regex((await admin.get("LOCK_pay_1")) ?? "", /^revoked:/);
  await page.getByRole("button", { name: "Free now …" }).click();
  const yes = page.getByRole("button", { name: "Free it now" });
  t.true(await yes.isDisabled());
  await page.getByLabel("The lock's key").fill("LOCK_pay_2");
  t.true(await yes.isDisabled());
  await page.getByLabel("The lock's key").press("Enter");
  t.not(await admin.get("LOCK_pay_1"), null);
  await page.getByLabel("The lock's key").fill("LOCK_pay_1");
  await yes.click();
  await page.getByText("Freed: it was held by").waitFor();
  t.is(await admin.get("LOCK_pay_1"), null);
  t.deepEqual(errors, []);
});

inBrowser(
  "the page has no green dot next to a Redis that hangs, and says how old its locks are",
  async (t) => {
    await admin.set("LOCK_pay", "a".repeat(32), "PX", 3_600_000);
    const { page, errors } = await open(await addressOf());
    await page.locator("#locks tr", { hasText: "LOCK_pay" }).waitFor();
    await page.locator("#status.alive").waitFor();
    process.kill(server.pid, "SIGSTOP");
    try {
      await page.getByText(/^stale for \d+\.\d\ss$/).waitFor();
      t.is(await page.locator("#status.alive").count(), 0);
      t.is(await page.locator("#locks tr", { hasText: "LOCK_pay" }).count(), 1);
    } finally {
      process.kill(server.pid, "SIGCONT");
    }
    await page.locator("#status.alive").waitFor();
    t.is(await page.locator("#stale").textContent(), "");
    t.deepEqual(errors, []);
  },
);

inBrowser("the page shows lock names and values as text, not as HTML", async (t) => {
  const nasty = '<img src=x onerror="document.title=1"><script>document.title=2</script>';
  await admin.set(`LOCK_${nasty}`, nasty, "PX", 60_000);
  const { page, errors } = await open(await addressOf());
  await page
    .getByRole("link", { name: `LOCK_${nasty}` })
    .first()
    .click();
  await page.getByRole("heading", { name: `LOCK_${nasty}` }).waitFor();
  await page.locator("#line", { hasText: nasty }).waitFor();
  await page.getByRole("button", { name: "Free now …" }).click();
  await page.locator("dialog", { hasText: nasty }).waitFor();
  t.is(await page.title(), "Lockweave");
  t.is(await page.locator("img, main script, dialog script").count(), 0);
  t.deepEqual(errors, []);
});

inBrowser("a page of another origin can neither read nor free locks, even with the token", async (t) => {
  await admin.set("LOCK_pay", "a".repeat(32), "PX", 60_000);
  const address = new URL(await addressOf());
  const token = new URLSearchParams(address.hash.slice(1)).get("token") ?? "";
  const { page } = await open(await addressOf()); // Another port is another origin.
  const answers = await page.evaluate(
    async ([origin, bearer]) => {
      const tried = async (path: string, init: RequestInit): Promise<string> =>
        await fetch(`${origin}${path}`, init).then(
          (response) => `${response.type} ${response.status}`,
          () => "refused",
        );
      const headers = { authorization: `Bearer ${bearer}` };
      return [
        await tried("/state", {}),
        await tried("/state", { headers }),
        await tried("/release", { method: "POST", headers, body: '{"key":"LOCK_pay","now":true}' }),
      ];
    },
    [address.origin, token] as const,
  );
  t.deepEqual(answers, ["refused", "refused", "refused"]);
  t.is(await admin.get("LOCK_pay"), "a".repeat(32));
});

inBrowser("the page asks for the whole address without a token, and says when `ui` has ended", async (t) => {
  const url = await addressOf();
  const { page } = await open(url.replace(/#.*/, ""));
  await page.getByText("Open the address that `lockweave ui` printed.").waitFor();
  await page.goto(url);
  await page.getByText("No locks are held or waited for.").waitFor();
  await programs.end();
  await page.getByText("`lockweave ui` has ended").waitFor();
  t.pass();
});

interface Top {
  readonly locks: {
    readonly waiting: number;
    readonly state: string;
    readonly holders: { readonly process?: { readonly pid?: number } }[];
  }[];
  readonly commands: number;
  readonly tookMs: number;
  readonly isWhole: boolean;
}

async function lookAtTop(): Promise<Top> {
  const { stdout } = await programs.lockweave(["top", "--json"]);
  return JSON.parse(stdout) as Top;
}

const PATIENCE_MS = 240_000;

inBrowser("every command shows a thousand locks of a hundred processes", async (t) => {
  const PROCESSES = 100;
  workers = Array.from({ length: PROCESSES }, (_, index) =>
    fork(join(__dirname, "worker.cjs"), [String(index)], { env: { ...process.env, REDIS_URL: server.url } }),
  );
  await Promise.all(workers.map((worker) => once(worker, "message")));
  // Each process waits for the shared lock again after it has held it, so one may not be in the queue.
  await until(async () => (await admin.zcard("lockweave:1:queue:{LOCK_shared}")) >= PROCESSES - 1);
  // A process may announce itself after its first lock.
  await until(async () => (await admin.keys(processName("*"))).length === PROCESSES);
  // The shared lock has no holder during a hand-off, so this retries.
  let top = await lookAtTop();
  await until(async () => {
    top = await lookAtTop();
    return top.locks.every(({ state }) => state === "held");
  });
  const { locks, commands, tookMs, isWhole } = top;
  t.true(isWhole);
  t.is(locks.length, 10 * PROCESSES + 1);
  t.true((locks[0]?.waiting ?? 0) >= PROCESSES - 2);
  const pids = new Set(locks.flatMap(({ holders }) => holders.map(({ process: who }) => who?.pid)));
  t.is(pids.size, PROCESSES);
  t.true(workers.every(({ pid }) => pids.has(pid)));
  t.log(`top: ${commands} commands in ${Math.round(tookMs)} ms`);
  const { stdout: table } = await programs.lockweave(["top"]);
  t.is(table.split("\n").length, 10 * PROCESSES + 1 + 4);
  const tail = programs.start(["tail", "--json"]);
  let lines = "";
  tail.stdout.setEncoding("utf8").on("data", (text: string) => void (lines += text));
  const acquired = (): Set<string | undefined> =>
    new Set([...lines.matchAll(/"key":"([^"]+)","what":"acquired"/g)].map(([, key]) => key));
  await until(() => acquired().size === 10 * PROCESSES + 1);
  const inspected = await programs.lockweave(["inspect", "LOCK_shared"]);
  t.regex(inspected.stdout, /^9[89] .*LOCK_shared/m);
  const { page, errors } = await open(await addressOf());
  page.setDefaultTimeout(PATIENCE_MS); // The hundred processes may keep both cores busy.
  // The shared lock may be handed off while the page loads.
  await page.getByText(/^1,00[01] held, 9[89] waiting/).waitFor();
  await page.getByText(/and 80[01] more/).waitFor();
  // The command releases nothing if the lock is handed off while the command starts.
  await until(async () => (await programs.lockweave(["release", "LOCK_shared", "--yes"])).code === 0);
  await page.getByRole("link", { name: "LOCK_shared" }).first().click();
  await until(async () => (await page.locator("#line rect.holds").count()) >= 3);
  t.deepEqual(errors, []);
});

const forPictures = process.env["SCREENSHOTS"] === undefined ? test.serial.skip : test.serial;

forPictures("creates the pictures of the docs", async (t) => {
  t.timeout(300_000);
  const directory = join(PACKAGE, "docs/images");
  await mkdir(directory, { recursive: true });
  const { page } = await open(await addressOf());
  const names = ["payOrder", "reserveStock", "mail", "invoice"];
  const sites = ["OrderService.pay", "StockService.reserve", "MailJob.send", "InvoiceJob.run"];
  const busy = (seed: number): string => `
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    let state = ${seed};
    const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
    for (let nth = 0; nth < 3; nth += 1) void (async () => {
      for (;;) {
        const kind = Math.floor(random() * 4);
        const site = ${JSON.stringify(sites)}[kind];
        const lock = open({ site, businessFlag: ${JSON.stringify(names)}[kind], waitTime: "10m" }, 4700 + Math.floor(random() ** 2 * 4));
        while (!(await acquire(lock))) await retryCheck(lock);
        await sleep(1_000 + random() * 7_000);
        await release(lock);
        await sleep(random() * 2_000);
      }
    })();`;
  for (let seed = 1; seed <= 6; seed += 1) await programs.program(busy(seed * 7_919));
  await page.waitForTimeout(150_000);
  await page.screenshot({ path: join(directory, "ui-locks.png") });
  await page.locator("#locks a").first().click();
  await page.locator("#line rect.holds").first().waitFor();
  await page.screenshot({ path: join(directory, "ui-lock.png") });
  t.pass();
});
