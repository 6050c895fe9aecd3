import { mkdir } from "node:fs/promises";
import test from "ava";
import { HOSTS } from "./register/project";
import { makeProject, type Project } from "./project";

// A package whose JavaScript lost only the check of a function with @needsLock.

const LEDGER = `/** @needsLock businessFlag=order keyName=id */
export async function post(id: string): Promise<string> { return id; }
/** @redisLock businessFlag=order keyName=id */
export async function pay(id: string): Promise<string> { return await post(id); }
`;
const MAIN = `import { configure, memoryStore } from "lockweave";
import { pay } from "ledger";
declare const console: { log(text: string): void };
configure({ store: memoryStore() });
console.log(await pay("A1"));
`;

/** An application, and the package `ledger` that tspc built with declarations. */
async function withLedger(): Promise<Project> {
  const library = await makeProject({ "src/index.ts": LEDGER }, { declaration: true });
  const { code, stdout } = await library.tspc();
  if (code !== 0) throw new Error(stdout);
  const project = await makeProject({ "src/main.ts": MAIN });
  await mkdir(project.path("node_modules/ledger"));
  await project.write({
    "node_modules/ledger/package.json":
      '{ "name": "ledger", "version": "1.0.0", "type": "module", "exports": "./index.js" }',
    "node_modules/ledger/index.js": await library.read("out/index.js"),
    "node_modules/ledger/index.d.ts": await library.read("out/index.d.ts"),
  });
  return project;
}

async function loseCheck(project: Project): Promise<void> {
  const text = await project.read("node_modules/ledger/index.js");
  const without = text.replace(/lockweave\.needs\(\{[^}]*\}, id\);/, "");
  if (without === text) throw new Error(`There is no check in ${text}`);
  await project.write({ "node_modules/ledger/index.js": without });
}

const LOST =
  "LW1403: This imports `post` with `@needsLock`, but `index.js` does not contain the lock. It was built without Lockweave";

test("tspc reports an imported package that lost the check of a @needsLock", async (t) => {
  const project = await withLedger();
  t.like(await project.tspc(), { code: 0, stdout: "" });
  await loseCheck(project);
  const { code, stdout } = await project.tspc();
  t.is(code, 2);
  t.true(stdout.includes(LOST), stdout);
});

test("lockweave/register refuses to load a package that lost the check of a @needsLock", async (t) => {
  const project = await withLedger();
  t.is((await project.tspc()).code, 0);
  t.is((await project.run(...HOSTS.Node, "out/main.js")).stdout, "A1\n");
  await loseCheck(project);
  const { code, stderr } = await project.run(...HOSTS.Node, "out/main.js");
  t.is(code, 1);
  t.true(stderr.includes(LOST), stderr);
});
