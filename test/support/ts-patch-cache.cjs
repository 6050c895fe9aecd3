// Loaded in each process that runs a test file, and in each patched compiler that a test starts. ts-patch guards its cache
// with a lock file. The lock has a race, outlives a killed process, and makes others fail after two seconds. So each process
// gets a cache of its own, with links to the patched compilers that `patch-compilers.mjs` left in the shared one.
const { existsSync, linkSync, mkdirSync, readdirSync, rmSync } = require("node:fs");
const { join } = require("node:path");
const { threadId } = require("node:worker_threads");

const CACHES = join(__dirname, "../../node_modules/.cache");
const SHARED = join(CACHES, "ts-patch");
const PATCHED = /^patched\./;

const own = join(CACHES, "ts-patch-of-tests", `${process.pid}-${threadId}`);
process.env.TSP_CACHE_DIR = own;
fill();
process.once("exit", () => rmSync(own, { recursive: true, force: true }));

/** An empty cache works as well. ts-patch then patches the compiler again, which takes a second. */
function fill() {
  rmSync(own, { recursive: true, force: true });
  mkdirSync(own, { recursive: true });
  if (!existsSync(SHARED)) return;
  for (const folder of readdirSync(SHARED)) {
    const patched = readdirSync(join(SHARED, folder)).filter((file) => PATCHED.test(file));
    if (patched.length > 0) mkdirSync(join(own, folder));
    for (const file of patched) linkSync(join(SHARED, folder, file), join(own, folder, file));
  }
}
