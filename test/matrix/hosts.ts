import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

// Runs the tests that `npm test` skips: hosts that are large to install, other versions of Node and TypeScript, a browser, and
// slow tests.

const ROOT = resolve(__dirname, "../..");
/** Names that occur only in test files with tests of the matrix. */
const MATRIX_ONLY = /\b(?:isMatrix|inMatrix(?:Serially)?|OTHER_NODES|TESTED|SAMPLED|startLockServer)\b/;

function filesOfMatrix(): string[] {
  return readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" })
    .map((file) => `test/${file.replaceAll("\\", "/")}`)
    .filter((file) => file.endsWith(".test.ts") && MATRIX_ONLY.test(readFileSync(join(ROOT, file), "utf8")))
    .toSorted();
}

/** Fewer than `npm test` runs at once, because another part of the matrix runs at the same time. */
const CONCURRENCY = ["--concurrency", "4"];

const quietly = join(ROOT, "test/support/quietly.mjs");
const { status } = spawnSync(process.execPath, [quietly, ...CONCURRENCY, ...filesOfMatrix()], {
  cwd: ROOT,
  stdio: "inherit",
  env: { ...process.env, MATRIX: "1" },
});
process.exitCode = status ?? 1;
