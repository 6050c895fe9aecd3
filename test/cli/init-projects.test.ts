import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, rm, symlink } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import packageJson from "../../package.json";
import { installLockweave } from "../hosts/bundlers/bundlers";
import { installed, packagesIn, type SetName } from "../hosts/installed";
import { makeProject, PACKAGE, type Files, type Finished, type Project } from "../hosts/project";
import { installNode } from "../hosts/register/nodes";
import { inMatrix } from "../support/suites";

// `lockweave init` sets up small projects that look like their starters. Then the scripts of their package.json build, test,
// or run them.

interface Kind {
  readonly name: string;
  /** The packages that the project uses. By default, all packages of the set. */
  readonly packages?: readonly string[];
  /** The set with the packages that the repository does not have. */
  readonly set?: SetName;
  /** The package.json of the starter. The test adds the dependencies. */
  readonly manifest: Readonly<Record<string, unknown>> & { readonly scripts: Files };
  readonly files: Files;
  /** The scripts of package.json to run in this order, and the output that shows that the lock was held. */
  readonly scripts: readonly string[];
  readonly held: RegExp;
  /** The version of Node to put first in `PATH`. */
  readonly node?: "24";
}

/** The packages that the repository has. */
const OWN = join(PACKAGE, "node_modules");
const MAIN = join(PACKAGE, "dist/transformer/cli/main.js");

const PAY = `import { currentLock } from "lockweave";

/** @redisLock businessFlag=pay keyName=orderNo */
export async function pay(orderNo: string): Promise<string> {
  return orderNo + " under " + currentLock().key;
}
`;
const main = (from: string): string => `import { configure, memoryStore } from "lockweave";
import { pay } from "${from}";

configure({ store: memoryStore() });
void pay("A1").then((paid) => console.log(paid));
`;
const unitTest = (
  imports: string,
  from: string,
  expected: string,
): string => `${imports}import { testLocks } from "lockweave/testing";
import { pay } from "${from}";

const locks = testLocks();
test("an order is paid under its lock", async (${expected.startsWith("t.") ? "t" : ""}) => {
  await pay("A1");
  ${expected};
});
`;

const BABEL = ["babel-jest", "@babel/core", "@babel/preset-env", "@babel/preset-typescript"];
const JEST_EXPECTS = 'expect(locks.acquired).toEqual(["LOCK_pay_A1"])';
const HELD = /^A1 under LOCK_pay_A1$/m;
const NOT_WOVEN = /LOCK_NOT_WOVEN|LockNotWovenError/;

const tsconfig = (options: object, others: object = {}): string =>
  JSON.stringify({
    compilerOptions: {
      target: "es2022",
      lib: ["es2023", "dom"],
      strict: true,
      skipLibCheck: true,
      ...options,
    },
    ...others,
  });
const OF_SCRIPTS = { module: "nodenext", types: ["node"], rootDir: "src" };

const KINDS: readonly Kind[] = [
  {
    name: "Vite", // Like `npm create vite -- --template vanilla-ts`, but built for a server.
    packages: ["vite", "typescript"],
    manifest: {
      type: "module",
      scripts: { dev: "vite", build: "tsc && vite build --ssr src/main.ts", start: "node dist/main.js" },
    },
    files: {
      "tsconfig.json": tsconfig({
        module: "esnext",
        moduleResolution: "bundler",
        allowImportingTsExtensions: true,
        verbatimModuleSyntax: true,
        noEmit: true,
        types: ["vite/client"],
      }),
      "src/main.ts": main("./pay.ts"),
      "src/pay.ts": PAY,
    },
    scripts: ["build", "start"],
    held: HELD,
  },
  {
    name: "Vitest",
    set: "vitest-5",
    manifest: { type: "module", scripts: { test: "vitest run" } },
    files: {
      "src/pay.ts": PAY,
      "src/pay.test.ts": unitTest('import { expect, test } from "vitest";\n', "./pay", JEST_EXPECTS),
    },
    scripts: ["test"],
    held: /1 passed/,
    node: "24",
  },
  {
    name: "Jest with ts-jest", // Like `npx ts-jest config:init`.
    packages: ["jest", "ts-jest", "@jest/globals", "typescript"],
    set: "jest-30",
    manifest: { scripts: { test: "jest" } },
    files: {
      "tsconfig.json": tsconfig({ ...OF_SCRIPTS, types: ["node", "jest"], isolatedModules: true }),
      "jest.config.js": `const { createDefaultPreset } = require("ts-jest");

const tsJestTransformCfg = createDefaultPreset().transform;

/** @type {import("jest").Config} **/
module.exports = {
  testEnvironment: "node",
  transform: {
    ...tsJestTransformCfg,
  },
};`,
      "src/pay.ts": PAY,
      "src/pay.test.ts": unitTest('import { expect, test } from "@jest/globals";\n', "./pay", JEST_EXPECTS),
    },
    scripts: ["test"],
    held: /1 passed/,
  },
  {
    name: "Jest with Babel", // Like Jest's "Getting Started" page.
    packages: ["jest", "@jest/globals", ...BABEL],
    set: "jest-30",
    manifest: { scripts: { test: "jest" } },
    files: {
      "babel.config.js": `module.exports = {
  presets: [["@babel/preset-env", { targets: { node: "current" } }], "@babel/preset-typescript"],
};
`,
      "src/pay.ts": PAY,
      "src/pay.test.ts": unitTest('import { expect, test } from "@jest/globals";\n', "./pay", JEST_EXPECTS),
    },
    scripts: ["test"],
    held: /1 passed/,
  },
  {
    name: "ts-node with type check",
    packages: ["ts-node", "typescript", "ts-patch"],
    manifest: { scripts: { start: "ts-node src/main.ts" } },
    files: {
      "tsconfig.json": tsconfig(OF_SCRIPTS),
      "src/main.ts": main("./pay"),
      "src/pay.ts": PAY,
    },
    scripts: ["start"],
    held: HELD,
  },
  {
    name: "ts-node in transpile mode",
    packages: ["ts-node", "typescript"],
    manifest: { scripts: { start: "ts-node --transpile-only src/main.ts" } },
    files: {
      "tsconfig.json": tsconfig(OF_SCRIPTS),
      "src/main.ts": main("./pay"),
      "src/pay.ts": PAY,
    },
    scripts: ["start"],
    held: HELD,
  },
  {
    name: "ava", // Like ava's page about TypeScript, with tsx.
    packages: ["ava", "tsx", "typescript"],
    manifest: {
      type: "module",
      scripts: { test: "ava" },
      ava: {
        extensions: { ts: "module" },
        workerThreads: false,
        nodeArguments: ["--import=tsx"],
        timeout: "2m", // Its default of 10 s is too short for a busy machine.
      },
    },
    files: {
      "tsconfig.json": tsconfig({ ...OF_SCRIPTS, noEmit: true }),
      "src/pay.ts": PAY,
      "src/pay.test.ts": unitTest(
        'import test from "ava";\n',
        "./pay.js",
        't.deepEqual(locks.acquired, ["LOCK_pay_A1"])',
      ),
    },
    scripts: ["test"],
    held: /1 test passed/,
  },
  {
    name: "Node's type stripping",
    manifest: { type: "module", scripts: { start: "node src/main.ts" } },
    files: { "src/main.ts": main("./pay.ts"), "src/pay.ts": PAY },
    scripts: ["start"],
    held: HELD,
    node: "24",
  },
  {
    name: "Farm", // Like `npm create farm`, but built for a server.
    set: "farm",
    manifest: { type: "module", scripts: { build: "farm build", start: "node dist/main.js" } },
    files: {
      "farm.config.ts": `import { defineConfig } from '@farmfe/core';

export default defineConfig({
  compilation: {
    input: { main: './src/main.ts' },
    output: { path: 'dist', targetEnv: 'node', format: 'esm' },
    external: ['^lockweave'],
  },
  plugins: [],
});
`,
      "src/main.ts": main("./pay"),
      "src/pay.ts": PAY,
    },
    scripts: ["build", "start"],
    held: HELD,
  },
  {
    name: "Bun's bundler",
    set: "bun",
    manifest: { type: "module", scripts: { build: "bun build.ts", start: "node dist/main.js" } },
    files: {
      "build.ts": `await Bun.build({
  entrypoints: ["./src/main.ts"],
  outdir: "./dist",
  target: "node",
  packages: "external",
});
`,
      "src/main.ts": main("./pay"),
      "src/pay.ts": PAY,
    },
    scripts: ["build", "start"],
    held: HELD,
  },
];

