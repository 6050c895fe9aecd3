import { request, type IncomingHttpHeaders } from "node:http";
import test from "ava";
import type { Redis } from "ioredis";
import { lockKey } from "../../runtime";
import type { Question, State } from "../../transformer/console/ui/state";
import { startRedis, type RedisServer } from "../support/redis-server";
import { until } from "../support/until";
import { Programs } from "./programs";
import { inMatrixSerially } from "../support/suites";

// The answers of the server of `ui`, and who may get them.

let server: RedisServer;
let admin: Redis;
let programs: Programs;
let page: Page;

test.before(async () => {
  server = await startRedis();
  admin = server.client();
  programs = new Programs(server.url);
});
test.beforeEach(async () => {
  page = await openPage();
});
test.afterEach.always(async () => {
  await programs.end();
  await admin.flushall();
});
test.after.always(() => server.stop());

interface Page {
  readonly port: number;
  readonly token: string;
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

async function openPage(...args: readonly string[]): Promise<Page> {
  const child = programs.start(["ui", ...args]);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (output += text));
  await until(() => output.includes("Ctrl-C"));
  const [, port, token] = /^Open http:\/\/127\.0\.0\.1:(\d+)\/#token=(\S{43})\n/.exec(output) ?? [];
  if (token === undefined) throw new Error(output);
  return { port: Number(port), token };
}

/** Sends a request like a browser that has the page open. */
async function ask(
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string,
  host = "127.0.0.1",
): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const asked = request(
      {
        host,
        port: page.port,
        path,
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${page.token}`, ...headers },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => void (text += chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode, headers: response.headers, body: text }),
        );
      },
    );
    asked.on("error", reject).end(body);
  });
}

async function stateOf(query = ""): Promise<State> {
  return JSON.parse((await ask(`/state${query}`)).body) as State;
}

async function post<Reply>(path: string, body: object): Promise<Reply> {
  return JSON.parse((await ask(path, {}, JSON.stringify(body))).body) as Reply;
}

const hold = (key: string, id: string): Promise<unknown> => admin.set(key, id.repeat(32), "PX", 60_000);
const waitForKey = (key: string): Promise<void> =>
  until(async () => (await stateOf()).locks.some((lock) => lock.key === key));

inMatrixSerially(
  "ui serves the page, its script, style, and icon under a strict content security policy",
  async (t) => {
    for (const [path, type] of [
      ["/", "text/html"],
      ["/page.js", "text/javascript"],
      ["/style.css", "text/css"],
      ["/icon.svg", "image/svg+xml"],
    ] as const) {
      const { status, headers, body } = await ask(path, { authorization: "" });
      t.is(status, 200);
      t.is(headers["content-type"], `${type}; charset=utf-8`);
      t.regex(String(headers["content-security-policy"]), /default-src 'none'.*frame-ancestors 'none'/);
      t.is(headers["x-content-type-options"], "nosniff");
      t.false(body.includes(page.token));
    }
    t.is((await ask("/../package.json")).status, 404);
  },
);

inMatrixSerially("a request without the right token reads no locks and releases none", async (t) => {
  await hold("LOCK_pay", "a");
  await waitForKey("LOCK_pay");
  for (const authorization of [
    "",
    "Bearer ",
    `Bearer ${"A".repeat(43)}`,
    page.token,
    `Basic ${page.token}`,
  ]) {
    for (const [path, body] of [
      ["/state", undefined],
      ["/release", '{"key":"LOCK_pay","now":true}'],
      ["/confirm", '{"confirmation":""}'],
    ] as const) {
      const answer = await ask(path, { authorization }, body);
      t.is(answer.status, 401, `${authorization} ${path}`);
      t.false(answer.body.includes("LOCK_pay"));
    }
  }
  t.is(await admin.get("LOCK_pay"), "a".repeat(32));
});

inMatrixSerially("ui rejects a request from another host or origin, even with the token", async (t) => {
  const own = `127.0.0.1:${page.port}`;
  const refused: Readonly<Record<string, string>>[] = [
    { host: "evil.example" },
    { host: `evil.example:${page.port}` },
    { host: "127.0.0.1:1" },
    { host: `${own}.evil.example` },
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: `https://${own}` },
    { origin: "http://127.0.0.1:1" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
  ];
  for (const headers of refused) {
    t.is((await ask("/state", headers)).status, 403, JSON.stringify(headers));
    t.is((await ask("/", headers)).status, 403, JSON.stringify(headers));
    t.is((await ask("/confirm", headers, "{}")).status, 403, JSON.stringify(headers));
  }
  for (const headers of [
    {},
    { host: `localhost:${page.port}`, origin: `http://localhost:${page.port}` },
    { origin: `http://${own}`, "sec-fetch-site": "same-origin" },
  ])
    t.is((await ask("/state", headers)).status, 200, JSON.stringify(headers));
});

inMatrixSerially("ui listens only on 127.0.0.1", async (t) => {
  // 127.0.0.2 is this machine, too. A server that listens on all addresses would answer there.
  await t.throwsAsync(ask("/", {}, undefined, "127.0.0.2"), { code: "ECONNREFUSED" });
});

inMatrixSerially("ui answers invalid requests with 400 or 404", async (t) => {
  t.is((await ask("/other")).status, 404);
  t.is((await ask("/release")).status, 404);
  t.is((await ask("/release", {}, "{}")).status, 400);
  t.is((await ask("/release", {}, "null")).status, 400);
  t.is((await ask("/confirm", {}, '{"key":"LOCK_pay"}')).status, 400);
  t.is((await ask("/release", {}, "no JSON")).status, 400);
  t.is((await ask("/release", {}, JSON.stringify({ key: "x".repeat(200_000) }))).status, 400);
  t.is((await ask("/state")).status, 200);
});

