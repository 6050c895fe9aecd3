import { mkdir, symlink } from "node:fs/promises";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import test from "ava";
import { PACKAGE, makeProject, PLUGIN, tsconfig, type Project } from "../hosts/project";
import { lockweave } from "./command";

const ORDERS = `class Busy extends Error {}
export class OrderService {
  /** @redisLock businessFlag=payOrder keyName=orderNo lockTime=20s fencing=true */
  async pay(orderNo: string): Promise<void> {}
  /** @redisLock businessFlag=cancelOrder keyName=orderNo onFailure=Busy when="orderNo !== \`a\`" */
  async cancel(orderNo: string): Promise<void> {}
}
`;
const JOBS = `/** @redisLock businessFlag=tick */
export const tick = async (): Promise<void> => {};
`;

const LIST = `# Locks

Written by \`lockweave list --write\`. Do not edit.

## \`src/jobs/[id].ts\`

- \`tick\`: \`LOCK_tick\`

## \`src/orders.ts\`

- \`OrderService.cancel\`: \`LOCK_cancelOrder_{orderNo}\`, \`onFailure=Busy\`, \`\` when=orderNo !== \`a\` \`\`
- \`OrderService.pay\`: \`LOCK_payOrder_{orderNo}\`, \`fencing=true\`, \`lockTime=20s\`
`;

const makeShop = (): Promise<Project> => makeProject({ "src/orders.ts": ORDERS, "src/jobs/[id].ts": JOBS });

test.serial("list --write writes one line for each lock, by file and function", async (t) => {
  const project = await makeShop();
  const result = await lockweave(project, "list", "--write", "LOCKS.md");
  t.deepEqual(result, { code: 0, stdout: "Wrote 3 locks to LOCKS.md.\n", stderr: "" });
  t.is(await project.read("LOCKS.md"), LIST);
});

test.serial(
  "the list changes if a lock changes, but not if it moves or its attributes are reordered",
  async (t) => {
    const project = await makeShop();
    await lockweave(project, "list", "--write", "LOCKS.md");
    const lines = ORDERS.split("\n");
    const moved = [lines[0], lines[1], "", ...lines.slice(4, 6), ...lines.slice(2, 4), ...lines.slice(6)];
    const text = moved.join("\n").replace("lockTime=20s fencing=true", "fencing=true lockTime=20");
    await project.write({
      "src/orders.ts": `// A comment.\n${text}`,
      "LOCKS.md": LIST.replaceAll("\n", "\r\n"),
    });
    const { stdout } = await lockweave(project, "list", "--write", "LOCKS.md");
    t.is(stdout, "LOCKS.md is up to date.\n");

    await project.write({ "src/orders.ts": ORDERS.replace("20s", "25s") });
    await lockweave(project, "list", "--write", "LOCKS.md");
    t.is(await project.read("LOCKS.md"), LIST.replace("20s", "25s"));
  },
);

test.serial("the paths in the list are relative to the list, wherever the command runs", async (t) => {
  const project = await makeShop();
  await mkdir(project.path("review"));
  await lockweave(project, "list", "--write", "review/LOCKS.md");
  const list = await project.read("review/LOCKS.md");
  t.is(list, LIST.replaceAll("`src/", "`../src/"));
  const script = join(PACKAGE, "dist/transformer/cli/main.js");
  const inReview = { cwd: project.path("review") };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [script, "list", "--write", "LOCKS.md"],
    inReview,
  );
  t.is(stdout, "LOCKS.md is up to date.\n");
});

test.serial(
  "the list contains a lock of several projects once, and both locks if two have the same name",
  async (t) => {
    const twice = `export const make = [
  () => { /** @redisLock businessFlag=job */ async function run() {} return run; },
  () => { /** @redisLock businessFlag=job */ async function run() {} return run; },
];
`;
    const defaults = { plugins: [{ ...PLUGIN, defaults: { lockTime: "1m" } }], composite: true };
    const project = await makeProject({
      "tsconfig.json": JSON.stringify({ files: [], references: [{ path: "a" }, { path: "b" }] }),
      "a/tsconfig.json": tsconfig({ ...defaults, rootDir: ".." }, { include: ["../src"] }),
      "b/tsconfig.json": tsconfig({ ...defaults, rootDir: ".." }, { include: ["../src"] }),
      "src/jobs.ts": twice,
    });
    await lockweave(project, "list", "--write", "LOCKS.md");
    const line = "- `make.run`: `LOCK_job`, `lockTime=1m`\n";
    const list = await project.read("LOCKS.md");
    t.is(list.split(line.slice(line.indexOf(":"))).length, 3, list);
  },
);

