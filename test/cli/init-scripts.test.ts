import { rm } from "node:fs/promises";
import test from "ava";
import { planFor } from "../../transformer/cli/init/init";
import { Project } from "../../transformer/cli/init/project";
import { makeProject, type Files } from "../hosts/project";

// `lockweave init` changes the scripts in package.json, or leaves them to the user.

interface Scripted {
  /** The hosts that init found, with the evidence for each. */
  readonly found: readonly (readonly [host: string, evidence: string])[];
  /** The planned package.json, and its scripts. */
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly scripts: Readonly<Record<string, string>>;
  readonly tsconfig: string | undefined;
  readonly byHand: readonly {
    readonly file: string;
    readonly why: string;
    readonly lines: readonly string[];
  }[];
  readonly commands: readonly string[];
  readonly installs: readonly string[];
}

async function scripted(
  scripts: Readonly<Record<string, string>>,
  manifest: object = {},
  files: Files = {},
  missing: readonly string[] = [],
): Promise<Scripted> {
  const project = await makeProject({
    ...files,
    "package.json": JSON.stringify({ scripts, ...manifest }, undefined, 2),
  });
  for (const name of missing) await rm(project.path(`node_modules/${name}`));
  const { draft, found } = planFor(new Project(project.dir));
  const after = JSON.parse(draft.text("package.json") ?? "") as {
    readonly [name: string]: unknown;
    readonly scripts: Record<string, string>;
  };
  return {
    found: found.map(([{ name }, evidence]) => [name, evidence]),
    manifest: after,
    scripts: after.scripts,
    tsconfig: draft.changes.get("tsconfig.json"),
    byHand: draft.byHand,
    commands: draft.commands.map((words) => words.join(" ")),
    installs: [...draft.devDependencies],
  };
}

const PATCHED = /"ts-node": \{ "compiler": "ts-patch\/compiler" \}/;

for (const [host, evidence, before, after] of [
  ["tsx", "`tsx` in a script", "tsx src/main.ts", "tsx --import lockweave/register src/main.ts"],
  ["tsx", "`tsx` in a script", "npx tsx main.ts", "npx tsx --import lockweave/register main.ts"],
  [
    "tsx",
    "`tsx` in a script",
    "tsx watch --clear main.ts",
    "tsx watch --import lockweave/register --clear main.ts",
  ],
  [
    "tsx",
    "`tsx` in a script",
    "tsx a.ts && A=1 tsx b.ts; echo tsx done",
    "tsx --import lockweave/register a.ts && A=1 tsx --import lockweave/register b.ts; echo tsx done",
  ],
  [
    "tsx",
    "`tsx` in a script",
    "node --import tsx main.ts",
    "node --import lockweave/register --import tsx main.ts",
  ],
  ["ts-node", "`ts-node` in a script", "ts-node -T main.ts", "ts-node -r lockweave/register -T main.ts"],
  [
    "ts-node",
    "`ts-node` in a script",
    "ts-node --transpile-only main.ts",
    "ts-node -r lockweave/register --transpile-only main.ts",
  ],
  [
    "ts-node",
    "`ts-node` in a script",
    "ts-node --transpileOnly main.ts",
    "ts-node -r lockweave/register --transpileOnly main.ts",
  ],
  [
    "ts-node",
    "`ts-node` in a script",
    "ts-node --swc main.ts",
    "ts-node -r lockweave/register --swc main.ts",
  ],
  [
    "ts-node",
    "`ts-node` in a script",
    "ts-node-transpile-only main.ts",
    "ts-node-transpile-only -r lockweave/register main.ts",
  ],
  [
    "ts-node",
    "`ts-node` in a script",
    "ts-node -T -r lockweave/register main.ts",
    "ts-node -T -r lockweave/register main.ts",
  ],
  [
    "Node",
    "`node --watch src/main.mts` in a script",
    "node --watch src/main.mts",
    "node --import lockweave/register --watch src/main.mts",
  ],
  [
    "Node",
    "`node src/main.ts --port 80 && node src/other.ts` in a script",
    "node src/main.ts --port 80 && node src/other.ts",
    "node --import lockweave/register src/main.ts --port 80 && node --import lockweave/register src/other.ts",
  ],
  [
    "tspc",
    "`tsc -p . && node out/main.js` in a script",
    "tsc -p . && node out/main.js",
    "tspc -p . && node out/main.js",
  ],
  [
    "tspc",
    "`tsc -w & node --watch out/main.js` in a script",
    "tsc -w & node --watch out/main.js",
    "tspc -w & node --watch out/main.js",
  ],
] as const) {
  test(`init finds ${host} in \`${before}\` and plans \`${after}\``, async (t) => {
    const { found, scripts, byHand } = await scripted({ it: before });
    t.deepEqual(found, [[host, evidence]]);
    t.deepEqual(scripts, { it: after });
    t.deepEqual(byHand, []);
  });
}

