import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import test from "ava";
import { configure } from "../../runtime/configure";
import { LockOptionError } from "../../runtime/errors";
import { memoryStore } from "../../runtime/stores/memory";

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
}

/** A process that holds a lock, and waits for another one that it does not get. */
function start(script: string): {
  child: ChildProcess;
  ended: Promise<Ended>;
  says: (words: string) => Promise<void>;
} {
  const runtime = JSON.stringify(join(__dirname, "../../runtime"));
  const program = `
    const { configure, memoryStore, withLock } = require(${runtime});
    configure({ store: memoryStore(), woven: false, shutdownOn: ["SIGTERM", "SIGINT"], logger: console });
    const patient = { retryTimes: 100, waitTime: "60s" };
    let end = () => {};
    withLock("LOCK_one", patient, () => new Promise((resolve) => { end = resolve; console.log("works"); }))
      .then(() => console.log("work done"));
    withLock("LOCK_one", patient, () => {}).catch(({ code }) => console.log("sent home with " + code));
    setInterval(() => {}, 60_000);
    ${script}`;
  const child = spawn(process.execPath, ["--require", "ts-node/register/transpile-only", "--eval", program]);
  let output = "";
  const heard = (text: string): void => void (output += text);
  child.stdout.setEncoding("utf8").on("data", heard);
  child.stderr.setEncoding("utf8").on("data", heard);
  const closed = once(child, "close") as Promise<[number | null, string | null]>;
  return {
    child,
    ended: closed.then(([code, signal]) => ({ code, signal, output })),
    async says(words) {
      while (!output.includes(words)) await Promise.race([once(child.stdout, "data"), closed]);
    },
  };
}

test("at a signal those who wait are sent home, bodies are waited for, and the process ends by the signal", async (t) => {
  const { child, ended, says } = start(`process.stdin.once("data", () => end());`);
  await says("works");
  child.kill("SIGTERM");
  await says("sent home");
  child.stdin?.end("go on\n");
  const { signal, output } = await ended;
  t.is(signal, "SIGTERM");
  t.regex(output, /sent home with LOCK_CLOSED\n[^]*released after [^]*work done\n$/);
});

test("who listens to the signal as well decides how the process ends", async (t) => {
  const { child, ended, says } = start(
    `process.once("SIGINT", async () => { end(); setTimeout(() => process.exit(7), 500); });`,
  );
  await says("works");
  child.kill("SIGINT");
  const { code, signal, output } = await ended;
  t.is(signal, null);
  t.is(code, 7);
  t.regex(output, /work done/);
});

test("a second signal ends the process at once", async (t) => {
  const { child, ended, says } = start("");
  await says("works");
  child.kill("SIGTERM");
  await says("sent home");
  child.kill("SIGTERM");
  const { signal, output } = await ended;
  t.is(signal, "SIGTERM");
  t.notRegex(output, /work done/);
});

for (const shutdownOn of ["SIGTERM", [15], ["SIGFOO"], ["SIGKILL"], ["toString"], null]) {
  test(`what is no list of signals is refused: ${JSON.stringify(shutdownOn)}`, (t) => {
    const listeners = process.eventNames();
    const wrong = { store: memoryStore(), shutdownOn: shutdownOn as unknown as NodeJS.Signals[] };
    t.throws(() => configure(wrong, "woven"), {
      instanceOf: LockOptionError,
      message: /^Expected `shutdownOn` to be a list of signals such as \["SIGTERM", "SIGINT"\], got /,
    });
    t.deepEqual(process.eventNames(), listeners);
  });
}
