// Shows a late write: a writer is stopped for longer than its lock time, and then continues.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

if (process.env["REDIS_URL"] === undefined) {
  console.error(
    "This example needs a real server: REDIS_URL=redis://localhost:6379 node examples/fencing/main.mjs",
  );
  process.exit(1);
}

const directory = mkdtempSync(join(tmpdir(), "ledger-"));
process.once("exit", () => rmSync(directory, { recursive: true }));

/** Starts a process that ends with this one, even if it is stopped. */
function start(file: string, ...args: (string | number)[]): ChildProcess {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args.map(String));
  process.once("exit", () => child.kill("SIGKILL"));
  child.once("exit", () => process.exit(1)); // Only a process that failed ends before this one. It has printed the error.
  return child;
}

/** Resolves to the next message of the process. */
async function nextMessage(child: ChildProcess): Promise<string> {
  const [message] = (await once(child, "message")) as [string | number];
  return String(message);
}

/** Resolves to the balance that the writer read under its lock. */
async function readBy(writer: ChildProcess): Promise<number> {
  const message = await nextMessage(writer);
  if (Number.isNaN(Number(message)))
    throw new Error(`a writer failed before it read the balance: ${message}`);
  return Number(message);
}

const ledger = `http://127.0.0.1:${await nextMessage(start("ledger-service.mjs", directory))}`;

async function runWriters(kind: "trusting" | "fenced"): Promise<void> {
  const first = start("writer.mjs", ledger, kind, 10);
  const balance = await readBy(first);
  first.kill("SIGSTOP");
  const stoppedAt = performance.now();
  console.log(`  writer 1 holds the lock, reads ${balance}, and is stopped (SIGSTOP)`);

  const second = start("writer.mjs", ledger, kind, 5);
  const read = await readBy(second);
  const seconds = ((performance.now() - stoppedAt) / 1_000).toFixed(1);
  second.send("continue");
  const outcome = await nextMessage(second);
  console.log(
    `  writer 2 acquires the lock ${seconds} s later, reads ${read}, and writes ${read + 5}: ${outcome}`,
  );

  first.send("continue");
  first.kill("SIGCONT");
  console.log(
    `  writer 1 continues (SIGCONT) and writes ${balance + 10} too late: ${await nextMessage(first)}`,
  );
  const left = Number(await (await fetch(`${ledger}/${kind}`)).text());
  const verdict = left === balance + 10 ? "overwrote the deposit of writer 2" : "was rejected";
  console.log(`  the balance is ${left}, the late write ${verdict}`);
}

console.log("Without the token:");
await runWriters("trusting");
console.log("With the token:");
await runWriters("fenced");
process.exit();