for (const [what, script] of [
  ["a program of a similar name", "tsx-like main.ts && my-tsc && ./tools/ts-node main.ts"],
  ["a path of that name", "cat src/tsx.ts node_modules/tsc.js"],
  ["a compiler that emits nothing", "tsc --noEmit && tsc -p . --emitDeclarationOnly"],
  ["the output of a compiler", "node dist/main.js"],
] as const) {
  test(`a script with ${what} is not evidence of a host, and init replaces nothing in it but tsc`, async (t) => {
    const { found, scripts } = await scripted({ it: script });
    t.deepEqual(found, [["tspc", "no other compiler was found"]]);
    t.is(scripts["it"], script.replaceAll(/(?<![\w-])tsc(?= )/g, "tspc"));
  });
}

for (const [script, tool, line] of [
  ['concurrently "tsx" "tsc"', "tsx", "tsx --import lockweave/register ..."],
  ["nodemon --exec 'tsx' main.ts", "tsx", "tsx --import lockweave/register ..."],
  [
    "nodemon --exec ts-node main.ts",
    "ts-node",
    "node --import ./ts-node-esm.mjs --import lockweave/register ...",
  ],
  ["ts-node --esm main.ts", "ts-node", "node --import ./ts-node-esm.mjs --import lockweave/register ..."],
] as const) {
  test(`init leaves \`${script}\` to the user and prints how to run ${tool}`, async (t) => {
    const { scripts, byHand } = await scripted({ it: script });
    t.is(scripts["it"], script);
    t.deepEqual(
      byHand.find(({ lines }) => lines[0] === line),
      {
        file: "package.json",
        why: "Lockweave does not understand the script `it`. In it, run",
        lines: [line],
      },
    );
  });
}

test("init names all scripts that it leaves to the user in one sentence", async (t) => {
  const { byHand } = await scripted({
    a: "ts-node --esm a.ts",
    b: "ts-node --esm b.ts",
    c: "ts-node -T c.ts",
  });
  t.deepEqual(
    byHand.map(({ why }) => why),
    ["Lockweave does not understand the scripts `a`, `b`. In them, run"],
  );
  const tsc = await scripted({ build: "tsc", a: 'concurrently "tsc"', b: "npm-run-all 'tsc'" });
  t.deepEqual(
    tsc.byHand.map(({ why, lines }) => ({ why, lines })),
    [{ why: "In the scripts `a`, `b`, run `tspc` instead of", lines: ["tsc"] }],
  );
  const one = await scripted({ build: "tsc", a: 'concurrently "tsc"' });
  t.is(one.byHand[0]?.why, "In the script `a`, run `tspc` instead of");
});

// ---- ts-node that checks types --------------------------------------------------------------------------

test("init keeps scripts with ts-node that checks types, and gives it a compiler with the plugin", async (t) => {
  const { scripts, tsconfig, installs } = await scripted({ it: "ts-node main.ts" }, {}, {}, ["ts-patch"]);
  t.true(installs.includes("ts-patch@3"));
  t.deepEqual(scripts, { it: "ts-node main.ts" });
  t.regex(tsconfig ?? "", PATCHED);
});

for (const [setting, isTranspiled] of [
  ['{ "transpileOnly": true }', true],
  ['{ "swc": true }', true],
  ['{ "transpileOnly": false }', false],
] as const) {
  test(`init knows that ts-node with ${setting} in tsconfig.json ${isTranspiled ? "checks no types" : "checks types"}`, async (t) => {
    const files = { "tsconfig.json": `{ "ts-node": ${setting} }` };
    const { scripts, tsconfig } = await scripted({ it: "ts-node main.ts" }, {}, files);
    t.is(scripts["it"], isTranspiled ? "ts-node -r lockweave/register main.ts" : "ts-node main.ts");
    t.is(tsconfig?.includes("ts-patch/compiler") ?? false, !isTranspiled);
  });
}

