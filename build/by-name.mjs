// Runs one program of a list by its name, as `npm run bench -- compare --quick` does.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";

/**
 * @typedef {object} Program
 * @property {string} file a TypeScript file
 * @property {string} about what it does
 * @property {boolean} [needsBuild] whether it uses the built package
 * @property {readonly string[]} [programs] other programs that it needs on the PATH
 * @property {readonly string[]} [node] options of Node
 * @property {readonly string[]} [args] arguments that it always gets
 */

/**
 * Runs the program that the command line names, with the rest of the command line. Without a known name, it prints all names.
 *
 * @param {string} script the npm script
 * @param {Readonly<Record<string, Program>>} programs by name
 */
export async function runByName(script, programs) {
  const [name = "", ...rest] = process.argv.slice(2);
  if (Object.hasOwn(programs, name)) process.exitCode = await run(programs[name], rest);
  else {
    console.error(`${name === "" ? "" : `There is no "${name}". `}${usage(script, programs)}`);
    process.exitCode = 2;
  }
}

function usage(script, programs) {
  const width = Math.max(...Object.keys(programs).map(({ length }) => length));
  const rows = Object.entries(programs).map(([name, { about }]) => `  ${name.padEnd(width)}  ${about}`);
  return `Usage: npm run ${script} -- <name> [arguments]\n\n${rows.join("\n")}`;
}

async function run({ file, needsBuild = false, programs = [], node = [], args = [] }, rest) {
  if (programs.length > 0) step(process.execPath, "test/support/ensure.mjs", ...programs);
  if (needsBuild) step("npm", "run", "--silent", "build");
  const all = [...node, "--require", "ts-node/register/transpile-only", file, ...args, ...rest];
  const child = spawn(process.execPath, all, { stdio: "inherit" });
  process.on("SIGINT", () => {}); // Ctrl-C also reaches the child.
  process.on("SIGTERM", () => child.kill());
  const [code] = await once(child, "exit");
  return code ?? 1;
}

function step(command, ...args) {
  const { status } = spawnSync(command, args, { stdio: "inherit", shell: process.platform === "win32" });
  if (status !== 0) process.exit(status ?? 1);
}
