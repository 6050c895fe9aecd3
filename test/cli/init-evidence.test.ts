import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import test from "ava";
import { HOSTS, planFor } from "../../transformer/cli/init/init";
import { Project } from "../../transformer/cli/init/project";
import { makeProject, type Files } from "../hosts/project";

// `lockweave init` detects the tools of a project.

/** @param missing paths that the project does not have */
async function projectOf(
  manifest: object,
  files: Files = {},
  missing: readonly string[] = [],
): Promise<Project> {
  const project = await makeProject({ ...files, "package.json": JSON.stringify(manifest, undefined, 2) });
  for (const path of missing) await rm(project.path(path));
  return new Project(project.dir);
}

const NO_TYPESCRIPT = ["tsconfig.json", "node_modules/typescript"];

for (const [version, major, isTooOld] of [
  ["5.9.0", 5, false],
  ["~5.9", 5, false],
  ["^5.8.3", 5, true],
  ["^5", 5, false],
  ["5.x", 5, false],
  ["^4", 4, true],
  ["4", 4, true],
  [">=6", 6, false],
  ["7.0.2", 7, false],
] as const) {
  test(`TypeScript ${version} is ${isTooOld ? "too old" : "new enough"} in dependencies and in devDependencies`, async (t) => {
    for (const kind of ["dependencies", "devDependencies"]) {
      const project = await projectOf({ [kind]: { typescript: version } }, {}, NO_TYPESCRIPT);
      t.deepEqual(project.typescript, { version, major, isTooOld });
      t.true(project.isCompiled);
    }
  });
}

test("init reads the version of the installed TypeScript, if any, when package.json says `latest`", async (t) => {
  const manifest = { devDependencies: { typescript: "latest" } };
  t.is((await projectOf(manifest, {}, NO_TYPESCRIPT)).typescript, undefined);
  t.regex((await projectOf(manifest)).typescript?.version ?? "", /^\d+\.\d+\.\d+$/);
});

for (const [what, files, scripts, isTypeScript, isCompiled] of [
  ["a tsconfig.json alone", { "tsconfig.json": "{}" }, {}, true, true],
  ["a TypeScript module next to package.json", { "a.mts": "" }, {}, true, false],
  ["a script that runs a TypeScript module", {}, { start: "node src/main.ts" }, true, false],
  ["only declarations", { "a.d.ts": "" }, {}, false, false],
  ["only JavaScript", { "a.js": "" }, { start: "node a.js" }, false, false],
] as const) {
  test(`a project with ${what} ${isTypeScript ? "is" : "is not"} TypeScript, and ${isCompiled ? "is" : "is not"} compiled`, async (t) => {
    const missing = "tsconfig.json" in files ? ["node_modules/typescript"] : NO_TYPESCRIPT;
    const project = await projectOf({ scripts }, files, missing);
    t.is(project.isTypeScript, isTypeScript);
    t.is(project.isCompiled, isCompiled);
  });
}

test("a script runs a program if the program's name is a command in it", async (t) => {
  for (const [script, runs] of [
    ["vite", true],
    ["A=1 npx vite build", true],
    ["clean && vite;", true],
    ["my-vite", false],
    ["vite-node a.ts", false],
    ["./vite", false],
    ["node vite.js", false],
    ["npm i @a/vite", false],
    ["npm run vite:build", false],
    ["npm run build:vite", false],
  ] as const) {
    t.is((await projectOf({ scripts: { it: script } })).runs("vite"), runs, script);
  }
});

test("--config belongs to the program before it in a script, and its file must exist", async (t) => {
  for (const [script, named] of [
    ["vitest --config ./a.ts", ["a.ts"]],
    ["vitest run --config=a.ts && vitest --config a.ts", ["a.ts"]],
    ["vitest --config a.ts; vitest --config b/c.ts", ["a.ts", "b/c.ts"]],
    ["vitest && other --config a.ts", []],
    ["my-vitest --config a.ts", []],
    ["vitest --config gone.ts", []],
  ] as const) {
    const project = await projectOf({ scripts: { it: script } }, { "a.ts": "", "b/c.ts": "" });
    t.deepEqual(project.configsNamedTo("vitest"), named, script);
  }
});

