import test from "ava";
import { makeProject, PLUGIN, tsconfig } from "../hosts/project";
import { lockweave } from "./command";

const ORDER = `class Busy extends Error {}
interface Order { id: string; user: { id: number } }
export class OrderService {
  /** @redisLock businessFlag=pay_order keyName=orderNo lockTime=20 */
  async pay(orderNo: string): Promise<void> {}
  /**
   * @redisLock businessFlag=bean keyName=order keyType=CLASS keyClass=Order fieldName=user.id,id
   *            onFailure=Busy fencing=true replicas=1
   */
  async bean(order: Order): Promise<void> {}
  /** @redisLock businessFlag=json keyName=body keyType=JSON fieldName=orderNo when="body !== ''" */
  async json(body: string): Promise<void> {}
}
/** @redisLock businessFlag=tick */
export const tick = async (): Promise<void> => {};
/** @redisLock key="mutex:\${tenant}/\${order.user.id}" retryTimes=0 */
export const tock = async (tenant: string, order: Order): Promise<void> => {};
`;

const TABLE = `tag              function           key                                   options
src/order.ts:4   OrderService.pay   LOCK_pay%5Forder_{orderNo}            lockTime=20s
src/order.ts:7   OrderService.bean  LOCK_bean_{order.user.id},{order.id}  fencing=true replicas=1 onFailure=Busy
src/order.ts:11  OrderService.json  LOCK_json_{JSON(body).orderNo}        when=body !== ''
src/order.ts:14  tick               LOCK_tick
src/order.ts:16  tock               mutex:{tenant}/{order.user.id}        retryTimes=0
`;

test.serial("list prints a table with the place, function, key, and options of each tag", async (t) => {
  const project = await makeProject({ "src/order.ts": ORDER, "src/none.ts": "export {};\n" });
  t.deepEqual(await lockweave(project, "list"), { code: 0, stdout: TABLE, stderr: "" });
  t.is((await lockweave(project, "list", "-p", "tsconfig.json")).stdout, TABLE);
});

test.serial("list escapes a name that would break the table", async (t) => {
  const project = await makeProject({
    "src/a.ts": `\uFEFFexport const o = {
  /** @redisLock businessFlag="ü ö" */
  async "a\\n\\u2028\\"ü"() {},
};
`,
  });
  const { code, stdout } = await lockweave(project, "list");
  t.is(stdout.split("\n")[1], String.raw`src/a.ts:2  o.a\u000a\u2028"ü  LOCK_ü ö`);
  t.is(code, 0);
});

test.serial("list --json contains the same tags, with the project's defaults", async (t) => {
  const defaults = { ...PLUGIN, defaults: { retryTimes: 7, lockTime: "1m" } };
  const project = await makeProject({ "src/order.ts": ORDER }, { plugins: [defaults] });
  const { code, stdout } = await lockweave(project, "list", "--json");
  const { tags, problems } = JSON.parse(stdout) as { tags: unknown[]; problems: unknown[] };
  t.is(code, 0);
  t.deepEqual(problems, []);
  t.deepEqual(tags[0], {
    file: "src/order.ts",
    line: 4,
    column: 7,
    function: "OrderService.pay",
    key: "LOCK_pay%5Forder_{orderNo}",
    options: { retryTimes: 7, lockTime: "20s" },
  });
  t.is(tags.length, 5);
});

test.serial("list reports invalid tags, and still lists the others", async (t) => {
  const wrong =
    "/** @redisLock businessFlag=f keyName=orderN */\nexport const f = async (orderNo: string) => orderNo;\n";
  const project = await makeProject({ "src/order.ts": ORDER, "src/wrong.ts": wrong });
  const plain = await lockweave(project, "list");
  t.deepEqual([plain.code, plain.stdout], [1, TABLE]);
  t.regex(plain.stderr, /^src\/wrong\.ts:1:39: LW1202: .* `orderN`\. Did you mean `orderNo`\?\n$/);
  const { code, stdout } = await lockweave(project, "list", "--json");
  t.is(code, 1);
  t.like((JSON.parse(stdout) as { problems: object[] }).problems[0], {
    file: "src/wrong.ts",
    line: 1,
    column: 39,
    code: "LW1202",
  });
});

test.serial("list reports wrong defaults in the plugin entry as a problem of tsconfig.json", async (t) => {
  const entry = { ...PLUGIN, defaults: { lockTme: 1 } };
  const project = await makeProject({ "src/order.ts": ORDER }, { plugins: [entry] });
  const { code, stderr } = await lockweave(project, "list");
  t.is(code, 1);
  t.regex(stderr, /^tsconfig\.json: LW1401: .* Did you mean `lockTime`\?\n$/);
});

