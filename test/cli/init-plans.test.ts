import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { HOSTS, init, planFor } from "../../transformer/cli/init/init";
import { Project } from "../../transformer/cli/init/project";
import { makeProject, PACKAGE, type Files } from "../hosts/project";

// The plans of `lockweave init` for different projects. init.test.ts shows that it carries out its plans.

interface Drafted {
  readonly hosts: readonly string[];
  readonly changes: Files;
  readonly installs: readonly string[];
  /** The lines that are left to the user, by file. */
  readonly byHand: Readonly<Record<string, readonly string[]>>;
}

/** @param missing packages that are not installed there */
async function planOf(
  manifest: object,
  files: Files = {},
  missing: readonly string[] = [],
): Promise<ReturnType<typeof planFor>> {
  const project = await makeProject({ ...files, "package.json": JSON.stringify(manifest, undefined, 2) });
  for (const name of missing) await rm(project.path(`node_modules/${name}`));
  return planFor(new Project(project.dir));
}

async function drafted(...project: Parameters<typeof planOf>): Promise<Drafted> {
  const { draft, found } = await planOf(...project);
  const {
    "src/first-lock.ts": _,
    "first-lock.ts": __,
    "first-lock.mts": ___,
    ...changes
  } = Object.fromEntries(draft.changes);
  return {
    hosts: found.map(([{ name }]) => name),
    changes,
    installs: [...draft.dependencies, ...draft.devDependencies],
    byHand: Object.fromEntries(draft.byHand.map(({ file, lines }) => [file, lines])),
  };
}

test("init supports each host in docs/compilers.md", (t) => {
  const page = readFileSync(join(PACKAGE, "docs/compilers.md"), "utf8");
  const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, heading = ""]) => heading);
  const known = new Set([
    ...HOSTS.map(({ name }) => name),
    "Frameworks on Vite",
    "A patched TypeScript",
    "Where it cannot run",
    "Development servers",
    "Editors",
    "Linters and formatters",
  ]);
  t.deepEqual(
    headings.filter((heading) => !known.has(heading)),
    [],
  );
});

