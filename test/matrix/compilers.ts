import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { Parser } from "../../transformer/parser/parser";
import { weave } from "../../transformer/weave/weave";
import { installed, packagesIn, versionIn, type SetName } from "../hosts/installed";

// Tests the packed package with each supported compiler, in projects that npm installs.

interface Row {
  /** The set with its compiler. It has ts-patch, too, if the compiler supports plugins. */
  readonly set: SetName;
  /** The major version. */
  readonly node: 20 | 24;
}

const ROWS: readonly Row[] = [
  { set: "compilers-5.9", node: 20 },
  { set: "compilers-6.0", node: 20 },
  { set: "compilers-6.0-ts-patch-4", node: 24 },
  { set: "compilers-7.0", node: 20 },
  { set: "compilers-7.0", node: 24 },
  { set: "compilers-7.1-beta", node: 24 },
  { set: "compilers-7.1-dev", node: 24 },
];

const CACHE = path.join(tmpdir(), "lockweave-matrix");
const REPOSITORY = path.join(__dirname, "../..");
const execute = promisify(execFile);

async function main(): Promise<void> {
  const tarball = await pack();
  await installAlone(tarball);
  let failed = 0;
  for (const row of ROWS) {
    const toolchain = await install(row, tarball);
    const { typescript, "ts-patch": tsPatch } = toolchain.packages;
    const patched = tsPatch === undefined ? "" : `, ts-patch ${tsPatch}`;
    console.log(`TypeScript ${typescript}${patched}, Node ${row.node}`);
    for (const [what, check] of Object.entries(tsPatch === undefined ? NATIVE_CHECKS : CHECKS)) {
      const started = performance.now();
      const complaint = await check(toolchain);
      console.log(`  ${complaint === undefined ? "✔" : "✘"} ${what} (${secondsSince(started)})`);
      if (complaint === undefined) continue;
      failed += 1;
      console.log(complaint.replaceAll(/^/gm, "    "));
    }
  }
  process.exitCode = failed === 0 ? 0 : 1;
}

// ---- installing -----------------------------------------------------------------------------------------

async function pack(): Promise<string> {
  await mkdir(CACHE, { recursive: true });
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", CACHE];
  const { stdout } = await execute("npm", args, { cwd: REPOSITORY });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return path.join(CACHE, filename);
}

/** A directory with the compilers, and a Node. */
interface Toolchain {
  readonly dir: string;
  readonly node: string;
  /** The installed packages, as in the `devDependencies` of a project. */
  readonly packages: Readonly<Record<string, string>>;
}

async function install({ set, node }: Row, tarball: string): Promise<Toolchain> {
  const dir = path.join(CACHE, `${set}-node-${node}`);
  const names = packagesIn(set).filter((name) => !["ts-node", "tslib"].includes(name));
  const packages = Object.fromEntries(names.map((name) => [name, versionIn(set, name)]));
  await rm(dir, { recursive: true, force: true });
  await cp(path.dirname(await installed(set)), dir, { recursive: true, verbatimSymlinks: true });
  await npmInstall(dir, [tarball]);
  return {
    dir,
    node: node === 20 ? process.execPath : path.join(await installed(`node-${node}`), "node/bin/node"),
    packages: { ...packages, lockweave: `file:${tarball}` },
  };
}

/** Checks that the package without a compiler installs nothing but uuid. */
async function installAlone(tarball: string): Promise<void> {
  const dir = path.join(CACHE, "alone");
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  await writeFile(path.join(dir, "package.json"), "{}");
  await npmInstall(dir, [tarball]);
  const names = (await readdir(path.join(dir, "node_modules"))).filter((name) => !name.startsWith("."));
  if (names.join() !== "lockweave,uuid") throw new Error(`npm installed ${names.join(", ")}`);
}

