// Loaded in the compilers that the tests start. V8 needs a third of a second to compile the nine megabytes of TypeScript,
// and tspc loads them twice. So this caches the compiled code for the next process.
/* oxlint-disable no-underscore-dangle -- Node has no other name for it. */
const { createHash } = require("node:crypto");
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require("node:fs");
const Module = require("node:module");
const { dirname, join } = require("node:path");
const { Script, ...vm } = require("node:vm");
const { threadId } = require("node:worker_threads");

const CACHE = join(__dirname, "../../node_modules/.cache/code");
const LARGE = 1_000_000;

const compileModule = Module.prototype._compile;
Module.prototype._compile = function (text, path, ...others) {
  if (text.length < LARGE) return compileModule.call(this, text, path, ...others);
  const run = compiled(Module.wrap(text), path).runInThisContext();
  return run.call(this.exports, this.exports, Module.createRequire(path), this, path, dirname(path));
};

require("node:vm").runInThisContext = (text, options) =>
  text.length < LARGE ? vm.runInThisContext(text, options) : compiled(text).runInThisContext();

function compiled(text, filename) {
  const hash = createHash("sha1").update(process.version).update(process.execArgv.join(" ")).update(text);
  const path = join(CACHE, `${hash.digest("hex")}.bin`);
  const cachedData = read(path);
  const script = new Script(text, { ...(filename && { filename }), ...(cachedData && { cachedData }) });
  if (cachedData === undefined || script.cachedDataRejected) {
    process.once("exit", () => write(path, script.createCachedData()));
  }
  return script;
}

function read(path) {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

/** Writes the file in one step, because other processes and threads read it concurrently. */
function write(path, data) {
  mkdirSync(CACHE, { recursive: true });
  const unfinished = `${path}.${process.pid}.${threadId}`;
  writeFileSync(unfinished, data);
  renameSync(unfinished, path);
}