for (const [what, before, after] of [
  ["with other settings", '{ "files": true }', '"compiler": "ts-patch/compiler"'],
  [
    "with the compiler of ts-patch",
    '{ "compiler": "ts-patch/compiler" }',
    '{ "compiler": "ts-patch/compiler" }',
  ],
  ["with another compiler", '{ "compiler": "ttypescript" }', '{ "compiler": "ttypescript" }'],
] as const) {
  test(`a ts-node section ${what} ${what === "with another compiler" ? "is left to the user" : "has the compiler of ts-patch after init"}`, async (t) => {
    const files = { "tsconfig.json": `{ "ts-node": ${before} }` };
    const { tsconfig, byHand } = await scripted({ it: "ts-node main.ts" }, {}, files);
    t.true(tsconfig?.includes(after), tsconfig);
    t.deepEqual(
      byHand,
      what === "with another compiler"
        ? [
            {
              file: "tsconfig.json",
              why: "Lockweave does not understand this file. Add to it",
              lines: ['"ts-node": { "compiler": "ts-patch/compiler" }'],
            },
          ]
        : [],
    );
  });
}

// ---- ava ------------------------------------------------------------------------------------------------

for (const [what, manifest, config, registered] of [
  ["requires modules", { ava: { require: ["a"] } }, undefined, '"lockweave/register"'],
  [
    "passes Node arguments",
    { ava: { nodeArguments: ["--import=tsx"] } },
    undefined,
    '"--import=lockweave/register"',
  ],
] as const) {
  test(`init adds the hook to package.json if ava ${what} there`, async (t) => {
    const project = await makeProject({
      "package.json": JSON.stringify({ devDependencies: { ava: "7" }, ...manifest }, undefined, 2),
      ...(config === undefined ? {} : { "ava.config.mjs": config }),
    });
    const { draft, found } = planFor(new Project(project.dir));
    t.deepEqual(
      found.map(([{ name }, evidence]) => [name, evidence]),
      [
        ["tspc", "no other compiler was found"],
        ["ava", "`ava` in package.json"],
      ],
    );
    const { ava } = JSON.parse(draft.changes.get("package.json") ?? "") as { ava: Record<string, string[]> };
    t.deepEqual(JSON.stringify(Object.values(ava)[0]?.at(-1)), registered);
    t.deepEqual(draft.byHand, []);
  });
}

for (const [what, manifest, files, file, line] of [
  [
    "has no settings in ES modules",
    { type: "module" },
    {},
    "package.json",
    'nodeArguments: ["--import=tsx", "--import=lockweave/register"]',
  ],
  [
    "has no settings in CommonJS",
    {},
    {},
    "package.json",
    'require: ["ts-node/register/transpile-only", "lockweave/register"]',
  ],
  [
    "has settings that load no modules",
    { ava: { files: ["a"] } },
    {},
    "package.json",
    'require: ["ts-node/register/transpile-only", "lockweave/register"]',
  ],
  [
    "is configured in a file",
    {},
    { "ava.config.mjs": "export default {};" },
    "ava.config.mjs",
    'require: ["ts-node/register/transpile-only", "lockweave/register"]',
  ],
] as const) {
  test(`init leaves ava to the user if it ${what}`, async (t) => {
    const { byHand } = await scripted({}, { devDependencies: { ava: "7" }, ...manifest }, files);
    t.deepEqual(byHand, [{ file, why: "Lockweave does not understand this file. Add to it", lines: [line] }]);
  });
}

test("init changes nothing if ava loads the hook in package.json", async (t) => {
  const ava = { require: ["ts-node/register/transpile-only", "lockweave/register"] };
  const { byHand, manifest } = await scripted({}, { devDependencies: { ava: "7" }, ava });
  t.deepEqual(byHand, []);
  t.deepEqual(manifest["ava"], ava);
});

test("init leaves nothing to the user if ava loads the hook in ava.config.mjs", async (t) => {
  const { byHand } = await scripted(
    {},
    { devDependencies: { ava: "7" } },
    { "ava.config.mjs": 'export default { nodeArguments: ["--import=lockweave/register"] };' },
  );
  t.deepEqual(byHand, []);
});