/** @throws if npm prints a warning about the dependencies of the packages */
async function npmInstall(dir: string, packages: readonly string[]): Promise<void> {
  const args = ["install", "--no-audit", "--no-fund", "--prefer-offline", ...packages];
  const { stderr } = await execute("npm", args, { cwd: dir });
  if (/ERESOLVE|peer/.test(stderr)) throw new Error(stderr);
}

// ---- the projects ---------------------------------------------------------------------------------------

const ORDERS = `export class Orders {
  /** @redisLock businessFlag=pay keyName=orderNo */
  async pay(orderNo: string): Promise<string> {
    return orderNo + " under " + currentLock().key;
  }

  /** @redisLock businessFlag=lines keyName=orderNo */
  async *lines(orderNo: string): AsyncGenerator<string> {
    yield orderNo + " streams under " + currentLock().key;
  }
}
import { currentLock } from "lockweave";
`;

const MAIN = `import { configure, memoryStore, shutdown } from "lockweave";
import { Orders } from "./orders.js";

async function main(): Promise<void> {
  configure({ store: memoryStore() });
  console.log(await new Orders().pay("A1"));
  for await (const line of new Orders().lines("A1")) console.log(line);
  await shutdown();
}
void main();
`;

const OUTPUT = "A1 under LOCK_pay_A1\nA1 streams under LOCK_lines_A1\n";

const BAD_TAG = ORDERS.replace("keyName=orderNo", "keyName=orderNO");
const BAD_TAG_AT = "src/orders.ts(2,43): error TS901202: LW1202: The function has no parameter `orderNO`.";
const BAD_TYPE = ORDERS.replace("keyName=orderNo", "keyName=orderNo.size");
const BAD_TYPE_AT = "src/orders.ts(2,51): error TS2339: Property 'size' does not exist on type 'string'.";

type Type = "module" | "commonjs";

interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

class Project {
  readonly #node: string;
  readonly #dir: string;

  private constructor({ node }: Toolchain, dir: string) {
    this.#node = node;
    this.#dir = dir;
  }

