import { join } from "node:path";
import test from "ava";
import { makeProject, PACKAGE, PLUGIN, type Files } from "../hosts/project";
import { Watch } from "../hosts/watch";
import { lockweave } from "./command";

const ORDERS = `import { reserve } from "./stock.js";
/** @redisLock businessFlag=payOrder */
export async function pay(): Promise<void> { await reserve(); }
/** @redisLock businessFlag=payOrder */
export async function cancel(): Promise<void> {}
`;
const STOCK = `import { cancel } from "./orders.js";
/** @redisLock businessFlag=stock */
export async function reserve(): Promise<void> {}
/** @redisLock businessFlag=stock */
export async function recall(): Promise<void> { await cancel(); }
/** @redisLock businessFlag=Stock */
export async function count(): Promise<void> { await given(); }
let given = Math.random() > 1 ? reserve : recall;
export const give = (another: () => Promise<void>): void => { given = another; };
`;
const FILES: Files = { "src/orders.ts": ORDERS, "src/stock.ts": STOCK };
const WITH_ANALYSIS = { plugins: [{ ...PLUGIN, analyze: true }] };

const CYCLE =
  "LW1501: Callers acquire `payOrder` and `stock` in different orders, so they can wait for each other until their wait budgets end: " +
  "`pay` calls `reserve` (orders.ts:3), so `stock` is acquired inside `payOrder`; " +
  "`recall` calls `cancel` (stock.ts:5), so `payOrder` is acquired inside `stock`. Fix: acquire them in the same order everywhere.";
const SIMILAR =
  "LW1506: Only this tag has the flag `Stock`, but `reserve` has `stock`. Locks with different flags do not exclude each other. Fix: if one of them is misspelled, correct it.";

test.serial("check reports a cycle of locks as an error and a similar flag as a warning", async (t) => {
  const project = await makeProject(FILES);
  t.is((await project.tspc()).code, 0);
  const { code, stdout, stderr } = await lockweave(project, "check");
  t.deepEqual({ code, stdout }, { code: 1, stdout: "" });
  t.is(stderr, `src/stock.ts:6:5: warning: ${SIMILAR}\nsrc/orders.ts:3:52: ${CYCLE}\n`);
});

test.serial(
  "check --json lists the proof of each problem and the calls that it could not follow",
  async (t) => {
    const project = await makeProject(FILES);
    t.is((await project.tspc()).code, 0);
    const { stdout } = await lockweave(project, "check", "--json");
    const { problems, warnings, unfollowed, unproved } = JSON.parse(stdout) as Record<string, unknown>;
    t.deepEqual(problems, [
      {
        file: "src/orders.ts",
        line: 3,
        column: 52,
        code: "LW1501",
        message: CYCLE.slice("LW1501: ".length),
        proof: [
          { file: "src/orders.ts", line: 2, column: 5 },
          { file: "src/orders.ts", line: 3, column: 52 },
          { file: "src/stock.ts", line: 4, column: 5 },
          { file: "src/stock.ts", line: 5, column: 55 },
        ],
      },
    ]);
    t.like(warnings, [{ code: "LW1506", file: "src/stock.ts", line: 6 }]);
    t.deepEqual(unfollowed, [{ file: "src/stock.ts", line: 7, column: 54, call: "given", why: "dynamic" }]);
    t.deepEqual(unproved, []);
  },
);

test.serial("check warns about a lock that a transaction of the project outlives", async (t) => {
  const project = await makeProject(
    {
      "src/db.ts":
        "export async function inTransaction(work: () => Promise<void>): Promise<void> { await work(); }",
      "src/pay.ts": `import { inTransaction } from "./db.js";
/** @redisLock businessFlag=pay */
export async function pay(): Promise<void> {}
export const payAll = (): Promise<void> => inTransaction(async () => { await pay(); });
`,
    },
    { plugins: [{ ...PLUGIN, transactions: ["src/db.ts#inTransaction"] }] },
  );
  t.is((await project.tspc()).code, 0);
  const { code, stderr } = await lockweave(project, "check");
  t.is(code, 0);
  t.regex(
    stderr,
    /^src\/pay\.ts:4:78: warning: LW1509: `pay` releases its lock `pay` before the transaction of /,
  );
});

/** A project with two warnings: `LW1506`, and `LW1509` in the file whose name is second. */
const WARNINGS: Files = {
  "src/db.ts":
    "export async function inTransaction(work: () => Promise<void>): Promise<void> { await work(); }",
  "src/pay.ts": `import { inTransaction } from "./db.js";
/** @redisLock businessFlag=pay */
export async function pay(): Promise<void> {}
/** @redisLock businessFlag=pay */
export async function refund(): Promise<void> {}
/** @redisLock businessFlag=Pay */
export async function check(): Promise<void> {}
export const payAll = (): Promise<void> => inTransaction(async () => { await pay(); });
`,
};
const TRANSACTIONS = { ...PLUGIN, transactions: ["src/db.ts#inTransaction"] };

