import { access } from "node:fs/promises";
import { join } from "node:path";
import { decode } from "@jridgewell/sourcemap-codec";
import { lockweave } from "../../cli/command";
import { linkTypeScript7 } from "../../cli/tools";
import { exampleFiles, linesOf, expectedLinesOf } from "../examples";
import { inMatrix, outsideMatrix } from "../../support/suites";
import { makeProject, PACKAGE, Project, tsconfig, type Files, type Settings } from "../project";
import { Watch } from "../watch";

/** Creates a project with TypeScript 7. */
async function makeNativeProject(files: Files, settings: Settings = {}): Promise<Project> {
  const project = await makeProject(files, { plugins: undefined, ...settings });
  await linkTypeScript7(project);
  return project;
}

/** Runs the project's compiler without Lockweave. */
function tsc7(project: Project, ...args: readonly string[]): ReturnType<Project["run"]> {
  return project.run("node_modules/typescript/bin/tsc", "--pretty", "false", ...args);
}

const ORDERS = `import { currentLock } from "lockweave";
import { Busy } from "./busy.js";

export class Orders {
  /** @redisLock businessFlag=pay keyName=orderNo onFailure=Busy */
  async pay(orderNo: string): Promise<string> {
    if (orderNo === "bad") throw new Error("no such order");
    return orderNo + " under " + currentLock().key;
  }
}
`;
const BUSY = `export class Busy extends Error {}\n`;
const MAIN = `import { configure, memoryStore } from "lockweave";
import { Orders } from "./orders.js";
configure({ store: memoryStore() });
const orders = new Orders();
void orders.pay("A1").then(async (paid) => {
  console.log(paid);
  await orders.pay("bad").catch((error: Error) => console.log(error.stack?.match(/orders\\.\\w+:\\d+:\\d+/)?.[0]));
});
`;
const FILES = { "src/orders.ts": ORDERS, "src/busy.ts": BUSY, "src/main.ts": MAIN };

for (const type of ["module", "commonjs"]) {
  outsideMatrix(
    `a ${type} project built with TypeScript 7 has its locks, and its stack traces name the sources`,
    async (t) => {
      const project = await makeNativeProject(
        { ...FILES, "package.json": JSON.stringify({ type }) },
        { sourceMap: true, types: ["node"] },
      );
      t.deepEqual(await lockweave(project, "build"), { code: 0, stdout: "", stderr: "" });
      t.deepEqual(await project.run("--enable-source-maps", "out/main.js"), {
        code: 0,
        stdout: "A1 under LOCK_pay_A1\norders.ts:7:34\n",
        stderr: "",
      });
    },
  );
}

inMatrix("JavaScript with CommonJS syntax keeps its exports", async (t) => {
  const project = await makeNativeProject(
    {
      "package.json": "{}",
      "src/pay.js": `const lockweave = require("lockweave");
lockweave.configure({ store: lockweave.memoryStore() });
/** @redisLock businessFlag=pay keyName=order.id
 * @param {{ id: string }} order */
exports.pay = async (order) => order.id + " under " + lockweave.currentLock().key;
`,
      "src/main.js": `const { pay } = require("./pay.js");\npay({ id: "A1" }).then(console.log);\n`,
    },
    { allowJs: true, checkJs: true, types: ["node"] },
  );
  t.deepEqual(await lockweave(project, "build"), { code: 0, stdout: "", stderr: "" });
  t.like(await project.run("out/main.js"), { code: 0, stdout: "A1 under LOCK_pay_A1\n" });
});

inMatrix(
  "checks keys in JavaScript with CommonJS syntax, even if the tag comes first or after a shebang",
  async (t) => {
    const pay = `/** @redisLock businessFlag=pay keyName=order.idd
 * @param {{ id: string }} order */
exports.pay = async (order) => order.id;
`;
    const project = await makeNativeProject(
      { "package.json": "{}", "src/first.js": pay, "src/command.js": `#!/usr/bin/env node\n${pay}` },
      { allowJs: true, checkJs: true, types: ["node"] },
    );
    const { code, stdout } = await lockweave(project, "build");
    t.is(code, 2);
    t.deepEqual(
      stdout.split(/\n(?=src)/).map((line) => line.trim()),
      [`src/command.js(2,47)`, `src/first.js(1,47)`].map(
        (place) => `${place}: error TS2339: Property 'idd' does not exist on type '{ id: string; }'.`,
      ),
    );
  },
);

inMatrix("examples built with TypeScript 7 behave as when compiled by tspc", async (t) => {
  const files = Object.entries(exampleFiles("mts", "mjs")).map(
    ([file, text]) => [`src/${file}`, text] as const,
  );
  const project = await makeNativeProject(Object.fromEntries(files), { types: ["node"] });
  t.deepEqual(await lockweave(project, "build"), { code: 0, stdout: "", stderr: "" });
  for (const [example, entry] of [
    ["order-controller", "main"],
    ["reentrant", "reentrant"],
  ] as const) {
    const { stdout, stderr } = await project.run(`out/${example}/${entry}.mjs`);
    t.deepEqual(linesOf(stdout), await expectedLinesOf(example), stderr);
  }
});