// ---- JavaScript without a compiler ----------------------------------------------------------------------

test("without TypeScript, init adds the hook to scripts that run JavaScript outside of dist", async (t) => {
  const project = await makeProject({
    "package.json": JSON.stringify({
      scripts: { start: "node bin/main.mjs", old: "node dist/main.js", lint: "node-lint a.js" },
    }),
  });
  for (const path of ["tsconfig.json", "node_modules/typescript"]) await rm(project.path(path));
  const { draft, found } = planFor(new Project(project.dir));
  t.deepEqual(
    found.map(([{ name }, evidence]) => [name, evidence]),
    [["Node", "`node bin/main.mjs` in a script"]],
  );
  const { scripts } = JSON.parse(draft.changes.get("package.json") ?? "") as { scripts: unknown };
  t.deepEqual(scripts, {
    start: "node --import lockweave/register bin/main.mjs",
    old: "node dist/main.js",
    lint: "node-lint a.js",
  });
});

// ---- NestJS ---------------------------------------------------------------------------------------------

for (const [what, scripts, prepare] of [
  ["no scripts", undefined, "ts-patch install -s"],
  ["no prepare script", { build: "nest build" }, "ts-patch install -s"],
  ["another command in its prepare script", { prepare: "husky" }, "ts-patch install -s && husky"],
  ["the patch in its prepare script", { prepare: "ts-patch install && husky" }, "ts-patch install && husky"],
] as const) {
  test(`init makes the prepare script patch TypeScript if a NestJS project has ${what}`, async (t) => {
    const project = await makeProject({
      "package.json": JSON.stringify({ dependencies: { "@nestjs/core": "11" }, scripts }, undefined, 2),
    });
    const { draft, found } = planFor(new Project(project.dir));
    t.deepEqual(
      found.map(([{ name }, evidence]) => [name, evidence]),
      [["NestJS", "`@nestjs/core` in package.json"]],
    );
    const after = JSON.parse(draft.text("package.json") ?? "") as { scripts: Record<string, string> };
    t.is(after.scripts["prepare"], prepare);
    t.deepEqual(draft.commands, [["npx", "ts-patch", "install", "-s"]]);
    t.deepEqual(draft.byHand, []);
  });
}

test("init leaves a package.json that is not an object to the user, with the line that NestJS needs", async (t) => {
  const project = await makeProject({ "package.json": "[]", "nest-cli.json": "{}" });
  const { draft } = planFor(new Project(project.dir));
  t.false(draft.changes.has("package.json"));
  t.deepEqual(draft.byHand, [
    {
      file: "package.json",
      why: "Lockweave does not understand this file. Add to it",
      lines: ['"prepare": "ts-patch install -s"'],
    },
  ]);
});

// ---- tsconfig.json --------------------------------------------------------------------------------------

const ENTRY = '{ "transform": "lockweave/transformer", "transformProgram": true }';

for (const [what, before, after] of [
  ["no compiler options", "{}", `{\n  "compilerOptions": {\n    "plugins": [${ENTRY}]\n  }\n}`],
  ["no plugins", '{ "compilerOptions": {} }', `{ "compilerOptions": {\n  "plugins": [${ENTRY}]\n} }`],
  [
    "no plugin yet",
    '{ "compilerOptions": { "plugins": [] } }',
    `{ "compilerOptions": { "plugins": [${ENTRY}] } }`,
  ],
  [
    "another plugin",
    '{ "compilerOptions": { "plugins": [{ "name": "a" }] } }',
    `{ "compilerOptions": { "plugins": [{ "name": "a" }, ${ENTRY}] } }`,
  ],
  ["the plugin", `{ "compilerOptions": { "plugins": [${ENTRY}] } }`, undefined],
  [
    "the plugin by its short name",
    '{ "compilerOptions": { "plugins": [{ "transform": "lockweave" }] } }',
    undefined,
  ],
] as const) {
  test(`init ${after === undefined ? "does not change" : "adds the plugin to"} a tsconfig.json with ${what}`, async (t) => {
    const { tsconfig, byHand } = await scripted({ build: "tsc" }, {}, { "tsconfig.json": before });
    t.is(tsconfig, after);
    t.deepEqual(byHand, []);
  });
}

