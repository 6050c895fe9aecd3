import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beginTest, counters } from "./counting";
import { asEnvironment, settings, type Settings } from "./settings";

// A process that runs test files one after another with AVA's own runner, and loads the code again for each. This avoids
// the start of a process for each file.

export interface Task {
  readonly testFile: string;
  /** The tests to run, in this order. The default is all tests. */
  readonly titles?: readonly string[];
  /** Whether the tests run one after the other. */
  readonly serial: boolean;
  /** Whether the tests continue after the first failure. */
  readonly runsAll?: boolean;
  readonly mutant?: Settings["mutant"];
}

export type Report =
  | { readonly type: "ready" }
  /** The file is loaded. */
  | { readonly type: "loaded"; readonly reached: readonly string[] }
  | ({ readonly type: "tested" } & Tested)
  /** An error outside of the tests. */
  | { readonly type: "broken"; readonly what: string }
  /** Whether the tests left nothing behind that could affect others. */
  | { readonly type: "done"; readonly isClean: boolean };

export interface Tested {
  readonly title: string;
  readonly ms: number;
  readonly passed: boolean;
  /** The regions that it reached, if they are counted. */
  readonly reached: readonly string[];
}

interface RunnerTask {
  readonly title: string;
  readonly metadata: { selected: boolean };
}

interface StateChange {
  readonly type: string;
  readonly title: string;
  readonly duration: number;
}

/** AVA's internal runner, which has no public types. */
interface Runner {
  readonly chain: unknown;
  readonly tasks: { concurrent: RunnerTask[]; serial: RunnerTask[] };
  on(event: "finish" | "error" | "stateChange", listener: (event: unknown) => void): void;
}

const ours = settings();
const { root } = ours;
const requireHere = createRequire(join(root, "package.json"));

function send(report: Report): void {
  process.send?.(report);
}

async function loadAva(): Promise<new (options: object) => Runner> {
  const ava = (path: string): Promise<Record<string, unknown>> =>
    import(pathToFileURL(join(root, "node_modules/ava/lib", path)).href) as Promise<Record<string, unknown>>;
  const options = (await ava("worker/options.cjs")) as { default: { set(options: object): void } };
  options.default.set({});
  const chalk = (await ava("chalk.js")) as { set(options: object): void };
  chalk.set({ level: 0 });
  const { default: RunnerOfAva } = await ava("runner.js");
  return RunnerOfAva as new (options: object) => Runner;
}

/** Loads the file and its tests with an empty module cache, except for installed packages. */
function loadAnew(path: string, chain: unknown): void {
  for (const cached of Object.keys(require.cache)) {
    if (cached.startsWith(root) && !cached.includes("/node_modules/")) delete require.cache[cached];
  }
  const ava = requireHere.resolve("ava");
  const { Module } = requireHere("node:module") as typeof import("node:module");
  require.cache[ava] = Object.assign(new Module(ava), { loaded: true, exports: chain });
  requireHere(path);
}

function select(tasks: RunnerTask[], titles: readonly string[]): void {
  const places = new Map(titles.map((title, place) => [title, place]));
  for (const { title, metadata } of tasks) metadata.selected &&= places.has(title);
  tasks.sort((a, b) => (places.get(a.title) ?? 0) - (places.get(b.title) ?? 0));
}

let tests = 0;

/** Returns the regions reached since the last call, in this process and in its children. */
function reached(): string[] {
  if (ours.reached === undefined) return [];
  const regions = readFileSync(ours.reached, "utf8").split("\n").slice(0, -1);
  writeFileSync(ours.reached, "");
  beginTest(ours.reached, (tests += 1));
  counters.lockweaveForget();
  return regions;
}

/** Streams, timers and processes that keep this process alive. */
function resources(): number {
  return process.getActiveResourcesInfo().filter((name) => name !== "Immediate").length;
}

async function run(AvaRunner: new (options: object) => Runner, task: Task): Promise<void> {
  Object.assign(process.env, asEnvironment({ ...ours, mutant: task.mutant }));
  const before = resources();
  process.channel?.unref(); // Otherwise the channel would keep the process alive, and AVA could not detect tests that wait for nothing.
  const file = join(root, task.testFile);
  const runner = new AvaRunner({
    file,
    failFast: task.runsAll !== true,
    projectDir: root,
    serial: task.serial,
  });
  let isClean = true;
  runner.on("stateChange", (event) => {
    const { type, title, duration } = event as StateChange;
    const passed = type === "test-passed";
    if (passed || type === "test-failed" || type === "hook-failed") {
      isClean &&= passed || task.serial;
      send({ type: "tested", title, ms: duration, passed, reached: reached() });
    }
  });
  const finished = new Promise((resolve, reject) => {
    runner.on("finish", resolve);
    runner.on("error", reject);
  });
  reached();
  loadAnew(file, runner.chain);
  send({ type: "loaded", reached: reached() });
  const { titles } = task;
  if (titles !== undefined) {
    select(runner.tasks.concurrent, titles);
    select(runner.tasks.serial, titles);
  }
  await finished;
  process.channel?.ref();
  await new Promise(setImmediate);
  for (const what of unhandled.values()) send({ type: "broken", what });
  send({ type: "done", isClean: isClean && unhandled.size === 0 && resources() <= before });
}

const unhandled = new Map<Promise<unknown>, string>();

async function main(): Promise<void> {
  process.on("unhandledRejection", (reason, promise) => unhandled.set(promise, String(reason)));
  process.on("rejectionHandled", (promise) => unhandled.delete(promise));
  process.on("uncaughtException", (error) => send({ type: "broken", what: String(error) }));
  const AvaRunner = await loadAva();
  for (const name of ["typescript", "ioredis", "fast-check"]) requireHere(name);
  process.on("message", (task: Task) => {
    run(AvaRunner, task).catch((error: unknown) => send({ type: "broken", what: String(error) }));
  });
  send({ type: "ready" });
}

void main();