inMatrix(
  "declarations, and the output of files without tags, equal those of the compiler alone",
  async (t) => {
    const settings = { declaration: true, declarationMap: true, sourceMap: true, types: ["node"] };
    const project = await makeNativeProject(FILES, settings);
    t.like(await lockweave(project, "build"), { code: 0, stdout: "" });
    t.like(await tsc7(project, "--outDir", "alone"), { code: 0, stdout: "" });
    for (const file of ["orders.d.ts", "orders.d.ts.map", "busy.js", "busy.js.map", "busy.d.ts"]) {
      t.is(await project.read(`out/${file}`), await project.read(`alone/${file}`), file);
    }
  },
);

const MAP_SETTINGS: readonly Settings[] = [
  { sourceMap: true, sourceRoot: "https://example.com/src", inlineSources: true },
  { inlineSourceMap: true, sourceRoot: "../src", inlineSources: true },
  { sourceMap: true, mapRoot: "my maps" },
  { sourceMap: true, mapRoot: "/srv/maps", inlineSources: true },
  { sourceMap: true, mapRoot: "https://example.com/maps" },
];

for (const [index, settings] of MAP_SETTINGS.entries()) {
  const once = index === 0 ? outsideMatrix : inMatrix;
  once(`source maps match those of TypeScript 6 for ${JSON.stringify(settings)}`, async (t) => {
    const project = await makeNativeProject(
      {
        "src/deep/orders.ts": ORDERS,
        "src/deep/busy.ts": BUSY,
        "src/my main.ts": MAIN.replace("./orders.js", "./deep/orders.js"),
      },
      { declaration: true, declarationMap: true, types: ["node"], ...settings },
    );
    const { code, stderr } = await project.tsc("--outDir", "alone");
    t.is(code, 0, stderr);
    t.deepEqual(await lockweave(project, "build"), { code: 0, stdout: "", stderr: "" });
    for (const source of ["my main.ts", "deep/busy.ts", "deep/orders.ts"]) {
      const lines = (await project.read(`src/${source}`)).split("\n");
      for (const ending of [".js", ".d.ts"]) {
        const file = source.replace(".ts", ending);
        const [ours, alone] = [await mapOf(project, `out/${file}`), await mapOf(project, `alone/${file}`)];
        t.is(ours.url, alone.url);
        t.deepEqual({ ...ours.map, mappings: "" }, { ...alone.map, mappings: "" });
        const [places, expected] = [placesIn(ours.map.mappings), placesIn(alone.map.mappings)];
        t.is(places.length > 0, expected.length > 0, file);
        t.true(places.every(([line, column]) => column <= (lines[line] ?? "").length));
        if (ending === ".d.ts") continue; // The two compilers differ on the ends of declarations.
        const found = new Set(places.map(String));
        t.true(expected.every((place) => found.has(String(place))));
      }
    }
  });
}

/** Returns the source map of a file, and the URL of the map in the file. */
async function mapOf(project: Project, file: string): Promise<{ map: { mappings: string }; url: string }> {
  const [, url = ""] = /\n\/\/# sourceMappingURL=(\S+)\s*$/.exec(await project.read(file)) ?? [];
  const [, inline] = url.split("base64,");
  const text =
    inline === undefined ? await project.read(`${file}.map`) : Buffer.from(inline, "base64").toString();
  return { map: JSON.parse(text) as { mappings: string }, url: inline === undefined ? url : "inline" };
}

/** A line and a column, counted from 0. */
type Place = readonly [line: number, column: number];

function placesIn(mappings: string): Place[] {
  return decode(mappings)
    .flat()
    .flatMap(([, , line, column]): Place[] =>
      line === undefined || column === undefined ? [] : [[line, column]],
    );
}

outsideMatrix("errors in tags have their positions, in order with the compiler's other errors", async (t) => {
  const project = await makeNativeProject({
    "src/a.ts": `export const early: number = "";

/** @redisLock businessFlag=pay keyName=orderNo.size */
export async function pay(orderNo: string): Promise<void> {}

/** @redisLock businessFlag=pay keyName=orderNO */
export async function refund(orderNo: string): Promise<void> {}

export const late: number = "";
`,
  });
  const notANumber = "error TS2322: Type 'string' is not assignable to type 'number'.";
  t.deepEqual(await lockweave(project, "build"), {
    code: 2,
    stdout: `src/a.ts(1,14): ${notANumber}
src/a.ts(3,49): error TS2339: Property 'size' does not exist on type 'string'.
src/a.ts(6,41): error TS901202: LW1202: The function has no parameter \`orderNO\`. Did you mean \`orderNo\`?
src/a.ts(9,14): ${notANumber}
`,
    stderr: "",
  });
  await t.throwsAsync(
    project
      .run("--input-type=module", "--eval", `await (await import("./out/a.js")).refund("A1")`)
      .then(({ stderr }) => {
        throw new Error(stderr);
      }),
    { message: /The function refuses to run unlocked/ },
  );
});

