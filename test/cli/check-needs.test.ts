import test from "ava";
import { makeProject, type Project } from "../hosts/project";
import { lockweave } from "./command";
import { runTool } from "./tools";

// Whether check notices that the output lost only the check of a function with @needsLock.

const LEDGER = `import { post } from "./post.js";
export class Ledger {
  /** @needsLock businessFlag=order keyName=orderNo */
  async enter(orderNo: string): Promise<string> { return post(orderNo); }
  /**
   * @needsLock businessFlag=order keyName=orderNo
   * @redisLock businessFlag=account keyName=account
   */
  async book(orderNo: string, account: string): Promise<string> { return post(orderNo + account); }
}
/** @redisLock businessFlag=order keyName=orderNo */
export async function pay(orderNo: string): Promise<string> { return new Ledger().enter(orderNo); }
`;
const FILES = {
  "src/ledger.ts": LEDGER,
  "src/post.ts": "export const post = async (text: string): Promise<string> => text;\n",
};
const CHECKS = /lockweave\.needs\(\{[^}]*\}, orderNo\);/g;

async function built(): Promise<Project> {
  const project = await makeProject(FILES);
  const { code, stdout } = await project.tspc();
  if (code !== 0) throw new Error(stdout);
  return project;
}

/** Removes the nth check from the output, as a build without the weave of needs would. */
async function lose(project: Project, file: string, checks: RegExp, nth: number): Promise<void> {
  const text = await project.read(file);
  const all = [...text.matchAll(checks)];
  const lost = all[nth];
  if (all.length !== 2 || lost === undefined) throw new Error(`There are ${all.length} checks in ${text}`);
  const start = lost.index;
  await project.write({ [file]: text.slice(0, start) + text.slice(start + lost[0].length) });
}

test("check reports each function whose output lost only its @needsLock", async (t) => {
  const project = await built();
  const { code, stdout, stderr } = await lockweave(project, "check");
  t.is(code, 0, stderr);
  t.true(stdout.startsWith("The locks of all 4 tags are in the output."), stdout);
  const whole = await project.read("out/ledger.js");
  for (const [nth, [line, name]] of [
    ["3", "Ledger.enter"],
    ["6", "Ledger.book"],
  ].entries()) {
    await project.write({ "out/ledger.js": whole });
    await lose(project, "out/ledger.js", CHECKS, nth);
    const lost = await lockweave(project, "check");
    t.is(lost.code, 1);
    const place = `src/ledger.ts:${line}:`;
    const problem = `Cannot verify the \`@needsLock\` of \`${name}\`: \`out/ledger.js\` does not check it.\n`;
    t.true(lost.stderr.startsWith(place) && lost.stderr.includes(problem), lost.stderr);
    t.is(lost.stderr.match(/Cannot verify/g)?.length, 1);
    const { unproved } = JSON.parse((await lockweave(project, "check", "--json")).stdout) as {
      unproved: { line: number; reason: string }[];
    };
    t.deepEqual(
      unproved.map((one) => [one.line, one.reason]),
      [[Number(line), "unwoven"]],
    );
  }
});

test("check reports a @needsLock whose check in the output names another lock, or comes too late", async (t) => {
  const project = await built();
  const whole = await project.read("out/ledger.js");
  await project.write({
    "out/ledger.js": whole.replace(
      'site: "Ledger.enter", businessFlag: "order"',
      'site: "Ledger.enter", businessFlag: "orders"',
    ),
  });
  const stale = await lockweave(project, "check");
  t.is(stale.code, 1);
  t.true(
    stale.stderr.includes(
      "its check in `out/ledger.js` differs from the tag: businessFlag=orders instead of businessFlag=order",
    ),
    stale.stderr,
  );
  await project.write({ "out/ledger.js": whole.replace(CHECKS, "post(orderNo); $&") });
  const late = await lockweave(project, "check");
  t.is(late.code, 1);
  t.true(late.stderr.includes("in `out/ledger.js` its check does not precede its body"), late.stderr);
});

test("check finds the checks of a minified bundle, and reports one that it lacks", async (t) => {
  const project = await built();
  const options = { entryPoints: ["out/ledger.js"], outfile: "bundle/app.js", bundle: true, minify: true };
  const settings = JSON.stringify({ ...options, platform: "node", format: "esm", packages: "external" });
  await runTool(project, "esbuild", `tool.buildSync(${settings})`);
  const proved = await lockweave(project, "check", "--output", "bundle");
  t.is(proved.code, 0, proved.stderr);
  await lose(project, "bundle/app.js", /\w+\.needs\(\{[^}]*\},\w+\)(?:,|;)/g, 0);
  const lost = await lockweave(project, "check", "--output", "bundle");
  t.is(lost.code, 1);
  t.true(
    lost.stderr.includes("Cannot verify the `@needsLock` of `Ledger.enter`: `bundle` does not check it."),
    lost.stderr,
  );
});

test("check accepts a project that has only @needsLock", async (t) => {
  const source =
    "/** @needsLock businessFlag=order keyName=id */\nexport const post = (id: string): string => id;\n";
  const project = await makeProject({ "src/post.ts": source });
  t.is((await project.tspc()).code, 0);
  const { code, stdout, stderr } = await lockweave(project, "check");
  t.is(code, 0, stderr);
  t.true(stdout.startsWith("The lock of the only tag is in the output."), stdout);
  t.is((await project.tsc()).code, 0);
  const unwoven = await lockweave(project, "check");
  t.is(unwoven.code, 1);
  t.true(unwoven.stderr.includes("`out/post.js` does not check it"), unwoven.stderr);
});
