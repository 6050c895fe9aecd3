import { execFile } from "node:child_process";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { installed } from "./installed";
import { Project, tsconfig, type Finished, type Files } from "./project";
import { pack, temporaryDirectory } from "../package/consumer";
import { inMatrixSerially } from "../support/suites";

// With Yarn Plug'n'Play there is no `node_modules`. Yarn's own loader resolves packages.

const execute = promisify(execFile);
const YARN = "@yarnpkg/cli-dist@4.18.1";

const FILES: Files = {
  "tsconfig.json": tsconfig({ allowImportingTsExtensions: true, rewriteRelativeImportExtensions: true }),
  "yarn.lock": "",
  "src/main.ts": `import { configure, memoryStore, shutdown } from "lockweave";
import { pay } from "shop";
configure({ store: memoryStore() });
console.log(await pay("A1"));
await shutdown();
declare const console: { log(text: string): void };
`,
  "packages/shop/tsconfig.json": tsconfig({ outDir: "dist" }),
  "packages/shop/src/index.ts": `import { currentLock } from "lockweave";
/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string): Promise<string> { return id + " under " + currentLock().key; }
`,
};

/** A workspace with an application and the package `shop`, installed by Yarn. */
class YarnWorkspace extends Project {
  async install(exports: unknown): Promise<void> {
    const lockweave = `file:${(await pack()).tarball}`;
    const { stdout: registry } = await execute("npm", ["config", "get", "registry"]);
    await this.write({
      ...FILES,
      ".yarnrc.yml": `enableTelemetry: false\nnpmRegistryServer: ${registry}`,
      "package.json": JSON.stringify({
        name: "application",
        type: "module",
        workspaces: ["packages/*"],
        dependencies: { shop: "workspace:*", lockweave },
        devDependencies: { typescript: "6.0.3", "ts-patch": "3.3.0" },
      }),
      "packages/shop/package.json": JSON.stringify({
        name: "shop",
        type: "module",
        exports,
        // As a dependency it would get its own copy, because Lockweave has peer dependencies.
        peerDependencies: { lockweave: "*" },
        devDependencies: { lockweave },
      }),
    });
    const { code, stdout } = await this.yarn("install", "--no-immutable");
    if (code !== 0) throw new Error(stdout);
  }

  async yarn(...args: readonly string[]): Promise<Finished> {
    return await this.run(join(await installed([YARN]), "@yarnpkg/cli-dist/bin/yarn.js"), ...args);
  }
}

async function workspace(exports: unknown): Promise<YarnWorkspace> {
  const project = new YarnWorkspace(await realpath(await temporaryDirectory()));
  await project.install(exports);
  return project;
}

inMatrixSerially("Yarn PnP: tags in TypeScript that a workspace package exports are an error", async (t) => {
  const project = await workspace("./src/index.ts");
  const built = await project.yarn("tspc");
  t.is(built.code, 2, built.stdout + built.stderr);
  t.regex(built.stdout, /^src\/main\.ts\(2,21\): error TS901406: LW1406: This imports `pay`/);
  const checked = await project.yarn("lockweave", "check");
  t.is(checked.code, 1);
  t.regex(checked.stdout + checked.stderr, /src\/main\.ts:2:21: LW1406: This imports `pay`/);
});

inMatrixSerially("Yarn PnP: a woven workspace package runs under its locks", async (t) => {
  const project = await workspace({ types: "./src/index.ts", default: "./dist/index.js" });
  const plain = await project.yarn("tsc", "-p", "packages/shop");
  t.is(plain.code, 0, plain.stdout);
  const unlocked = await project.yarn("tspc");
  t.is(unlocked.code, 2, unlocked.stdout);
  t.regex(unlocked.stdout, /error TS901403: .* `pay` .* `index\.js` does not contain the lock/);
  for (const args of [["-p", "packages/shop"], []]) {
    const { code, stdout } = await project.yarn("tspc", ...args);
    t.is(code, 0, stdout);
  }
  const { stdout, stderr } = await project.yarn("node", "out/main.js");
  t.is(stdout, "A1 under LOCK_pay_A1\n", stderr);
});

inMatrixSerially("init finds the compiler with Yarn Plug'n'Play and shows the first lock", async (t) => {
  t.timeout(300_000);
  const project = await workspace("./src/index.ts");
  const { code, stdout, stderr } = await project.yarn("lockweave", "init", "--yes");
  t.is(code, 0, stdout + stderr);
  t.true(stdout.includes("A1 is paid under LOCK_firstLock_A1"), stdout);
});

/** Runs `npx lockweave`. npx does not find the package in the project, so it installs the package elsewhere. */
async function npx(project: Project, ...args: readonly string[]): Promise<Finished> {
  const { tarball } = await pack();
  const cache = await temporaryDirectory(); // npx keeps what it installs in its cache.
  const command = ["--yes", `--package=${tarball}`, "lockweave", ...args];
  const env = { ...process.env, npm_config_legacy_peer_deps: "true", npm_config_cache: cache };
  return await execute("npx", command, { cwd: project.dir, env }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: Finished) => ({ code, stdout, stderr }),
  );
}

inMatrixSerially("Yarn PnP: `npx lockweave` names the command of Yarn, and changes nothing", async (t) => {
  t.timeout(300_000);
  const project = await workspace("./src/index.ts");
  const manifest = await project.read("package.json");
  for (const [command, fix] of [
    ["init", "`yarn lockweave init --yes`"],
    ["check", "`yarn lockweave check`"],
    ["list", "`yarn lockweave list`"],
  ] as const) {
    const args = command === "init" ? [command, "--yes"] : [command];
    const { code, stdout, stderr } = await npx(project, ...args);
    t.is(code, 2, stdout + stderr);
    t.is(stdout, "");
    t.true(
      stderr.includes(
        `lockweave: This project uses Yarn Plug'n'Play, so only Yarn finds its packages. Fix: run ${fix}.\n`,
      ),
      stderr,
    );
  }
  t.is(await project.read("package.json"), manifest);
  t.like(await npx(project, "--version"), { code: 0 });

  await project.write({ "package.json": manifest.replace('"lockweave":', '"another":') });
  const { stderr } = await npx(project, "init");
  t.true(stderr.includes("Fix: run `yarn add lockweave ioredis`, and then `yarn lockweave init`.\n"), stderr);
});
