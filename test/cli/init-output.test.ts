import { chmod, readdir, rm } from "node:fs/promises";
import test from "ava";
import { init } from "../../transformer/cli/init/init";
import type { StoreName } from "../../transformer/cli/init/lock-store";
import { makeProject, type Files, type Project } from "../hosts/project";
import { isMatrix } from "../support/suites";

const inMatrix = isMatrix ? test.serial : test.skip;

// The exact output of `lockweave init`, and its exit codes.

interface InitResult {
  readonly code: number;
  readonly text: string;
}

/** Runs init and captures the one stdout, so the tests run serially. */
async function runInit(project: Project, isAgreed: boolean, store?: StoreName): Promise<InitResult> {
  const { write } = process.stdout;
  const printed: string[] = [];
  process.stdout.write = (text: string | Uint8Array): boolean => printed.push(String(text)) > 0;
  try {
    const code = await init(project.dir, isAgreed, store);
    return { code, text: printed.join("") };
  } finally {
    process.stdout.write = write;
  }
}

/** A project without TypeScript. */
async function javaScript(files: Files, manifest: object = {}): Promise<Project> {
  const project = await makeProject({
    "package.json": `${JSON.stringify({ type: "module", dependencies: { ioredis: "*" }, ...manifest }, undefined, 2)}\n`,
    ...files,
  });
  for (const path of ["tsconfig.json", "node_modules/typescript"]) await rm(project.path(path));
  return project;
}

const NEXT = (commands: string, lock: string): string => `
Next
${commands}
Write \`/** @redisLock businessFlag=payOrder keyName=orderNo */\` above one of your async methods, call
\`configure({ redis: "redis://localhost:6379" })\` once at startup, and delete ${lock}.
\`npx lockweave list\` shows every lock; \`npx lockweave check\` verifies them after a build.
Both need TypeScript: \`npm install --save-dev typescript@6\`.
`;
const RUNS = "runs it with its locks, which are woven at load time; no file is written";

inMatrix(
  "init prints what it found, what it changes, and the next command, and runs the first lock",
  async (t) => {
    const project = await javaScript({ "main.js": "" }, { scripts: { start: "node main.js", lint: "lint" } });
    const { code, text } = await runInit(project, true);
    const lock = await project.read("first-lock.mjs");
    t.is(
      text,
      `Found
  no TypeScript, ES modules, npm
  Node: \`node main.js\` in a script

To change
  package.json
  -     "start": "node main.js",
  +     "start": "node --import lockweave/register main.js",
  first-lock.mjs (new)
${lock
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => `  + ${line}\n`)
  .join("")}
Your first lock, woven by Node, is first-lock.mjs:
A1 is paid under LOCK_firstLock_A1
${NEXT(`  node --import lockweave/register first-lock.mjs  ${RUNS}\n`, "first-lock.mjs")}`,
    );
    t.is(code, 0);
    const left = await readdir(project.dir);
    t.deepEqual(left.toSorted(), ["first-lock.mjs", "main.js", "node_modules", "package.json"]);
    const again = await runInit(project, false);
    t.true(again.text.includes("\nTo change\n  nothing\n\nYour first lock, woven by Node,"), again.text);
    t.is(again.code, 0);
  },
);

inMatrix("init prints the next commands in columns", async (t) => {
  const project = await javaScript(
    {},
    {
      scripts: { start: "node main.js" },
      devDependencies: { ava: "7" },
      ava: { require: ["lockweave/register"] },
    },
  );
  const { text } = await runInit(project, true);
  const node = "node --import lockweave/register first-lock.mjs";
  const tests = "runs the tests with their locks; no file is written";
  t.true(
    text.endsWith(
      NEXT(`  ${node}  ${RUNS}\n  ${"npx ava".padEnd(node.length)}  ${tests}\n`, "first-lock.mjs"),
    ),
    text,
  );
});

