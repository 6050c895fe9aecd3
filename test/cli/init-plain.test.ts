import { chmod, rm, symlink } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import test from "ava";
import { planFor } from "../../transformer/cli/init/init";
import { Project as ProjectToSetUp } from "../../transformer/cli/init/project";
import { installed } from "../hosts/installed";
import { makeProject, PACKAGE, TSPC, type Files, type Project } from "../hosts/project";
import { isMatrix } from "../support/suites";
import { TYPESCRIPT_7 } from "./tools";

// `lockweave init` in projects that have hardly more than a package.json. Each ends with a lock that ran, or with one sentence, and no file.

const TYPESCRIPTS = ["none", "6", "7", ...(isMatrix ? ["5.9"] : [])] as const;
const MANAGERS = { npm: "package-lock.json", pnpm: "pnpm-lock.yaml", yarn: "yarn.lock" } as const;
const SOURCES: Readonly<Record<string, Files>> = {
  nothing: {},
  "an empty src": { "src/.gitkeep": "" },
  "TypeScript in src": { "src/main.ts": "export const a: number = 1;\n" },
  "only .mts files": { "main.mts": "export const a: number = 1;\n" },
  "only .mts files in src": { "src/main.mts": "export const a: number = 1;\n" },
  JavaScript: { "index.js": "", "eslint.config.ts": "" },
};

/** The arguments for Node with which other test files can run tspc at the same time. */
const WITH_OWN_CACHE = TSPC.slice(0, -1);

interface Combination {
  readonly typescript: string;
  readonly hasConfig: boolean;
  readonly type: "commonjs" | "module" | undefined;
  readonly sources: string;
  readonly manager: keyof typeof MANAGERS;
}

function combinations(): Combination[] {
  const managers = Object.keys(MANAGERS) as (keyof typeof MANAGERS)[];
  const all: Combination[] = [];
  for (const typescript of TYPESCRIPTS) {
    for (const hasConfig of [false, true]) {
      for (const type of [undefined, "commonjs", "module"] as const) {
        for (const sources of Object.keys(SOURCES)) {
          const manager = managers[all.length % managers.length] ?? "npm";
          all.push({ typescript, hasConfig, type, sources, manager });
        }
      }
    }
  }
  return all.filter((_, at) => at % (isMatrix ? 5 : 13) === 0); // Both numbers have no factor in common with those of the lists.
}

/** The directories of the packages that the project has, or that its package manager would install. */
async function packagesOf(typescript: string): Promise<Readonly<Record<string, string>>> {
  const own = join(PACKAGE, "node_modules");
  if (typescript === "7") return { typescript: TYPESCRIPT_7 };
  const from = typescript === "5.9" ? await installed("compilers-5.9") : own;
  return { typescript: join(from, "typescript"), "ts-patch": join(from, "ts-patch") };
}

/** Writes a stand-in for a package manager. It links packages of this machine, because no test of the gate may ask a registry. */
async function writeManager(
  project: Project,
  name: string,
  packages: Readonly<Record<string, string>>,
): Promise<void> {
  const script = `const fs = require("node:fs");
const packages = ${JSON.stringify(packages)};
const manifest = JSON.parse(fs.readFileSync("package.json", "utf8"));
for (const spec of process.argv.slice(3).filter((word) => !word.startsWith("-"))) {
  const [, name, range] = /^(@?[^@]+)@?(.*)$/.exec(spec);
  (manifest.devDependencies ??= {})[name] = range;
  fs.symlinkSync(packages[name], "node_modules/" + name);
}
fs.writeFileSync("package.json", JSON.stringify(manifest));
`;
  await project.write({
    "tools/manager.cjs": script,
    [`tools/${name}`]: '#!/bin/sh\nexec node "$(dirname "$0")/manager.cjs" "$@"\n',
  });
  await chmod(project.path(`tools/${name}`), 0o755);
}

async function projectFor({ typescript, hasConfig, type, sources, manager }: Combination): Promise<Project> {
  const dependencies = { lockweave: "*", ioredis: "*" };
  const versions = typescript === "none" ? {} : { devDependencies: { typescript } };
  const rootDir = sources.includes("src") ? "src" : ".";
  const compilerOptions = { target: "es2022", module: "nodenext", strict: true, rootDir, outDir: "out" };
  const project = await makeProject({
    ...SOURCES[sources],
    "package.json": JSON.stringify({ main: "index.js", type, dependencies, ...versions }),
    [MANAGERS[manager]]: "",
    ...(hasConfig ? { "tsconfig.json": JSON.stringify({ compilerOptions }) } : {}),
  });
  const remove = async (file: string): Promise<void> =>
    rm(project.path(file), { force: true, recursive: true });
  if (!hasConfig) await remove("tsconfig.json");
  await remove("node_modules/typescript");
  await remove("node_modules/ts-patch");
  const packages = await packagesOf(typescript);
  await writeManager(project, manager, packages);
  if (typescript !== "none") {
    for (const [name, dir] of Object.entries(packages))
      await symlink(dir, project.path(`node_modules/${name}`));
  }
  return project;
}

