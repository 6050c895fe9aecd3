import test from "ava";
import { planFor } from "../../transformer/cli/init/init";
import { NEST_STARTUP } from "../../transformer/cli/init/nest-builders";
import { Project } from "../../transformer/cli/init/project";
import { lockStoreOf } from "../../transformer/cli/init/choose-store";
import { configuringFile, howItConfigures, placeOf, placeOfImport } from "../../transformer/cli/init/startup";
import { makeProject, type Files } from "../hosts/project";

// The plans of `lockweave init` for each builder of NestJS.

const SCRIPTS = { build: "nest build", start: "nest start", "start:prod": "node dist/main" };
const HOOK = "node --import lockweave/register";

interface Planned {
  readonly hosts: readonly string[];
  /** Returns the value of a JSON file after the changes. */
  readonly json: (file: string) => unknown;
  readonly text: (file: string) => string | undefined;
  readonly changed: readonly string[];
  /** The file and the lines of each step. */
  readonly byHand: readonly (readonly string[])[];
}

async function planned(nest: object, files: Files = {}, manifest: object = {}): Promise<Planned> {
  const dependencies = { "@nestjs/core": "12", lockweave: "*", ioredis: "*", typescript: "6" };
  const text = JSON.stringify({ scripts: SCRIPTS, dependencies, ...manifest }, undefined, 2);
  const project = new Project(
    (
      await makeProject({
        "nest-cli.json": JSON.stringify(nest, undefined, 2),
        "tsconfig.json": `{ "compilerOptions": { "outDir": "./dist" } }`,
        ...files,
        "package.json": text,
      })
    ).dir,
  );
  const { draft, found } = planFor(project);
  return {
    hosts: found.map(([{ name }]) => name),
    json: (file) => JSON.parse(draft.text(file) ?? "null") as unknown,
    text: (file) => draft.text(file),
    changed: [...draft.changes.keys()].filter((file) => !file.includes("first-lock")).toSorted(),
    byHand: draft.byHand.map(({ file, lines }) => [file].concat(lines)),
  };
}

function builtBy(builder: unknown, more: object = {}): object {
  return { compilerOptions: { builder, ...more } };
}

// ---- the builder ----------------------------------------------------------------------------------------

for (const [nest, scripts, hosts] of [
  [{}, {}, ["NestJS"]],
  [builtBy("tsc"), {}, ["NestJS"]],
  [builtBy("webpack"), {}, ["NestJS"]],
  [builtBy("swc"), {}, ["NestJS with swc"]],
  [builtBy({ type: "swc", options: {} }), {}, ["NestJS with swc"]],
  [builtBy("rspack"), {}, ["NestJS with rspack"]],
  [builtBy("swc", { webpack: true }), {}, ["NestJS"]],
  [{}, { build: "nest build -b swc", start: "nest start --builder=swc --watch" }, ["NestJS with swc"]],
  [{}, { build: "nest build -b swc", start: "nest start" }, ["NestJS", "NestJS with swc"]],
  [builtBy("swc"), { build: "nest build --webpack" }, ["NestJS"]],
  [
    { ...builtBy("swc"), projects: { shop: {}, jobs: builtBy("rspack") } },
    {},
    ["NestJS with rspack", "NestJS with swc"],
  ],
] as const) {
  test(`init sets up ${hosts.join(" and ")} for ${JSON.stringify(nest)} and ${JSON.stringify(scripts)}`, async (t) => {
    const manifest = Object.keys(scripts).length === 0 ? {} : { scripts };
    const plan = await planned(nest, {}, manifest);
    t.deepEqual(plan.hosts, hosts);
    t.is(
      plan.text("tsconfig.json")?.includes("lockweave/transformer"),
      (hosts as readonly string[]).includes("NestJS"),
    );
  });
}

// ---- monorepos ------------------------------------------------------------------------------------------

const MONOREPO = {
  compilerOptions: { webpack: true },
  projects: {
    shop: { type: "application", root: "apps/shop", entryFile: "main", sourceRoot: "apps/shop/src" },
    billing: {
      type: "application",
      root: "apps/billing",
      entryFile: "server",
      sourceRoot: "apps/billing/src",
    },
    pay: { type: "library", root: "libs/pay", entryFile: "index", sourceRoot: "libs/pay/src" },
  },
};
const MONOREPO_FILES = {
  "apps/shop/src/main.ts": "",
  "apps/shop/test/jest-e2e.json": '{ "transform": { "^.+\\\\.(t|j)s$": "ts-jest" } }',
  "apps/billing/src/server.ts": "",
  "apps/billing/test/jest-e2e.json": '{ "transform": { "^.+\\\\.(t|j)s$": "ts-jest" } }',
  "libs/pay/src/index.ts": "",
};

