// Loaded in each process that the tests start. It loads TypeScript files like ts-node, but caches the compiled files,
// because compiling takes ten times as long as the rest of the startup. `transpile-all.cjs` fills this cache before `npm test`.
const { createHash } = require("node:crypto");
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const { threadId } = require("node:worker_threads");

const ROOT = join(__dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache/transpiled");
const VERSIONS = [
  "node_modules/ts-node/package.json",
  "node_modules/typescript/package.json",
  "tsconfig.json",
]
  .map((file) => readFileSync(join(ROOT, file), "utf8"))
  .join("\n");

process.setSourceMapsEnabled(true);

require.extensions[".ts"] = (module, path) => {
  // oxlint-disable-next-line no-underscore-dangle -- Node has no other name for it.
  module._compile(load(path), path);
};

/** Returns the JavaScript of the file, and caches it. */
function load(path) {
  const text = readFileSync(path, "utf8");
  const name = createHash("sha256").update(VERSIONS).update(path).update("\n").update(text).digest("hex");
  const kept = join(CACHE, `${name}.js`);
  return read(kept) ?? keep(kept, transpile(text, path));
}

exports.load = load;

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

let service;

function transpile(text, path) {
  service ??= require("ts-node").create({ cwd: ROOT, transpileOnly: true });
  return service.compile(text, path);
}

/** Writes the file in one step, because other processes and threads read it concurrently. */
function keep(path, code) {
  mkdirSync(CACHE, { recursive: true });
  const unfinished = `${path}.${process.pid}.${threadId}`;
  writeFileSync(unfinished, code);
  renameSync(unfinished, path);
  return code;
}
