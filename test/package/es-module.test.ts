import { existsSync } from "node:fs";
import { cp, mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import test from "ava";
import { codeUnder } from "../hosts/bundlers/recipes";
import { installed, packagesIn } from "../hosts/installed";
import { PACKAGE, type Files, type Finished, type Project } from "../hosts/project";
import { startRedis, type RedisServer } from "../support/redis-server";
import { inMatrixSerially, outsideMatrixSerially } from "../support/suites";
import { makeConsumer } from "./consumer";

// The runtime as an ES module, next to the CommonJS build and inside bundles.

let server: RedisServer;
test.before(async () => {
  server = await startRedis();
});
test.after.always(() => server.stop());

const OURS = join(PACKAGE, "node_modules");

/** Creates a project with the packed package and these packages. */
async function consumerWith(packages: readonly string[], files: Files, from = OURS): Promise<Project> {
  const project = await makeConsumer(files);
  for (const name of packages) {
    const home = [from, OURS].map((modules) => join(modules, name)).find((path) => existsSync(path));
    if (home === undefined) throw new Error(`${name} is not installed`);
    const path = project.path(`node_modules/${name}`);
    await mkdir(dirname(path), { recursive: true });
    await symlink(home, path);
  }
  return project;
}

const ENTRIES = [
  "lockweave",
  "lockweave/runtime",
  "lockweave/testing",
  "lockweave/opentelemetry",
  "lockweave/cron",
  "lockweave/nest",
];

for (const first of ["import", "require"]) {
  outsideMatrixSerially(
    `the ES module and CommonJS builds share one runtime if \`${first}\` comes first`,
    async (t) => {
      const project = await consumerWith(["@opentelemetry/api"], {
        "both.mjs": `
import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
const entries = ${JSON.stringify(ENTRIES)};
const load = {
  import: async () => { for (const entry of entries) imported.push(await import(entry)); },
  require: () => { for (const entry of entries) required.push(require(entry)); },
};
const [imported, required] = [[], []];
for (const how of ${JSON.stringify(first === "import" ? ["import", "require"] : ["require", "import"])}) await load[how]();
for (const [index, entry] of entries.entries()) {
  const names = Object.keys(imported[index]).filter((name) => name !== "default" && name !== "module.exports");
  const others = names.filter((name) => imported[index][name] !== required[index][name]);
  console.log(entry, names.join() === Object.keys(required[index]).toSorted().join(), others.join());
}
const [{ configure, memoryStore }, , { testLocks }, { observeLocks }] = imported;
const [{ LockMisconfiguredError, currentLock, shutdown, withLock }] = required;
const ended = [];
const span = { addEvent() {}, setAttribute() {}, setStatus() {}, end: () => ended.push("a span") };
const stop = observeLocks({ tracer: { startSpan: () => span } });
configure({ store: memoryStore(), woven: false });
console.log(await withLock("k", {}, (lock) => lock.key), ended.join());
stop();
try { testLocks({ woven: false }); } catch (error) { console.log(error instanceof LockMisconfiguredError); }
await shutdown();
const locks = testLocks({ woven: false });
await withLock("k", {}, () => {});
console.log(locks.acquired.join());
`,
      });
      t.like(await project.run("both.mjs"), {
        code: 0,
        stdout: `lockweave true 
lockweave/runtime true 
lockweave/testing true 
lockweave/opentelemetry true observeLocks
lockweave/cron true runCoordinator
lockweave/nest true LockHealthIndicator,LockModule
k a span
true
k
`,
        stderr: "",
      });
    },
  );
}

outsideMatrixSerially("importing the package loads no CommonJS module", async (t) => {
  const project = await makeConsumer({
    "loaded.mjs": `
import { createRequire } from "node:module";
await import("lockweave");
await import("lockweave/testing");
const { cache } = createRequire(import.meta.url);
console.log(Object.keys(cache).length);
`,
  });
  t.like(await project.run("loaded.mjs"), { code: 0, stdout: "0\n", stderr: "" });
});

for (const how of ["import", "require"]) {
  outsideMatrixSerially(
    `a Redis URL without a client library is an error that names the packages to install: ${how}`,
    async (t) => {
      const load = how === "import" ? `import` : `createRequire(import.meta.url)`;
      const project = await makeConsumer({
        "main.mjs": `
import { createRequire } from "node:module";
const { configure, memoryStore, quorumStore, shutdown, withLock } = await ${load}("lockweave");
const attempt = async (configuration) => {
  let where = "configure()";
  try {
    configure({ ...configuration(), woven: false, logger: { warn: (message) => console.log("warning:", message) } });
    where = "the first lock";
    console.log(await withLock("k", {}, () => "locked"));
  } catch (error) {
    console.log(\`\${where}: \${error.code} \${error.message}\`);
  }
  await shutdown();
};
await attempt(() => ({ redis: "redis://127.0.0.1" }));
await attempt(() => ({ redis: ["redis://a", "redis://b", "redis://c"] }));
await attempt(() => ({ redis: "http://127.0.0.1" }));
await attempt(() => ({ store: memoryStore() }));
`,
      });
      const missing =
        "A Redis URL needs ioredis 5.4 or later, or node-redis 5 or later (the package `redis`). Fix: npm install ioredis, or npm install redis";
      const { stdout, stderr } = await project.run("main.mjs");
      t.is(stderr, "");
      const lines = stdout.trimEnd().split("\n");
      const wrong =
        'configure(): LOCK_BAD_OPTION Expected `redis` to be a client of ioredis, iovalkey, node-redis, Valkey GLIDE, or Bun, or a redis:// URL, got "http://***"';
      t.deepEqual(lines.slice(-2), [wrong, "locked"]);
      const expected =
        how === "require"
          ? [`configure(): LOCK_MISCONFIGURED ${missing}`]
          : [`warning: ${missing}`, `the first lock: LOCK_MISCONFIGURED k: ${missing}`];
      t.deepEqual(lines.slice(0, -2), [...expected, ...expected]);
    },
  );
}

/** Calls one lock twice at a time, and prints whether each body ran alone. */
const PROGRAM: Files = {
  "src/main.js": `import { configure, shutdown, withLock } from "lockweave";
import { testLocks } from "lockweave/testing";
async function main() {
  configure({ redis: process.argv[2], woven: false });
  let inside = 0;
  const alone = [];
  const body = async () => {
    alone.push(++inside === 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    inside -= 1;
  };
  await Promise.all([withLock("bundled", { waitTime: "5s" }, body), withLock("bundled", { waitTime: "5s" }, body)]);
  await shutdown();
  console.log(alone.join(), typeof testLocks);
}
main().catch((error) => console.log(error.code, error.message));
`,
};
const RAN = { code: 0, stdout: "true,true function\n", stderr: "" };

async function built(project: Project): Promise<Finished> {
  const finished = await project.run("build.mjs");
  if (finished.code !== 0) throw new Error(finished.stdout + finished.stderr);
  return finished;
}

/** Runs the bundle in a project without packages, or with ioredis only. */
async function runAlone(
  project: Project,
  file: string,
  ioredis: boolean,
  url = server.url,
): Promise<Finished> {
  const away = await makeConsumer({});
  await cp(project.path("dist"), away.path("dist"), { recursive: true });
  const modules = away.path("node_modules");
  await project.run("--eval", `fs.rmSync(${JSON.stringify(modules)}, { recursive: true })`);
  if (ioredis) {
    await mkdir(modules);
    await symlink(join(OURS, "ioredis"), join(modules, "ioredis"));
  }
  return away.run(file, url);
}

const ESBUILD = (others: string): string => `import { build } from "esbuild";
const { warnings } = await build({ entryPoints: ["src/main.js"], bundle: true, platform: "node", outdir: "dist", ${others} });
if (warnings.length > 0) process.exit(1);
`;

inMatrixSerially("esbuild: an ES module that bundles the runtime runs", async (t) => {
  const project = await consumerWith(["esbuild", "ioredis"], {
    ...PROGRAM,
    "build.mjs": ESBUILD('format: "esm", external: ["ioredis"]'),
  });
  await built(project);
  t.like(await runAlone(project, "dist/main.js", true), RAN);
  t.regex(
    (await runAlone(project, "dist/main.js", false)).stdout,
    /A Redis URL needs ioredis .*Fix: npm install ioredis, or npm install redis$/m,
  );
});

inMatrixSerially("esbuild: a CommonJS bundle with the runtime and ioredis runs", async (t) => {
  const project = await consumerWith(["esbuild", "ioredis"], {
    ...PROGRAM,
    "package.json": "{}",
    "build.mjs": ESBUILD('format: "cjs", outExtension: { ".js": ".cjs" }'),
  });
  await built(project);
  t.like(await runAlone(project, "dist/main.cjs", false), RAN);
});

inMatrixSerially(
  "esbuild: the configuration in docs/compilers.md bundles everything into one ES module",
  async (t) => {
    const config = codeUnder("esbuild", "lambda.config.mjs");
    const project = await consumerWith(["esbuild", "ioredis"], {
      ...PROGRAM,
      "build.mjs": config.replace(".ts", ".js"),
    });
    await built(project);
    t.like(await runAlone(project, "dist/main.mjs", false), RAN);
    const without = config.replace("  banner,\n", "").replace(".ts", ".js");
    t.not(without, config);
    await project.write({ "build.mjs": without });
    await built(project);
    t.regex(
      (await runAlone(project, "dist/main.mjs", false)).stdout,
      /^LOCK_MISCONFIGURED .*this bundle cannot load it: Dynamic require of "\w+" is not supported\. Fix: /,
    );
  },
);

for (const [where, external] of [
  ["external", '["ioredis"]'],
  ["bundled", "[]"],
] as const) {
  const isExternal = where === "external";
  const serially = isExternal ? outsideMatrixSerially : inMatrixSerially;

  serially(`Rolldown: an ES module that bundles the runtime runs with ioredis ${where}`, async (t) => {
    const project = await consumerWith(["rolldown", "ioredis"], {
      ...PROGRAM,
      "build.mjs": `import { rolldown } from "rolldown";
const onLog = (_, { message }) => { throw new Error(message); };
const bundle = await rolldown({ input: "src/main.js", platform: "node", external: ${external}, onLog });
await bundle.write({ format: "esm", dir: "dist" });
`,
    });
    await built(project);
    t.like(await runAlone(project, "dist/main.js", isExternal), RAN);
  });

  serially(`Vite: a server build that bundles the runtime runs with ioredis ${where}`, async (t) => {
    const project = await consumerWith(["vite", "ioredis"], {
      ...PROGRAM,
      "build.mjs": `import { build } from "vite";
const ssr = { noExternal: true, external: ${external} };
await build({ logLevel: "error", ssr, build: { ssr: "src/main.js" } });
`,
    });
    await built(project);
    t.like(await runAlone(project, "dist/main.js", isExternal), RAN);
  });

  inMatrixSerially(`Rollup: an ES module that bundles the runtime runs with ioredis ${where}`, async (t) => {
    const from = await installed("rollup");
    const project = await consumerWith(
      [...packagesIn("rollup"), "ioredis"],
      {
        ...PROGRAM,
        "build.mjs": `import { rollup } from "rollup";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import commonjs from "@rollup/plugin-commonjs";
import json from "@rollup/plugin-json";
const plugins = [nodeResolve({ exportConditions: ["node"], preferBuiltins: true }), commonjs(), json()];
const bundle = await rollup({ input: "src/main.js", external: ${external}, plugins, onwarn() {} });
await bundle.write({ format: "es", dir: "dist" });
`,
      },
      from,
    );
    await built(project);
    t.like(await runAlone(project, "dist/main.js", isExternal), RAN);
  });

  inMatrixSerially(`webpack: an ES module that bundles the runtime runs with ioredis ${where}`, async (t) => {
    const from = await installed("webpack");
    const externals = isExternal ? '{ ioredis: "module ioredis" }' : "{}";
    const project = await consumerWith(
      ["webpack", "ioredis"],
      {
        ...PROGRAM,
        "build.mjs": `import { fileURLToPath } from "node:url";
import webpack from "webpack";
const output = { path: fileURLToPath(new URL("dist", import.meta.url)), module: true, chunkFormat: "module" };
const options = { mode: "production", target: "node", entry: "./src/main.js", experiments: { outputModule: true }, output };
webpack({ ...options, externals: ${externals} }, (error, stats) => {
  if (error || stats.hasErrors() || stats.hasWarnings()) throw error ?? new Error(stats.toString());
});
`,
      },
      from,
    );
    await built(project);
    t.like(await runAlone(project, "dist/main.mjs", isExternal), RAN);
  });
}

outsideMatrixSerially(
  "a bundle with its own copy of Lockweave shares the runtime of the installed package",
  async (t) => {
    const project = await consumerWith(["esbuild"], {
      "src/main.js": `import { createRequire } from "node:module";
import { configure, memoryStore } from "lockweave";
const { withLock } = createRequire(import.meta.url)("lockweave");
configure({ store: memoryStore(), woven: false });
console.log(await withLock("k", {}, (lock) => lock.key));
`,
      "build.mjs": ESBUILD('format: "esm"'),
    });
    await built(project);
    t.like(await project.run("dist/main.js"), { code: 0, stdout: "k\n", stderr: "" });
  },
);

inMatrixSerially("a quorum configured by URLs grants locks in the ES module build", async (t) => {
  const servers = await Promise.all([startRedis(), startRedis()]);
  t.teardown(() => Promise.all(servers.map((each) => each.stop())));
  const project = await consumerWith(["ioredis"], PROGRAM);
  await project.write({
    "quorum.mjs": `import { configure, quorumStore, shutdown, withLock } from "lockweave";
// A master counts when it has been up for the longest lock time.
const store = quorumStore(process.argv.slice(2), { longestLockTime: "500ms" });
configure({ store, defaults: { lockTime: "500ms", waitTime: "20s" }, woven: false });
console.log(await withLock("k", {}, (lock) => lock.key));
await shutdown();
`,
  });
  const urls = [server, ...servers].map(({ url }) => url);
  t.like(await project.run("quorum.mjs", ...urls), { code: 0, stdout: "k\n", stderr: "" });
});