test.serial("list --write writes nothing if a tag is wrong", async (t) => {
  const project = await makeShop();
  await project.write({ "src/jobs/[id].ts": JOBS.replace("businessFlag", "businesFlag") });
  const { code, stdout, stderr } = await lockweave(project, "list", "--write", "LOCKS.md");
  t.deepEqual([code, stdout], [1, ""]);
  t.regex(stderr, /^Nothing was written to LOCKS\.md\. Fix these errors first:\nsrc\/jobs\/\[id\]\.ts:1:/);
  await t.throwsAsync(project.read("LOCKS.md"));
});

test.serial("list --write overwrites no file that it has not written", async (t) => {
  const project = await makeShop();
  const before = await project.read("src/orders.ts");
  for (const file of ["src/orders.ts", "src"]) {
    const { code, stderr } = await lockweave(project, "list", "--write", file);
    t.is(code, 2);
    t.regex(stderr, /is not a list that `lockweave list --write` wrote\. Fix: name another file/);
  }
  t.is(await project.read("src/orders.ts"), before);
  await symlink("missing.md", project.path("LOCKS.md"));
  t.is((await lockweave(project, "list", "--write", "LOCKS.md")).code, 2);
});

test.serial(
  "check --list fails with the changed locks and the command that writes the list again",
  async (t) => {
    const project = await makeShop();
    await project.tspc();
    const checked = async (...args: readonly string[]): Promise<{ code: number | null; stderr: string }> => {
      const { code, stderr } = await lockweave(project, "check", "--list", "LOCKS.md", ...args);
      return { code, stderr };
    };
    t.deepEqual(await checked(), {
      code: 2,
      stderr:
        "lockweave: There is no file `LOCKS.md`. Fix: create it with `npx lockweave list --write LOCKS.md`.\n",
    });
    await lockweave(project, "list", "--write", "LOCKS.md");
    t.deepEqual(await checked(), { code: 0, stderr: "" });

    await project.write({
      "src/orders.ts": ORDERS.replace("lockTime=20s", "lockTime=30s"),
      "src/jobs/[id].ts": "export {};\n",
    });
    await project.tspc();
    t.deepEqual(await checked("-p", "tsconfig.json"), {
      code: 1,
      stderr: `LOCKS.md: LW1410: The list does not match the locks in the sources:
  - \`src/jobs/[id].ts\` \`tick\`: \`LOCK_tick\`
  - \`src/orders.ts\` \`OrderService.pay\`: \`LOCK_payOrder_{orderNo}\`, \`fencing=true\`, \`lockTime=20s\`
  + \`src/orders.ts\` \`OrderService.pay\`: \`LOCK_payOrder_{orderNo}\`, \`fencing=true\`, \`lockTime=30s\`
Fix: run \`npx lockweave list -p tsconfig.json --write LOCKS.md\`, and review the change.
`,
    });
    const { stdout } = await lockweave(project, "check", "--list", "LOCKS.md", "--json");
    t.like((JSON.parse(stdout) as { problems: object[] }).problems[0], { file: "LOCKS.md", code: "LW1410" });
  },
);

test.serial(
  "check --list reports a list that was edited by hand, and a list whose locks no longer exist",
  async (t) => {
    const project = await makeShop();
    await project.tspc();
    await project.write({ "LOCKS.md": `${LIST}\nA note.\n` });
    const edited = await lockweave(project, "check", "--list", "LOCKS.md");
    t.is(edited.code, 1);
    t.regex(edited.stderr, /LW1410: .*\n {2}Its locks are right, but its text was changed\.\nFix: run/);

    await project.write({
      "src/orders.ts": "export {};\n",
      "src/jobs/[id].ts": "export {};\n",
      "LOCKS.md": LIST,
    });
    await project.tspc();
    const gone = await lockweave(project, "check", "--list", "LOCKS.md");
    t.is(gone.code, 1);
    t.regex(gone.stderr, /LW1410: /);
  },
);

test.serial("check --list reports an invalid tag instead of the difference that it causes", async (t) => {
  const project = await makeShop();
  await lockweave(project, "list", "--write", "LOCKS.md");
  await project.write({ "src/jobs/[id].ts": JOBS.replace("businessFlag", "businesFlag") });
  await project.tspc();
  const { code, stderr } = await lockweave(project, "check", "--list", "LOCKS.md");
  t.is(code, 1);
  t.notRegex(stderr, /LW1410/);
});