test.serial("list contains only the tags that the project and its references compile", async (t) => {
  const tag = (flag: string): string =>
    `/** @redisLock businessFlag=${flag} */\nexport async function ${flag}() {}\n`;
  const project = await makeProject({
    "tsconfig.json": JSON.stringify({ files: [], references: [{ path: "a" }, { path: "b" }] }),
    "a/tsconfig.json": tsconfig({ composite: true, rootDir: ".", outDir: "../out/a" }, {}),
    "a/inside.ts": tag("inside"),
    "a/types.d.ts":
      "/** @redisLock businessFlag=declared */\nexport declare function declared(): Promise<void>;\n",
    "b/tsconfig.json": tsconfig(
      { composite: true, rootDir: ".", outDir: "../out/b", allowJs: true, resolveJsonModule: true },
      { include: ["*.js", "*.json"], exclude: ["excluded.js"], references: [{ path: "../a" }] },
    ),
    "b/script.js": tag("script"),
    "b/excluded.js": tag("excluded"),
    "b/data.json": `{ "text": "/** @redisLock businessFlag=json */" }`,
    "outside.ts": tag("outside"),
  });
  const { code, stdout } = await lockweave(project, "list");
  t.is(code, 0);
  t.deepEqual(stdout.match(/LOCK_\w+/g), ["LOCK_inside", "LOCK_script"]);
});

test.serial("list prints that a project has no tags", async (t) => {
  const project = await makeProject({ "src/a.ts": "export {};\n" });
  t.deepEqual(await lockweave(project, "list"), { code: 0, stdout: "There are no tags.\n", stderr: "" });
});

test.serial("list shows needed locks in the order of the file", async (t) => {
  const project = await makeProject({
    "src/ledger.ts": `/** @redisLock businessFlag=order keyName=id */
export async function pay(id: string): Promise<void> { post(id); }
/**
 * @needsLock businessFlag=order keyName=id
 * @needsLock key="ledger" mode=read
 */
export function post(id: string): void {}
/** @redisLock businessFlag=tick */
export const tick = async (): Promise<void> => {};
`,
  });
  const table = `tag              function  key              options
src/ledger.ts:1  pay       LOCK_order_{id}
src/ledger.ts:4  post      LOCK_order_{id}  @needsLock
src/ledger.ts:5  post      ledger           @needsLock mode=read
src/ledger.ts:8  tick      LOCK_tick
`;
  t.deepEqual(await lockweave(project, "list"), { code: 0, stdout: table, stderr: "" });
  const { tags } = JSON.parse((await lockweave(project, "list", "--json")).stdout) as { tags: object[] };
  const place = { file: "src/ledger.ts", line: 4, column: 4 };
  t.deepEqual(tags[1], { ...place, function: "post", key: "LOCK_order_{id}", isNeeded: true, options: {} });
  t.false("isNeeded" in (tags[0] ?? {}));

  const { stdout } = await lockweave(project, "list", "--write", "LOCKS.md");
  t.is(stdout, "Wrote 2 locks and 2 needed locks to LOCKS.md.\n");
  const list = await project.read("LOCKS.md");
  t.is(
    list.slice(list.indexOf("- ")),
    "- `pay`: `LOCK_order_{id}`\n- `post` needs: `LOCK_order_{id}`\n- `post` needs: `ledger`, `mode=read`\n- `tick`: `LOCK_tick`\n",
  );
});

test.serial(
  "check finds a lock whose expression keeps a default of the project, and list omits that default",
  async (t) => {
    const plugin = { ...PLUGIN, defaults: { lockTime: "1m" } };
    const project = await makeProject(
      {
        "src/report.ts": `import type { Duration } from "lockweave";
const config: { lockTime?: Duration } = {};
/** @redisLock businessFlag=report lockTime="\${config.lockTime}" */
export async function report(): Promise<void> {}
`,
      },
      { plugins: [plugin] },
    );
    t.deepEqual(await project.tspc(), { code: 0, stdout: "", stderr: "" });
    t.regex(
      await project.read("out/report.js"),
      /projectDefaults: "lockTime=1m", lockTime: config\.lockTime \}/,
    );
    t.is((await lockweave(project, "check")).code, 0);
    const { stdout } = await lockweave(project, "list");
    t.is(stdout.split("\n")[1], "src/report.ts:3  report    LOCK_report  lockTime=${config.lockTime}");
  },
);
