// The late writer: stopped in the middle of its work for longer than its lock lives, and then continued.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
if (process.env["REDIS_URL"] === undefined) {
    console.error("This example needs a real server: REDIS_URL=redis://localhost:6379 node examples/fencing/main.mjs");
    process.exit(1);
}
const directory = mkdtempSync(join(tmpdir(), "ledger-"));
process.once("exit", () => rmSync(directory, { recursive: true }));
/** Whatever ends this process, it leaves none behind, and least of all one that stands still. */
function start(file, ...args) {
    const child = fork(fileURLToPath(new URL(file, import.meta.url)), args.map(String));
    process.once("exit", () => child.kill("SIGKILL"));
    child.once("exit", () => process.exit(1)); // It failed, and said why: they all live as long as we do.
    return child;
}
/** What the process tells next. */
async function told(child) {
    const [message] = (await once(child, "message"));
    return String(message);
}
/** The balance that the writer has read, now that it holds the lock. */
async function readBy(writer) {
    const message = await told(writer);
    if (Number.isNaN(Number(message)))
        throw new Error(`a writer did not get that far: ${message}`);
    return Number(message);
}
const ledger = `http://127.0.0.1:${await told(start("ledger-service.mjs", directory))}`;
async function story(kind) {
    const first = start("writer.mjs", ledger, kind, 10);
    const balance = await readBy(first);
    first.kill("SIGSTOP");
    const stoppedAt = performance.now();
    console.log(`  writer 1 holds the lock, reads ${balance}, and is stopped (SIGSTOP)`);
    const second = start("writer.mjs", ledger, kind, 5);
    const read = await readBy(second);
    const seconds = ((performance.now() - stoppedAt) / 1_000).toFixed(1);
    second.send("go on");
    const outcome = await told(second);
    console.log(`  writer 2 has the lock ${seconds} s later, reads ${read} and writes ${read + 5}: ${outcome}`);
    first.send("go on");
    first.kill("SIGCONT");
    console.log(`  writer 1 is continued (SIGCONT) and writes ${balance + 10}, too late: ${await told(first)}`);
    const left = Number(await (await fetch(`${ledger}/${kind}`)).text());
    const verdict = left === balance + 10 ? "landed: the deposit of writer 2 is gone" : "did not land";
    console.log(`  the balance is ${left}, the late write ${verdict}`);
}
console.log("Without the token:");
await story("trusting");
console.log("With the token:");
await story("fenced");
process.exit();