/** The next command for each script, and its description unless nothing is written. */
const NEXT: readonly (readonly [script: string, command: string, woven?: RegExp])[] = [
  ["tsc -p .", "npm run it", /; src\/first-lock\.ts becomes out\/src\/first-lock\.js$/],
  ["nest build", "npm run it", /; src\/first-lock\.ts becomes out\/src\/first-lock\.js$/],
  [
    "vite build",
    "npm run it",
    /`npx vite build --ssr src\/first-lock\.ts` shows .* in dist\/first-lock\.js$/,
  ],
  ["vite", "npx vite build", /`npx vite build --ssr/],
  ["tsup src/main.ts", "npm run it", /`npx tsup src\/first-lock\.ts` shows .* in dist$/],
  ["tsdown src/main.ts --watch", "npx tsdown", /`npx tsdown src\/first-lock\.ts` shows .* in dist$/],
  [
    "rolldown -c",
    "npm run it",
    /`npx rolldown -c --input src\/first-lock\.ts -d dist\/first` shows .* in dist\/first$/,
  ],
  [
    "rollup -c",
    "npm run it",
    /`npx rollup -c -i src\/first-lock\.ts -d dist\/first` shows .* in dist\/first$/,
  ],
  [
    "webpack",
    "npm run it",
    /`npx webpack --entry-reset --entry \.\/src\/first-lock\.ts -o dist\/first` shows .* in dist\/first$/,
  ],
  [
    "rspack build",
    "npm run it",
    /`npx rspack build --entry \.\/src\/first-lock\.ts -o dist\/first` shows .* in dist\/first$/,
  ],
  ["farm build", "npm run it", /^builds with locks$/],
  ["esbuild src/main.ts", "node esbuild.config.mjs", /builds your entry points with locks/],
  ["next build", "npm run it", /under \.next\/server$/],
  ["tsx src/main.ts", "npx tsx --import lockweave/register src/first-lock.ts"],
  ["node src/main.ts", "node --import lockweave/register src/first-lock.ts"],
  ["ts-node -T src/main.ts", "npm run it"],
  ["ts-node-transpile-only src/main.ts", "npm run it"],
  ["jest", "npm run it"],
  ["vitest run", "npm run it"],
  ["vitest", "npm run it"],
  ["ava", "npm run it"],
];

test("init prints the next command for each host, and where to see the woven code", async (t) => {
  const compilerOptions = { rootDir: ".", outDir: "out" };
  for (const [script, command, woven = /no file is written$/] of NEXT) {
    const [tool = ""] = script.split(" ");
    const project = await makeProject({
      "package.json": JSON.stringify({
        type: "module",
        scripts: { it: script },
        devDependencies: { [tool]: "*" },
      }),
      "tsconfig.json": JSON.stringify({ compilerOptions }),
      "src/main.ts": "",
      ...(tool === "nest" && { "nest-cli.json": "{}" }),
    });
    const model = new Project(project.dir);
    const { draft, found, lock } = planFor(model);
    const steps = found.map(([host]) => host.next(model, draft, lock.file));
    const step = steps.find((one) => one.command === command);
    t.truthy(step, `${script}: ${JSON.stringify(steps)}`);
    t.regex(step?.about ?? "", woven, script);
  }
});

test("init names the script that builds, and not the one that starts a development server", async (t) => {
  for (const [scripts, command] of [
    [{ dev: "vite", build: "tsc && vite build", preview: "vite preview" }, "npm run build"],
    [{ dev: "vite dev", "build:server": "vite build --ssr src/main.ts" }, "npm run build:server"],
    [{ dev: "vite" }, "npx vite build"],
  ] as const) {
    const project = await makeProject({ "package.json": JSON.stringify({ type: "module", scripts }) });
    const model = new Project(project.dir);
    const { draft, found, lock } = planFor(model);
    const vite = found.find(([{ name }]) => name === "Vite")?.[0];
    t.is(vite?.next(model, draft, lock.file).command, command, JSON.stringify(scripts));
  }
});

test("init says what a server needs if Vite builds for browsers", async (t) => {
  const lib = 'lib: { entry: "src/main.ts" }';
  for (const [build, config, isForBrowsers] of [
    ["vite build", `export default { build: { ${lib} } };`, true],
    ["vite build", `export default { build: { ${lib}, ssr: true } };`, false],
    ["vite build", `export default { build: { ${lib}, rollupOptions: { external: /^ioredis/ } } };`, false],
    ["tsc && vite build --ssr src/main.ts", "export default {};", false],
    ["vite build && node --ssr", "export default {};", true],
  ] as const) {
    const project = await makeProject({
      "package.json": JSON.stringify({ type: "module", scripts: { build } }),
      "vite.config.ts": `${config}\n`,
    });
    const model = new Project(project.dir);
    const { draft, found, lock } = planFor(model);
    const about = found.find(([{ name }]) => name === "Vite")?.[0].next(model, draft, lock.file).about ?? "";
    const said = about.includes(
      ", but for browsers, where Redis clients cannot run. For a server, add `build: { ssr",
    );
    t.is(said, isForBrowsers, `${build} ${config}: ${about}`);
  }
});

test("the next command for an esbuild script is the package.json script that runs it, if any", async (t) => {
  for (const [scripts, command] of [
    [{ build: "node build.mjs" }, "npm run build"],
    [{ bundle: "rm -rf dist && node --enable-source-maps ./build.mjs --minify" }, "npm run bundle"],
    [{ dev: "node build.mjs --watch" }, "node build.mjs"],
    [{ start: "node dist/build.mjs" }, "node build.mjs"],
    [{}, "node build.mjs"],
  ] as const) {
    const project = await makeProject({
      "package.json": JSON.stringify({ type: "module", scripts }),
      "build.mjs": 'import { build } from "esbuild";\nawait build({ entryPoints: ["src/main.ts"] });\n',
    });
    const model = new Project(project.dir);
    const { draft, found, lock } = planFor(model);
    const [step] = found.map(([host]) => host.next(model, draft, lock.file));
    t.is(step?.command, command, JSON.stringify(scripts));
  }
});

test("init finds a file that builds with Bun by its usual names if no script names it", async (t) => {
  for (const name of ["build", "bun.build", "scripts/build"]) {
    for (const ending of ["ts", "mts", "js", "mjs"]) {
      const file = `${name}.${ending}`;
      const { changes } = await drafted(
        { scripts: { build: "make" }, devDependencies: { "bun-types": "*" } },
        { "bun.lock": "", [file]: `await Bun.build({ entrypoints: ["src/main.ts"] });\n` },
      );
      t.regex(changes[file] ?? "", /plugins: \[lockweave\(\)\]/, file);
    }
  }
});

