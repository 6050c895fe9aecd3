import { rm } from "node:fs/promises";
import test from "ava";
import { planFor } from "../../transformer/cli/init/init";
import { Project } from "../../transformer/cli/init/project";
import { UsageError } from "../../transformer/terminal/usage-error";
import { codeUnder } from "../hosts/bundlers/recipes";
import { makeProject, type Files } from "../hosts/project";

// The plans of `lockweave init` for projects that look like the starters of frameworks and test runners.

interface Planned {
  readonly hosts: readonly string[];
  /** Returns the text of a file after the changes, if any. */
  readonly text: (file: string) => string | undefined;
  readonly changed: readonly string[];
  readonly installs: readonly string[];
  readonly byHand: readonly { readonly file: string; readonly lines: readonly string[] }[];
  readonly commands: readonly string[];
  readonly showsFirstLock: boolean;
  readonly hasFirstLock: boolean;
}

async function planned(manifest: object, files: Files = {}): Promise<Planned> {
  const text = JSON.stringify({ type: "module", ...manifest }, undefined, 2);
  const project = new Project((await makeProject({ ...files, "package.json": text })).dir);
  const { draft, found, host, lock } = planFor(project);
  return {
    hosts: found.map(([{ name }]) => name),
    text: (file) => draft.text(file),
    changed: [...draft.changes.keys()].filter((file) => !file.includes("first-lock")),
    installs: [...draft.devDependencies],
    byHand: draft.byHand,
    commands: found.map(([one]) => one.next(project, draft, lock.file).command),
    showsFirstLock: host !== undefined,
    hasFirstLock: draft.text(lock.file) !== undefined,
  };
}

// ---- frameworks -----------------------------------------------------------------------------------------

const VITE_FRAMEWORKS = {
  SvelteKit: {
    package: "@sveltejs/kit",
    build: "vite build",
    plugin: "sveltekit",
    startup: ["src/hooks.server.ts"],
  },
  "React Router": {
    package: "@react-router/dev",
    build: "react-router build",
    plugin: "reactRouter",
    startup: [],
  },
} as const;

for (const [name, { package: framework, build, plugin, startup }] of Object.entries(VITE_FRAMEWORKS)) {
  test(`init adds the plugin to Vite's configuration of ${name}, and leaves the build to ${name}`, async (t) => {
    const plan = await planned(
      {
        scripts: { dev: `${build.split(" ")[0]} dev`, build },
        devDependencies: { [framework]: "*", vite: "*" },
      },
      {
        "vite.config.ts": `import { ${plugin} } from "p";\nexport default { plugins: [${plugin}()] };\n`,
      },
    );
    t.deepEqual(plan.hosts, [name]);
    t.is(
      plan.text("vite.config.ts"),
      `import { ${plugin} } from "p";\nimport lockweave from "lockweave/vite";\nexport default { plugins: [lockweave(), ${plugin}()] };\n`,
    );
    t.deepEqual(plan.changed, ["vite.config.ts", ...startup]);
    t.deepEqual(plan.commands, ["npm run build"]);
    t.false(plan.showsFirstLock);
    t.false(plan.hasFirstLock);
  });
}

test("init adds the plugin to the Vite settings in Astro's configuration, and needs no ts-patch", async (t) => {
  const manifest = { scripts: { build: "astro build" }, dependencies: { astro: "*" } };
  const start = "import { defineConfig } from 'astro/config';\n";
  const plugin = "import lockweave from 'lockweave/vite';\n";
  for (const [before, after] of [
    ["{\n  output: 'server',\n}", "{\n  output: 'server',\n  vite: { plugins: [lockweave()] },\n}"],
    ["{ vite: { plugins: [a()] } }", "{ vite: { plugins: [lockweave(), a()] } }"],
    ["{ vite: { base: '/' } }", "{ vite: { base: '/', plugins: [lockweave()] } }"],
  ] as const) {
    const plan = await planned(manifest, {
      "astro.config.mjs": `${start}export default defineConfig(${before});\n`,
    });
    t.deepEqual(plan.hosts, ["Astro"]);
    t.is(plan.text("astro.config.mjs"), `${start}${plugin}export default defineConfig(${after});\n`);
    t.deepEqual(plan.changed, ["astro.config.mjs"]);
    t.deepEqual(plan.installs, []);
  }
});