test("init finds a configuration by its name and a script extension, and the first name wins", async (t) => {
  for (const [file, isFound] of [
    ["vite.config.ts", true],
    ["vite.config.cjs", true],
    ["vite.config.json", false],
    ["vite.config.tsx", false],
    ["vite.config.old.ts", false],
  ] as const) {
    const project = await projectOf({}, { [file]: "" });
    t.is(project.config("vitest.config", "vite.config"), isFound ? file : undefined, file);
  }
  const both = await projectOf({}, { "a.config.js": "", "b.config.js": "" });
  t.is(both.config("b.config", "a.config"), "b.config.js");
});

test("the program of a package is the one that `bin` in its package.json names", async (t) => {
  for (const [bin, script] of [
    ["./one.js", "one.js"],
    [{ tool: "named.js", other: "other.js" }, "named.js"],
    [{ other: "other.js" }, "other.js"],
    [undefined, "tool"],
  ] as const) {
    const project = await projectOf({}, { "node_modules/tool/package.json": JSON.stringify({ bin }) });
    t.is(project.bin("tool"), project.path(`node_modules/tool/${script}`));
  }
});

test("the nearest lock file decides the package manager and its install commands", async (t) => {
  for (const [lock, install, installDev] of [
    ["pnpm-lock.yaml", "pnpm add", "pnpm add --save-dev"],
    ["yarn.lock", "yarn add", "yarn add --dev"],
    ["bun.lockb", "bun add", "bun add --dev"],
    ["package-lock.json", "npm install", "npm install --save-dev"],
  ] as const) {
    const workspace = await makeProject({
      [lock]: "",
      "packages/a/package.json": "{}",
      "packages/b/package.json": "{}",
      "packages/b/package-lock.json": "",
    });
    const { packageManager } = new Project(workspace.path("packages/a"));
    t.is(packageManager.install.join(" "), install);
    t.is(packageManager.installDev.join(" "), installDev);
    t.is(new Project(workspace.path("packages/b")).packageManager.name, "npm");
  }
});

/** The hosts and their evidence. */
function foundIn(project: Project): readonly (readonly [string, string])[] {
  return planFor(project).found.map(([{ name }, evidence]) => [name, evidence]);
}

for (const [host, evidence, manifest, files] of [
  ["Jest", "jest.config.ts", {}, { "jest.config.ts": "" }],
  ["Jest", "`jest` in package.json", { devDependencies: { jest: "30" } }, {}],
  ["Vitest", "`vitest` in a script", { scripts: { test: "vitest run" } }, {}],
  ["Vitest", "`vitest` in package.json", { devDependencies: { vitest: "4" } }, {}],
  ["Next.js", "next.config.mjs", {}, { "next.config.mjs": "" }],
  ["Next.js", "`next` in package.json", { dependencies: { next: "16" } }, {}],
  ["Vite", "vite.config.ts", { scripts: { build: "vite build" } }, { "vite.config.ts": "" }],
  ["Rollup", "`rollup` in a script", { scripts: { build: "rollup -c" } }, {}],
  ["esbuild", "`esbuild` in a script", { scripts: { build: "esbuild a.ts" } }, {}],
  [
    "esbuild",
    "tools/b.mjs",
    { scripts: { build: "node ./tools/b.mjs" } },
    { "tools/b.mjs": "import 'esbuild';" },
  ],
  ["esbuild", "esbuild.config.js", {}, { "esbuild.config.js": 'require("esbuild");' }],
  ["Bun", "build.ts", {}, { "build.ts": "Bun.build({});" }],
  ["Bun", "b.ts", { scripts: { build: "bun run ./b.ts" } }, { "b.ts": "Bun.build({});" }],
  ["tspc", "no other compiler was found", {}, { "build.ts": "make({});", "esbuild.js": "" }],
  [
    "tspc",
    "no other compiler was found",
    { scripts: { types: "tsc" } },
    { "tsconfig.json": '{ "compilerOptions": { "noEmit": true } }' },
  ],
] as const) {
  const by = [...Object.values(manifest).map((value) => JSON.stringify(value)), ...Object.keys(files)];
  test(`init finds ${host} by ${evidence}: ${by.join(", ")}`, async (t) => {
    const found = foundIn(await projectOf(manifest, files));
    t.deepEqual(
      found.find(([name]) => name === host),
      [host, evidence],
    );
    if (host !== "Jest" && host !== "Vitest") t.is(found.length, 1);
  });
}

