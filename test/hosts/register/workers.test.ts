import { join } from "node:path";
import { installLockweave } from "../bundlers/bundlers";
import { installed } from "../installed";
import { makeProject, type Finished, type Project } from "../project";
import { inMatrixSerially } from "../../support/suites";

// Workers of Bun and Deno, and processes that they fork. Node's own inherit the hook.

interface Runtime {
  readonly name: string;
  program(): Promise<string>;
  /** The arguments that preload these files before the hook. */
  preload(...files: readonly string[]): string[];
}

const BUN: Runtime = {
  name: "Bun",
  program: async () => join(await installed("bun"), "bun/bin/bun.exe"),
  preload: (...files) => [...files, "lockweave/register"].flatMap((file) => ["--preload", file]),
};

const DENO: Runtime = {
  name: "Deno",
  program: async () => join(await installed("deno"), "deno/deno"),
  preload: (...files) => [
    "run",
    "--allow-all",
    ...[...files, "./lockweave-register.ts"].flatMap((file) => ["--preload", file]),
  ],
};

/** Says whether the function of another file has its lock, and repeats a message that the parent sent at once. */
const WORKER = `import { parentPort } from "node:worker_threads";
import { pay } from "./jobs.ts";
const isFork = process.argv.includes("forked");
const send = (text: string) => isFork ? process.send(text) : parentPort ? parentPort.postMessage(text) : postMessage(text);
const receive = (text: string) => send(\`\${text} \${String(pay).includes("lockweave") ? "woven" : "unlocked"}\`);
if (isFork) process.on("message", receive);
else if (parentPort) parentPort.on("message", receive);
else self.onmessage = ({ data }) => receive(data);
`;

const WEB = `const worker = new Worker(new URL("./worker.ts", import.meta.url).href, { type: "module" });
worker.onmessage = ({ data }) => { console.log(data); worker.terminate(); };
worker.postMessage("web");
`;

const THREAD = `import { Worker } from "node:worker_threads";
const worker = new Worker(new URL("./worker.ts", import.meta.url));
worker.on("message", (text) => { console.log(text); worker.terminate(); });
worker.postMessage("thread");
`;

const FILES = {
  "lockweave-register.ts": 'import "lockweave/register";\n',
  "early.ts": 'import "node:worker_threads";\n',
  "src/jobs.ts": `/** @redisLock businessFlag=pay */
export async function pay(): Promise<string> { return "paid"; }
`,
  "src/worker.ts": WORKER,
  "src/web.ts": WEB,
  "src/thread.ts": THREAD,
  "src/thread-by-path.ts": THREAD.replace(/new URL\(.*?url\)/, '"./src/worker.ts"'),
  "src/outer.ts": `const worker = new Worker(new URL("./worker.ts", import.meta.url).href, { type: "module" });
worker.onmessage = ({ data }) => postMessage(data);
self.onmessage = ({ data }) => worker.postMessage("inner " + data);
`,
  "src/nested.ts": WEB.replace("worker.ts", "outer.ts"),
  "src/waiting.ts": `import { pay } from "./jobs.ts";
const next = () => new Promise<string>((resolve) => { self.onmessage = ({ data }) => resolve(data); });
const text = await next();
postMessage(\`\${text} \${String(pay).includes("lockweave") ? "woven" : "unlocked"}\`);
`,
  "src/top-level-await.ts": WEB.replace("worker.ts", "waiting.ts"),
  "src/forked.ts": `import { fork } from "node:child_process";
const child = fork("src/worker.ts", ["forked"]);
child.on("message", (text) => { console.log(text); child.disconnect(); });
child.send("fork");
`,
};

async function run(runtime: Runtime, project: Project, ...args: readonly string[]): Promise<Finished> {
  return await project.runWith(await runtime.program(), ...args);
}

async function made(files: Readonly<Record<string, string>> = {}): Promise<Project> {
  const project = await makeProject({ ...FILES, ...files });
  await installLockweave(project);
  return project;
}