test.serial(
  "check --max-warnings fails if there are more warnings, and says how many are allowed",
  async (t) => {
    const project = await makeProject(WARNINGS, { plugins: [TRANSACTIONS] });
    t.is((await project.tspc()).code, 0);
    const allowed = await lockweave(project, "check", "--max-warnings", "2");
    t.is(allowed.code, 0);
    t.is(allowed.stdout.split(".")[0], "The locks of all 3 tags are in the output");
    const none = await lockweave(project, "check", "--max-warnings", "0");
    t.deepEqual([none.code, none.stdout], [1, ""]);
    t.regex(none.stderr, /warning: LW1506: [^]*warning: LW1509: /);
    t.true(none.stderr.endsWith("\nThere are 2 warnings, and `--max-warnings` allows 0.\n"), none.stderr);
    const { code, stdout } = await lockweave(project, "check", "--max-warnings=1", "--json");
    t.is(code, 1);
    t.like(JSON.parse(stdout), { problems: [], warnings: [{ code: "LW1506" }, { code: "LW1509" }] });
  },
);

test.serial("check --max-warnings also counts the warnings of a project that writes no output", async (t) => {
  const project = await makeProject(WARNINGS, { plugins: [TRANSACTIONS], noEmit: true });
  t.is((await lockweave(project, "check")).code, 2);
  const { code, stderr } = await lockweave(project, "check", "--max-warnings", "1");
  t.is(code, 1);
  t.regex(stderr, /warning: LW1509: /);
});

test.serial('a build and check with "analyze": "error" report all findings as errors', async (t) => {
  const plain = await makeProject(WARNINGS, { plugins: [TRANSACTIONS] });
  t.is((await plain.tspc()).code, 0);
  const project = await makeProject(WARNINGS, { plugins: [{ ...TRANSACTIONS, analyze: "error" }] });
  const built = await project.tspc();
  t.deepEqual([built.code, built.stderr], [2, ""]);
  t.regex(built.stdout, /^src\/pay\.ts\(6,5\): error TS901506: .*\n.*\(8,78\): error TS901509: /);
  const checked = await lockweave(project, "check");
  t.is(checked.code, 1);
  t.regex(checked.stderr, /^src\/pay\.ts:6:5: LW1506: .*\nsrc\/pay\.ts:8:78: LW1509: /);
});

test.serial("check prints how many calls it could not follow if it finds no problem", async (t) => {
  const project = await makeProject({
    "src/one.ts": `/** @redisLock businessFlag=a */
export async function one(work: () => Promise<void>): Promise<void> { await work(); }`,
  });
  t.is((await project.tspc()).code, 0);
  t.deepEqual(await lockweave(project, "check"), {
    code: 0,
    stdout:
      "The lock of the only tag is in the output. `tspc` checks the types in tags. " +
      "One call inside locks could not be analyzed. `--json` lists them.\n",
    stderr: "",
  });
});

test.serial(
  "check --watch reports a cycle of locks as an error and a similar flag as a warning",
  async (t) => {
    const project = await makeProject(FILES);
    const watch = new Watch(project, [join(PACKAGE, "dist/transformer/cli/main.js"), "check", "--watch"]);
    const said = await watch.build();
    t.true(said.includes(`src/orders.ts(3,52): error TS901501: ${CYCLE}`), said);
    t.true(said.includes(`src/stock.ts(6,5): warning TS901506: ${SIMILAR}`), said);
    await watch.stop();
  },
);

test.serial(
  'a build with "analyze" reports a cycle of locks as an error and a similar flag as a warning',
  async (t) => {
    const project = await makeProject(FILES, WITH_ANALYSIS);
    const { code, stdout, stderr } = await project.tspc();
    t.is(code, 2);
    t.is(stdout, `src/orders.ts(3,52): error TS901501: ${CYCLE}\n`);
    t.is(stderr, `src/stock.ts(6,5): warning TS901506: ${SIMILAR}\n`);
  },
);

test.serial('a build without "analyze" reports no findings', async (t) => {
  const project = await makeProject(FILES);
  t.deepEqual(await project.tspc(), { code: 0, stdout: "", stderr: "" });
});

test.serial('a build rejects wrong values of "analyze" and "transactions"', async (t) => {
  const project = await makeProject(FILES, {
    plugins: [{ ...PLUGIN, analyze: "yes", transactions: ["@acme/db"] }],
  });
  const { code, stdout } = await project.tspc();
  t.is(code, 2);
  t.regex(
    stdout,
    /LW1401: Expected the plugin's `transactions` to be a list of names such as .*, got `"@acme\/db"`\./,
  );
  t.regex(stdout, /LW1401: Expected the plugin's `analyze` to be true, false, or "error", got `"yes"`\./);
});

test.serial("an incremental build without changes reports the same findings again", async (t) => {
  const project = await makeProject(FILES, { ...WITH_ANALYSIS, incremental: true });
  const first = await project.tspc();
  const second = await project.tspc();
  t.deepEqual([second.code, second.stdout], [first.code, first.stdout]);
  t.true(second.stdout.includes("LW1501"));
});