test("init falls back to the project's TypeScript, and to Node if there is none", async (t) => {
  const nothing = "no other compiler was found";
  const withTypeScript = (typescript: string): Promise<Project> =>
    projectOf({ devDependencies: { typescript } }, {}, ["node_modules/typescript"]);
  t.deepEqual(foundIn(await withTypeScript("7.0.2")), [["TypeScript 7", nothing]]);
  t.deepEqual(foundIn(await withTypeScript("6.0.2")), [["tspc", nothing]]);
  t.deepEqual(foundIn(await projectOf({}, {}, NO_TYPESCRIPT)), [["Node", nothing]]);
});

test("init shows the first lock with a host that builds, if there is one", async (t) => {
  const scripts = { start: "tsx src/main.ts", build: "vite build", types: "tsc" };
  const { found, host } = planFor(await projectOf({ scripts }));
  t.deepEqual(
    found.map(([{ name }]) => name),
    ["Vite", "tspc", "tsx"],
  );
  t.is(host?.name, "Vite");
});

test("init adds the plugin to the nearest tsconfig.json if its base has no plugins", async (t) => {
  const project = await projectOf(
    { scripts: { build: "tsc" } },
    { "tsconfig.json": '{ "extends": "./base.json" }', "base.json": '{ "compilerOptions": {} }' },
  );
  const { draft } = planFor(project);
  t.true(draft.changes.has("tsconfig.json"));
  t.false(draft.changes.has("base.json"));
});

// ---- Jest -----------------------------------------------------------------------------------------------

const OURS = (files: string, transformer: string): string =>
  `"transform": { "${files}": ["lockweave/jest", { "transformer": "${transformer}" }] }`;

for (const [what, manifest, jest, after] of [
  ["depends on ts-jest", { "ts-jest": "29" }, {}, OURS(String.raw`\\.[cm]?tsx?$`, "ts-jest")],
  [
    "has the preset of ts-jest by its path",
    {},
    { preset: "ts-jest/presets/default" },
    OURS(String.raw`\\.[cm]?tsx?$`, "ts-jest"),
  ],
  ["has no transform", {}, {}, String.raw`"transform": { "\\.[cm]?[jt]sx?$": "lockweave/jest" }`],
  ["has an unknown preset", {}, { preset: "ts-jest/presets/js-with-ts" }, undefined],
  ["has an empty transform", {}, { transform: {} }, undefined],
  ["has a transform that is `null`", {}, { transform: null }, undefined],
] as const) {
  test(`init ${after === undefined ? "leaves the configuration to the user" : "wraps the transform"} if a Jest project ${what}`, async (t) => {
    const project = await projectOf(
      { devDependencies: { jest: "30", ...manifest } },
      {
        "jest.config.json": JSON.stringify(jest),
      },
    );
    const { draft } = planFor(project);
    const text = draft.changes.get("jest.config.json")?.replaceAll(/\s+/g, " ");
    if (after !== undefined) t.true(text?.includes(after), text);
    else {
      t.is(text, undefined);
      t.deepEqual(
        draft.byHand.map(({ file, lines }) => [file, lines]),
        [
          [
            "jest.config.json",
            [String.raw`transform: { "\\.[cm]?[jt]sx?$": ["lockweave/jest", { transformer: "ts-jest" }] }`],
          ],
        ],
      );
    }
  });
}