test("init adds the plugin to Nuxt's Vite and to its Nitro, with one import", async (t) => {
  const plan = await planned(
    { scripts: { build: "nuxt build" }, dependencies: { nuxt: "*" } },
    { "nuxt.config.ts": "export default defineNuxtConfig({\n  devtools: { enabled: true }\n})\n" },
  );
  t.deepEqual(plan.hosts, ["Nuxt"]);
  t.is(
    plan.text("nuxt.config.ts"),
    `import lockweave from 'lockweave/vite';

export default defineNuxtConfig({
  devtools: { enabled: true },
  vite: { plugins: [lockweave()] },
  nitro: { rollupConfig: { plugins: [lockweave()] } }
})
`,
  );
});

const STARTUPS = [
  [{ "@sveltejs/kit": "*" }, "vite.config.ts", "{ plugins: [] }", "src/hooks.server.ts"],
  [{ nuxt: "*" }, "nuxt.config.ts", "{}", "server/plugins/lockweave.ts"],
  [{ astro: "*" }, "astro.config.mjs", "{ adapter: node() }", "src/middleware.ts"],
] as const;

test("init creates the file in which a framework configures the locks", async (t) => {
  for (const [dependencies, config, settings, startup] of STARTUPS) {
    const plan = await planned({ dependencies }, { [config]: `export default ${settings};\n` });
    t.deepEqual(plan.changed, [config, startup]);
    t.true(plan.text(startup)?.includes('import { configure } from "lockweave";'), startup);
    t.false(plan.hasFirstLock);
  }
});

test("the files that init creates for Astro and Nuxt are those in docs/frameworks.md", async (t) => {
  for (const [heading, [dependencies, config, settings, startup]] of [
    ["Nuxt", STARTUPS[1]],
    ["Astro", STARTUPS[2]],
  ] as const) {
    const plan = await planned({ dependencies }, { [config]: `export default ${settings};\n` });
    t.is(plan.text(startup), codeUnder(heading, startup, "frameworks.md"));
  }
});

test("init creates no file for the locks if it exists, or if another file configures them", async (t) => {
  for (const [dependencies, config, settings, startup] of STARTUPS) {
    for (const [file, text] of [
      [startup, "export {};\n"],
      [startup.replace(/ts$/, "js"), "export {};\n"],
      ["src/locks.ts", 'import { configure } from "lockweave";\nconfigure({ redis: "" });\n'],
    ] as const) {
      const plan = await planned(
        { dependencies },
        { [config]: `export default ${settings};\n`, [file]: text },
      );
      t.deepEqual(plan.changed, [config], `${config}, ${file}`);
    }
  }
});

test("init leaves a framework's configuration alone if it cannot read it or does not find it", async (t) => {
  const lines = [
    'import lockweave from "lockweave/vite";',
    "vite: { plugins: [lockweave(), /* before the others */] },",
  ];
  const manifest = { dependencies: { astro: "*" } };
  const computed = await planned(manifest, { "astro.config.mjs": "export default { vite: settings() };\n" });
  t.deepEqual(computed.changed, []);
  t.like(computed.byHand, { 0: { file: "astro.config.mjs", lines }, length: 1 });
  const none = await planned(manifest);
  t.deepEqual(none.changed, []);
  t.like(none.byHand, { 0: { file: "astro.config.ts", lines }, length: 1 });
});

test("init patches the TypeScript that Nx runs, and sets up each referenced project", async (t) => {
  const { hosts, text, changed, commands } = await planned(
    {},
    {
      "nx.json": "{}",
      "tsconfig.json": '{ "files": [], "references": [{ "path": "./packages/pay" }] }',
      "packages/pay/tsconfig.json": '{ "files": [], "references": [{ "path": "./tsconfig.lib.json" }] }',
      "packages/pay/tsconfig.lib.json": '{ "include": ["src"] }',
      "packages/pay/src/pay.ts": "",
    },
  );
  t.deepEqual(hosts, ["Nx"]);
  t.deepEqual(changed.toSorted(), ["package.json", "packages/pay/tsconfig.lib.json"]);
  t.regex(text("package.json") ?? "", /"prepare": "ts-patch install -s"/);
  t.deepEqual(commands, ["npx nx run-many --target=build"]);
});