inMatrix("a project can be built and checked from an unrelated directory", async (t) => {
  const project = await makeNativeProject({
    "app/tsconfig.json": tsconfig({ plugins: undefined }),
    "app/src/a.ts": `/** @redisLock businessFlag=pay keyName=orderNo.size */
export async function pay(orderNo: string): Promise<void> {}
`,
    "tools/empty.txt": "",
  });
  const tools = new Project(project.path("tools"));
  const message = "Property 'size' does not exist on type 'string'.";
  t.deepEqual(await lockweave(tools, "build", "-p", "../app"), {
    code: 2,
    stdout: `../app/src/a.ts(1,49): error TS2339: ${message}\n`,
    stderr: "",
  });
  const { code, stderr } = await lockweave(tools, "check", "-p", "../app");
  t.is(code, 1);
  t.true(stderr.startsWith(`../app/src/a.ts:1:49: TS2339: ${message}\n`), stderr);
});

outsideMatrix("noEmitOnError also applies to errors in tags", async (t) => {
  const files = {
    "src/a.ts": `/** @redisLock businessFlag=pay keyName=no */\nexport async function pay(): Promise<void> {}\n`,
  };
  const project = await makeNativeProject(files, { noEmitOnError: true, declaration: true });
  t.like(await lockweave(project, "build"), { code: 1 });
  await t.throwsAsync(access(project.path("out")));
});

outsideMatrix(
  "a project with noEmit that imports `.ts` files can be built, listed, and checked",
  async (t) => {
    const settings = { noEmit: true, allowImportingTsExtensions: true, types: ["node"] };
    const project = await makeNativeProject(
      { ...FILES, "src/main.ts": MAIN.replace("./orders.js", "./orders.ts") },
      settings,
    );
    t.like(await tsc7(project), { code: 0, stdout: "" });
    t.deepEqual(await lockweave(project, "build"), { code: 0, stdout: "", stderr: "" });
    t.regex((await lockweave(project, "list")).stdout, /^src\/orders\.ts:5 +Orders\.pay /m);
    // Stands for the output of its bundler, which has the same locks.
    const bundled = await makeNativeProject(FILES, { types: ["node"] });
    t.like(await lockweave(bundled, "build"), { code: 0 });
    await project.write({ "dist/main.js": await bundled.read("out/orders.js") });
    const { code, stdout, stderr } = await lockweave(project, "check", "--output", "dist");
    t.is(code, 0, stderr);
    t.true(
      stdout.startsWith("The lock of the only tag is in the output. The types in tags were checked."),
      stdout,
    );
  },
);

outsideMatrix(
  "errors in tsconfig.json are printed as the compiler prints them, without other output",
  async (t) => {
    const project = await makeNativeProject(FILES, { module: "nodenext", moduleResolution: "bundler" });
    const { code, stdout } = await tsc7(project);
    t.not(code, 0);
    const options = stdout.split("\n").filter((line) => line.startsWith("tsconfig.json("));
    t.true(options.length > 0, stdout);
    t.deepEqual(await lockweave(project, "build"), {
      code: 1,
      stdout: `${options.join("\n")}\n`,
      stderr: "",
    });
  },
);

inMatrix("a name that only a tag uses is not reported as unused", async (t) => {
  const project = await makeNativeProject(
    {
      "src/a.ts": `import { Busy, Idle } from "./busy.js";

/** @redisLock businessFlag=pay keyName=orderNo onFailure=Busy */
export async function pay(orderNo: string): Promise<void> {}
`,
      "src/busy.ts": `${BUSY}export class Idle {}\n`,
    },
    { noUnusedLocals: true },
  );
  t.deepEqual(await lockweave(project, "build"), {
    code: 2,
    stdout: "src/a.ts(1,16): error TS6133: 'Idle' is declared but its value is never read.\n",
    stderr: "",
  });
});

inMatrix("a comment that suppresses errors of a function does not suppress errors in its tag", async (t) => {
  const project = await makeNativeProject({
    "src/a.ts": `/** @redisLock businessFlag=pay keyName=orderNo.size */
// @ts-ignore
export async function pay(orderNo: string): Promise<void> {}
export const base = "@tsconfig/base";
`,
  });
  t.deepEqual(await lockweave(project, "build"), {
    code: 2,
    stdout: "src/a.ts(1,49): error TS2339: Property 'size' does not exist on type 'string'.\n",
    stderr: "",
  });
  const emitted = await project.read("out/a.js");
  t.true(emitted.includes("// @ts-ignore\n"));
  t.true(emitted.includes('"@tsconfig/base"'));
});

