import { execFile } from "node:child_process";
import { realpath, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify, stripVTControlCharacters } from "node:util";
import { versionIn } from "./installed";
import { Project, tsconfig, type Finished, type Files } from "./project";
import { yarnProgram, yarnSettings } from "./yarn";
import { pack, temporaryDirectory } from "../package/consumer";
import { inMatrixSerially } from "../support/suites";

// With Yarn Plug'n'Play there is no `node_modules`. Yarn's own loader resolves packages.

const execute = promisify(execFile);

const FILES: Files = {
  "tsconfig.json": tsconfig({ allowImportingTsExtensions: true, rewriteRelativeImportExtensions: true }),
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

/** A project that Yarn installs. */
class YarnProject extends Project {
  async install(files: Files): Promise<void> {
    await this.write({ ".yarnrc.yml": await yarnSettings(), "yarn.lock": "", ...files });
    const { code, stdout } = await this.yarn("install", "--no-immutable");
    if (code !== 0) throw new Error(stdout);
  }

  async yarn(...args: readonly string[]): Promise<Finished> {
    return await this.run(await yarnProgram(), ...args);
  }
}

async function packedLockweave(): Promise<string> {
  return `file:${(await pack()).tarball}`;
}

/** Creates a workspace with an application and the package `shop`. */
async function workspace(exports: unknown): Promise<YarnProject> {
  const lockweave = await packedLockweave();
  const project = new YarnProject(await realpath(await temporaryDirectory()));
  await project.install({
    ...FILES,
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
  // npx keeps what it installs in its cache, so this one has only the packages of the other.
  const cache = await temporaryDirectory();
  const { stdout: usual } = await execute("npm", ["config", "get", "cache"]);
  await symlink(join(usual.trim(), "_cacache"), join(cache, "_cacache"));
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

// ---- NestJS ---------------------------------------------------------------------------------------------

const NEST_MAIN = `import "reflect-metadata";
import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { configure, currentLock, memoryStore } from "lockweave";

@Injectable()
export class Orders {
  /** @redisLock businessFlag=pay keyName=orderNo */
  async pay(orderNo: string): Promise<string> {
    return orderNo + " under " + currentLock().key;
  }
}

@Module({ providers: [Orders] })
export class AppModule {}

async function main(): Promise<void> {
  configure({ store: memoryStore() });
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ["error"] });
  console.log(await app.get(Orders).pay("A1"));
  await app.close();
}
void main();
`;

/** The command of NestJS 12 does not start with Plug'n'Play in Node 20, with or without Lockweave. */
async function nestProject(): Promise<YarnProject> {
  const of = (name: string): string => versionIn("yarn-projects", name);
  const project = new YarnProject(await realpath(await temporaryDirectory()));
  await project.install({
    "package.json": JSON.stringify({
      name: "application",
      private: true,
      scripts: { build: "nest build" },
      dependencies: {
        "@nestjs/common": of("@nestjs/common"),
        "@nestjs/core": of("@nestjs/core"),
        "reflect-metadata": of("reflect-metadata"),
        rxjs: of("rxjs"),
        ioredis: of("ioredis"),
        lockweave: await packedLockweave(),
      },
      devDependencies: {
        "@nestjs/cli": of("@nestjs/cli"),
        typescript: of("typescript"),
        "@types/node": of("@types/node"),
      },
    }),
    "nest-cli.json": JSON.stringify({ sourceRoot: "src" }),
    "tsconfig.json": tsconfig({
      module: "commonjs",
      moduleResolution: "node10",
      ignoreDeprecations: "5.0",
      outDir: "dist",
      rootDir: "src",
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
      types: ["node"],
      plugins: [],
    }),
    "tsconfig.build.json": JSON.stringify({ extends: "./tsconfig.json", include: ["src"] }),
    "src/main.ts": NEST_MAIN,
  });
  return project;
}

inMatrixSerially("Yarn PnP: init makes NestJS build with locks, by tsc", async (t) => {
  t.timeout(300_000);
  const project = await nestProject();
  t.like(await project.yarn("nest", "build"), { code: 0 });
  // In CI, an installation must not change the lock file, unless a command says that it may.
  await project.write({
    ".yarnrc.yml": `${await project.read(".yarnrc.yml")}\nenableImmutableInstalls: true\n`,
  });
  const unwoven = await project.yarn("node", "dist/main.js");
  t.not(unwoven.code, 0);
  t.true(unwoven.stderr.includes("LockNotWovenError"), unwoven.stderr);

  const init = await project.yarn("lockweave", "init", "--yes");
  t.is(init.code, 0, init.stdout + init.stderr);
  t.true(init.stdout.includes("src/main.ts has tags already"), init.stdout);
  const built = await project.yarn("nest", "build");
  t.is(built.code, 0, built.stdout + built.stderr);
  const { stdout, stderr } = await project.yarn("node", "dist/main.js");
  t.is(stdout, "A1 under LOCK_pay_A1\n", stderr);

  await project.write({ "src/main.ts": NEST_MAIN.replace("keyName=orderNo", "keyName=order") });
  const wrong = await project.yarn("nest", "build");
  t.not(wrong.code, 0);
  t.regex(stripVTControlCharacters(wrong.stderr + wrong.stdout), /src\/main\.ts:8:\d+ - error TS901202:/);
});
