// Runs AVA with the given arguments, and says of what passes only how much it is. What fails is told in full.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";

const AVA = fileURLToPath(new URL("../../node_modules/ava/entrypoints/cli.mjs", import.meta.url));
const EVERY_MS = 20_000;
const PASSED = /^ {2}✔ /;
const SKIPPED = /^ {2}- /;
const LOGGED = /^ {4}/;
/** Behind it AVA tells what failed. */
const END = "  ─";

const child = spawn(
  process.execPath,
  [AVA, ...(process.stdout.isTTY ? ["--color"] : []), ...process.argv.slice(2)],
  { stdio: ["inherit", "pipe", "inherit"] },
);

const ended = once(child, "exit");
let passed = 0;
let toldAt = performance.now();
let isAtEnd = false;
let isDropped = false;
for await (const line of createInterface({ input: child.stdout })) {
  const plain = stripVTControlCharacters(line);
  isAtEnd ||= plain === END;
  const hasPassed = PASSED.test(plain);
  isDropped = !isAtEnd && (hasPassed || SKIPPED.test(plain) || (isDropped && LOGGED.test(plain)));
  if (!isDropped) console.log(line);
  if (!hasPassed || isAtEnd) continue;
  passed += 1;
  if (performance.now() - toldAt < EVERY_MS) continue;
  toldAt = performance.now();
  console.log(`  ${passed} tests passed so far`);
}
const [code] = await ended;
process.exitCode = code ?? 1;
