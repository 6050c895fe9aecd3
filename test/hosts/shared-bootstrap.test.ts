import { symlink } from "node:fs/promises";
import test from "ava";
import { lockweave } from "../cli/command";
import { makeProject, tsconfig, type Files, type Project } from "./project";

// A shared package configures the locks of several services. The package is woven, but one service lacks the plugin.

const PACKAGE: Files = {
  "bootstrap/package.json": JSON.stringify({ name: "bootstrap", type: "module", exports: "./out/index.js" }),
  "bootstrap/tsconfig.json": tsconfig({ declaration: true }),
  "bootstrap/src/index.ts": `import { configure, memoryStore, type Configuration } from "lockweave";
export const lockOptions = (): Configuration => ({ store: memoryStore() });
export function start(): void { configure(lockOptions()); }
`,
};

const SERVICE: Files = {
  "src/pay.ts": `let inside = 0;
/** @redisLock businessFlag=pay */
export async function pay(): Promise<number> {
  inside += 1;
  await new Promise<void>((resolve) => setImmediate(resolve));
  const together = inside;
  inside -= 1;
  return together;
}
declare function setImmediate(callback: () => void): void;
`,
  "src/by-package.ts": `import { start } from "bootstrap";
import { pay } from "./pay.js";
start();
console.log(await Promise.all([pay(), pay()]));
`,
  "src/by-itself.ts": `import { configure } from "lockweave";
import { lockOptions } from "bootstrap";
import { pay } from "./pay.js";
configure(lockOptions());
console.log(await Promise.all([pay(), pay()]));
`,
  "src/unit-test.ts": `import { testLocks } from "lockweave/testing";
testLocks();
`,
  "src/assertion.ts": `import { assertWoven } from "lockweave/testing";
import { pay } from "./pay.js";
assertWoven(pay);
`,
};
const DOM = { types: [], lib: ["es2022", "dom"] };

async function builtBy(compiler: "tsc" | "tspc"): Promise<Project> {
  const project = await makeProject(
    { ...PACKAGE, ...SERVICE },
    { ...DOM, ...(compiler === "tsc" ? { plugins: [] } : {}) },
  );
  await symlink(project.path("bootstrap"), project.path("node_modules/bootstrap"));
  for (const built of [await project.tspc("-p", "bootstrap"), await project[compiler]("-p", ".")]) {
    if (built.code !== 0) throw new Error(built.stdout);
  }
  return project;
}

test("a service without the plugin fails at its own configure(), in its unit tests, and in the check", async (t) => {
  const project = await builtBy("tsc");
  const unlocked = await project.run("out/by-package.js");
  t.is(unlocked.stdout, "[ 2, 1 ]\n", "at run time it looks like a service without tags");
  for (const file of ["by-itself", "unit-test", "assertion"]) {
    const { code, stderr } = await project.run(`out/${file}.js`);
    t.is(code, 1, file);
    t.true(stderr.includes("LOCK_NOT_WOVEN"), stderr);
  }
  const check = await lockweave(project, "check");
  t.is(check.code, 1);
  t.true(check.stderr.startsWith("src/pay.ts:2:5: Cannot verify the lock of `pay`"), check.stderr);
});

test("a woven service runs under its locks, whether it or the package calls configure()", async (t) => {
  const project = await builtBy("tspc");
  for (const file of ["by-package", "by-itself"]) {
    t.is((await project.run(`out/${file}.js`)).stdout, "[ 1, 1 ]\n", file);
  }
  t.is((await lockweave(project, "check")).code, 0);
});
