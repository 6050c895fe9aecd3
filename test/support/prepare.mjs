// Prepares `npm test`: builds the package, patches the compilers, compiles the tests, and runs all checks. The build uses one core, so all
// that needs no built package runs on the other one.
import { spawn } from "node:child_process";
import { once } from "node:events";

/** Returns whether the command succeeded. */
async function run(command, ...args) {
  const child = spawn(command, args, { stdio: "inherit", shell: process.platform === "win32" });
  const [code] = await once(child, "exit");
  if (code !== 0) process.exitCode = 1;
  return code === 0;
}

async function compileAndCheck() {
  await run("node", "test/support/patch-compilers.mjs");
  await run("node", "test/support/transpile-all.cjs");
  await run("node", "build/check.mjs", "format", "unused");
}

const [isBuilt] = await Promise.all([run("npm", "run", "--silent", "build"), compileAndCheck()]);
if (isBuilt) await run("node", "build/check.mjs", "lint", "package");