for (const [what, text] of [
  ["compiler options that are not an object", '{ "compilerOptions": [] }'],
  ["plugins that are not a list", '{ "compilerOptions": { "plugins": {} } }'],
] as const) {
  test(`init leaves a tsconfig.json with ${what} to the user`, async (t) => {
    const { tsconfig, byHand } = await scripted({ build: "tsc" }, {}, { "tsconfig.json": text });
    t.is(tsconfig, undefined);
    t.deepEqual(byHand, [
      {
        file: "tsconfig.json",
        why: "Lockweave does not understand this file. Add to it",
        lines: ['"compilerOptions": {', `  "plugins": [${ENTRY}]`, "}"],
      },
    ]);
  });
}

test("init does not change a base tsconfig.json in an installed package", async (t) => {
  const { tsconfig } = await scripted(
    { build: "tsc" },
    {},
    {
      "tsconfig.json": '{ "extends": "base/tsconfig.json" }',
      "node_modules/base/tsconfig.json": '{ "compilerOptions": {} }',
    },
  );
  t.is(tsconfig, `{ "extends": "base/tsconfig.json", "compilerOptions": {\n    "plugins": [${ENTRY}]\n  } }`);
});

// ---- the place of the output ----------------------------------------------------------------------------

for (const [what, compilerOptions, typescript, about] of [
  ["next to its source", {}, "6.0.0", "src/first-lock.ts becomes src/first-lock.js"],
  [
    "in outDir, relative to the project",
    { outDir: "out" },
    "6.0.0",
    "src/first-lock.ts becomes out/src/first-lock.js",
  ],
  [
    "in outDir, relative to the directory that all files share",
    { outDir: "out" },
    "5.9.0",
    "src/first-lock.ts becomes out/first-lock.js",
  ],
  [
    "in outDir, relative to rootDir",
    { outDir: "./out", rootDir: "src" },
    "6.0.0",
    "src/first-lock.ts becomes out/first-lock.js",
  ],
] as const) {
  test(`init prints where the compiler writes the first lock: ${what}`, async (t) => {
    const project = await makeProject({
      "package.json": JSON.stringify({
        type: "module",
        scripts: { build: "tsc" },
        devDependencies: { typescript },
      }),
      "tsconfig.json": JSON.stringify({ compilerOptions }),
      "src/main.ts": "",
    });
    await rm(project.path("node_modules/typescript"));
    const model = new Project(project.dir);
    const { draft, found, lock } = planFor(model);
    t.deepEqual(found[0]?.[0].next(model, draft, lock.file), {
      command: "npm run build",
      about: `compiles with locks; ${about}`,
    });
  });
}

test("init prints the output of NestJS's tsconfig.build.json", async (t) => {
  const project = await makeProject({
    "package.json": JSON.stringify({ type: "module", scripts: { build: "nest build" } }),
    "nest-cli.json": "{}",
    "tsconfig.json": '{ "compilerOptions": { "outDir": "dist", "rootDir": "." } }',
    "tsconfig.build.json": '{ "extends": "./tsconfig.json", "compilerOptions": { "rootDir": "src" } }',
    "src/main.ts": "",
  });
  const model = new Project(project.dir);
  const { draft, found, lock } = planFor(model);
  t.is(
    found[0]?.[0].next(model, draft, lock.file).about,
    "compiles with locks; src/first-lock.ts becomes dist/first-lock.js",
  );
});

test("init prints the output of the tsconfig.json that the script names, unless noEmit is set", async (t) => {
  const aboutOf = async (settings: object): Promise<string | undefined> => {
    const project = await makeProject({
      "package.json": JSON.stringify({ type: "module", scripts: { build: "tsc -p tsconfig.build.json" } }),
      "tsconfig.json": "{}",
      "tsconfig.build.json": JSON.stringify({ compilerOptions: settings }),
      "src/main.ts": "",
    });
    const model = new Project(project.dir);
    const { draft, found, lock } = planFor(model);
    return found[0]?.[0].next(model, draft, lock.file).about;
  };
  t.is(
    await aboutOf({ outDir: "lib", rootDir: "." }),
    "compiles with locks; src/first-lock.ts becomes lib/src/first-lock.js",
  );
  t.is(await aboutOf({ outDir: "lib", noEmit: true }), "compiles with locks");
});