test("init sets up the end-to-end tests of all applications in a monorepo", async (t) => {
  const plan = await planned(MONOREPO, MONOREPO_FILES, { devDependencies: { jest: "*" } });
  t.deepEqual(plan.byHand, []);
  for (const name of ["shop", "billing"]) {
    const text = plan.text(`apps/${name}/test/jest-e2e.json`);
    t.true(text?.includes('["lockweave/jest", { "transformer": "ts-jest" }]'), name);
  }
});

test("init names the entry file of each application in a monorepo", async (t) => {
  const { dir } = await makeProject({
    ...MONOREPO_FILES,
    "nest-cli.json": JSON.stringify(MONOREPO),
    "package.json": "{}",
  });
  t.is(placeOf(new Project(dir), NEST_STARTUP), "apps/shop/src/main.ts and apps/billing/src/server.ts");
});

test("init finds the module that configures the locks, and its store", async (t) => {
  const module = `import { Module } from "@nestjs/common";
import { LockModule } from "lockweave/nest";
@Module({ imports: [ConfigModule.forRoot({ isGlobal: true }), LockModule.forRoot({ postgres: pool })] })
export class AppModule {}
`;
  const { dir } = await makeProject({
    "src/app.module.ts": module,
    "src/main.ts": 'import { AppModule } from "./app.module";\n',
    "package.json": '{ "dependencies": { "@nestjs/core": "12", "ioredis": "6", "pg": "8" } }',
  });
  const project = new Project(dir);
  t.is(configuringFile(project), "src/app.module.ts");
  t.is(howItConfigures(project, "src/app.module.ts"), "imports `LockModule`");
  t.is(placeOfImport(project, NEST_STARTUP, "src/app.module.ts"), undefined);
  t.is(lockStoreOf(project).server, "PostgreSQL");
});

for (const [nest, step] of [
  [builtBy("webpack"), { about: "builds with locks", output: "dist" }],
  [MONOREPO, { about: "builds with locks", output: "dist" }],
  [{ ...MONOREPO, compilerOptions: {} }, { about: "compiles with locks" }],
] as const) {
  test(`init does not claim that NestJS writes first-lock.js for ${JSON.stringify(nest)}`, async (t) => {
    const { dir } = await makeProject({
      "nest-cli.json": JSON.stringify(nest),
      "package.json": "{}",
      "tsconfig.json": "{}",
    });
    const project = new Project(dir);
    const { draft, found, lock } = planFor(project);
    t.deepEqual(
      found.map(([host]) => host.next(project, draft, lock.file)),
      [{ command: "npx nest build", ...step }],
    );
  });
}

// ---- swc ------------------------------------------------------------------------------------------------

test("init makes NestJS with swc keep tags, and start with the hook", async (t) => {
  const plan = await planned(builtBy("swc"));
  t.deepEqual(plan.byHand, []);
  t.deepEqual(plan.changed, [".swcrc", "nest-cli.json", "package.json"]);
  t.like(plan.json(".swcrc"), { sourceMaps: true, jsc: { preserveAllComments: true } });
  t.deepEqual(plan.json("nest-cli.json"), { ...builtBy("swc"), exec: HOOK });
  t.like(plan.json("package.json"), { scripts: { ...SCRIPTS, "start:prod": `${HOOK} dist/main` } });
});

test("init keeps the other settings of swc and of NestJS", async (t) => {
  const settings = {
    ...builtBy({ type: "swc", options: { swcrcPath: "config/shop.swcrc" } }),
    exec: "node --trace-warnings",
    projects: { shop: { exec: "node" }, jobs: {} },
  };
  const before = { $schema: "https://swc.rs/schema.json", sourceMaps: false, jsc: { target: "es2022" } };
  const plan = await planned(settings, { "config/shop.swcrc": JSON.stringify(before) });
  t.deepEqual(plan.byHand, []);
  t.deepEqual(plan.json("config/shop.swcrc"), {
    ...before,
    sourceMaps: true,
    jsc: { target: "es2022", preserveAllComments: true },
  });
  t.is(plan.text(".swcrc"), undefined);
  t.deepEqual(plan.json("nest-cli.json"), {
    ...settings,
    exec: `${HOOK} --trace-warnings`,
    projects: { shop: { exec: HOOK }, jobs: {} },
  });
});

test("init changes nothing if NestJS with swc is set up", async (t) => {
  const plan = await planned(
    { ...builtBy("swc"), exec: HOOK },
    { ".swcrc": `{ "sourceMaps": "inline", "jsc": { "preserveAllComments": true } }` },
    { scripts: { build: "nest build", "start:prod": `${HOOK} --enable-source-maps dist/main.js` } },
  );
  t.deepEqual([plan.changed, plan.byHand], [[], []]);
});