inMatrix("woven files resolve paths, referenced projects, and JSON", async (t) => {
  const library = { composite: true, rootDir: ".", outDir: "../out-lib", types: [] };
  const project = await makeNativeProject({
    "tsconfig.json": JSON.stringify({
      extends: "./config/base.json",
      include: ["src"],
      references: [{ path: "./lib" }],
    }),
    "config/base.json": tsconfig(
      {
        plugins: undefined,
        rootDir: "../src",
        outDir: "../out",
        resolveJsonModule: true,
        paths: { "@app/*": ["../src/*"] },
      },
      {},
    ),
    "src/orders.ts": `import { price } from "../lib/price.js";
import data from "@app/data.json" with { type: "json" };
/** @redisLock businessFlag=pay keyName=orderNo */
export async function pay(orderNo: string): Promise<string> {
  return orderNo + (await price(data.tax));
}
`,
    "src/data.json": `{ "tax": 2 }`,
    "lib/tsconfig.json": tsconfig({ plugins: undefined, ...library }, { include: ["*.ts"] }),
    "lib/price.ts": `/** @redisLock businessFlag=price keyName=tax */
export async function price(tax: number): Promise<number> {
  return 40 + tax;
}
`,
  });
  t.deepEqual(await lockweave(project, "build"), { code: 0, stdout: "", stderr: "" });
  t.regex(await project.read("out-lib/price.js"), /lockweave\.acquire\(/);
  t.regex(await project.read("out/orders.js"), /lockweave\.acquire\(/);
  t.is(await project.read("out/data.json"), `{ "tax": 2 }\n`);
});

inMatrix("an import from a package built without the weave is an error", async (t) => {
  const project = await makeNativeProject({
    "src/a.ts": `export { pay } from "library";\n`,
    "node_modules/library/package.json": JSON.stringify({
      name: "library",
      type: "module",
      exports: "./index.js",
    }),
    "node_modules/library/index.js": `export async function pay(orderNo) {}\n`,
    "node_modules/library/index.d.ts": `/** @redisLock businessFlag=pay keyName=orderNo */
export declare function pay(orderNo: string): Promise<void>;
`,
  });
  const { code, stdout } = await lockweave(project, "build");
  t.is(code, 2);
  t.regex(stdout, /^error TS90\d{4}: LW\d{4}: .*`pay`.*index\.js/);
});

inMatrix(
  "`build --watch` builds again after each change, with messages that editors recognize",
  async (t) => {
    const wrong = ORDERS.replace("keyName=orderNo", "keyName=orderNO");
    const project = await makeNativeProject({ "src/busy.ts": BUSY, "src/orders.ts": wrong });
    const watch = new Watch(project, [join(PACKAGE, "dist/transformer/cli/main.js"), "build", "--watch"]);
    t.teardown(() => watch.stop());
    t.regex(
      await watch.build(),
      /Starting compilation in watch mode\.\.\.\n\nsrc\/orders\.ts\(5,43\): error TS901202.*Found 1 error\. Watching/s,
    );
    await project.write({ "src/orders.ts": ORDERS });
    // Nothing is printed in between, so each error is reported once.
    t.regex(await watch.build(), /^[\d:]+ [AP]M - File change detected.*Found 0 errors\. Watching/s);
    t.regex(await project.read("out/orders.js"), /lockweave\.acquire\(/);
    await project.write({ "src/added.ts": wrong });
    t.regex(
      await watch.build(),
      /^[\d:]+ [AP]M - File change detected.*src\/added\.ts\(5,43\): error TS901202.*Found 1 error\. Watching/s,
    );
  },
);

outsideMatrix(
  "`check --watch` reports errors in tags after each change, with messages that editors recognize",
  async (t) => {
    const wrong = ORDERS.replace("keyName=orderNo", "keyName=orderNO");
    const project = await makeNativeProject({ "src/busy.ts": BUSY, "src/orders.ts": wrong });
    const watch = new Watch(project, [join(PACKAGE, "dist/transformer/cli/main.js"), "check", "--watch"]);
    t.teardown(() => watch.stop());
    t.regex(
      await watch.build(),
      /^[\d:]+ .*Starting compilation in watch mode\.\.\.\n\nsrc\/orders\.ts\(5,43\): error TS901202: LW1202: .*`orderNO`.*\n.*Found 1 error\. Watching/,
    );
    await project.write({ "src/orders.ts": ORDERS });
    t.regex(await watch.build(), /File change detected.*\n\n.*Found 0 errors\. Watching/);
  },
);
