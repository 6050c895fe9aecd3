// Fills ts-patch's cache with the patched compilers once, before many tests need them at the same time.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { createRequire } from "node:module";

const { resolve } = createRequire(import.meta.url);

rmSync(new URL("../../node_modules/.cache/ts-patch-of-tests", import.meta.url), {
  recursive: true,
  force: true,
});
for (const args of [[resolve("ts-patch/bin/tspc.js"), "--version"], [resolve("ts-patch/compiler")]]) {
  execFileSync(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
}