test("init leaves a Jest configuration with computed parts to the user", async (t) => {
  for (const config of [
    String.raw`{ transform: { "\\.ts$": transformer } }`,
    "{ transform }",
    "{ ...base }",
    "{ preset }",
  ]) {
    const files = { "jest.config.js": `module.exports = ${config};\n` };
    const { draft } = planFor(await projectOf({ devDependencies: { jest: "30" } }, files));
    t.false(draft.changes.has("jest.config.js"), config);
    t.deepEqual(
      draft.byHand.map(({ file }) => file),
      ["jest.config.js"],
      config,
    );
  }
});

// ---- what builds the first lock alone -----------------------------------------------------------------------

for (const [name, tool, config, command] of [
  ["Vite", "vite", "vite.config.js", "build --ssr FILE --outDir DIR --logLevel warn"],
  ["tsdown", "tsdown", "tsdown.config.js", "FILE -d DIR"],
  ["tsup", "tsup", "tsup.config.js", "FILE -d DIR"],
  ["Rolldown", "rolldown", "rolldown.config.js", "-c rolldown.config.js -d DIR --input FILE"],
  ["Rollup", "rollup", "rollup.config.js", "--silent -c -i FILE -d DIR"],
  ["webpack", "webpack-cli", "webpack.config.js", "--entry-reset --entry ./FILE -o DIR"],
] as const) {
  test(`init builds the first lock with the program of ${name}, and runs the output under any name`, async (t) => {
    const bin = { [tool]: "cli.js" };
    const project = await projectOf(
      {},
      {
        [config]: "",
        [`node_modules/${tool}/package.json`]: JSON.stringify({ bin }),
      },
    );
    const host = HOSTS.find((one) => one.name === name);
    for (const [files, output] of [
      [["first-lock.mjs", "main.js", "a.js"], "first-lock.mjs"],
      [["main.cjs", "a.js", "first-lock.d.ts"], "main.cjs"],
      [["chunks/a.js", "a.css"], "chunks/a.js"],
      [[], "main.js"],
    ] as const) {
      const dir = project.path(`out-${output.replace("/", "-")}-${files.length}`);
      await mkdir(dir);
      for (const file of files) {
        await mkdir(dirname(join(dir, file)), { recursive: true });
        await writeFile(join(dir, file), "");
      }
      const [build, run, ...rest] = host?.tryOut?.(project, "src/first-lock.ts", dir) ?? [];
      const words = typeof build === "object" ? build : [];
      t.is(words[0], project.path(`node_modules/${tool}/cli.js`));
      const expected = command.replace("FILE", "src/first-lock.ts").replace("DIR", dir);
      t.is(words.slice(1).join(" "), expected);
      t.deepEqual(typeof run === "function" ? run() : [], [join(dir, output)]);
      t.deepEqual(rest, []);
    }
  });
}

// ---- Next.js and NestJS -------------------------------------------------------------------------------------

test("init writes a Next.js configuration that both of its bundlers can load", async (t) => {
  const project = await makeProject({ "package.json": '{ "dependencies": { "next": "16" } }' });
  const { draft } = planFor(new Project(project.dir));
  await project.write({ "next.config.mjs": draft.changes.get("next.config.mjs") ?? "" });
  const { code, stdout, stderr } = await project.run(
    "--input-type=module",
    "--eval",
    `import config from "./next.config.mjs";
const { webpack, ...others } = config;
console.log(JSON.stringify([others, webpack({ plugins: [] }).plugins.length]));`,
  );
  t.is(code, 0, stderr);
  const rules = { "*.{ts,tsx,mts,cts,js,jsx,mjs,cjs}": { loaders: ["lockweave/loader"] } };
  t.deepEqual(JSON.parse(stdout), [{ serverExternalPackages: ["lockweave"], turbopack: { rules } }, 1]);
});

