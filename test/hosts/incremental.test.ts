import { stat } from "node:fs/promises";
import test from "ava";
import { makeProject, PLUGIN, tsconfig, type Project } from "./project";

const FILES = {
  "src/order.ts": `import { receipt } from "./receipt.js";

/** @redisLock businessFlag=payOrder keyName=orderNo */
export async function pay(orderNo: string): Promise<string> {
  return receipt(orderNo);
}
`,
  "src/receipt.ts": `export function receipt(orderNo: string): string { return "paid " + orderNo; }\n`,
};

/** Returns the modification time of each file. */
function written(project: Project, ...files: readonly string[]): Promise<number[]> {
  return Promise.all(files.map(async (file) => (await stat(project.path(file))).mtimeMs));
}

test.serial("the build info of plain tsc does not count as that of a woven build", async (t) => {
  const project = await makeProject(FILES, { incremental: true });
  t.like(await project.tsc(), { code: 0, stdout: "" });
  t.notRegex(await project.read("out/order.js"), /acquire/);

  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.regex(await project.read("out/order.js"), /lockweave\.acquire/);

  t.like(await project.tsc(), { code: 0, stdout: "" });
  t.notRegex(await project.read("out/order.js"), /acquire/);
});

test.serial("the next build uses changed plugin defaults and rewrites only tagged files", async (t) => {
  const project = await makeProject(FILES, { incremental: true });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.notRegex(await project.read("out/order.js"), /lockTime/);
  const [receipt] = await written(project, "out/receipt.js");

  const plugin = { ...PLUGIN, defaults: { lockTime: "7s" } };
  await project.write({ "tsconfig.json": tsconfig({ incremental: true, plugins: [plugin] }) });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.regex(await project.read("out/order.js"), /lockTime: "7s"/);
  t.deepEqual(await written(project, "out/receipt.js"), [receipt]);
});

test.serial("an incremental build emits a file again only if it changed", async (t) => {
  const project = await makeProject(FILES, { incremental: true, declaration: true });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  const woven = await project.read("out/order.js");
  const [order, receipt] = await written(project, "out/order.js", "out/receipt.js");

  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.deepEqual(await written(project, "out/order.js", "out/receipt.js"), [order, receipt]);

  await project.write({ "src/receipt.ts": FILES["src/receipt.ts"].replace("paid", "PAID") });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.deepEqual(await written(project, "out/order.js"), [order]);
  t.regex(await project.read("out/receipt.js"), /PAID/);

  await project.write({ "src/order.ts": FILES["src/order.ts"].replace("payOrder", "refund") });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.is(await project.read("out/order.js"), woven.replaceAll("payOrder", "refund"));
});

test.serial("tspc -b rebuilds only after a change of a tag or of the plugin's defaults", async (t) => {
  const project = await makeProject(FILES, { incremental: true });
  t.like(await project.tspc("-b"), { code: 0, stdout: "" });
  const times = await written(project, "out/order.js", "out/receipt.js");
  t.like(await project.tspc("-b"), { code: 0, stdout: "" });
  t.deepEqual(await written(project, "out/order.js", "out/receipt.js"), times);

  await project.write({ "src/order.ts": FILES["src/order.ts"].replace("payOrder", "refund") });
  t.like(await project.tspc("-b"), { code: 0, stdout: "" });
  t.regex(await project.read("out/order.js"), /"refund"/);

  const plugin = { ...PLUGIN, defaults: { lockTime: "7s" } };
  await project.write({ "tsconfig.json": tsconfig({ incremental: true, plugins: [plugin] }) });
  t.like(await project.tspc("-b"), { code: 0, stdout: "" });
  t.regex(await project.read("out/order.js"), /"refund", lockTime: "7s"/);
});
