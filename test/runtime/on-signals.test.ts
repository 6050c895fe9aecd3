import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import test from "ava";
import { configure } from "../../runtime/config/configure";
import { LockOptionError } from "../../runtime/base/errors";
import { shutdownOnSignals } from "../../runtime/config/on-signals";
import { memoryStore } from "../../runtime/stores/memory";
import { CONTAINER, onlyChildOf, reasonAgainstContainers } from "../support/container";
import { NODE } from "../support/node";
import { VirtualClock } from "../support/virtual-clock";

test("shutdownOn warns in a worker thread, because no signal arrives there", async (t) => {
  const runtime = JSON.stringify(join(__dirname, "../../runtime"));
  const program = `
    const { parentPort } = require("node:worker_threads");
    const { configure, memoryStore } = require(${runtime});
    const logger = { warn: (message) => parentPort.postMessage(message) };
    configure({ store: memoryStore(), woven: false, shutdownOn: ["SIGTERM"], logger });`;
  const worker = new Worker(program, { eval: true, execArgv: NODE.slice(1) });
  const messages: unknown[] = [];
  worker.on("message", (message) => messages.push(message));
  await once(worker, "exit");
  t.is(messages.length, 1);
  t.regex(String(messages[0]), /^configure\(\{ shutdownOn \}\): signals do not reach this worker thread/);
});

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly output: string;
}

/**
 * Starts a process that holds a lock while a second call waits for it. The process exits when its stdin closes, so
 * that it never outlives this one.
 */
function start(
  script: string,
  { container = false } = {},
): {
  signal: (signal: NodeJS.Signals) => void;
  tell: (words: string) => void;
  ended: Promise<Ended>;
  says: (words: string) => Promise<void>;
} {
  const runtime = JSON.stringify(join(__dirname, "../../runtime"));
  const program = `
    const { configure, memoryStore, shutdown, withLock } = require(${runtime});
    configure({ store: memoryStore(), woven: false, shutdownOn: ["SIGTERM", "SIGINT"], logger: console });
    const patient = { retryTimes: 100, waitTime: "60s" };
    let end = () => {};
    withLock("LOCK_one", patient, () => new Promise((resolve) => { end = resolve; console.log("works as " + process.pid); }))
      .then(() => console.log("work done"));
    withLock("LOCK_one", patient, () => {}).catch(({ code }) => console.log("sent home with " + code));
    process.once("removeListener", () => console.log("shuts down"));
    process.stdin.once("close", () => process.exit(99));
    process.stdin.resume();
    setInterval(() => {}, 60_000);
    ${script}`;
  const node = [...NODE, "--eval", program];
  const [command = "", ...args] = container ? [...CONTAINER, ...node] : node;
  const child = spawn(command, args);
  let output = "";
  const heard = (text: string): void => void (output += text);
  child.stdout.setEncoding("utf8").on("data", heard);
  child.stderr.setEncoding("utf8").on("data", heard);
  const closed = once(child, "close") as Promise<[number | null, string | null]>;
  return {
    signal: (signal) => process.kill(container ? onlyChildOf(child.pid) : (child.pid ?? NaN), signal),
    tell: (words) => void child.stdin.write(`${words}\n`),
    ended: closed.then(([code, signal]) => ({ code, signal, output })),
    async says(words) {
      let isClosed = false;
      void closed.then(() => (isClosed = true));
      while (!output.includes(words)) {
        if (isClosed) throw new Error(`it ended without ${words}: ${output}`);
        await Promise.race([once(child.stdout, "data"), closed]);
      }
    },
  };
}

const against = reasonAgainstContainers();
const inContainer = against === undefined ? test.serial : test.serial.skip;
if (against !== undefined) console.warn(`Nothing is tested as process 1: ${against}`);

test.serial("a signal ends the process after its bodies have ended", async (t) => {
  const { signal, tell, ended, says } = start(`process.stdin.once("data", () => end());`);
  await says("works");
  signal("SIGTERM");
  await says("shuts down");
  tell("go on");
  const { signal: endedBy, output } = await ended;
  t.is(endedBy, "SIGTERM");
  t.regex(output, /shuts down\n[^]*work done\n/);
});

test.serial("another listener of the signal decides how the process exits", async (t) => {
  const { signal, ended, says } = start(
    `process.once("SIGINT", async () => { end(); setTimeout(() => process.exit(7), 500); });`,
  );
  await says("works");
  signal("SIGINT");
  const { code, signal: endedBy, output } = await ended;
  t.is(endedBy, null);
  t.is(code, 7);
  t.regex(output, /work done/);
});

