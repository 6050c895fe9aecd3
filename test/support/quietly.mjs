// Runs AVA with the given arguments. Prints how many tests pass, and failures in full. At the end it lists what failed, and runs it once more, alone.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { Summary, WHOLE_RUN } from "./summary.mjs";

const AVA = fileURLToPath(new URL("ava.mjs", import.meta.url));
const EVERY_MS = 20_000;
/** A machine that stands still for a moment fails a test or two. A fault of the program usually fails more. */
const MAX_REPEATED = 3;
/** These look for overlaps in runs that differ each time. What they found once is a fault, even if the next run does not find it. */
const SEARCHES =
  /\/(?:torture|simulation|spec)\/|\/(?:mutual-exclusion[\w-]*|mixed-fleets|quorum|sections|randomized)\.test\./;
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
const failures = summary.failures(args, code);
console.log(summary.lines(failures).join("\n"));
process.exitCode = (await passesAlone()) ? 0 : (code ?? 1);

/** Whether the run passed, or whatever failed beside other tests passes alone. */
async function passesAlone() {
  if (code === 0 || summary.isCutOff || failures.length > MAX_REPEATED) return code === 0;
  if (failures.some(([name, command]) => name === WHOLE_RUN || SEARCHES.test(command))) return false;
  for (const [name, command] of failures) {
    console.log(`\nRepeating ${name}`);
    const [again] = await once(
      spawn(command, { shell: true, stdio: ["ignore", "inherit", "inherit"], env }),
      "exit",
    );
    if (again !== 0) return false;
  }
  console.log(
    "\nPassed: what failed beside other tests passed alone. Such a test may depend on the speed of the machine.",
  );
  return true;
}
