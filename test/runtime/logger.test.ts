import { execFile } from "node:child_process";
import { setImmediate as nextTurn } from "node:timers/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import test from "ava";
import { safeLogger, type Logger } from "../../runtime/base/logger";
import { Fleet } from "../support/fleet";
import { NODE } from "../support/node";

function recordingLogger(): { logger: Logger; warnings: string[]; debugged: string[] } {
  const warnings: string[] = [];
  const debugged: string[] = [];
  const logger = {
    warn: (message: string) => void warnings.push(message),
    debug: (message: string) => void debugged.push(message),
  };
  return { logger, warnings, debugged };
}

const throwing = (): never => {
  throw new Error("the disk is full");
};

/** Defines a property such as `then`, which the linter rejects in an object literal. */
const having = (name: string, descriptor: PropertyDescriptor): object =>
  Object.defineProperty({}, name, descriptor);

for (const [what, fails] of [
  ["throws", throwing],
  ["returns a promise that rejects", async () => throwing()],
  ["returns a promise that rejects later", () => nextTurn().then(throwing)],
  ["returns a thenable that throws", () => having("then", { value: throwing })],
  ["returns an object whose then getter throws", () => having("then", { get: throwing })],
  [
    "returns a thenable that rejects",
    () => having("then", { value: (_: unknown, reject: (error: Error) => void) => reject(new Error()) }),
  ],
  [
    "returns a promise whose own catch throws",
    () => Object.assign(Promise.reject(new Error()), { catch: throwing }),
  ],
] as const) {
  test(`a logger that ${what} causes neither an error nor an unhandled rejection`, async (t) => {
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", listen);
    const logger = safeLogger({ warn: fails, debug: fails });
    t.notThrows(() => {
      logger.warn("w");
      logger.debug?.("d");
      logger.warnOnce("o");
    });
    await nextTurn();
    await nextTurn();
    await nextTurn();
    process.off("unhandledRejection", listen);
    t.deepEqual(unhandled, []);
  });
}

test("a logger that rejects does not crash the process", async (t) => {
  const program = `
    const { configure, obtain, shutdown, memoryStore } = require("./runtime");
    const fails = async () => { throw new Error("the disk is full"); };
    configure({ store: memoryStore(), woven: false, logger: { warn: fails, debug: fails } });
    obtain("k").then(() => shutdown({ patience: "0ms" })).then(() => setImmediate(() => console.log("lives")));`;
  const [node, ...args] = NODE;
  const { stdout } = await promisify(execFile)(node, [...args, "--eval", program], {
    cwd: join(__dirname, "../.."),
  });
  t.is(stdout, "lives\n");
});

for (const [what, message, line] of [
  ["plain text", "LOCK_pay_1 (A.pay) waits: é 漢 🔒", "LOCK_pay_1 (A.pay) waits: é 漢 🔒"],
  ["a line break", "a\r\nb\tc", String.raw`a\r\nb\tc`],
  ["an escape sequence", "\x1b[2J\x07", String.raw`\x1b[2J\x07`],
  ["other control characters", "\0\x7f\x9b", String.raw`\x00\x7f\x9b`],
  ["a line separator", "a\u2028b\u2029c", String.raw`a\u2028b\u2029c`],
  ["text that changes its direction", "a\u202eb\u2066c", String.raw`a\u202eb\u2066c`],
] as const) {
  test(`${what} is logged as one line without control characters`, (t) => {
    const { logger, warnings, debugged } = recordingLogger();
    const safe = safeLogger(logger);
    safe.warn(message);
    safe.warnOnce(message);
    safe.debug?.(message);
    t.deepEqual(warnings, [line, line]);
    t.deepEqual(debugged, [line]);
  });
}

test("control characters in a key and a call site are logged escaped, on one line", async (t) => {
  const { logger, warnings, debugged } = recordingLogger();
  const fleet = new Fleet();
  const [key, site] = ["LOCK_a\r\nLOCK_b waits", "\x1b[2Jpay"];
  const lock = fleet.process({ logger }).lock(key, { onLost: "warn" }, site);
  t.true(await lock.acquire());
  await fleet.endHold(key);
  await lock.release();
  t.deepEqual([warnings.length > 0, debugged.length > 0], [true, true]);
  for (const line of [...warnings, ...debugged]) {
    t.true(line.startsWith(String.raw`LOCK_a\r\nLOCK_b waits (\x1b[2Jpay)`), line);
  }
});

test("warnOnce() logs the same text once", (t) => {
  const { logger, warnings } = recordingLogger();
  const safe = safeLogger(logger);
  for (const text of ["a", "b", "a", "b", "a"]) safe.warnOnce(text);
  t.deepEqual(warnings, ["a", "b"]);
});

test("warnOnce() remembers at most 1,000 texts", (t) => {
  const { logger, warnings } = recordingLogger();
  const safe = safeLogger(logger);
  for (let count = 0; count <= 1_000; count += 1) safe.warnOnce(String(count));
  safe.warnOnce("1000");
  t.is(warnings.length, 1_001);
  safe.warnOnce("0");
  t.is(warnings.length, 1_002);
});

test("a logger is called with its own `this`, and needs no debug()", (t) => {
  class Collector implements Logger {
    readonly lines: string[] = [];
    warn(line: string): void {
      this.lines.push(line);
    }
  }
  const collector = new Collector();
  const safe = safeLogger(collector);
  safe.warn("a");
  t.deepEqual(collector.lines, ["a"]);
  t.is(safe.debug, undefined);
});