const NX_FILES = {
  "nx.json": "{}",
  "tsconfig.json":
    '{ "files": [], "references": [{ "path": "./apps/shop-e2e" }, { "path": "./apps/shop" }, { "path": "./apps/jobs" }] }',
  "jest.config.ts":
    'import { getJestProjectsAsync } from "@nx/jest";\n\nexport default async () => ({ projects: await getJestProjectsAsync() });\n',
  "apps/shop-e2e/tsconfig.json": '{ "include": ["src"] }',
  "apps/shop-e2e/src/shop.spec.ts": "",
  "apps/shop/tsconfig.json": '{ "include": ["src"] }',
  "apps/shop/src/main.ts": "",
  "apps/shop/jest.config.cts":
    "module.exports = { preset: '../../jest.preset.js', transform: { '^.+\\\\.[tj]s$': ['@swc/jest', settings] } };\n",
  "apps/jobs/tsconfig.json": '{ "include": ["src"] }',
  "apps/jobs/src/main.ts": "",
};
const ESBUILD_OPTIONS = { sourcemap: true, outExtension: { ".js": ".js" } };

function esbuildTargets(options: object): object {
  return { targets: { build: { executor: "@nx/esbuild:esbuild", options }, test: {} } };
}

test("init gives each project that Nx builds with esbuild a configuration with the plugin", async (t) => {
  const files = {
    ...NX_FILES,
    "apps/shop/package.json": JSON.stringify({ nx: esbuildTargets({ esbuildOptions: ESBUILD_OPTIONS }) }),
    "apps/jobs/project.json": JSON.stringify(esbuildTargets({})),
  };
  const { text, byHand } = await planned({}, files);
  t.is(
    text("apps/shop/esbuild.config.cjs"),
    `const lockweave = require("lockweave/esbuild");

module.exports = {
  "sourcemap": true,
  "outExtension": {
    ".js": ".js"
  },
  plugins: [lockweave()],
};
`,
  );
  t.regex(
    text("apps/jobs/esbuild.config.cjs") ?? "",
    /^module\.exports = \{\n {2}plugins: \[lockweave\(\)\],\n\};$/m,
  );
  t.deepEqual(
    byHand.map(({ file, lines }) => [file].concat(lines)),
    [
      ["apps/shop/package.json", '"esbuildConfig": "apps/shop/esbuild.config.cjs"'],
      ["apps/jobs/project.json", '"esbuildConfig": "apps/jobs/esbuild.config.cjs"'],
    ],
  );
});

test("init leaves nothing to do if the esbuild configuration of an Nx project has the plugin", async (t) => {
  const esbuildConfig = "apps/shop/esbuild.config.cjs";
  const files = {
    ...NX_FILES,
    "apps/shop/package.json": JSON.stringify({ nx: esbuildTargets({ esbuildConfig }) }),
  };
  const missing = await planned({}, { ...files, [esbuildConfig]: "module.exports = {};\n" });
  t.deepEqual(
    missing.byHand.map(({ file }) => file),
    [esbuildConfig],
  );
  const there = await planned({}, { ...files, [esbuildConfig]: 'require("lockweave/esbuild");\n' });
  t.deepEqual(there.byHand, []);
  t.false(there.changed.includes(esbuildConfig));
});

test("init sets up Jest in each Nx project, and adds the first lock to no end-to-end test project", async (t) => {
  const { text, changed, byHand } = await planned({ devDependencies: { jest: "*" } }, NX_FILES);
  t.deepEqual(byHand, []);
  t.false(changed.includes("jest.config.ts"));
  t.true(
    text("apps/shop/jest.config.cts")?.includes(
      `["lockweave/jest", { "transformer": ['@swc/jest', settings] }]`,
    ),
  );
  t.not(text("apps/shop/src/first-lock.ts"), undefined);
});

test("init in a workspace root where nothing compiles tells the user to run it in a package", async (t) => {
  const scripts = { build: "turbo run build" };
  const project = await makeProject({ "package.json": JSON.stringify({ scripts, workspaces: ["apps/*"] }) });
  await rm(project.path("tsconfig.json"));
  t.throws(() => planFor(new Project(project.dir)), {
    instanceOf: UsageError,
    message: /^This is the root of a workspace, and no compiler was found here\. Fix: run /,
  });
  const plan = await planned({ scripts: { build: "tsc -b" }, workspaces: ["apps/*"] });
  t.deepEqual(plan.hosts, ["tspc"]);
});

// ---- scripts --------------------------------------------------------------------------------------------

test("init names the script that only builds before one that also tests", async (t) => {
  const scripts = { test: "npm run build:ts && tsc -p test && node --test", "build:ts": "tsc" };
  const { commands } = await planned({ scripts });
  t.deepEqual(commands, ["npm run build:ts"]);
});