test("init adds the plugin before the other plugins in a file that builds with Bun", async (t) => {
  const build = `await Bun.build({
  entrypoints: ["src/main.ts"],
  outdir: "dist",
  plugins: [other()],
});
`;
  const project = await makeProject({
    "package.json": JSON.stringify({ type: "module", scripts: { build: "bun tools/bundle.mjs" } }),
    "tools/bundle.mjs": build,
  });
  const model = new Project(project.dir);
  const { draft, found, lock } = planFor(model);
  t.deepEqual(
    found.map(([{ name }]) => name),
    ["Bun"],
  );
  t.is(
    draft.changes.get("tools/bundle.mjs"),
    `import lockweave from "lockweave/esbuild";\n\n${build.replace("[other()]", "[lockweave(), other()]")}`,
  );
  t.is(found[0]?.[0].next(model, draft, lock.file).command, "npm run build");
});

test("the first lock is an .mts file if the compiler allows no imports in CommonJS", async (t) => {
  const fileFor = async (type: string, verbatimModuleSyntax: boolean): Promise<string> => {
    const project = await makeProject({
      "package.json": JSON.stringify({ type, scripts: { build: "tsc" } }),
      "tsconfig.json": JSON.stringify({ compilerOptions: { module: "nodenext", verbatimModuleSyntax } }),
    });
    return planFor(new Project(project.dir)).lock.file;
  };
  t.is(await fileFor("commonjs", true), "first-lock.mts");
  t.is(await fileFor("commonjs", false), "first-lock.ts");
  t.is(await fileFor("module", true), "first-lock.ts");
});

test("init installs no client if package.json has node-redis, and ioredis alongside one that is too old", async (t) => {
  const scripts = { build: "tsc" };
  t.deepEqual((await drafted({ scripts, dependencies: { redis: "^6.0.0" } })).installs, []);
  t.deepEqual((await drafted({ scripts, devDependencies: { redis: "latest" } })).installs, []);
  const tooOld = await drafted({ scripts, dependencies: { redis: "^4.7.0" } });
  t.deepEqual(tooOld.installs, ["ioredis"]);
});

test("init plans to install missing packages, and knows the project's package manager", async (t) => {
  const { installs } = await drafted({ scripts: { build: "tsc" } });
  t.deepEqual(installs, ["ioredis"]);
  t.deepEqual((await drafted({ scripts: { build: "tsc" } }, {}, ["ts-patch"])).installs, [
    "ioredis",
    "ts-patch@3",
  ]);
  for (const [lock, manager] of [
    ["pnpm-lock.yaml", "pnpm"],
    ["yarn.lock", "yarn"],
    ["bun.lock", "bun"],
    ["package-lock.json", "npm"],
  ] as const) {
    const project = await makeProject({ "package.json": "{}", [lock]: "" });
    t.is(new Project(project.dir).packageManager.name, manager);
  }
  const named = await makeProject({
    "package.json": `{ "packageManager": "yarn@4.1.0" }`,
    "package-lock.json": "",
  });
  t.is(new Project(named.dir).packageManager.name, "yarn");
});

test("init adds the plugin to the base of a tsconfig.json if the base has plugins", async (t) => {
  const plugins = [{ name: "another" }];
  const { changes } = await drafted(
    { scripts: { build: "tsc -p tsconfig.build.json" } },
    {
      "tsconfig.json": `{ "extends": "./base.json" }`,
      "tsconfig.build.json": `{ "extends": "./tsconfig.json", "compilerOptions": {} }`,
      "base.json": JSON.stringify({ compilerOptions: { plugins } }),
    },
  );
  t.deepEqual(Object.keys(changes), ["base.json", "package.json"]);
  t.is(
    changes["base.json"],
    `{"compilerOptions":{"plugins":[{"name":"another"}, { "transform": "lockweave/transformer", "transformProgram": true }]}}`,
  );
});

test("init adds the plugin to each referenced project, and the first lock to the first one", async (t) => {
  const { changes } = await drafted(
    { scripts: { build: "tsc -b" } },
    {
      "tsconfig.json": `{ "files": [], "references": [{ "path": "a" }, { "path": "b" }] }`,
      "a/tsconfig.json": "{}",
      "b/tsconfig.json": `{\n\t"compilerOptions": {}\n}`,
    },
  );
  const files = ["a/tsconfig.json", "b/tsconfig.json", "package.json", "a/first-lock.ts"];
  t.deepEqual(Object.keys(changes), files);
  t.is(
    changes["b/tsconfig.json"],
    `{\n\t"compilerOptions": {\n\t\t"plugins": [{ "transform": "lockweave/transformer", "transformProgram": true }]\n\t}\n}`,
  );
});