inMatrix("init prints the commands that create the tables if the locks are in PostgreSQL", async (t) => {
  const project = await javaScript(
    { "src/db.js": 'import { Pool } from "pg";\nexport const pool = new Pool();\n' },
    { scripts: { start: "node main.js" }, dependencies: { pg: "*", ioredis: "*" } },
  );
  const { text } = await runInit(project, false, "postgres");
  for (const part of [
    "\n  pg: src/db.js:2 creates a Pool\n  Redis: `ioredis` in package.json. The locks go to PostgreSQL.",
    "run `npx lockweave init --store postgres --yes`.",
  ]) {
    t.true(text.includes(part), text);
  }
  const agreed = await runInit(project, true, "postgres");
  for (const part of [
    "\nNext\n  npx lockweave postgres --apply postgres://localhost/database  creates the tables",
    "\n  npx lockweave postgres                                        prints their SQL",
    "\n`configure({ postgres: pool })` once at startup, and delete src/first-lock.mjs. `pool` is the one that src/db.js:2",
  ]) {
    t.true(agreed.text.includes(part), agreed.text);
  }
});

inMatrix("init changes nothing without --yes, and exits with 3", async (t) => {
  const project = await javaScript({}, { scripts: { start: "node main.js" } });
  const before = await project.read("package.json");
  const { code, text } = await runInit(project, false);
  t.is(code, 3);
  t.true(
    text.endsWith(
      "\n\nNothing was changed. To apply the changes without confirmation, run `npx lockweave init --yes`.\n",
    ),
    text,
  );
  t.is(await project.read("package.json"), before);
});

inMatrix("init reports a first lock that does not run under its lock, and shows its output", async (t) => {
  for (const [program, printed] of [
    ['console.log("no lock");\n', "no lock\n"],
    ['console.log("LOCK_firstLock_A1"); process.exit(1);\n', "LOCK_firstLock_A1\n"],
  ] as const) {
    const project = await javaScript(
      { "first-lock.mjs": program },
      { scripts: { start: "node --import lockweave/register main.js" } },
    );
    const { code, text } = await runInit(project, false);
    t.is(code, 1);
    t.true(
      text.includes(`\n\nfirst-lock.mjs does not run under its lock with Node:\n${printed}\nNext\n`),
      text,
    );
    t.deepEqual(await project.read("first-lock.mjs"), program);
  }
});

inMatrix(
  "init prints the steps that are left to the user, and says that a second init shows the first lock",
  async (t) => {
    const project = await makeProject({
      "package.json": JSON.stringify({
        type: "commonjs",
        scripts: { build: "vite build" },
        dependencies: { ioredis: "5" },
      }),
      "vite.config.ts": "export default configFor(1);\n",
    });
    const { code, text } = await runInit(project, true);
    t.is(code, 1);
    t.regex(
      text,
      /^Found\n {2}TypeScript \d+\.\d+\.\d+, CommonJS, npm\n {2}Vite: vite\.config\.ts\n\nTo change\n {2}first-lock\.ts \(new\)\n/,
    );
    t.true(
      text.includes(`
Left to you
  vite.config.ts: Lockweave does not understand this file. Add to it
    import lockweave from "lockweave/vite";
    plugins: [lockweave(), /* before the others */],

After you have made the changes above, run \`npx lockweave init\` again. It then shows your first lock.
`),
      text,
    );
  },
);

inMatrix(
  "init runs the first lock with one host, and reports that another host is left to the user",
  async (t) => {
    const project = await javaScript(
      {},
      { scripts: { start: "node --import lockweave/register main.js" }, devDependencies: { ava: "7" } },
    );
    const { code, text } = await runInit(project, true);
    t.is(code, 1);
    t.true(
      text.includes("A1 is paid under LOCK_firstLock_A1\nThe other changes above are left to you.\n\nNext\n"),
      text,
    );
  },
);