test("init sets up ts-node if a script preloads it", async (t) => {
  const checked = await planned({ scripts: { test: "c8 node --test -r ts-node/register test/a.ts" } });
  t.true(checked.hosts.includes("ts-node"));
  t.regex(checked.text("tsconfig.json") ?? "", /"ts-node": \{ "compiler": "ts-patch\/compiler" \}/);
  t.true(checked.commands.includes("npm run test"));
  for (const preload of ["-r ts-node/register/transpile-only", "--require=ts-node/register/transpile-only"]) {
    const { text } = await planned({ scripts: { test: `node --test ${preload} test/a.ts` } });
    const after = `node --test ${preload} -r lockweave/register test/a.ts`;
    t.true(text("package.json")?.includes(JSON.stringify(after)), text("package.json"));
  }
});

test("init leaves the ts-node of NestJS's starter to the patched compiler", async (t) => {
  const { hosts } = await planned({
    scripts: { "test:debug": "node --inspect-brk -r ts-node/register node_modules/.bin/jest" },
    dependencies: { "@nestjs/core": "*" },
  });
  t.deepEqual(hosts, ["NestJS"]);
});

// ---- Bun and Deno ---------------------------------------------------------------------------------------

const BUNFIG = `preload = ["lockweave/register"]

[test]
preload = ["lockweave/register"]
`;

test("init makes Bun preload the hook if Bun runs the sources", async (t) => {
  for (const manifest of [
    { scripts: { start: "bun src/main.ts" } },
    { scripts: { start: "bun run --watch ./src/main.ts" } },
    { scripts: { test: "bun test" } },
    { devDependencies: { "@types/bun": "*" } },
  ]) {
    const { hosts, text, commands, showsFirstLock } = await planned(manifest);
    t.deepEqual(hosts, ["Bun"], JSON.stringify(manifest));
    t.is(text("bunfig.toml"), BUNFIG);
    t.deepEqual(commands, ["bun first-lock.ts"]);
    t.false(showsFirstLock);
  }
});

test("init leaves an existing bunfig.toml to the user, and does not change one with the hook", async (t) => {
  const other = await planned({ scripts: { test: "bun test" } }, { "bunfig.toml": "smol = true\n" });
  t.like(other.byHand, { 0: { file: "bunfig.toml", lines: BUNFIG.trimEnd().split("\n") } });
  const done = await planned({ scripts: { test: "bun test" } }, { "bunfig.toml": BUNFIG });
  t.deepEqual([done.byHand, done.changed], [[], []]);
});

test("init adds no preload if Bun only builds or only installs", async (t) => {
  const build = 'await Bun.build({ entrypoints: ["src/main.ts"] });\n';
  const built = await planned({ scripts: { build: "bun build.ts" } }, { "build.ts": build });
  t.deepEqual(built.changed, ["build.ts"]);
  const installs = await planned({ scripts: { build: "vite build" } }, { "bun.lock": "" });
  t.deepEqual(installs.hosts, ["Vite"]);
});

test("init makes the tasks of Deno preload the hook", async (t) => {
  const tasks = { dev: "deno run --watch main.ts", test: "deno test", lint: "deno lint" };
  const { hosts, text, byHand } = await planned({}, { "deno.json": JSON.stringify({ tasks }) });
  t.deepEqual(hosts, ["Deno"]);
  t.is(text("lockweave-register.ts"), 'import "lockweave/register";\n');
  const preload = "--preload ./lockweave-register.ts";
  t.deepEqual(JSON.parse(text("deno.json") ?? ""), {
    tasks: { dev: `deno run ${preload} --watch main.ts`, test: `deno test ${preload}`, lint: "deno lint" },
  });
  t.deepEqual(byHand, []);
});

// ---- Mocha ----------------------------------------------------------------------------------------------

const MOCHA = { scripts: { test: "mocha" }, devDependencies: { mocha: "*" } };

test("init makes Mocha load Lockweave's hook after the modules that it loads", async (t) => {
  for (const [before, after] of [
    ['{ "require": "tsx" }', '{ "require": ["tsx", "lockweave/register"] }'],
    ['{ "require": ["tsx/cjs"] }', '{ "require": ["tsx/cjs", "lockweave/register"] }'],
    [
      '{ "node-option": ["import=tsx"] }',
      '{ "node-option": ["import=tsx"], "require": ["lockweave/register"] }',
    ],
    ['{ "require": ["tsx", "lockweave/register"] }', '{ "require": ["tsx", "lockweave/register"] }'],
  ] as const) {
    const file = await planned(MOCHA, { ".mocharc.json": before });
    t.true(file.hosts.includes("Mocha"));
    t.is(file.text(".mocharc.json"), after);
    const inPackage = await planned({ ...MOCHA, mocha: JSON.parse(before) as object });
    const { mocha } = JSON.parse(inPackage.text("package.json") ?? "") as { mocha: object };
    t.deepEqual(mocha, JSON.parse(after));
  }
  for (const [before, after] of [
    ["mocha -r tsx test/a.ts", "mocha -r tsx -r lockweave/register test/a.ts"],
    ["mocha test/a.ts", "mocha -r lockweave/register test/a.ts"],
  ] as const) {
    const { text } = await planned({ ...MOCHA, scripts: { test: before } });
    t.true(text("package.json")?.includes(JSON.stringify(after)), text("package.json"));
  }
});