  static async make(
    toolchain: Toolchain,
    type: Type,
    orders: string,
    settings: object = {},
    dir = path.join(toolchain.dir, "project"),
    manifest: object = {},
  ): Promise<Project> {
    const project = new Project(toolchain, dir);
    await rm(project.#dir, { recursive: true, force: true });
    await mkdir(path.join(project.#dir, "src"), { recursive: true });
    const compilerOptions = {
      target: "es2022",
      lib: ["es2023"],
      types: ["node"],
      module: "nodenext",
      strict: true,
      skipLibCheck: true,
      rootDir: "src",
      outDir: "out",
      plugins: [{ transform: "lockweave/transformer", transformProgram: true }],
      ...settings,
    };
    const tsNode = { compiler: "ts-patch/compiler", experimentalResolver: true };
    const files = {
      "package.json": JSON.stringify({ type, ...manifest }),
      "tsconfig.json": JSON.stringify({ compilerOptions, include: ["src"], "ts-node": tsNode }),
      "register.mjs": 'import { register } from "node:module";\nregister("ts-node/esm", import.meta.url);\n',
      "src/orders.ts": orders,
      "src/main.ts": MAIN,
    };
    for (const [file, text] of Object.entries(files)) await writeFile(path.join(project.#dir, file), text);
    return project;
  }

  tspc(...args: readonly string[]): Promise<Finished> {
    return this.run(path.join(this.#dir, "../node_modules/ts-patch/bin/tspc.js"), ...args);
  }

  lockweave(...args: readonly string[]): Promise<Finished> {
    return this.run(path.join(this.#dir, "../node_modules/lockweave/dist/transformer/cli/main.js"), ...args);
  }

  tsNode(...args: readonly string[]): Promise<Finished> {
    return this.run(path.join(this.#dir, "../node_modules/ts-node/dist/bin.js"), ...args);
  }

  run(...args: readonly string[]): Promise<Finished> {
    return this.#finished(this.#node, args);
  }

  /** Runs npm, with the project's Node for its scripts. */
  npm(...args: readonly string[]): Promise<Finished> {
    return this.#finished("npm", args);
  }

  async #finished(command: string, args: readonly string[]): Promise<Finished> {
    const PATH = `${path.dirname(this.#node)}${path.delimiter}${process.env["PATH"]}`;
    const child = spawn(command, args, {
      cwd: this.#dir,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, PATH },
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    const [code] = (await once(child, "close")) as [number | null];
    return { code, stdout, stderr };
  }
}

// ---- checks ---------------------------------------------------------------------------------------------

type Check = (toolchain: Toolchain) => Promise<string | undefined>;

const CHECKS: Readonly<Record<string, Check>> = {
  "tspc builds ES modules that hold locks": async (toolchain) => {
    const project = await Project.make(toolchain, "module", ORDERS);
    return unlike(await project.tspc(), 0, "") ?? unlike(await project.run("out/main.js"), 0, OUTPUT);
  },
  "tspc builds CommonJS that holds locks": async (toolchain) => {
    const project = await Project.make(toolchain, "commonjs", ORDERS);
    return unlike(await project.tspc(), 0, "") ?? unlike(await project.run("out/main.js"), 0, OUTPUT);
  },
  "tspc builds for ES2017 with the helpers of tslib": async (toolchain) => {
    const settings = { target: "es2017", importHelpers: true };
    for (const type of ["module", "commonjs"] as const) {
      const project = await Project.make(toolchain, type, ORDERS, settings);
      const complaint =
        unlike(await project.tspc(), 0, "") ?? unlike(await project.run("out/main.js"), 0, OUTPUT);
      if (complaint !== undefined) return complaint;
    }
    return undefined;
  },
  "tspc reports a bad tag and a bad key at their words, and fails": async (toolchain) => {
    const badTag = await Project.make(toolchain, "module", BAD_TAG);
    const complaint = unlike(await badTag.tspc("--noEmit"), 2, BAD_TAG_AT);
    if (complaint !== undefined) return complaint;
    const badType = await Project.make(toolchain, "module", BAD_TYPE);
    return unlike(await badType.tspc(), 2, BAD_TYPE_AT);
  },
  "`prepare: ts-patch install` makes plain tsc weave after each install": async (toolchain) => {
    const dir = path.join(CACHE, "prepared");
    await rm(dir, { recursive: true, force: true });
    const project = await Project.make(toolchain, "module", ORDERS, {}, dir, {
      scripts: { prepare: "ts-patch install -s", build: "tsc" },
      devDependencies: toolchain.packages,
    });
    for (const command of ["install", "ci"]) {
      const quiet = ["--no-audit", "--no-fund", "--prefer-offline"];
      const complaint =
        unlike(await project.npm(command, ...quiet), 0, "added ") ??
        unlike(await project.npm("run", "--silent", "build"), 0, "") ??
        unlike(await project.run("out/main.js"), 0, OUTPUT);
      if (complaint !== undefined) return complaint;
    }
    return undefined;
  },
  "the published parser weaves the fixtures like this TypeScript": async ({ dir }) => {
    const parts = (await import(path.join(REPOSITORY, "dist/transformer/parser/typescript.js"))) as Parser;
    const whole = (await import(path.join(dir, "node_modules/typescript/lib/typescript.js"))) as {
      default: Parser;
    };
    const fixtures = path.join(REPOSITORY, "test/fixtures/weave");
    for (const file of await readdir(fixtures, { recursive: true })) {
      if (!path.basename(file).startsWith("input.")) continue;
      const text = await readFile(path.join(fixtures, file), "utf8");
      const [cut, all] = [parts, whole.default].map((ts) => weave(file, text, { ts, module: "esm" })?.code);
      if (cut === undefined || cut !== all) return file;
    }
    return undefined;
  },
  "ts-node with type check runs CommonJS under locks": async (toolchain) => {
    const project = await Project.make(toolchain, "commonjs", ORDERS);
    return unlike(await project.tsNode("src/main.ts"), 0, OUTPUT);
  },
  "ts-node with type check reports a bad tag and a bad key, and runs nothing": async (toolchain) => {
    for (const [orders, expected] of [
      [BAD_TAG, BAD_TAG_AT],
      [BAD_TYPE, BAD_TYPE_AT],
    ] as const) {
      const project = await Project.make(toolchain, "commonjs", orders);
      const { code, stdout, stderr } = await project.tsNode("src/main.ts");
      const complaint = unlike({ code, stdout: stdout + stderr, stderr }, 1, expected);
      if (complaint !== undefined) return complaint;
    }
    return undefined;
  },
  "ts-node with type check runs ES modules under locks": async (toolchain) => {
    const project = await Project.make(toolchain, "module", ORDERS);
    return unlike(await project.run("--import", "./register.mjs", "src/main.ts"), 0, OUTPUT);
  },
  "ts-node refuses ES modules with a bad tag, and runs nothing": async (toolchain) => {
    const project = await Project.make(toolchain, "module", BAD_TAG);
    return unlike(await project.run("--import", "./register.mjs", "src/main.ts"), 1, "");
  },
  "ts-node without ts-patch does not run unlocked": async (toolchain) => {
    const project = await Project.make(toolchain, "commonjs", ORDERS);
    const { code, stdout, stderr } = await project.tsNode("--compiler", "typescript", "src/main.ts");
    return unlike({ code, stdout: stdout + stderr, stderr }, 1, "LOCK_NOT_WOVEN");
  },
};

const NATIVE_CHECKS: Readonly<Record<string, Check>> = {
  "lockweave build builds ES modules and CommonJS that hold locks, and check confirms it": async (
    toolchain,
  ) => {
    for (const type of ["module", "commonjs"] as const) {
      const project = await Project.make(toolchain, type, ORDERS, { declaration: true, sourceMap: true });
      const complaint =
        unlike(await project.lockweave("build"), 0, "") ??
        unlike(await project.run("out/main.js"), 0, OUTPUT) ??
        unlike(await project.lockweave("check"), 0, "The locks of all 2 tags are in the output.");
      if (complaint !== undefined) return complaint;
    }
    return undefined;
  },
  "lockweave build reports a bad tag and a bad key at their words, and fails": async (toolchain) => {
    const badTag = await Project.make(toolchain, "module", BAD_TAG);
    const complaint = unlike(await badTag.lockweave("build"), 2, BAD_TAG_AT);
    if (complaint !== undefined) return complaint;
    const badType = await Project.make(toolchain, "module", BAD_TYPE);
    return unlike(await badType.lockweave("build"), 2, BAD_TYPE_AT);
  },
  "the output of the compiler alone does not run unlocked, and check reports it": async (toolchain) => {
    const project = await Project.make(toolchain, "module", ORDERS);
    const tsc = path.join(toolchain.dir, "node_modules/typescript/bin/tsc");
    const complaint = unlike(await project.run(tsc), 0, "");
    if (complaint !== undefined) return complaint;
    const { code, stdout, stderr } = await project.run("out/main.js");
    return (
      unlike({ code, stdout: stdout + stderr, stderr }, 1, "LOCK_NOT_WOVEN") ??
      unlike(await project.lockweave("check"), 1, "")
    );
  },
};

/** Describes a difference from the expected result. `stdout` must contain the words, or be empty if there are none. */
function unlike({ code, stdout, stderr }: Finished, expectedCode: number, words: string): string | undefined {
  if (code === expectedCode && (words === "" ? stdout === "" : stdout.includes(words))) return undefined;
  return `expected exit code ${expectedCode} and ${JSON.stringify(words)}, got ${code}\n${stdout}\n${stderr}`;
}

function secondsSince(start: number): string {
  return `${((performance.now() - start) / 1000).toFixed(1)} s`;
}

void main();