for (const [what, files, missing, file] of [
  ["no `src`", {}, [], "instrumentation.ts"],
  ["routes in `src/app`", { "src/app/page.tsx": "" }, [], "src/instrumentation.ts"],
  ["routes in `src/pages`", { "src/pages/index.tsx": "" }, [], "src/instrumentation.ts"],
  ["other sources in `src`", { "src/a.ts": "" }, [], "instrumentation.ts"],
  ["no TypeScript", {}, NO_TYPESCRIPT, "instrumentation.js"],
] as const) {
  test(`init writes ${file} for a Next.js project with ${what}`, async (t) => {
    const { draft } = planFor(await projectOf({ dependencies: { next: "16" } }, files, missing));
    const written = [...draft.changes].filter(([name]) => name.includes("instrumentation"));
    const type = file.endsWith(".ts") ? ": Promise<void>" : "";
    t.deepEqual(
      written.map(([name, text]) => [name, text.split("\n")[0]]),
      [[file, `export async function register()${type} {`]],
    );
  });
}

test("init asks the user to configure locks in an instrumentation file, wherever Next.js looks for it", async (t) => {
  for (const file of ["instrumentation", "src/instrumentation"].flatMap((name) => [
    `${name}.ts`,
    `${name}.js`,
  ])) {
    const files = { [file]: "export function register() {}\n" };
    const { draft } = planFor(await projectOf({ dependencies: { next: "16" } }, files));
    t.deepEqual(
      draft.byHand.map((one) => [one.file, one.why]),
      [[file, "The locks need their store when the server starts. In `register()`, write"]],
    );
    t.deepEqual([...draft.changes.keys()], ["next.config.mjs", ...firstLockOf(draft.changes)]);
  }
});

function firstLockOf(changes: ReadonlyMap<string, string>): string[] {
  return [...changes.keys()].filter((file) => file.includes("first-lock"));
}

test("init does not patch the TypeScript of a NestJS project twice", async (t) => {
  for (const [library, commands] of [
    ["/// tsp-module:\n", []],
    ["\n", [["npx", "ts-patch", "install", "-s"]]],
  ] as const) {
    const project = await makeProject({ "package.json": "{}", "nest-cli.json": "{}" });
    await rm(project.path("node_modules/typescript"));
    await project.write({
      "node_modules/typescript/package.json": '{ "version": "6.0.0" }',
      "node_modules/typescript/lib/typescript.js": library,
    });
    t.deepEqual(planFor(new Project(project.dir)).draft.commands, commands);
  }
});

// ---- the first lock -----------------------------------------------------------------------------------------

test("the first lock declares `console` below the import if the types lack it", async (t) => {
  const settings = { lib: ["es2022"], types: [] };
  const { lock } = planFor(
    await projectOf({}, { "tsconfig.json": JSON.stringify({ compilerOptions: settings }) }),
  );
  t.regex(lock.text, /^import .*\n\ndeclare const console: .*\n\n\/\*\* @redisLock /);
});

test("the first lock is compiled with the tsconfig.json of the project, if there is one", async (t) => {
  for (const [files, missing, extended] of [
    [{ "tsconfig.json": "{}" }, [], "../tsconfig.json"],
    [{}, ["tsconfig.json"], undefined],
  ] as const) {
    const project = await projectOf({ scripts: { build: "tsc" } }, files, missing);
    await mkdir(project.path("out"));
    planFor(project).host?.tryOut?.(project, "src/first-lock.ts", project.path("out"));
    const written = JSON.parse(project.read("out/tsconfig.json") ?? "") as {
      extends?: string;
      files: unknown;
    };
    t.is(written.extends, extended);
    t.deepEqual(written.files, [project.path("src/first-lock.ts")]);
  }
});

test("init asks the user for a configuration if Rollup has none", async (t) => {
  const { draft } = planFor(await projectOf({ scripts: { build: "rollup -c" } }));
  t.deepEqual(
    draft.byHand.map(({ why }) => why),
    ["Rollup has no configuration file. Create one with"],
  );
});
