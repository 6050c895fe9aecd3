// Fills the cache of `transpile.cjs`. Otherwise each test file of the first `npm test` would load TypeScript to compile its own
// files, which takes a second of CPU time each. Here TypeScript is loaded once and soon fast.
const { readdirSync } = require("node:fs");
const { join, sep } = require("node:path");
const { load } = require("./transpile.cjs");

const ROOT = join(__dirname, "../..");
const FOLDERS = ["runtime", "transformer", "build", "test"];

/** Tests only read these files. Some of them do not even parse. */
const FIXTURES = join(ROOT, "test/fixtures") + sep;

for (const folder of FOLDERS) {
  for (const file of readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })) {
    const path = join(ROOT, folder, file);
    if (path.endsWith(".ts") && !path.endsWith(".d.ts") && !path.startsWith(FIXTURES)) load(path);
  }
}
