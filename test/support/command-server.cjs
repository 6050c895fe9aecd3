// Runs tspc, tsc, and the `lockweave` command for tests, one after the other. Most of the time of such a run is the loading
// and warm-up of TypeScript, which happens only once here. The compilers, the command, and the files are real, but the
// process is reused. Tests that depend on a new process start one.
const { createRequire } = require("node:module");
const { join } = require("node:path");

const ROOT = join(__dirname, "../..");
const MAIN = join(ROOT, "dist/transformer/cli/main.js");
const COMPILERS = { tspc: "ts-patch/compiler", tsc: "typescript" };

/** Thrown instead of an exit of the process. */
class Ended extends Error {
  constructor(code) {
    super("the command has ended");
    this.code = code;
  }
}

let last = Promise.resolve();
process.on("message", ({ id, command, cwd, args, tsPatchCache }) => {
  last = last.then(async () => {
    if (tsPatchCache !== undefined) process.env.TSP_CACHE_DIR = tsPatchCache; // So that the test can restore what the command patches.
    process.send({ id, ...(await run(command, cwd, args)) });
  });
});
process.once("disconnect", process.exit);

async function run(command, cwd, args) {
  const { write: toOutput } = process.stdout;
  const { write: toErrors } = process.stderr;
  const { exit, argv } = process;
  const streams = [process.stdout, process.stderr].map((stream) => [stream, stream.listeners("error")]);
  const said = { stdout: "", stderr: "" };
  const into = (stream) => (text) => {
    said[stream] += text;
    return true;
  };
  process.chdir(cwd);
  process.exitCode = undefined;
  Object.assign(process.stdout, { write: into("stdout") });
  Object.assign(process.stderr, { write: into("stderr") });
  process.exit = (code) => {
    throw new Ended(code ?? process.exitCode ?? 0);
  };
  try {
    const code = await (command === "lockweave"
      ? runMain(args)
      : compile(command, cwd, args, into("stdout")));
    return { code, ...said };
  } catch (error) {
    if (error instanceof Ended) return { code: error.code, ...said };
    return { code: 1, stdout: said.stdout, stderr: `${said.stderr}${error.stack}\n` };
  } finally {
    Object.assign(process.stdout, { write: toOutput });
    Object.assign(process.stderr, { write: toErrors });
    Object.assign(process, { exit, argv, exitCode: undefined });
    for (const [stream, before] of streams) {
      for (const listener of stream.listeners("error")) {
        if (!before.includes(listener)) stream.off("error", listener);
      }
    }
  }
}

/** Does the same as the end of `tsc.js`. */
function compile(command, cwd, args, write) {
  const ts = require(COMPILERS[command]);
  process.argv = [process.execPath, join(ROOT, "node_modules/.bin", command), ...args];
  Object.assign(ts.sys, { args, write, exit: process.exit, getCurrentDirectory: () => cwd });
  ts.executeCommandLine(ts.sys, () => {}, args);
  return process.exitCode ?? 0;
}

/** Runs the command until it sets its exit code. */
async function runMain(args) {
  process.argv = [process.execPath, MAIN, ...args];
  delete require.cache[MAIN];
  createRequire(MAIN)(MAIN);
  while (process.exitCode === undefined) await new Promise((resolve) => setImmediate(resolve));
  return process.exitCode;
}