for (const one of combinations()) {
  const { typescript, hasConfig, type, sources, manager } = one;
  const what = `TypeScript ${typescript}, ${hasConfig ? "a" : "no"} tsconfig.json, type ${type ?? "absent"}, ${sources}, ${manager}`;

  test.serial(`init ends with a lock that ran, or says what is missing: ${what}`, async (t) => {
    const project = await projectFor(one);
    const path = `${project.path("tools")}${delimiter}${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`;
    const main = join(PACKAGE, "dist/transformer/cli/main.js");
    const { code, stdout, stderr } = await project.run(
      ...WITH_OWN_CACHE,
      "--eval",
      `process.env.PATH = ${JSON.stringify(path)};
      const { status } = require("node:child_process").spawnSync(process.execPath, [${JSON.stringify(main)}, "init", "--yes"], { stdio: "inherit" });
      process.exitCode = status;`,
    );
    const said = stdout + stderr;
    const cannotRun = typescript === "none" && !hasConfig && /TypeScript|\.mts/.test(sources);
    if (cannotRun && !("typescript" in process.features)) {
      t.is(code, 2, said);
      t.regex(
        said,
        /^[^\n]*The sources are TypeScript, which this Node .* does not run.*typescript@6`, or use Node 22\.18 or later\.\nSee .*\n$/,
      );
      return;
    }
    t.is(code, 0, said);
    t.regex(
      said,
      /\nYour first lock, woven by (?:tspc|TypeScript 7|Node), is \S+:\nA1 is paid under LOCK_firstLock_A1\n/,
    );
    // What it proposes works, too.
    const [, program, words] =
      /\n {2}(?:npx |pnpm exec |yarn )?(tspc|lockweave build|node --import \S+)( \S+)? {2}/.exec(said) ?? [];
    t.truthy(program, said);
    if (program?.startsWith("node") === true) {
      const { stdout: shown } = await project.run("--import", "lockweave/register", (words ?? "").trim());
      t.is(shown, "A1 is paid under LOCK_firstLock_A1\n");
      return;
    }
    const compiled =
      program === "tspc"
        ? await project.run(...WITH_OWN_CACHE, "node_modules/ts-patch/bin/tspc.js")
        : await project.run(main, "build");
    t.is(compiled.code, 0, compiled.stdout + compiled.stderr);
    const [, output = ""] = / becomes (\S+)/.exec(said) ?? [];
    t.is((await project.run(output)).stdout, "A1 is paid under LOCK_firstLock_A1\n", said);
  });
}

/** Returns the names of the files that init would write for the project in a directory, in which nothing is installed. */
async function planned(files: Files, dir = "."): Promise<string[]> {
  const project = await makeProject(files);
  await rm(project.path("node_modules"), { recursive: true });
  if (!("tsconfig.json" in files)) await rm(project.path("tsconfig.json"));
  return [...planFor(new ProjectToSetUp(project.path(dir))).draft.changes.keys()];
}

const WITH_TYPESCRIPT = JSON.stringify({ devDependencies: { typescript: "6" } });

test("init creates no tsconfig.json below another one, which tools would then ignore", async (t) => {
  const files = { "package.json": "{}", "tsconfig.json": "{}", "packages/a/package.json": WITH_TYPESCRIPT };
  t.deepEqual(await planned(files, "packages/a"), ["first-lock.ts"]);
});

test("init creates no tsconfig.json if a script passes files to tsc, which would then fail", async (t) => {
  for (const build of [
    'tsc "src/index.ts" --outDir dist',
    "tsc src/index.js --allowJs",
    "cd server && tsc",
  ]) {
    const manifest = { scripts: { build }, devDependencies: { typescript: "6" } };
    const changed = await planned({ "package.json": JSON.stringify(manifest), "src/index.ts": "" });
    t.false(changed.includes("tsconfig.json"), build);
  }
});

test("init compiles the whole directory if there are sources at its top and in src", async (t) => {
  const project = await makeProject({ "package.json": WITH_TYPESCRIPT, "index.ts": "", "src/x.ts": "" });
  await rm(project.path("tsconfig.json"));
  const { draft } = planFor(new ProjectToSetUp(project.dir));
  t.regex(draft.text("tsconfig.json") ?? "", /"rootDir": "\."/);
  t.notRegex(draft.text("tsconfig.json") ?? "", /include/);
});

test("init sets up Node for a server in JavaScript, whatever lies in other directories or sets up a tool", async (t) => {
  const manifest = JSON.stringify({ scripts: { start: "node server/index.js" } });
  const server = { "package.json": manifest, "server/index.js": "" };
  for (const other of ["app/src/App.tsx", "server/media/segment0.ts", "vitest.config.ts"])
    t.true((await planned({ ...server, [other]: "" })).includes("first-lock.mjs"), other);
});
