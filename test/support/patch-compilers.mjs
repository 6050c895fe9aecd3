// Fills ts-patch's cache with the patched compilers once, before many tests need them at the same time.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const { resolve } = createRequire(import.meta.url);

rmSync(new URL("../../node_modules/.cache/ts-patch-of-tests", import.meta.url), {
  recursive: true,
  force: true,
});
const run = (...args) => execFileSync(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });

// An installation alone caches the patched declarations, without which ts-patch uses no cache for the compiler as a library.
const dir = mkdtempSync(join(tmpdir(), "patch-compilers-"));
const copy = join(dir, "node_modules/typescript");
const original = dirname(resolve("typescript/package.json"));
mkdirSync(join(copy, "lib"), { recursive: true });
for (const file of [
  "package.json",
  "bin",
  "lib/tsc.js",
  "lib/_tsc.js",
  "lib/typescript.js",
  "lib/typescript.d.ts",
]) {
  cpSync(join(original, file), join(copy, file), { recursive: true });
}
process.env.TSP_CACHE_DIR = fileURLToPath(new URL("../../node_modules/.cache/ts-patch", import.meta.url));
run(resolve("ts-patch/bin/ts-patch.js"), "install", "--silent", "--dir", dir);
rmSync(dir, { recursive: true });
run(resolve("ts-patch/bin/tspc.js"), "--version");
run(resolve("ts-patch/compiler"));