inMatrix(
  "init says to build the first lock as a separate entry if it cannot run the lock itself",
  async (t) => {
    const project = await makeProject({
      "package.json": JSON.stringify({
        type: "module",
        scripts: { build: "rspack build" },
        dependencies: { ioredis: "5" },
      }),
      "rspack.config.mjs":
        'import lockweave from "lockweave/rspack";\nexport default { plugins: [lockweave()] };\n',
    });
    const { code, text } = await runInit(project, true);
    t.is(code, 0);
    t.true(
      text.includes(
        "\n\nYour first lock is in first-lock.ts. It calls `configure()` and `shutdown()` itself, so do not import it in your application. Build it with Rspack as a separate entry. When you run the output, it prints `A1 is paid under LOCK_firstLock_A1`.\n\nNext\n",
      ),
      text,
    );
  },
);

for (const [framework, dependencies, files, ending] of [
  [
    "creates the file that configures the locks",
    { "@sveltejs/kit": "*" },
    { "vite.config.ts": "export default { plugins: [] };\n" },
    `above one of your async methods.
src/hooks.server.ts calls \`configure()\`.
\`npx lockweave list\` shows every lock; \`npx lockweave check --output "build/**/*.js"\` verifies them after a build.`,
  ],
  [
    "names the file in which to configure the locks",
    { "@react-router/dev": "*" },
    { "vite.config.ts": "export default { plugins: [] };\n" },
    `above one of your async methods, and call
\`configure({ redis: "redis://localhost:6379" })\` once at startup, in app/entry.server.tsx, which \`npx react-router reveal entry.server\` creates.
\`npx lockweave list\` shows every lock; \`npx lockweave check --output "build/server/**/*.js"\` verifies them after a build.`,
  ],
  [
    "reports a file that configures the locks",
    { "@react-router/dev": "*" },
    {
      "vite.config.ts": "export default { plugins: [] };\n",
      "app/locks.ts": 'import { configure } from "lockweave";\nconfigure({ redis: "" });\n',
    },
    `above one of your async methods.
app/locks.ts calls \`configure()\`. Import it in app/entry.server.tsx, which \`npx react-router reveal entry.server\` creates, so that it runs when the server starts.
\`npx lockweave list\` shows every lock; \`npx lockweave check --output "build/server/**/*.js"\` verifies them after a build.`,
  ],
  [
    "knows that the file which runs first imports it",
    { "@sveltejs/kit": "*" },
    {
      "vite.config.ts": "export default { plugins: [] };\n",
      "src/hooks.server.ts": 'import "./lib/locks";\n',
      "src/lib/locks.ts": 'import { configure } from "lockweave";\nconfigure({ redis: "" });\n',
      "src/lib/locks.test.ts": 'import { configure } from "lockweave";\nconfigure({ redis: "" });\n',
    },
    `above one of your async methods.
src/lib/locks.ts calls \`configure()\`.
\`npx lockweave list\` shows every lock; \`npx lockweave check --output "build/**/*.js"\` verifies them after a build.`,
  ],
] as const) {
  test.serial(`init writes no example for a framework, and ${framework}`, async (t) => {
    const project = await makeProject({
      "package.json": JSON.stringify({ type: "module", dependencies: { ioredis: "6", ...dependencies } }),
      ...files,
    });
    const { code, text } = await runInit(project, true);
    t.is(code, 0, text);
    t.false(text.includes("first-lock"), text);
    t.true(text.trimEnd().endsWith(ending), text);
  });
}

test.serial("init names the command that runs the first lock with Bun, and checks no output", async (t) => {
  const project = await makeProject({
    "package.json": JSON.stringify({
      type: "module",
      dependencies: { ioredis: "6" },
      devDependencies: { "@types/bun": "*" },
    }),
    "bunfig.toml": 'preload = ["lockweave/register"]\n',
  });
  const { text } = await runInit(project, true);
  t.true(
    text.includes("\nYour first lock is in first-lock.ts. To run it, use `bun first-lock.ts`. It prints"),
    text,
  );
  t.true(text.endsWith("`npx lockweave check --watch` reports wrong tags.\n"), text);
});

