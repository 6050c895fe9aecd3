import { stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { refusalIn, UNSUPPORTED, type Unsupported } from "../../runtime/base/unsupported";
import { installed, packagesIn, type SetName } from "../hosts/installed";
import { PACKAGE, type Files, type Project } from "../hosts/project";
import { inMatrixSerially, outsideMatrixSerially } from "../support/suites";
import { makeConsumer } from "./consumer";

// The package in environments where Lockweave cannot run, and in ones that only look like them.

const CONDITIONS: Readonly<Record<Unsupported, readonly string[]>> = {
  browser: ["browser"],
  edge: ["edge-light", "browser"],
  workers: ["workerd", "worker", "browser"], // The conditions that Wrangler sets.
};
const PLACES = Object.keys(UNSUPPORTED) as Unsupported[];
const ENTRIES = [
  "lockweave",
  "lockweave/runtime",
  "lockweave/testing",
  "lockweave/opentelemetry",
  "lockweave/cron",
  "lockweave/nest",
];

async function consumerWith(packages: readonly string[], files: Files): Promise<Project> {
  const project = await makeConsumer(files);
  for (const name of packages)
    await symlink(join(PACKAGE, "node_modules", name), project.path(`node_modules/${name}`));
  return project;
}

const LOAD = `const [how, ...entries] = process.argv.slice(2);
const load = { import: (entry) => import(entry), require: async (entry) => require(entry) }[how];
(async () => {
  for (const entry of entries) console.log(await load(entry).then(({ configure, testLocks }) => typeof (configure ?? testLocks), String));
})();
`;

for (const how of ["import", "require"]) {
  outsideMatrixSerially(
    `${how}: each entry point throws one error that names the unsupported environment`,
    async (t) => {
      const project = await makeConsumer({ "load.cjs": LOAD });
      for (const place of ["edge", "workers"] as const) {
        const conditions = CONDITIONS[place].map((condition) => `--conditions=${condition}`);
        t.like(await project.run(...conditions, "load.cjs", how, ...ENTRIES), {
          code: 0,
          stdout: ENTRIES.map(() => `Error: ${refusalIn(place)}\n`).join(""),
          stderr: "",
        });
      }
    },
  );

  outsideMatrixSerially(`${how}: the "browser" condition changes nothing in Node`, async (t) => {
    const project = await makeConsumer({ "load.cjs": LOAD });
    t.like(await project.run("--conditions=browser", "load.cjs", how, ...ENTRIES.slice(0, 3)), {
      code: 0,
      stdout: "function\n".repeat(3),
      stderr: "",
    });
  });
}

const NAMED = `import { configure, currentLock, LockError, memoryStore, obtain, withLock } from "lockweave";
import * as runtime from "lockweave/runtime";
import { testLocks } from "lockweave/testing";
import { observeLocks } from "lockweave/opentelemetry";
import { runCoordinator } from "lockweave/cron";
import { LockModule } from "lockweave/nest";
console.log(runCoordinator, LockModule, configure, currentLock, LockError, memoryStore, obtain, withLock, runtime.acquire, testLocks, observeLocks);
`;
const REQUIRED = `console.log(require("lockweave").withLock);\n`;

/** Runs a script without Node's globals. Returns the error that it throws. */
function errorOf(code: string): string {
  try {
    runInContext(code, createContext({}));
  } catch (error) {
    return String(error);
  }
  return "none";
}

for (const place of PLACES) {
  outsideMatrixSerially(
    `a bundle for ${UNSUPPORTED[place].where.replace("in ", "")} builds, and throws one error that names the environment`,
    async (t) => {
      const project = await consumerWith(["esbuild"], {
        "named.js": NAMED,
        "required.cjs": REQUIRED,
        "build.mjs": `import { build } from "esbuild";
const { warnings } = await build({
  entryPoints: ["named.js", "required.cjs"],
  bundle: true,
  outdir: "dist",
  conditions: ${JSON.stringify(CONDITIONS[place])},
});
if (warnings.length > 0) process.exit(1);
`,
      });
      t.like(await project.run("build.mjs"), { code: 0, stdout: "", stderr: "" });
      for (const file of ["dist/named.js", "dist/required.js"]) {
        t.is(errorOf(await project.read(file)), `Error: ${refusalIn(place)}`);
        t.true((await stat(project.path(file))).size < 6000);
      }
    },
  );
}

/** Replaces the timers with numeric ones, as in browsers and jsdom. */
const TIMERS_OF_BROWSERS = `const { setTimeout, clearTimeout } = globalThis;
const timers = new Map();
let last = 0;
globalThis.setTimeout = (run, delay, ...args) => {
  timers.set(++last, setTimeout(run, delay, ...args));
  return last;
};
globalThis.clearTimeout = (timer) => clearTimeout(timers.get(timer));
delete globalThis.setImmediate;
`;

outsideMatrixSerially("locks work with numeric timers, as in jsdom", async (t) => {
  const project = await consumerWith(["ioredis"], {
    "timers.cjs": TIMERS_OF_BROWSERS,
    "main.cjs": `const { configure, memoryStore, shutdown, withLock } = require("lockweave");
(async () => {
  configure({ store: memoryStore(), woven: false });
  const body = () => new Promise((resolve) => setTimeout(resolve, 5, "locked"));
  console.log(await Promise.all([withLock("k", {}, body), withLock("k", {}, body)]));
  await shutdown();
  configure({ redis: "redis://127.0.0.1:1", woven: false, commandTimeout: "200ms", logger: { warn() {} } });
  await withLock("k", { retryTimes: 0 }, body).catch(({ code }) => console.log(code));
  await shutdown();
  process.exit(); // Such timers keep a process alive.
})();
`,
  });
  t.like(await project.run("--require", "./timers.cjs", "main.cjs"), {
    code: 0,
    stdout: "[ 'locked', 'locked' ]\nLOCK_UNREACHABLE\n",
    stderr: "",
  });
});

const SPEC = `const { configure, memoryStore, shutdown, withLock } = require("lockweave");
const { testLocks } = require("lockweave/testing");
test("locks", async () => {
  expect(typeof document).toBe("object");
  configure({ store: memoryStore(), woven: false });
  const body = () => new Promise((resolve) => setTimeout(resolve, 5, "locked"));
  expect(await Promise.all([withLock("k", {}, body), withLock("k", {}, body)])).toEqual(["locked", "locked"]);
  await shutdown();
  configure({ redis: "redis://127.0.0.1:1", woven: false, commandTimeout: "200ms", logger: { warn() {} } });
  await expect(withLock("k", { retryTimes: 0 }, body)).rejects.toThrow("did not grant the lock");
  await shutdown();
  const locks = testLocks({ woven: false });
  await withLock("k", {}, () => {});
  expect(locks.acquired).toEqual(["k"]);
  await locks.close();
});
`;

/** Creates a consumer project with these tools linked into it. */
async function withTools(set: SetName, files: Files): Promise<Project> {
  const project = await consumerWith(["ioredis"], files);
  const modules = await installed(set);
  for (const tool of packagesIn(set))
    await symlink(join(modules, tool), project.path(`node_modules/${tool}`));
  return project;
}

inMatrixSerially("Jest with jsdom: locks work in CommonJS", async (t) => {
  const project = await withTools("jest-30-jsdom", {
    "package.json": JSON.stringify({ jest: { testEnvironment: "jsdom", transform: {} } }),
    "locks.test.js": SPEC,
  });
  const { code, stdout, stderr } = await project.run("node_modules/jest/bin/jest.js");
  t.is(code, 0, stdout + stderr);
});

inMatrixSerially("Jest with jsdom: ES modules fail with an error whose fix works", async (t) => {
  const spec = SPEC.replaceAll(/const (\{.*\}) = require\((.*)\);/g, "import $1 from $2;");
  const jest = { testEnvironment: "jsdom", transform: {} };
  const project = await withTools("jest-30-jsdom", { "locks.test.mjs": spec });
  const run = (environment: object): ReturnType<Project["run"]> => {
    const config = { ...jest, ...environment, testMatch: ["**/*.test.mjs"] };
    return project
      .write({ "package.json": JSON.stringify({ jest: config }) })
      .then(() => project.run("--experimental-vm-modules", "node_modules/jest/bin/jest.js"));
  };
  const refused = await run({});
  t.is(refused.code, 1);
  t.true(refused.stderr.includes(refusalIn("browser")), refused.stderr);
  const fixed = await run({ testEnvironmentOptions: { customExportConditions: ["node"] } });
  t.is(fixed.code, 0, fixed.stderr);
});

inMatrixSerially('Vitest with jsdom: locks work, with and without the "browser" condition', async (t) => {
  const spec = `import { expect, test } from "vitest";
${SPEC.replaceAll(/const (\{.*\}) = require\((.*)\);/g, "import $1 from $2;")}`;
  const project = await withTools("vitest-5-jsdom", {
    "package.json": JSON.stringify({ type: "module" }),
    "locks.test.js": spec,
  });
  const node = join(await installed("node-24"), "node/bin/node"); // Vitest 5 does not run on Node 20.
  for (const resolve of [{}, { conditions: ["browser"] }]) {
    const config = { plugins: [], test: { environment: "jsdom" }, resolve };
    await project.write({
      "vitest.config.mjs": `import lockweave from "lockweave/vite";
export default { ...${JSON.stringify(config)}, plugins: [lockweave()] };
`,
    });
    const { code, stdout, stderr } = await project.runWith(node, "node_modules/vitest/vitest.mjs", "run");
    t.is(code, 0, stdout + stderr);
  }
});

inMatrixSerially("Cloudflare's runtime reports the error when a Worker imports the package", async (t) => {
  const project = await withTools("miniflare", {
    "main.js": `import { withLock } from "lockweave";
export default { fetch: async () => new Response(await withLock("k", {}, () => "locked")) };
`,
    "run.mjs": `import { build } from "esbuild";
import { Miniflare } from "miniflare";
const conditions = ${JSON.stringify(CONDITIONS.workers)};
await build({ entryPoints: ["main.js"], bundle: true, format: "esm", outfile: "out.mjs", conditions });
const options = { modules: true, scriptPath: "out.mjs", compatibilityDate: "2026-01-01", compatibilityFlags: ["nodejs_compat"] };
await new Miniflare(options).dispatchFetch("http://localhost/");
`,
  });
  const { code, stderr } = await project.run("run.mjs");
  t.is(code, 1);
  t.true(stderr.includes(refusalIn("workers")), stderr);
});

inMatrixSerially(
  "the published types compile under the conditions of Workers, edge runtimes, and browsers",
  async (t) => {
    const project = await makeConsumer(
      {
        "src/a.ts": `import { withLock } from "lockweave";\nimport { testLocks } from "lockweave/testing";\nexport const key: Promise<string> = withLock("k", {}, (lock) => lock.key);\nexport const held: readonly string[] = testLocks().held;\n`,
      },
      {
        module: "esnext",
        moduleResolution: "bundler",
        customConditions: ["workerd", "edge-light", "browser"],
        noEmit: true,
      },
    );
    t.like(await project.tsc(), { code: 0, stdout: "" });
  },
);