for (const kind of KINDS) {
  inMatrix(
    `${kind.name}: the project's own scripts hold the lock after init, and report LOCK_NOT_WOVEN before it`,
    async (t) => {
      t.timeout(300_000);
      const { project, run, node } = await createProject(kind);
      const before = await runAll(kind, run);
      t.not(before.code, 0, before.stdout);
      t.regex(before.stdout + before.stderr, NOT_WOVEN);

      const set = await project.runWith(node, MAIN, "init", "--yes");
      t.is(set.code, 0, set.stdout + set.stderr);
      const { code, stdout, stderr } = await runAll(kind, run);
      t.is(code, 0, stdout + stderr);
      t.regex(stdout + stderr, kind.held);
    },
  );
}

type Run = (script: string) => Promise<Finished>;

async function createProject(kind: Kind): Promise<{ project: Project; node: string; run: Run }> {
  const names = kind.packages ?? (kind.set === undefined ? [] : packagesIn(kind.set));
  const homes = kind.set === undefined ? [OWN] : [await installed(kind.set), OWN];
  const wanted = Object.fromEntries(names.map((name) => [name, "*"]));
  const dependencies = { lockweave: packageJson.version, ioredis: "*", ...wanted };
  const project = await makeProject({
    ...kind.files,
    "package.json": JSON.stringify({ ...kind.manifest, dependencies }),
  });
  if (kind.files["tsconfig.json"] === undefined) await rm(project.path("tsconfig.json"));
  if (!names.includes("typescript")) await rm(project.path("node_modules/typescript"));
  for (const name of names) {
    const path = project.path(`node_modules/${name}`);
    const home = homes.find((dir) => existsSync(join(dir, name)));
    if (home === undefined || existsSync(path)) continue;
    await mkdir(dirname(path), { recursive: true });
    await symlink(join(home, name), path);
  }
  await installLockweave(project);
  const node = kind.node === undefined ? process.execPath : await installNode(kind.node);
  const path = [dirname(node), ...homes.map((home) => join(home, ".bin")), process.env["PATH"]];
  return { project, node, run: (script) => runScript(project, script, path.join(delimiter)) };
}

/** Runs a script of package.json like `npm run`. */
async function runScript(project: Project, name: string, path: string): Promise<Finished> {
  const { scripts } = JSON.parse(await project.read("package.json")) as { scripts: Files };
  const env = { ...process.env, PATH: path, CI: "true", NO_COLOR: "1", NODE_OPTIONS: "" };
  const child = spawn(scripts[name] ?? "false", { cwd: project.dir, env, shell: true });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout, stderr };
}

/** Runs the scripts in their order until one fails. */
async function runAll({ scripts }: Kind, run: Run): Promise<Finished> {
  let last: Finished = { code: 0, stdout: "", stderr: "" };
  for (const script of scripts) {
    last = await run(script);
    if (last.code !== 0) break;
  }
  return last;
}