inMatrix("the check command that init prints depends on what writes the output", async (t) => {
  const proofs: readonly (readonly [script: string, noEmit: boolean, proof: string])[] = [
    ["tsc", false, "`npx lockweave check` verifies them after a build."],
    ["vite build", true, "`npx lockweave check --output` with the build's output verifies them."],
    ["tsx src/main.ts", true, "`npx lockweave check --watch` reports wrong tags."],
    ["vitest", true, "`npx lockweave check --watch` reports wrong tags."],
    ["tsx src/main.ts && tsc", false, "`npx lockweave check` verifies them after a build."],
  ];
  for (const [script, noEmit, proof] of proofs) {
    const project = await makeProject({
      "package.json": JSON.stringify({
        type: "module",
        scripts: { it: script },
        dependencies: { ioredis: "5" },
      }),
      "tsconfig.json": JSON.stringify({ compilerOptions: { noEmit } }),
      "src/main.ts": "",
      "src/first-lock.ts": "",
    });
    const { text } = await runInit(project, true);
    t.true(text.endsWith(`\n\`npx lockweave list\` shows every lock; ${proof}\n`), `${script}: ${text}`);
  }
});

inMatrix("if a package cannot be installed, init changes no file", async (t) => {
  const project = await javaScript({}, { dependencies: {}, scripts: { start: "node main.js" } });
  const before = await filesOf(project);
  const { PATH = "" } = process.env;
  process.env["PATH"] = project.path("nothing");
  try {
    const { code, text } = await runInit(project, true);
    t.is(code, 1);
    t.true(text.includes("\n  npm install ioredis\n\n"), text);
    t.true(
      text.endsWith(
        "\n`npm install ioredis` failed, so no file was changed. Fix what it reported, and run `npx lockweave init` again.\n",
      ),
      text,
    );
    t.deepEqual(await filesOf(project), before);
  } finally {
    process.env["PATH"] = PATH;
  }
});

/** The text of each file by its name, without node_modules. */
async function filesOf(project: Project): Promise<Record<string, string>> {
  const names = (await readdir(project.path("."))).filter((name) => name !== "node_modules");
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await project.read(name)])));
}

const onPosix = process.platform === "win32" ? test.skip : inMatrix;
onPosix(
  "init installs missing packages with the project's package manager before the first lock runs",
  async (t) => {
    const project = await makeProject({
      "package.json": JSON.stringify({ type: "module", dependencies: { "@nestjs/core": "11" } }),
      "pnpm-lock.yaml": "",
      "tools/pnpm": String.raw`#!/bin/sh
echo "pnpm $*" >> ran
grep -q by-pnpm package.json || sed -i 's/"dependencies":{/&"by-pnpm":"1",/' package.json
`,
      "src/a.ts": "",
    });
    await rm(project.path("node_modules/ts-patch"));
    await chmod(project.path("tools/pnpm"), 0o755);
    const { PATH = "" } = process.env;
    process.env["PATH"] = `${project.path("tools")}:${PATH}`;
    try {
      const { text } = await runInit(project, true);
      const commands = [
        "pnpm add ioredis",
        "pnpm add --save-dev ts-patch@3",
        "pnpm exec ts-patch install -s",
      ];
      t.true(text.includes(`\n${commands.map((command) => `  ${command}\n`).join("")}\n`), text);
      t.is(await project.read("ran"), `${commands.join("\n")}\n`);
      // The file of the package manager is still there.
      t.regex(await project.read("package.json"), /"by-pnpm"/);
      t.regex(await project.read("package.json"), /ts-patch install -s/);
      // The stub of the package manager has installed no compiler that weaves.
      t.true(text.includes("src/first-lock.ts does not run under its lock with NestJS:\n"), text);
    } finally {
      process.env["PATH"] = PATH;
    }
  },
);

inMatrix("init prints new files and packages to install in one list", async (t) => {
  const project = await javaScript(
    {},
    { dependencies: {}, scripts: { start: "node --import lockweave/register main.js" } },
  );
  const { text } = await runInit(project, false);
  t.regex(text, /\n\nTo change\n {2}first-lock\.mjs \(new\)\n(?: {2}\+ .*\n)+ {2}npm install ioredis\n\n/);
});

