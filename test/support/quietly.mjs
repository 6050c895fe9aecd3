// Runs AVA with the given arguments. Prints how many tests pass, and failures in full. At the end it repeats what failed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { Summary } from "./summary.mjs";

const AVA = fileURLToPath(new URL("ava.mjs", import.meta.url));
const EVERY_MS = 20_000;
const DROPPED = /^ {2}[✔-] /;
const LOGGED = /^ {4}/;

const args = process.argv.slice(2);
const env = process.env.MATRIX === undefined ? { ...process.env, WITHOUT_INSTALLS: "1" } : process.env;
const child = spawn(process.execPath, [AVA, ...(process.stdout.isTTY ? ["--color"] : []), ...args], {
  stdio: ["inherit", "pipe", "inherit"],
  env,
});

// AVA then ends its run, and names the tests that are not finished.
process.on("SIGINT", () => child.kill("SIGINT"));

const ended = once(child, "exit");
const summary = new Summary();
let reportedAt = performance.now();
let isDropped = false;
for await (const line of createInterface({ input: child.stdout })) {
  const plain = stripVTControlCharacters(line);
  summary.read(plain);
  isDropped = !summary.isAtEnd && (DROPPED.test(plain) || (isDropped && LOGGED.test(plain)));
  if (!isDropped) console.log(line);
  if (summary.isAtEnd || performance.now() - reportedAt < EVERY_MS) continue;
  reportedAt = performance.now();
  console.log(`  ${summary.passed} tests passed so far`);
}
const [code] = await ended;
process.exitCode = code ?? 1;
console.log(summary.lines(args, code).join("\n"));
