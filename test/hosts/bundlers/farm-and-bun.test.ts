import { cp, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import { EXAMPLES, linesOf, expectedLinesOf } from "../examples";
import { installed, type SetName } from "../installed";
import type { Files, Finished, Project } from "../project";
import { projectOf, runBundle } from "./bundlers";
import { INPUTS, WOVEN } from "./fixtures";
import { recipe, unwoven } from "./recipes";
import { ORDER, placeIn, RECEIPT, SOURCES, ERRORS_IN_WRONG, WRONG } from "./sources";
import { isMatrix } from "../../support/suites";

// Hosts that run the plugins of other bundlers. They run only in the matrix, and serially, since they are heavy.
const inMatrix = isMatrix ? test.serial : test.skip;

async function runBun(project: Project, ...args: readonly string[]): Promise<Finished> {
  return await project.runWith(join(await installed("bun"), "bun/bin/bun.exe"), ...args);
}

interface Host {
  readonly name: string;
  readonly sets: readonly SetName[];
  build(project: Project): Promise<Finished>;
}

const FARM_CLI = "node_modules/@farmfe/cli/bin/farm.mjs";

const FARM: Host = {
  name: "Farm",
  sets: ["farm"],
  build: (project) => project.run(FARM_CLI, "build", "--config", "farm.config.mjs"),
};

const BUN: Host = {
  name: "Bun",
  sets: ["bun"],
  build: (project) => runBun(project, "build.mjs"),
};

async function made({ name, sets }: Host, files: Files, config = recipe(name)): Promise<Project> {
  const project = await projectOf({ name, sets }, files);
  await project.write({ [config.file]: config.text });
  return project;
}

for (const host of [FARM, BUN]) {
  const { name } = host;
  let built: Promise<Project> | undefined;
  const build = async (): Promise<Project> => {
    const project = await made(host, SOURCES);
    const { code, stdout, stderr } = await host.build(project);
    if (code !== 0) throw new Error(stdout + stderr);
    return project;
  };

  inMatrix(`${name}: a build runs under its locks, and its stack traces show source lines`, async (t) => {
    const { stdout, stderr } = await runBundle(await (built ??= build()));
    const [results] = stdout.split("\n");
    t.is(results, "paid A1,paid A1 false", stderr);
    t.true(stdout.includes(`src/order.ts:${placeIn(ORDER, "new RangeError").line}:`), stdout);
    t.true(stdout.includes(`src/receipt.ts:${placeIn(RECEIPT, "new TypeError").line}:`), stdout);
  });

  inMatrix(`${name}: both examples behave as when compiled by tspc`, async (t) => {
    const project = await (built ??= build());
    for (const example of EXAMPLES) {
      const { stdout, stderr } = await runBundle(project, example);
      t.deepEqual(linesOf(stdout), await expectedLinesOf(example), stderr);
    }
  });

  inMatrix(`${name}: each invalid tag in a file fails the build with the same messages`, async (t) => {
    const project = await made(host, { ...SOURCES, "src/order.ts": WRONG });
    const { code, stdout, stderr } = await host.build(project);
    t.not(code, 0);
    for (const words of ERRORS_IN_WRONG) t.true((stdout + stderr).includes(words), stdout + stderr);
  });

  inMatrix(`${name}: code built without the plugin does not start`, async (t) => {
    const project = await made(host, SOURCES, unwoven(recipe(name)));
    t.like(await host.build(project), { code: 0 });
    t.regex((await runBundle(project)).stderr, /LOCK_NOT_WOVEN/);
  });
}

const BUN_TEST = `import { expect, test } from "bun:test";
import { assertWoven } from "lockweave/testing";
import { OrderService } from "./src/order.ts";
test("woven", () => expect(() => assertWoven(OrderService.prototype.pay)).not.toThrow());
`;

inMatrix("Bun: `bun` and `bun test` weave files loaded after lockweave/register", async (t) => {
  const project = await made(BUN, { ...SOURCES, "order.test.ts": BUN_TEST });
  t.regex((await runBun(project, "src/main.ts")).stderr, /LOCK_NOT_WOVEN/);
  const preload = ["--preload", "lockweave/register"];
  const { stdout, stderr } = await runBun(project, ...preload, "src/main.ts");
  t.is(stdout.split("\n")[0], "paid A1,paid A1 false", stderr);
  t.is((await runBun(project, "test")).code, 1);
  const tested = await runBun(project, "test", ...preload);
  t.is(tested.code, 0, tested.stdout + tested.stderr);
  await project.write({ "src/order.ts": WRONG });
  const wrong = await runBun(project, ...preload, "src/main.ts");
  t.not(wrong.code, 0);
  for (const words of ERRORS_IN_WRONG) t.true((wrong.stdout + wrong.stderr).includes(words), wrong.stderr);
});

inMatrix("Bun: lockweave/register weaves a file that is imported with a query", async (t) => {
  const project = await made(BUN, {
    "src/main.ts": `import { assertWoven } from "lockweave/testing";
import { OrderService } from "./order.ts?v=1";
assertWoven(OrderService.prototype.pay);
console.log("woven");
`,
    "src/order.ts": ORDER,
    "src/receipt.ts": RECEIPT,
  });
  const { stdout, stderr } = await runBun(project, "--preload", "lockweave/register", "src/main.ts");
  t.is(stdout, "woven\n", stderr);
});

inMatrix("Bun: lockweave/register weaves if the installed Lockweave is a link", async (t) => {
  const project = await made(BUN, SOURCES);
  const [target, link] = [project.path("linked-lockweave"), project.path("node_modules/lockweave")];
  await cp(link, target, { recursive: true, dereference: true });
  await rm(link, { recursive: true });
  await symlink(target, link);
  const { stdout, stderr } = await runBun(project, "--preload", "lockweave/register", "src/main.ts");
  t.is(stdout.split("\n")[0], "paid A1,paid A1 false", stderr);
});

/** A configuration whose plugin after Lockweave records its input and returns an empty module. */
const SEEING = `import fs from "node:fs";
import path from "node:path";
import lockweave from "lockweave/vite";
const files = ${JSON.stringify(Object.keys(INPUTS))};
const see = {
  name: "see",
  enforce: "pre",
  transform(code, id) {
    const file = path.relative(process.cwd(), id);
    if (!files.includes(file)) return;
    fs.mkdirSync("seen", { recursive: true });
    fs.writeFileSync(path.join("seen", path.basename(file)), code);
    return { code: "export {};", map: null };
  },
};
const input = Object.fromEntries(files.map((file) => [path.basename(file), "./" + file]));
export default {
  compilation: { input, output: { path: "out", targetEnv: "node", format: "esm" }, persistentCache: false },
  vitePlugins: [lockweave(), see],
};
`;

inMatrix("Farm: weaves every fixture to the text that weave() returns", async (t) => {
  t.timeout(300_000);
  const config = { file: "farm.config.mjs", text: SEEING };
  const project = await made(FARM, INPUTS, config);
  const { code, stdout, stderr } = await FARM.build(project);
  t.is(code, 0, stdout + stderr);
  for (const [file, woven] of Object.entries(WOVEN)) {
    t.is(await project.read(file.replace("src/", "seen/")), woven, file);
  }
});

const BY_DEFAULTS = `import { configure, currentLock, memoryStore, shutdown } from "lockweave";
configure({ store: memoryStore() });
/** @redisLock key="report" */
async function report(): Promise<boolean> {
  return currentLock().remaining() <= 7_000;
}
console.log("seven seconds:", await report());
await shutdown();
`;

inMatrix("Bun: lockweave/register reads the defaults from tsconfig.json", async (t) => {
  const plugins = [{ transform: "lockweave/transformer", defaults: { lockTime: "7s" } }];
  const project = await made(BUN, {
    "src/main.ts": BY_DEFAULTS,
    "tsconfig.json": JSON.stringify({ compilerOptions: { plugins } }),
  });
  const { stdout, stderr } = await runBun(project, "--preload", "lockweave/register", "src/main.ts");
  t.is(stdout, "seven seconds: true\n", stderr);
});

inMatrix("Bun: with lockweave/register, JavaScript built without its locks does not start", async (t) => {
  const project = await made(BUN, {
    "src/main.ts": 'import { pay } from "../shared/pay.js";\nconsole.log(await pay());\n',
    "shared/pay.js": "export async function pay() { return 1; }\n",
    "shared/pay.d.ts": '/** @redisLock key="pay" */\nexport declare function pay(): Promise<number>;\n',
  });
  const { code, stdout, stderr } = await runBun(project, "--preload", "lockweave/register", "src/main.ts");
  t.not(code, 0);
  t.regex(stdout + stderr, /shared.pay\.js: error LW/);
});

inMatrix("Bun: sources that run without the weave do not start", async (t) => {
  const project = await made(BUN, SOURCES);
  t.regex((await runBun(project, "src/main.ts")).stderr, /LOCK_NOT_WOVEN/);
});

inMatrix(
  "Bun: a tagged file that another plugin loads first is an error if the build has a metafile",
  async (t) => {
    const other = `{ name: "other", setup: (build) => build.onLoad({ filter: /order[.]ts$/ }, async ({ path }) => ({
    contents: (await Bun.file(path).text()).replaceAll("@redisLock", ""), loader: "ts" })) }`;
    const { file, text } = recipe("Bun");
    const config = {
      file,
      text: text.replace("plugins: [", `metafile: true, plugins: [${other}, `),
    };
    const project = await made(BUN, SOURCES, config);
    const { code, stdout, stderr } = await BUN.build(project);
    t.not(code, 0);
    t.regex(
      stdout + stderr,
      /src\/order\.ts\(\d+,\d+\): error LW1404: `OrderService\.pay` would run without/,
    );
  },
);

/** A package of the workspace that Node would load as it is, without its locks. */
const LINKED = {
  "src/main.ts": `import type { Rate } from "shop";\nimport { pay } from "shop";\nconsole.log(pay, 1 as Rate);\n`,
  "packages/shop/package.json": '{ "name": "shop", "type": "module", "exports": "./pay.ts" }',
  "packages/shop/pay.ts": `export type Rate = number;
/** @redisLock businessFlag=pay */
export async function pay(): Promise<void> {}
`,
};

const BUILDS = [
  ["Bun", BUN, (text: string) => text],
  ["Bun with a metafile", BUN, (text: string) => text.replace("plugins: [", "metafile: true, plugins: [")],
  [
    "Farm",
    FARM,
    (text: string) => text.replace('external: ["^lockweave"', 'external: ["^lockweave", "^shop"'),
  ],
] as const;

for (const [name, host, edit] of BUILDS) {
  inMatrix(
    `${name}: a linked package that the bundle leaves out is an error if it lacks its locks`,
    async (t) => {
      const { file, text } = recipe(host.name);
      const project = await made(host, LINKED, { file, text: edit(text) });
      await symlink(project.path("packages/shop"), project.path("node_modules/shop"));
      const { code, stdout, stderr } = await host.build(project);
      t.not(code, 0);
      t.regex(stdout + stderr, /src\/main\.ts\(2,21\): error LW1406: This imports `pay`/);
      await project.write({
        "packages/shop/pay.ts": LINKED["packages/shop/pay.ts"].replace("@redisLock", ""),
      });
      t.is((await host.build(project)).code, 0);
    },
  );
}

inMatrix("Bun: a linked package that is in the bundle is woven", async (t) => {
  const { file, text } = recipe("Bun");
  const external = text.replace('packages: "external"', 'external: ["lockweave", "lockweave/runtime"]');
  const project = await made(BUN, LINKED, { file, text: external });
  await symlink(project.path("packages/shop"), project.path("node_modules/shop"));
  const { code, stdout, stderr } = await BUN.build(project);
  t.is(code, 0, stdout + stderr);
  t.regex(await project.read("dist/main.js"), /businessFlag: ?"pay"/);
});