inMatrix("init installs nothing without --yes even if no file changes", async (t) => {
  const project = await makeProject({
    "package.json": JSON.stringify({ type: "module", scripts: { build: "tspc" } }),
    "first-lock.ts": "",
  });
  await rm(project.path("node_modules/ts-patch"));
  const { code, text } = await runInit(project, false);
  t.is(code, 3);
  t.regex(
    text,
    /\n\nTo change\n {2}npm install ioredis\n {2}npm install --save-dev ts-patch@3\n\nNothing was changed\./,
  );
});

inMatrix("init prints changed lines without the unchanged lines around them", async (t) => {
  const project = await javaScript({}, { devDependencies: { jest: "30" } });
  const { text } = await runInit(project, false);
  t.true(
    text.includes(String.raw`
  package.json
  +   },
  +   "jest": {
  +     "transform": { "\\.[cm]?[jt]sx?$": "lockweave/jest" }
  first-lock.mjs (new)
`),
    text,
  );
});

inMatrix("init leaves the update of an old TypeScript to the user, and shows no first lock", async (t) => {
  const project = await makeProject({
    "package.json": JSON.stringify({
      type: "module",
      scripts: { start: "node --import lockweave/register src/main.ts" },
      dependencies: { ioredis: "5" },
      devDependencies: { typescript: "5.8.3" },
    }),
  });
  await rm(project.path("node_modules/typescript"));
  const { code, text } = await runInit(project, true);
  t.is(code, 1);
  t.true(
    text.includes(
      "  package.json: Lockweave needs TypeScript 5.9 or later, but this project has 5.8.3:\n    npm install --save-dev typescript@6\n",
    ),
    text,
  );
  t.true(text.includes("\nAfter you have made the changes above,"), text);
});

test.serial(
  "init reports linters and formatters that do not know the tag, with the fix for each",
  async (t) => {
    const project = await javaScript(
      {
        "eslint.config.mjs": "export default shared();\n",
        "nest-cli.json": '{ "introspectComments": true }',
      },
      {
        scripts: { start: "node main.js" },
        devDependencies: { "prettier-plugin-jsdoc": "1", "@biomejs/biome": "2", typedoc: "0.28.20" },
      },
    );
    const { text } = await runInit(project, false);
    const page = "node_modules/lockweave/docs/compilers.md";
    t.true(
      text.includes(`
Other tools
  prettier-plugin-jsdoc deletes the value of a tag's first attribute. Fix: turn it off for the files with tags.
  Add \`overrides: [{ files: "src/**", options: { plugins: [] } }]\` to Prettier's configuration, or see ${page}.
  ESLint reports names used only in tags as unused, and \`--fix\` may remove their imports.
  Fix: add \`lockweave.configs.recommended\` from "lockweave/eslint" to eslint.config.mjs.
  TypeDoc reports the tags as unknown. Fix: extend \`lockweave/tsdoc.json\`. See ${page}.
  Biome reports names used only in tags as unused. Fix: see ${page}.
  The Swagger plugin publishes a tag above a route handler as its summary. Fix: write the tag in a second comment. See ${page}.
`),
      text,
    );

    await project.write({ "eslint.config.mjs": 'import lockweave from "lockweave/eslint";\n' });
    t.notRegex((await runInit(project, false)).text, /ESLint/);
  },
);

test.serial("init names a script once if a compiler and a test runner use it", async (t) => {
  const project = await makeProject({
    "package.json": JSON.stringify({
      scripts: { test: "mocha --require ts-node/register" },
      dependencies: { ioredis: "*", lockweave: "*" },
      devDependencies: { mocha: "*", "ts-node": "*", "ts-patch": "*", typescript: "*" },
    }),
    "first-lock.ts": "",
  });
  const { text } = await runInit(project, true);
  const [, next = ""] = text.split("\nNext\n");
  t.deepEqual(next.match(/npm run test.*/g), [
    "npm run test  runs the tests with their locks; no file is written",
  ]);
});