for (const build of [
  "tsc -b --force one.json two.json",
  "tsc --build one.json --verbose two.json",
  "tsc -b 'one.json' --pretty false \"./two.json\" && node .",
]) {
  test(`init adds the plugin to each project that a script names: ${build}`, async (t) => {
    const { changes } = await drafted({ scripts: { build } }, { "one.json": "{}", "two.json": "{}" });
    for (const file of ["one.json", "two.json"]) t.regex(changes[file] ?? "", /transformProgram/, file);
  });
}

test("init does not change what it cannot read, and prints the lines to write", async (t) => {
  const plugin = [
    'import lockweave from "lockweave/vite";',
    "plugins: [lockweave(), /* before the others */],",
  ];
  for (const [config, text] of [
    ["vite.config.ts", "export default { plugins: [a].filter(Boolean) };"],
    ["vite.config.ts", "export default { ...base };"],
    ["vite.config.ts", "export default configFor(1);"],
    ["vite.config.ts", "export default {"],
    ["vite.config.ts", 'export default { ["plugins"]: [a] };'],
  ] as const) {
    const { changes, byHand } = await drafted({ scripts: { build: "vite build" } }, { [config]: text });
    t.deepEqual(changes, {}, text);
    t.deepEqual(byHand, { [config]: plugin }, text);
  }
  const { byHand } = await drafted(
    { scripts: { build: "tsc" } },
    { "tsconfig.json": `{ "compilerOptions": ` },
  );
  t.regex(byHand["tsconfig.json"]?.join("\n") ?? "", /"plugins": \[\{ "transform": "lockweave\/transformer"/);
  const hidden = await drafted({
    scripts: { dev: `concurrently "tsc -w" "node --watch out/main.js"`, build: "tsc" },
  });
  t.deepEqual(hidden.byHand, { "package.json": ["tsc"] });
});

test("init sets up a configuration that only a script names", async (t) => {
  const scripts = {
    test: "vitest run",
    "test:e2e": "vitest run --config ./vitest.config.e2e.ts",
    old: "jest --config=test/jest-e2e.json",
  };
  const { changes, byHand } = await drafted(
    { scripts, devDependencies: { jest: "30" } },
    {
      "vitest.config.ts": "export default { plugins: [] };\n",
      "vitest.config.e2e.ts": "export default { plugins: [] };\n",
      "test/jest-e2e.json": `{ "transform": { "^.+\\\\.(t|j)s$": "ts-jest" } }`,
    },
  );
  t.deepEqual(byHand, {});
  for (const file of ["vitest.config.ts", "vitest.config.e2e.ts"])
    t.true(changes[file]?.includes("plugins: [lockweave()]"));
  t.is(
    changes["test/jest-e2e.json"],
    `{ "transform": { "^.+\\\\.(t|j)s$": ["lockweave/jest", { "transformer": "ts-jest" }] } }`,
  );
});

test("init creates one configuration for both Vite and Vitest", async (t) => {
  const { changes } = await drafted({ scripts: { build: "vite build", test: "vitest run" } });
  t.true("vite.config.mts" in changes);
  t.false("vitest.config.mts" in changes);
});

test("init creates a configuration for Vitest that TypeScript does not compile", async (t) => {
  const { changes } = await drafted({ scripts: { build: "nest build", test: "vitest run" } });
  t.regex(changes["vitest.config.mjs"] ?? "", /plugins: \[lockweave\(\)\],/);
  t.false("vitest.config.mts" in changes);
});

test("init does not change a Vite configuration that has the plugin", async (t) => {
  const vite = `import lockweave from "lockweave/vite";\nexport default { plugins: [lockweave()] };`;
  t.deepEqual((await drafted({ scripts: { build: "vite build" } }, { "vite.config.ts": vite })).changes, {});
});

test("init reports a TypeScript that is too old", async (t) => {
  const manifest = { scripts: { build: "tsc" }, devDependencies: { typescript: "~5.8.2" } };
  const { draft } = await planOf(manifest, {}, ["typescript"]);
  t.deepEqual(draft.byHand, [
    {
      file: "package.json",
      why: "Lockweave needs TypeScript 5.9 or later, but this project has ~5.8.2:",
      lines: ["npm install --save-dev typescript@6"],
    },
  ]);
});

test("init replaces tsc with `lockweave build` if it knows the options, and reports the other scripts", async (t) => {
  const kept = { check: "tsc --noEmit", start: "node out/main.js" };
  const scripts = {
    build: "tsc -p tsconfig.json && node out/main.js",
    all: "npx tsc --build --watch",
    one: "tsc -b packages/one",
    old: "tsc --target es2020",
    hidden: `concurrently "tsc"`,
    ...kept,
  };
  const { found, draft } = await planOf({ scripts, devDependencies: { typescript: "7.0.2" } }, {}, [
    "typescript",
  ]);
  t.deepEqual(
    found.map(([{ name }, evidence]) => [name, evidence]),
    [["TypeScript 7", `\`${scripts.build}\` in a script`]],
  );
  const after = JSON.parse(draft.changes.get("package.json") ?? "") as { scripts: unknown };
  t.deepEqual(after.scripts, {
    build: "lockweave build -p tsconfig.json && node out/main.js",
    all: "npx lockweave build --watch",
    one: "lockweave build -p packages/one",
    old: scripts.old,
    hidden: scripts.hidden,
    ...kept,
  });
  const [left, ...rest] = draft.byHand;
  t.deepEqual(rest, []);
  t.is(left?.why, "In the scripts `old`, `hidden`, run `lockweave build` instead of");
});

test("init sets up Vitest if package.json depends on it and no script runs it", async (t) => {
  t.deepEqual((await drafted({ devDependencies: { vitest: "4" } })).hosts, ["tspc", "Vitest"]);
  t.deepEqual((await drafted({ devDependencies: { vite: "8" } })).hosts, ["tspc"]);
});

test("the first lock declares `console` if the project's types have none", async (t) => {
  const lib = ["es2022"];
  const declares = async (settings: object, devDependencies = {}): Promise<boolean> => {
    const tsconfig = JSON.stringify({ compilerOptions: settings });
    const missing = "typescript" in devDependencies ? ["typescript"] : [];
    const { lock } = await planOf({ devDependencies }, { "tsconfig.json": tsconfig }, missing);
    return lock.text.includes("declare const console");
  };
  t.true(await declares({ lib }));
  t.true(await declares({ lib, types: ["vitest"] }));
  t.false(await declares({ lib, types: ["node"] }));
  t.false(await declares({ lib, types: ["*"] }));
  t.false(await declares({ lib: [...lib, "DOM"] }));
  t.false(await declares({}));
  // TypeScript 5.9 includes all types by default.
  t.false(await declares({ lib }, { typescript: "5.9", "@types/node": "20" }));
});

test.serial("init prints the packages to install before the user agrees", async (t) => {
  const project = await makeProject({ "package.json": `{ "scripts": { "build": "tsc" } }`, "yarn.lock": "" });
  await rm(project.path("node_modules/ts-patch"));
  const { write } = process.stdout;
  const printed: string[] = [];
  process.stdout.write = (text: string | Uint8Array): boolean => printed.push(String(text)) > 0;
  try {
    t.is(await init(project.dir, false), 3);
  } finally {
    process.stdout.write = write;
  }
  t.regex(printed.join(""), /\nTo change\n[^]*\n {2}yarn add ioredis\n {2}yarn add --dev ts-patch@3\n/);
  t.is(
    printed.at(-1),
    "Nothing was changed. To apply the changes without confirmation, run `yarn lockweave init --yes`.\n",
  );
});

test("init adds the plugin to an esbuild call that takes plugins", async (t) => {
  const script = (call: string): string =>
    `import { ${call} } from "esbuild";\nawait ${call}({ entryPoints: ["src/main.ts"] });\n`;
  for (const call of ["build", "context"]) {
    const { changes } = await drafted(
      { scripts: { build: "node build.mjs" } },
      { "build.mjs": script(call) },
    );
    t.regex(changes["build.mjs"] ?? "", /entryPoints: .*plugins: \[lockweave\(\)\]/s, call);
  }
  // esbuild rejects plugins in `buildSync`.
  const { draft } = await planOf(
    { scripts: { build: "node build.mjs" } },
    { "build.mjs": script("buildSync") },
  );
  t.false(draft.changes.has("build.mjs"));
  const [{ file, why } = { file: "", why: "" }] = draft.byHand;
  t.deepEqual(
    [file, why],
    ["build.mjs", "`buildSync` takes no plugins. Replace it with `await build`, and add"],
  );
});

test("init requires the plugin in a CommonJS configuration, below the comments about the file", async (t) => {
  const { changes } = await drafted(
    { scripts: { build: "webpack" } },
    {
      "webpack.config.js": `// @ts-check
const path = require('path');

/** @type {import("webpack").Configuration} */
module.exports = {
  plugins: [new Plugin()],
};
`,
    },
  );
  t.deepEqual(changes, {
    "webpack.config.js": `// @ts-check
const lockweave = require("lockweave/webpack");

const path = require('path');

/** @type {import("webpack").Configuration} */
module.exports = {
  plugins: [lockweave(), new Plugin()],
};
`,
  });
});

test("init creates a configuration with the plugin for tools that need none", async (t) => {
  for (const [tool, file, property, entry] of [
    ["vite", "vite.config.mts", "plugins", "vite"],
    ["tsup", "tsup.config.mts", "esbuildPlugins", "esbuild"],
    ["tsdown", "tsdown.config.mts", "plugins", "rolldown"],
  ] as const) {
    const { changes } = await drafted({ scripts: { build: `${tool} src/main.ts` } });
    t.regex(
      changes[file] ?? "",
      new RegExp(`from "lockweave/${entry}";\n[^]*from "${tool}";[^]*  ${property}: \\[lockweave\\(\\)\\],`),
      tool,
    );
  }
  const { byHand } = await drafted({ scripts: { build: "esbuild src/main.ts --bundle" } });
  t.is(byHand["esbuild.config.mjs"]?.[0], 'import lockweave from "lockweave/esbuild";');
});

test("init sets up both bundlers of Next.js if its configuration has no rules for them", async (t) => {
  const config = `import type { NextConfig } from "next";

const nextConfig: NextConfig = {
  /* config options here */
};

export default nextConfig;
`;
  const { changes, byHand } = await drafted({ dependencies: { next: "16" } }, { "next.config.ts": config });
  t.is(
    changes["next.config.ts"],
    `import type { NextConfig } from "next";
import lockweave from "lockweave/webpack";

const nextConfig: NextConfig = {
  serverExternalPackages: ["lockweave"],
  turbopack: { rules: { "*.{ts,tsx,mts,cts,js,jsx,mjs,cjs}": { loaders: ["lockweave/loader"] } } },
  webpack: (config) => {
    config.plugins.push(lockweave());
    return config;
  }
  /* config options here */
};

export default nextConfig;
`,
  );
  t.deepEqual(byHand, {});
  t.is(
    changes["instrumentation.ts"],
    `export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME === "nodejs") {
    const { configure } = await import("lockweave");
    configure({ redis: process.env.REDIS_URL ?? "redis://localhost:6379" });
  }
}
`,
  );
  const own = await drafted(
    { dependencies: { next: "16" } },
    { "src/instrumentation.ts": "export function register() {}", "src/app/page.tsx": "" },
  );
  t.true(
    own.byHand["src/instrumentation.ts"]?.includes('  const { configure } = await import("lockweave");'),
  );
  const other = await drafted(
    { dependencies: { next: "16" } },
    { "next.config.mjs": "export default { webpack };" },
  );
  t.true(other.byHand["next.config.mjs"]?.includes('serverExternalPackages: ["lockweave"],'));
});

test("init patches the TypeScript of NestJS", async (t) => {
  const manifest = { scripts: { build: "nest build", prepare: "husky" } };
  const files = { "nest-cli.json": "{}", "tsconfig.json": "{}" };
  const { hosts, changes, byHand } = await drafted(manifest, files);
  t.deepEqual(hosts, ["NestJS"]);
  t.deepEqual(byHand, {});
  t.true(changes["package.json"]?.includes(`"prepare": "ts-patch install -s && husky"`));
  t.true(changes["tsconfig.json"]?.includes("lockweave/transformer"));
});

for (const [what, before, after] of [
  [
    "a transform",
    `{ "^.+\\\\.ts$": "ts-jest" }`,
    `{ "^.+\\\\.ts$": ["lockweave/jest", { "transformer": "ts-jest" }] }`,
  ],
  [
    "a transform for `[tj]s`",
    `{ "^.+\\\\.[tj]s$": ["@swc/jest", settings] }`,
    `{ "^.+\\\\.[tj]s$": ["lockweave/jest", { "transformer": ["@swc/jest", settings] }] }`,
  ],
  [
    "a transform with options next to one of other files",
    `{ "\\\\.ts$": ["@swc/jest", { "a": 1 }], "\\\\.svg$": "svg" }`,
    `{ "\\\\.ts$": ["lockweave/jest", { "transformer": ["@swc/jest", { "a": 1 }] }], "\\\\.svg$": "svg" }`,
  ],
  [
    "the spread transform of a preset",
    "{ ...createDefaultPreset().transform }",
    `{ ...Object.fromEntries(Object.entries(createDefaultPreset().transform).map(([files, transformer]) => [files, ["lockweave/jest", { transformer }]])) }`,
  ],
] as const) {
  test(`init wraps ${what} in Jest's configuration`, async (t) => {
    const config = (transform: string): string => `module.exports = {\n  transform: ${transform},\n};\n`;
    const files = { "jest.config.js": config(before) };
    const { changes } = await drafted(
      { devDependencies: { jest: "30" }, scripts: { build: "vite build" } },
      files,
    );
    t.is(changes["jest.config.js"], config(after));
  });
}

test("init changes nothing if Jest's transform is already wrapped", async (t) => {
  const transform = { "\\.ts$": ["lockweave/jest", { transformer: "ts-jest" }] };
  const { changes, byHand } = await drafted({ devDependencies: { jest: "30" }, jest: { transform } });
  t.deepEqual([changes, byHand], [{}, {}]);
});

test("init wraps Jest's default transform, or that of a known preset", async (t) => {
  const devDependencies = { jest: "30" };
  const inPackage = await drafted({ devDependencies, jest: { preset: "ts-jest" } });
  t.true(
    inPackage.changes["package.json"]?.includes(
      `"transform": { "\\\\.[cm]?tsx?$": ["lockweave/jest", { "transformer": "ts-jest" }] }`,
    ),
  );
  const bare = await drafted({ devDependencies });
  t.true(bare.changes["package.json"]?.includes(`"transform": { "\\\\.[cm]?[jt]sx?$": "lockweave/jest" }`));
  const preset = await drafted({ devDependencies, jest: { preset: "other" } });
  t.deepEqual(Object.keys(preset.byHand), ["package.json"]);
});

test("init adds the hook to ts-node that checks no types, and otherwise gives it a patched compiler", async (t) => {
  const fast = await drafted({ scripts: { start: "ts-node -T src/main.ts" } });
  t.true(fast.changes["package.json"]?.includes(`"ts-node -r lockweave/register -T src/main.ts"`));
  const checking = await drafted({ scripts: { start: "ts-node src/main.ts" } });
  t.deepEqual(checking.hosts, ["ts-node"]);
  t.true(checking.changes["tsconfig.json"]?.includes(`"ts-node": { "compiler": "ts-patch/compiler" }`));
  t.true(checking.changes["tsconfig.json"]?.includes("lockweave/transformer"));
});

test("init does not add the hook to a script twice", async (t) => {
  for (const script of [
    "tsx --import lockweave/register src/main.ts",
    "tsx --import=lockweave/register src/main.ts",
    "node --import lockweave/register src/main.ts",
  ]) {
    const { changes } = await drafted({ scripts: { start: script } });
    t.is(changes["package.json"], undefined, script);
  }
});

test("init adds the hook to the modules that ava loads", async (t) => {
  const devDependencies = { ava: "7" };
  const ava = { extensions: ["ts"], require: ["ts-node/register/transpile-only"] };
  const { changes } = await drafted({ devDependencies, ava });
  t.regex(changes["package.json"] ?? "", /"ts-node\/register\/transpile-only",\s+"lockweave\/register"\s+\]/);
});

test("init adds the hook to a script that runs TypeScript in Node, and not to one that runs output", async (t) => {
  const { hosts, changes } = await drafted({
    type: "module",
    scripts: { start: "node src/main.ts", serve: "node dist/main.js" },
  });
  t.deepEqual(hosts, ["Node"]);
  const { scripts } = JSON.parse(changes["package.json"] ?? "") as { scripts: unknown };
  t.deepEqual(scripts, { start: "node --import lockweave/register src/main.ts", serve: "node dist/main.js" });
});

test("the first lock is a TypeScript file if Node strips types and no compiler is installed", async (t) => {
  const project = await makeProject({
    "package.json": JSON.stringify({ type: "module", scripts: { start: "node main.ts" } }),
    "main.ts": "",
  });
  for (const path of ["tsconfig.json", "node_modules/typescript"])
    await rm(project.path(path), { force: true });
  const { found, lock } = planFor(new Project(project.dir));
  t.deepEqual(
    found.map(([{ name }]) => name),
    ["Node"],
  );
  t.is(lock.file, "first-lock.ts");
});

for (const [tool, name, property, entry] of [
  ["rolldown -c", "rolldown", "plugins", "rolldown"],
  ["rollup -c", "rollup", "plugins", "rollup"],
  ["webpack", "webpack", "plugins", "webpack"],
  ["rspack build", "rspack", "plugins", "rspack"],
  ["farm build", "farm", "vitePlugins", "vite"],
] as const) {
  test(`init prints a configuration for ${name} if there is none, and adds the plugin to an existing one`, async (t) => {
    const file = `${name}.config.mjs`;
    const lines = [
      `import lockweave from "lockweave/${entry}";`,
      `${property}: [lockweave(), /* before the others */],`,
    ];
    t.deepEqual((await drafted({ scripts: { build: tool } })).byHand, { [file]: lines });
    const { hosts, changes, byHand } = await drafted({}, { [file]: `export default { a: "b" };\n` });
    t.is(hosts.length, 1);
    t.deepEqual(byHand, {});
    t.is(
      changes[file],
      `import lockweave from "lockweave/${entry}";\n\nexport default { a: "b", ${property}: [lockweave()] };\n`,
    );
  });
}

test("init creates no instrumentation file for Next.js if another file configures the locks", async (t) => {
  const manifest = { dependencies: { next: "16" } };
  const text = 'import { configure } from "lockweave";\nconfigure({ redis: "" });\n';
  for (const file of ["src/lib/locks.ts", "lib/locks.js", "instrumentation-node.ts"]) {
    const { changes, byHand } = await drafted(manifest, { [file]: text });
    t.deepEqual(Object.keys(changes), ["next.config.mjs"], file);
    t.deepEqual(byHand, {});
  }
  const files = { "lib/locks.ts": text, "instrumentation.ts": "export function register() {}\n" };
  t.deepEqual((await drafted(manifest, files)).byHand, {});
  for (const file of ["lib/locks.test.ts", "test/locks.ts", "src/__tests__/locks.ts"]) {
    const { changes } = await drafted(manifest, { [file]: text });
    t.deepEqual(Object.keys(changes), ["next.config.mjs", "instrumentation.ts"], file);
  }
});

test("init changes nothing if Next.js has the plugin and configures its locks", async (t) => {
  const { changes, byHand } = await drafted(
    { dependencies: { next: "16" } },
    {
      "next.config.mjs":
        'import lockweave from "lockweave/webpack";\nexport default { webpack: f(lockweave) };\n',
      "instrumentation.ts": 'export async function register() { await import("lockweave"); }\n',
    },
  );
  t.deepEqual(changes, {});
  t.deepEqual(byHand, {});
});

test("init leaves a Next.js configuration with rules for either bundler to the user", async (t) => {
  for (const config of [
    "{ turbopack: {} }",
    "{ webpack: f }",
    "{ ...base }",
    "{ serverExternalPackages: f() }",
  ]) {
    const { changes, byHand } = await drafted(
      { dependencies: { next: "16" } },
      { "next.config.mjs": `export default ${config};\n` },
    );
    t.deepEqual(Object.keys(changes), ["instrumentation.ts"], config);
    t.deepEqual(byHand["next.config.mjs"], [
      'import lockweave from "lockweave/webpack";',
      'serverExternalPackages: ["lockweave"],',
      'turbopack: { rules: { "*.{ts,tsx,mts,cts,js,jsx,mjs,cjs}": { loaders: ["lockweave/loader"] } } },',
      "webpack: (config) => {",
      "  config.plugins.push(lockweave());",
      "  return config;",
      "},",
    ]);
  }
  const { changes } = await drafted(
    { dependencies: { next: "16" } },
    { "next.config.mjs": 'export default { serverExternalPackages: ["a"] };\n' },
  );
  t.true(changes["next.config.mjs"]?.includes('serverExternalPackages: ["a", "lockweave"]'));
});

test("init reports a package.json that is missing or is not JSON", async (t) => {
  const project = await makeProject({ "package.json": "{" });
  t.throws(() => new Project(project.dir), { message: "The package.json here is not valid JSON." });
  await rm(project.path("package.json"));
  t.throws(() => new Project(project.dir), {
    message: "There is no package.json here. Fix: run this in the directory of the project.",
  });
});