test("init patches TypeScript for NestJS with swc only if it checks types", async (t) => {
  for (const [nest, scripts] of [
    [builtBy("swc", { typeCheck: true }), SCRIPTS],
    [builtBy("swc"), { ...SCRIPTS, build: "nest build --type-check" }],
  ] as const) {
    const plan = await planned(nest, {}, { scripts });
    t.deepEqual(plan.hosts, ["NestJS with swc"]);
    t.true(plan.text("tsconfig.json")?.includes("lockweave/transformer"));
    t.true(plan.text("package.json")?.includes('"prepare": "ts-patch install -s"'));
  }
});

test("init patches TypeScript in `postinstall` with Yarn 2 and later, which never run `prepare`", async (t) => {
  const plan = await planned({}, { ".yarnrc.yml": "nodeLinker: node-modules\n" });
  t.like(plan.json("package.json"), { scripts: { ...SCRIPTS, postinstall: "ts-patch install -s" } });
  const own = { scripts: { ...SCRIPTS, postinstall: "setup" } };
  const both = await planned({}, { ".yarnrc.yml": "" }, own);
  t.like(both.json("package.json"), { scripts: { postinstall: "ts-patch install -s && setup" } });
});

for (const [what, nest, files, scripts, byHand] of [
  [
    "another program that starts the output",
    builtBy("swc"),
    {},
    { dev: "nodemon dist/main.js", old: "nest start --exec bun", clean: "rimraf dist" },
    [["package.json", `${HOOK} ...`]],
  ],
  ["another runtime", { ...builtBy("swc"), exec: "bun" }, {}, {}, [["nest-cli.json", `"exec": "${HOOK}"`]]],
  [
    "files that start the output",
    builtBy("swc"),
    {
      Dockerfile: `COPY dist dist\nCMD ["node", "dist/main.js"]\n`,
      Procfile: "web: node dist/apps/shop/main",
    },
    {},
    [
      ["Dockerfile", `${HOOK} dist/main.js`],
      ["Procfile", `${HOOK} dist/apps/shop/main`],
    ],
  ],
  [
    "a list of swc settings",
    builtBy("swc"),
    { ".swcrc": "[{ }]" },
    {},
    [[".swcrc", '"sourceMaps": true, "jsc": { "preserveAllComments": true }']],
  ],
  [
    "renamed parameters",
    builtBy("swc"),
    { ".swcrc": `{ "jsc": { "minify": { "mangle": true } } }` },
    {},
    [[".swcrc", '"mangle": false']],
  ],
] as const) {
  test(`init leaves to the user in NestJS with swc: ${what}`, async (t) => {
    const plan = await planned(nest, files, { scripts: { build: "nest build", ...scripts } });
    t.deepEqual(plan.byHand, byHand);
  });
}

// ---- rspack ---------------------------------------------------------------------------------------------

test("init creates the configuration that NestJS with rspack reads", async (t) => {
  const code = `(options) => ({
  ...options,
  plugins: [lockweave(), ...options.plugins],
});
`;
  const script = await planned(builtBy("rspack"));
  t.deepEqual(script.changed, ["rspack.config.js"]);
  t.is(
    script.text("rspack.config.js"),
    `const lockweave = require("lockweave/rspack");\n\nmodule.exports = ${code}`,
  );
  const module = await planned(
    builtBy({ type: "rspack", options: { configPath: "config/shop.js" } }),
    {},
    { type: "module" },
  );
  t.deepEqual(module.changed, ["config/shop.js"]);
  t.is(module.text("config/shop.js"), `import lockweave from "lockweave/rspack";\n\nexport default ${code}`);
});

test("init adds the plugin to the configuration of NestJS with rspack", async (t) => {
  const before = "module.exports = (options) => ({ ...options, plugins: [...options.plugins, other()] });\n";
  const plan = await planned(builtBy("rspack"), { "rspack.config.js": before });
  t.deepEqual(plan.hosts, ["NestJS with rspack"]);
  t.is(
    plan.text("rspack.config.js"),
    `const lockweave = require('lockweave/rspack');\n\n${before.replace("[...", "[lockweave(), ...")}`,
  );
});

test("init leaves a configuration of NestJS with rspack without plugins to the user", async (t) => {
  for (const text of [
    "module.exports = { devtool: false };",
    "module.exports = (options) => change(options);",
  ]) {
    const plan = await planned(builtBy("rspack"), { "rspack.config.js": text });
    t.deepEqual(plan.changed, []);
    t.is(plan.byHand[0]?.[0], "rspack.config.js");
    t.true(plan.byHand[0]?.includes("  plugins: [lockweave(), ...options.plugins],"));
  }
});