test.serial("a second signal ends the process immediately", async (t) => {
  const { signal, ended, says } = start("");
  await says("works");
  signal("SIGTERM");
  await says("shuts down");
  signal("SIGTERM");
  const { signal: endedBy, output } = await ended;
  t.is(endedBy, "SIGTERM");
  t.notRegex(output, /work done/);
});

inContainer("process 1 exits with the code of the signal after its bodies have ended", async (t) => {
  const { signal, tell, ended, says } = start(`process.stdin.once("data", () => end());`, {
    container: true,
  });
  await says("works as 1\n");
  signal("SIGTERM");
  await says("shuts down");
  tell("go on");
  const { code, output } = await ended;
  t.regex(output, /shuts down\n[^]*work done\n/);
  t.is(code, 128 + 15);
});

inContainer("a second signal ends process 1 immediately", async (t) => {
  const { signal, ended, says } = start("", { container: true });
  await says("works as 1\n");
  signal("SIGTERM");
  await says("shuts down");
  signal("SIGINT");
  const { code, output } = await ended;
  t.notRegex(output, /work done/);
  t.is(code, 128 + 2);
});

/** Handles signals like NestJS: runs a hook, removes the listener, and sends the signal again. */
const hooks = (hook: string): string => `
  const onSignal = async (signal) => {
    ${hook}
    process.off(signal, onSignal);
    process.kill(process.pid, signal);
  };
  process.on("SIGTERM", onSignal);`;
const RECIPE = "end(); await shutdown();";

for (const [where, container] of [
  ["a process", false],
  ["process 1", true],
] as const) {
  (container ? inContainer : test.serial)(
    `a signal listener that awaits shutdown() keeps ${where} running until its bodies have ended`,
    async (t) => {
      const { signal, ended, says } = start(hooks(RECIPE), { container });
      await says("works");
      signal("SIGTERM");
      const { code, signal: endedBy, output } = await ended;
      t.regex(output, /works[^]*another listener for SIGTERM exists\.[^]*work done\n/);
      t.deepEqual([code, endedBy], container ? [143, null] : [null, "SIGTERM"]);
    },
  );
}

for (const when of ["at the start", "when the application has started", "at the signal"] as const) {
  test.serial(`warns once about another listener of the same signals, added ${when}`, async (t) => {
    const clock = new VirtualClock();
    const warnings: string[] = [];
    const logger = { warn: (line: string) => void warnings.push(line) };
    const signals = ["SIGUSR2", "SIGWINCH", "SIGHUP"] as const;
    const before = signals.map((signal) => process.listenerCount(signal));
    const other = (): void => {};
    const listen = (): void => {
      for (const signal of signals.slice(0, 2)) process.on(signal, other);
    };
    let shutdowns = 0;
    const shutdown = async (): Promise<void> => void (shutdowns += 1);

    if (when === "at the start") listen();
    const stopListening = shutdownOnSignals(signals, shutdown, { clock, logger, isInWorker: false });
    t.is(warnings.length, when === "at the start" ? 1 : 0);
    if (when === "when the application has started") listen();
    await clock.advance(10_000);
    t.is(warnings.length, when === "at the signal" ? 0 : 1);
    if (when === "at the signal") listen();
    process.emit("SIGUSR2", "SIGUSR2");
    t.is(shutdowns, 1);
    t.is(warnings.length, 1);
    t.regex(warnings[0] ?? "", /another listener for SIGUSR2 and SIGWINCH exists\. /);
    t.regex(warnings[0] ?? "", /process\.on\("SIGUSR2", async \(\) => \{ await shutdown\(\); .*NestJS/);

    stopListening();
    for (const signal of signals.slice(0, 2)) process.off(signal, other);
    t.deepEqual(
      signals.map((signal) => process.listenerCount(signal)),
      before,
    );
    t.is(clock.pendingTimers, 0);
  });
}

test.serial("stopping the signal listeners leaves no timer", (t) => {
  const clock = new VirtualClock();
  const options = { clock, logger: { warn: () => t.fail() }, isInWorker: false };
  shutdownOnSignals(["SIGUSR2"], async () => {}, options)();
  shutdownOnSignals([], async () => {}, options)();
  t.is(clock.pendingTimers, 0);
});

for (const shutdownOn of ["SIGTERM", [15], ["SIGFOO"], ["SIGKILL"], ["toString"], null]) {
  test(`configure() rejects ${JSON.stringify(shutdownOn)} as \`shutdownOn\``, (t) => {
    const listeners = process.eventNames();
    const wrong = { store: memoryStore(), shutdownOn: shutdownOn as unknown as NodeJS.Signals[] };
    t.throws(() => configure(wrong, "woven"), {
      instanceOf: LockOptionError,
      message: /^Expected `shutdownOn` to be a list of signals such as \["SIGTERM", "SIGINT"\], got /,
    });
    t.deepEqual(process.eventNames(), listeners);
  });
}