test("init gives Mocha's ts-node a compiler that weaves if it checks types", async (t) => {
  const { text, changed } = await planned(MOCHA, {
    ".mocharc.json": '{ "require": "ts-node/register" }',
  });
  t.false(changed.includes(".mocharc.json"));
  t.regex(text("tsconfig.json") ?? "", /"ts-node": \{ "compiler": "ts-patch\/compiler" \}/);
});

test("init leaves Mocha alone if it runs compiled output, and YAML to the user", async (t) => {
  const compiled = await planned(MOCHA, { ".mocharc.json": '{ "spec": "dist/**/*.test.js" }' });
  t.false(compiled.hosts.includes("Mocha"));
  const yaml = await planned(MOCHA, { ".mocharc.yml": "require: tsx\n" });
  t.like(yaml.byHand, { 0: { file: ".mocharc.yml", lines: ['"require": ["lockweave/register"]'] } });
});

// ---- Vitest ---------------------------------------------------------------------------------------------

const VITEST = { scripts: { test: "vitest run" }, devDependencies: { vitest: "*" } };

test("init adds the plugin to each Vitest project that does not inherit it", async (t) => {
  const plan = await planned(VITEST, {
    "vitest.config.ts": `import { defineConfig, defineProject } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "alone" } },
      { extends: true, test: { name: "inherits" } },
      { extends: false, plugins: [other()] },
      defineProject({ test: { name: "defined" } }),
      "packages/*",
      "./vitest.browser.config.ts",
    ],
  },
});
`,
    "packages/one/vite.config.ts": "export default { plugins: [] };\n",
    "packages/two/vitest.config.mts": "export default {};\n",
    "vitest.browser.config.ts": "export default {};\n",
  });
  t.deepEqual(plan.byHand, []);
  t.is(
    plan.text("vitest.config.ts"),
    `import { defineConfig, defineProject } from "vitest/config";
import lockweave from "lockweave/vite";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "alone" }, plugins: [lockweave()] },
      { extends: true, test: { name: "inherits" } },
      { extends: false, plugins: [lockweave(), other()] },
      defineProject({ test: { name: "defined" }, plugins: [lockweave()] }),
      "packages/*",
      "./vitest.browser.config.ts",
    ],
  },
  plugins: [lockweave()],
});
`,
  );
  const own = ["packages/one/vite.config.ts", "packages/two/vitest.config.mts", "vitest.browser.config.ts"];
  for (const file of own) t.true(plan.text(file)?.includes("plugins: [lockweave()]"), file);
  t.deepEqual(plan.changed.toSorted(), [...own, "vitest.config.ts"].toSorted());
});

test("init leaves inline projects of Vitest 5 alone unless they do not inherit the plugin", async (t) => {
  const plan = await planned(VITEST, {
    "node_modules/vitest/package.json": '{ "name": "vitest", "version": "5.1.1" }',
    "vitest.config.ts": `export default {
  test: { projects: [{ test: { name: "unit" } }, { extends: false, test: { name: "alone" } }] },
};
`,
  });
  t.is(
    plan.text("vitest.config.ts"),
    `import lockweave from "lockweave/vite";

export default {
  test: { projects: [{ test: { name: "unit" } }, { extends: false, test: { name: "alone" }, plugins: [lockweave()] }] },
  plugins: [lockweave()],
};
`,
  );
});

test("init leaves Vitest projects that it cannot read to the user", async (t) => {
  for (const projects of [
    "projectsOf(1)",
    '["packages/**"]',
    '["packages/one"]',
    "[...others]",
    '["!packages/a"]',
  ]) {
    const plan = await planned(VITEST, {
      "vitest.config.ts": `export default { test: { projects: ${projects} } };\n`,
      "packages/one/package.json": "{}",
    });
    t.is(plan.byHand[0]?.file, "vitest.config.ts", projects);
  }
});
