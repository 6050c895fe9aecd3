import { spawnSync } from "node:child_process";
import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { makeProject, PACKAGE, type Files, type Finished, type Project } from "../hosts/project";
import { lockweave } from "./command";
import { linkTypeScript7 } from "./tools";
import { inMatrix, outsideMatrix } from "../support/suites";
import { ofScript } from "../support/terminal";

/** A package.json with all dependencies, so that init has nothing to install. */
function manifest(scripts: Files, ...packages: readonly string[]): string {
  const dependencies = Object.fromEntries(["lockweave", "ioredis", ...packages].map((name) => [name, "*"]));
  return `${JSON.stringify({ type: "module", scripts, dependencies }, undefined, 2)}\n`;
}

async function projectWith(files: Files, ...tools: readonly string[]): Promise<Project> {
  const project = await makeProject(files);
  for (const tool of tools)
    await symlink(join(PACKAGE, "node_modules", tool), project.path(`node_modules/${tool}`));
  return project;
}

const SHOWN = "A1 is paid under LOCK_firstLock_A1\n";

const TSCONFIG = `{
  // The services.
  "compilerOptions": {
    "target": "es2022", "module": "nodenext", /* as Node */
    "strict": true,
    "skipLibCheck": true,
    "rootDir": "src",
    "outDir": "out" // For the image.
  },
  "include": ["src"],
}
`;
const TSCONFIG_AFTER = TSCONFIG.replace(
  `"out" // For the image.`,
  `"out", // For the image.
    "plugins": [{ "transform": "lockweave/transformer", "transformProgram": true }]`,
);
const BY_TSC = {
  "package.json": manifest({ build: "tsc -p . && node out/main.js", types: "vue-tsc --noEmit" }),
  "tsconfig.json": TSCONFIG,
  "src/main.ts": "export {};\n",
};