inMatrixSerially(
  "ui reports holders and waiters, the number of commands, and the history of one lock",
  async (t) => {
    const holder = await programs.program('await take("OrderService.pay", "pay", 1);');
    const waiter = await programs.program('void take("OrderService.pay", "pay", 1);');
    await until(async () => (await stateOf()).count.waiting === 1);
    const query = `?lock=${lockKey("pay", 1)}`;
    await until(async () => {
      const { holders: [first] = [], waiters: [next] = [] } = (await stateOf(query)).lock ?? {};
      return first?.site === "OrderService.pay" && next?.pid !== undefined;
    });
    const state = await stateOf(query);
    t.deepEqual(state.count, { locks: 1, held: 1, waiting: 1 });
    t.deepEqual(state.servers, [server.url]);
    t.true(state.look?.isWhole);
    t.true((state.look?.commands ?? 0) > 4);
    t.is(state.heat[0]?.key, "LOCK_pay_1");
    t.is(state.heat[0]?.cells.length, 60);
    t.is(Math.max(...(state.heat[0]?.cells ?? [])), 1);
    t.like(
      state.line?.find(({ what }) => what === "holds"),
      {
        who: { pid: holder.pid },
        site: "OrderService.pay",
      },
    );
    t.like(
      state.line?.find(({ what }) => what === "waits"),
      { who: { pid: waiter.pid } },
    );
    holder.kill("SIGKILL");
    await admin.del("LOCK_pay_1");
    await until(async () => {
      const { line = [] } = await stateOf(query);
      return line.some(({ what, to }) => what === "holds" && to !== undefined);
    });
  },
);

inMatrixSerially(
  "ui shows the 200 most contended of 300 locks, and finds a lock by a part of its key",
  async (t) => {
    const pipeline = admin.pipeline();
    for (let index = 0; index < 300; index += 1)
      pipeline.set(`LOCK_many_${index}`, `${index}`.padStart(32, "0"), "PX", 60_000);
    pipeline.zadd("lockweave:1:queue:{LOCK_many_299}", 1, "f".repeat(32));
    await pipeline.exec();
    await until(async () => (await stateOf()).count.locks === 300);
    const { locks, more } = await stateOf();
    t.deepEqual([locks.length, more, locks[0]?.key], [200, 100, "LOCK_many_299"]);
    t.deepEqual(
      (await stateOf("?find=MANY_77")).locks.map(({ key }) => key),
      ["LOCK_many_77"],
    );
  },
);

inMatrixSerially("ui revokes or frees a lock only after a confirmation, which works once", async (t) => {
  await programs.program('await obtain(lockKey("pay", 1));');
  const held = await admin.get("LOCK_pay_1");
  const asked = await post<Question>("/release", { key: "LOCK_pay_1", now: false });
  t.regex(asked.question, /^Revoke it\?/);
  t.is(asked.lock.key, "LOCK_pay_1");
  t.is(await admin.get("LOCK_pay_1"), held);
  const revoked = await post<{ result: string }>("/confirm", { confirmation: asked.confirmation });
  t.regex(revoked.result, /^Revoked: it was held by /);
  t.regex((await admin.get("LOCK_pay_1")) ?? "", /^revoked:/);
  const again = await post<{ result: string }>("/confirm", { confirmation: asked.confirmation });
  t.regex(again.result, /^Nothing was changed/);
  const now = await post<Question>("/release", { key: "LOCK_pay_1", now: true });
  t.regex(now.question, /^Free it now\?/);
  t.regex(
    (await post<{ result: string }>("/confirm", { confirmation: now.confirmation })).result,
    /^Freed: /,
  );
  t.is(await admin.get("LOCK_pay_1"), null);
  t.deepEqual(await post("/release", { key: "LOCK_pay_1", now: true }), {
    result: "LOCK_pay_1 is free: there is nothing to release.",
  });
});

inMatrixSerially("a confirmation changes nothing if another holder has the lock by then", async (t) => {
  await hold("LOCK_pay", "a");
  const { confirmation } = await post<Question>("/release", { key: "LOCK_pay", now: true });
  await hold("LOCK_pay", "b");
  const { result } = await post<{ result: string }>("/confirm", { confirmation });
  t.is(result, "The lock has changed in the meantime, so nothing was changed.");
  t.is(await admin.get("LOCK_pay"), "b".repeat(32));
});

inMatrixSerially(
  "ui reports an unreachable server without its password, and keeps the last locks that it saw",
  async (t) => {
    const other = await startRedis();
    page = await openPage("--redis", other.url.replace("redis://", "redis://:secret@"));
    await other.client().set("LOCK_pay", "a".repeat(32), "PX", 60_000);
    await waitForKey("LOCK_pay");
    await other.stop();
    await until(async () => (await stateOf()).trouble !== undefined);
    const state = await stateOf();
    t.is(state.locks[0]?.key, "LOCK_pay");
    t.true((state.staleForMs ?? 0) > 0);
    t.false(JSON.stringify(state).includes("secret"));
  },
);

inMatrixSerially("ui exits with 2 if its port is in use or is not a port", async (t) => {
  const taken = await programs.lockweave(["ui", "--port", String(page.port)]);
  t.is(taken.code, 2);
  t.regex(taken.stderr, /^lockweave: Cannot serve the page: .*EADDRINUSE/);
  for (const port of ["x", "-1", "65536", "1.5"]) {
    const wrong = await programs.lockweave(["ui", `--port=${port}`]);
    t.is(wrong.code, 2);
    t.regex(wrong.stderr, /Expected `--port` to be a number up to 65535/);
  }
});