for (const runtime of [BUN, DENO]) {
  const { name, preload } = runtime;

  inMatrixSerially(`${name}: workers and forked processes inherit lockweave/register`, async (t) => {
    t.timeout(120_000);
    const project = await made();
    for (const [file, first] of Object.entries({
      web: "web",
      thread: "thread",
      "thread-by-path": "thread",
      nested: "inner web",
      "top-level-await": "web",
      forked: "fork",
    })) {
      const { code, stdout, stderr } = await run(runtime, project, ...preload(), `src/${file}.ts`);
      t.deepEqual({ code, stdout }, { code: 0, stdout: `${first} woven\n` }, file + stderr);
    }
  });

  inMatrixSerially(`${name}: a worker that the hook cannot reach is an error`, async (t) => {
    const project = await made();
    const { code, stdout, stderr } = await run(runtime, project, ...preload("./early.ts"), "src/thread.ts");
    t.like({ code, stdout }, { code: 1, stdout: "" });
    t.regex(stderr, /error LW1404: This worker would run without its locks\..* Fix: preload/);
  });
}

inMatrixSerially("Bun: a worker keeps its own preloaded files, and may also preload the hook", async (t) => {
  const project = await made({
    "own.ts": 'console.log("own");\n',
    "src/web.ts": WEB.replace('"module"', '"module", preload: ["./own.ts", "lockweave/register"]'),
  });
  const { stdout, stderr } = await run(BUN, project, ...BUN.preload(), "src/web.ts");
  t.is(stdout, "own\nweb woven\n", stderr);
});

inMatrixSerially("Deno: a worker that uses `import.meta.main` is an error", async (t) => {
  const project = await made({ "src/worker.ts": `${WORKER}console.log(import.meta.main);\n` });
  for (const file of ["src/web.ts", "src/thread.ts"]) {
    const { code, stdout, stderr } = await run(DENO, project, ...DENO.preload(), file);
    t.like({ code, stdout }, { code: 1, stdout: "" });
    t.regex(stderr, /src\/worker\.ts: error LW1404: In Deno, .* Fix: do not use them in a worker\./);
  }
});

inMatrixSerially("Deno: a worker that imports the hook itself, as older docs said, is woven", async (t) => {
  const project = await made({
    "src/worker.ts": `import "lockweave/register";\nawait import("./real-worker.ts");\n`,
    "src/real-worker.ts": `import { pay } from "./jobs.ts";
postMessage(String(pay).includes("lockweave") ? "woven" : "unlocked");
`,
  });
  const { stdout, stderr } = await run(DENO, project, ...DENO.preload(), "src/web.ts");
  t.is(stdout, "woven\n", stderr);
});

inMatrixSerially("Deno: processes inherit the hook, however they start", async (t) => {
  t.timeout(120_000);
  const start = `"./src/child.ts"`;
  const project = await made({
    "early.ts": `import * as childProcess from "node:child_process";
globalThis.storedFork = childProcess.fork;
`,
    "src/child.ts": `import { pay } from "./jobs.ts";
console.log(String(pay).includes("lockweave") ? "woven" : "unlocked");
`,
    "src/command.ts": `const { stdout } = new Deno.Command(Deno.execPath(), { args: ["run", "--allow-all", ${start}], env: { A: "1" } }).outputSync();
console.log(new TextDecoder().decode(stdout).trim());
`,
    "src/spawn.ts": `import { spawnSync } from "node:child_process";
console.log(String(spawnSync(process.execPath, ["run", "--allow-all", ${start}]).stdout).trim());
`,
    "src/preloading.ts": `const { stdout } = new Deno.Command(Deno.execPath(), { args: ["run", "--allow-all", "--preload", "./lockweave-register.ts", ${start}] }).outputSync();
console.log(new TextDecoder().decode(stdout).trim());
`,
    "src/stored.ts": `globalThis.storedFork(${start});\n`,
  });
  for (const file of ["command", "spawn", "preloading", "stored"]) {
    const { stdout, stderr } = await run(DENO, project, ...DENO.preload("./early.ts"), `src/${file}.ts`);
    t.is(stdout, "woven\n", file + stderr);
  }
});

inMatrixSerially("Deno: a web worker whose class was stored before the hook is an error", async (t) => {
  const project = await made({
    "early.ts": "globalThis.StoredWorker = Worker;\n",
    "src/web.ts": WEB.replace("new Worker", "new StoredWorker"),
    "src/silent.ts": WEB.replace("new Worker", "new StoredWorker").replace(/^worker\.onmessage.*$/m, ""),
  });
  for (const file of ["src/web.ts", "src/silent.ts"]) {
    const { code, stdout, stderr } = await run(DENO, project, ...DENO.preload("./early.ts"), file);
    t.like({ code, stdout }, { code: 1, stdout: "" }, file + stderr);
    t.regex(stderr, /error LW1404: This worker would run without its locks\..* Fix: preload/);
  }
});