outsideMatrix(
  "init sets up a tsc project, keeps comments and layout, and ends with a lock that runs",
  async (t) => {
    const project = await projectWith(BY_TSC);
    const { code, stdout, stderr } = await lockweave(project, "init", "--yes");
    t.is(code, 0, stdout + stderr);
    t.true(
      stdout.includes(`Your first lock, woven by tspc, is src/first-lock.ts:\n${SHOWN}\nNext\n`),
      stdout,
    );
    t.true(stdout.includes("\n  npm run build  compiles with locks; src/first-lock.ts becomes "), stdout);
    const woven = /src\/first-lock\.ts becomes (\S+)/.exec(stdout)?.[1] ?? "";
    t.is((await project.tspc()).code, 0);
    t.regex(await project.read(woven), /lockweave\.acquire\(/);
    t.is(await project.read("tsconfig.json"), TSCONFIG_AFTER);
    t.is(
      await project.read("package.json"),
      manifest({ build: "tspc -p . && node out/main.js", types: "vue-tsc --noEmit" }),
    );
    t.true(stdout.includes("  - "), stdout);
    t.true(stdout.includes(`    "build": "tsc -p . && node out/main.js",`), stdout);
    t.true(stdout.includes(`    "build": "tspc -p . && node out/main.js",`), stdout);
  },
);

outsideMatrix("init without a terminal and without --yes changes nothing, and exits with 3", async (t) => {
  const project = await projectWith(BY_TSC);
  const { code, stdout } = await lockweave(project, "init");
  t.is(code, 3);
  t.true(stdout.includes("Nothing was changed."), stdout);
  t.is(await project.read("tsconfig.json"), TSCONFIG);
  t.is(await project.read("package.json"), BY_TSC["package.json"]);
  await t.throwsAsync(project.read("src/first-lock.ts"));
});

/** Runs init in a terminal and types the answer. */
function inTerminal(project: Project, answer: string): Finished {
  const command = [process.execPath, join(PACKAGE, "dist/transformer/cli/main.js"), "init"];
  const { status, stdout } = spawnSync("script", ofScript(command), {
    cwd: project.dir,
    input: `${answer}\n`,
    encoding: "utf8",
    timeout: 50_000, // `spawnSync` blocks this process, so that no other timeout can fire.
    killSignal: "SIGKILL",
  });
  return { code: status, stdout, stderr: "" };
}

const onLinux = process.platform === "linux" ? outsideMatrix : test.skip;
onLinux("init in a terminal asks, and changes files only after a confirmation", async (t) => {
  const project = await javaScript();
  const refused = inTerminal(project, "n");
  t.is(refused.code, 3, refused.stdout);
  t.is(await project.read("package.json"), WATCHED);
  const agreed = inTerminal(project, "y");
  t.is(agreed.code, 0, agreed.stdout);
  t.is(await project.read("package.json"), WATCHED_AFTER);
});

outsideMatrix("init replaces the tsc of TypeScript 7 with `lockweave build`", async (t) => {
  const scripts = { build: "tsc -p tsconfig.json", watch: "tsc -b -w", check: "tsc --noEmit" };
  const project = await projectWith({ ...BY_TSC, "package.json": manifest(scripts) });
  await linkTypeScript7(project);
  const { code, stdout } = await lockweave(project, "init", "--yes");
  t.is(code, 0, stdout);
  t.true(stdout.includes(`woven by TypeScript 7, is src/first-lock.ts:\n${SHOWN}\nNext\n`), stdout);
  t.true(
    stdout.includes("\n  npm run build  compiles with locks; src/first-lock.ts becomes out/first-lock.js\n"),
    stdout,
  );
  t.is(
    await project.read("package.json"),
    manifest({
      ...scripts,
      build: "lockweave build -p tsconfig.json",
      watch: "lockweave build -w",
    }),
  );
  t.is(await project.read("tsconfig.json"), TSCONFIG);
});

/** The files of each host before and after init. */
const PROJECTS: Readonly<
  Record<
    string,
    { readonly tools: string[]; readonly scripts: Files; readonly before: Files; readonly after: Files }
  >
> = {
  Vite: {
    tools: ["vite"],
    scripts: { build: "vite build" },
    before: {
      "vite.config.ts": `// The server.
import { defineConfig } from 'vite'

export default defineConfig(({ mode }) => ({
  plugins: [
    // None so far.
  ],
  build: { ssr: mode !== 'spa' },
}))
`,
    },
    after: {
      "vite.config.ts": `// The server.
import { defineConfig } from 'vite'
import lockweave from 'lockweave/vite'

export default defineConfig(({ mode }) => ({
  plugins: [lockweave()
    // None so far.
  ],
  build: { ssr: mode !== 'spa' },
}))
`,
    },
  },
  Rolldown: {
    tools: ["rolldown"],
    scripts: { build: "rolldown -c" },
    before: {
      "rolldown.config.mjs": `const config = { input: "src/main.ts", platform: "node", external: /^lockweave/ };

export default config;
`,
    },
    after: {
      "rolldown.config.mjs": `import lockweave from "lockweave/rolldown";

const config = { input: "src/main.ts", platform: "node", external: /^lockweave/, plugins: [lockweave()] };

export default config;
`,
    },
  },
  Rollup: {
    tools: ["rollup", "rollup-plugin-esbuild", "esbuild"],
    scripts: { build: "rollup -c" },
    before: {
      "rollup.config.js": `import esbuild from "rollup-plugin-esbuild";

export default {
  input: "src/main.ts",
  external: [/^node:/, /^lockweave/],
  plugins: [
    esbuild(),
  ],
  output: { dir: "dist" },
};
`,
    },
    after: {
      "rollup.config.js": `import esbuild from "rollup-plugin-esbuild";
import lockweave from "lockweave/rollup";

export default {
  input: "src/main.ts",
  external: [/^node:/, /^lockweave/],
  plugins: [
    lockweave(),
    esbuild(),
  ],
  output: { dir: "dist" },
};
`,
    },
  },
  esbuild: {
    tools: ["esbuild"],
    scripts: { build: "node build.cjs" },
    before: {
      "build.cjs": `const esbuild = require("esbuild");

esbuild.build({
  entryPoints: ["src/main.ts"],
  bundle: true,
});
`,
    },
    after: {
      "build.cjs": `const lockweave = require("lockweave/esbuild");

const esbuild = require("esbuild");

esbuild.build({
  entryPoints: ["src/main.ts"],
  bundle: true,
  plugins: [lockweave()],
});
`,
    },
  },
  "ts-node": {
    tools: ["ts-node"],
    scripts: { start: "ts-node src/main.ts" },
    before: {
      "package.json": manifest({ start: "ts-node src/main.ts" }).replace(`"type": "module",`, ""),
      "tsconfig.json": `{ "compilerOptions": { "module": "nodenext", "target": "es2022", "types": ["node"], "rootDir": "src" } }`,
    },
    after: {
      "tsconfig.json": `{ "compilerOptions": { "module": "nodenext", "target": "es2022", "types": ["node"], "rootDir": "src", "plugins": [{ "transform": "lockweave/transformer", "transformProgram": true }] }, "ts-node": { "compiler": "ts-patch/compiler" } }`,
    },
  },
  "ts-node in transpile mode": {
    tools: ["ts-node"],
    scripts: { start: "ts-node -T src/main.ts" },
    before: {
      "package.json": manifest({ start: "ts-node -T src/main.ts" }).replace(`"type": "module",`, ""),
      "tsconfig.json": `{ "compilerOptions": { "module": "nodenext", "target": "es2022", "rootDir": "src" } }`,
    },
    after: {},
  },
  tsx: {
    tools: ["tsx"],
    scripts: { start: "NODE_ENV=production tsx src/main.ts", dev: "tsx watch src/main.ts" },
    before: {},
    after: {
      "package.json": manifest({
        start: "NODE_ENV=production tsx --import lockweave/register src/main.ts",
        dev: "tsx watch --import lockweave/register src/main.ts",
      }),
    },
  },
};

for (const [host, { tools, scripts, before, after }] of Object.entries(PROJECTS)) {
  // The others take too long for every run of the tests.
  (host === "Vite" ? outsideMatrix : inMatrix)(
    `init sets up ${host}, and ends with a lock that runs`,
    async (t) => {
      const files = { "package.json": manifest(scripts), "src/main.ts": "export {};\n" };
      const project = await projectWith({ ...files, ...before }, ...tools);
      const { code, stdout, stderr } = await lockweave(project, "init", "-y");
      t.is(code, 0, stdout + stderr);
      t.true(
        stdout.includes(`Your first lock, woven by ${host.split(" ")[0]}, is src/first-lock.ts:\n`),
        stdout,
      );
      t.true(stdout.includes(`${SHOWN}\nNext\n`), stdout);
      for (const [file, text] of Object.entries(after)) t.is(await project.read(file), text, file);
    },
  );
}

inMatrix(
  "init sets up a library of Vite, which builds its own entry, and ends with a lock that runs",
  async (t) => {
    const project = await projectWith(
      {
        "package.json": manifest({ build: "vite build" }),
        "vite.config.ts": `export default { build: { lib: { entry: "src/main.ts", formats: ["es"] } } };\n`,
        "src/main.ts": "export const one = 1;\n",
      },
      "vite",
    );
    const { code, stdout, stderr } = await lockweave(project, "init", "--yes");
    t.is(code, 0, stdout + stderr);
    t.true(
      stdout.includes(`Your first lock, woven by Vite, is src/first-lock.ts:\n${SHOWN}\nNext\n`),
      stdout,
    );
    t.true(/\n {2}npm run build {2}builds with locks, but for browsers, .*\n/.test(stdout), stdout);
  },
);

outsideMatrix(
  "init puts the first lock into a referenced project if the tsconfig.json next to package.json has no files",
  async (t) => {
    const part = `{ "compilerOptions": { "composite": true, "module": "nodenext", "target": "es2022", "skipLibCheck": true, "rootDir": "src", "outDir": "dist" }, "include": ["src"] }`;
    const project = await projectWith({
      "package.json": manifest({ build: "tsc -b" }).replace(`"type": "module",`, ""),
      "tsconfig.json": `{ "files": [], "references": [{ "path": "packages/orders" }] }`,
      "packages/orders/package.json": `{ "name": "orders", "type": "module" }`,
      "packages/orders/tsconfig.json": part,
      "packages/orders/src/main.ts": "export const one = 1;\n",
    });
    const { code, stdout, stderr } = await lockweave(project, "init", "--yes");
    t.is(code, 0, stdout + stderr);
    const [lock, output] = ["packages/orders/src/first-lock.ts", "packages/orders/dist/first-lock.js"];
    t.true(stdout.includes(`Your first lock, woven by tspc, is ${lock}:\n${SHOWN}\nNext\n`), stdout);
    t.true(stdout.includes(`\n  npm run build  compiles with locks; ${lock} becomes ${output}\n`), stdout);
    t.like(await project.tspc("-b"), { code: 0 });
    t.is((await project.run(output)).stdout, SHOWN);
  },
);

inMatrix("init sets up JavaScript without a compiler, and a second init changes nothing", async (t) => {
  const project = await javaScript();
  const { code, stdout } = await lockweave(project, "init", "--yes");
  t.is(code, 0, stdout);
  t.true(stdout.includes(`woven by Node, is first-lock.mjs:\n${SHOWN}\nNext\n`), stdout);
  t.true(
    stdout.includes("\n  node --import lockweave/register first-lock.mjs  runs it with its locks,"),
    stdout,
  );
  t.is(await project.read("package.json"), WATCHED_AFTER);

  const again = await lockweave(project, "init");
  t.is(again.code, 0, again.stdout);
  t.true(again.stdout.includes("To change\n  nothing\n"), again.stdout);
  t.true(again.stdout.includes(`${SHOWN}\nNext\n`), again.stdout);
});

const WATCHED = manifest({ start: "node --watch main.js" });
const WATCHED_AFTER = manifest({ start: "node --import lockweave/register --watch main.js" });

async function javaScript(): Promise<Project> {
  const project = await projectWith({ "package.json": WATCHED, "main.js": "" });
  for (const path of ["tsconfig.json", "node_modules/typescript"]) await rm(project.path(path));
  return project;
}

outsideMatrix("init creates no first lock in a project that has tags", async (t) => {
  const order = `/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string): Promise<string> { return id; }
`;
  const project = await projectWith({ ...BY_TSC, "src/order.ts": order });
  const { code, stdout, stderr } = await lockweave(project, "init", "--yes");
  t.is(code, 0, stdout + stderr);
  await t.throwsAsync(project.read("src/first-lock.ts"));
  t.false(stdout.includes("first-lock"), stdout);
  t.true(
    stdout.includes("src/order.ts has tags already, so `init` created no first lock.\n\nNext\n"),
    stdout,
  );
  t.regex(stdout, /npm run build {2}compiles with locks; src\/order\.ts becomes \S*order\.js\n/);
  t.is(await project.read("tsconfig.json"), TSCONFIG_AFTER);
});

outsideMatrix("init creates a first lock if only a test or a comment mentions the tag", async (t) => {
  const project = await projectWith({
    ...BY_TSC,
    "src/order.ts": "// Later: @redisLock businessFlag=pay\nexport {};\n",
    "src/order.test.ts":
      "/** @redisLock businessFlag=pay */\nexport async function pay(): Promise<void> {}\n",
  });
  const { code, stdout } = await lockweave(project, "init", "--yes");
  t.is(code, 0, stdout);
  t.true(stdout.includes(`is src/first-lock.ts:\n${SHOWN}`), stdout);
});
