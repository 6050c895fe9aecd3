import { rm, symlink } from "node:fs/promises";
import { lockweave } from "../cli/command";
import { makeProject, PACKAGE, PLUGIN, tsconfig, type Files, type Settings } from "./project";
import { Watch } from "./watch";
import { inMatrixSerially, outsideMatrixSerially } from "../support/suites";

const PAY = `/** @redisLock businessFlag=payOrder keyName=orderNo */
export async function pay(orderNo: string): Promise<string> {
  return "paid " + orderNo;
}
`;

outsideMatrixSerially("weaves all files of a project with paths, JSON, JavaScript, and TSX", async (t) => {
  const project = await makeProject(
    {
      "packages/shop/shop.ts": PAY,
      "src/main.tsx": `import data from "@data/data.json" with { type: "json" };
import { pay } from "@shop/shop.js";
import { refund } from "./refund.js";
/** @redisLock businessFlag=main keyName="data.name.length" */
export async function main(): Promise<string> { return (await pay(data.name)) + (await refund(data.name)); }
export const text = <p>@redisLock businessFlag=none</p>;
`,
      "src/data.json": `{ "name": "/** @redisLock keyName=b */" }`,
      "src/jsx.d.ts": "declare namespace JSX { interface IntrinsicElements { p: {} } }",
      "src/refund.js": `import { pay } from "@shop/shop.js";
/**
 * @redisLock businessFlag=refund keyName=orderNo
 * @param {string} orderNo
 */
export async function refund(orderNo) { return pay(orderNo); }
`,
    },
    {
      allowJs: true,
      checkJs: true,
      jsx: "preserve",
      resolveJsonModule: true,
      paths: { "@data/*": ["./src/*"], "@shop/*": ["./packages/shop/*"] },
      rootDir: ".",
    },
  );
  t.like(await project.tspc(), { code: 0, stdout: "" });
  for (const file of ["src/main.jsx", "src/refund.js", "packages/shop/shop.js"]) {
    t.regex(await project.read(`out/${file}`), /lockweave\.acquire/, file);
  }
  t.like(await project.tsc("--outDir", "plain"), { code: 0, stdout: "" });
  t.is(await project.read("out/src/data.json"), await project.read("plain/src/data.json"));
});

inMatrixSerially(
  "ignores tags in the sources of a linked package that this project does not emit",
  async (t) => {
    const library = await makeProject({
      "shop.ts": PAY,
      "package.json": `{ "name": "shop", "version": "1.0.0", "type": "module", "exports": "./shop.ts" }`,
    });
    await rm(library.path("node_modules/lockweave"));
    const project = await makeProject({
      "src/a.ts": `export { pay } from "shop"; // lockweave-allow LW1406: lockweave/register loads it
${PAY.replace("pay(", "payTwice(")}`,
    });
    await symlink(library.dir, project.path("node_modules/shop"));
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.regex(await project.read("out/a.js"), /lockweave\.acquire/);
  },
);

inMatrixSerially("the type checker treats a package that is installed twice as one package", async (t) => {
  const files = ["x", "y"].flatMap((name) => [
    [`node_modules/${name}/package.json`, `{ "name": "${name}", "version": "1.0.0", "types": "index.d.ts" }`],
    [`node_modules/${name}/index.d.ts`, `export { Twice } from "twice"; import "twice/deep";`],
    [
      `node_modules/${name}/node_modules/twice/package.json`,
      `{ "name": "twice", "version": "2.0.0", "types": "index.d.ts" }`,
    ],
    [
      `node_modules/${name}/node_modules/twice/index.d.ts`,
      "export declare class Twice { private x; id: string }",
    ],
    [`node_modules/${name}/node_modules/twice/deep.d.ts`, "export {};"],
  ]);
  const project = await makeProject(
    {
      ...(Object.fromEntries(files) as Record<string, string>),
      "src/a.ts": `import { Twice as OfX } from "x";
import { Twice as OfY } from "y";
/** @redisLock businessFlag=f keyName=twice keyType=CLASS keyClass=OfY fieldName=id */
export async function f(twice: OfX): Promise<OfY> { return twice; }
`,
    },
    { incremental: true },
  );
  for (const args of [[], [], ["-b"]]) t.like(await project.tspc(...args), { code: 0, stdout: "" });
  t.regex(await project.read("out/a.js"), /lockweave\.acquire/);
});

outsideMatrixSerially("tspc -b weaves projects that import the sources of their references", async (t) => {
  const into = (outDir: string): Settings => ({
    composite: true,
    declarationMap: true,
    rootDir: ".",
    outDir,
  });
  const project = await makeProject({
    "orders/tsconfig.json": tsconfig(into("../out/orders"), {}),
    "orders/order.ts": PAY,
    "shop/tsconfig.json": tsconfig(into("../out/shop"), { references: [{ path: "../orders" }] }),
    "shop/main.ts": `import { configure, memoryStore } from "lockweave"; import { pay } from "../orders/order.js";
configure({ store: memoryStore() });
/** @redisLock businessFlag=shop */
export const shop = async (): Promise<void> => console.log(await pay("A1"));
await shop();
`,
    "shop/console.d.ts": "declare const console: { log(text: string): void };",
  });
  t.like(await project.tspc("-b", "shop"), { code: 0, stdout: "" });
  t.like(await project.run("out/shop/main.js"), { code: 0, stdout: "paid A1\n" });
});

inMatrixSerially(
  "errors about the program's files have the same positions as with plain tsc, even in incremental builds",
  async (t) => {
    const project = await makeProject({
      "src/a.ts": `import { b } from "./b.js"; import { c } from "../c.js";
// @ts-ignore
import { d } from "../d.js";
${PAY}export const sum = b + c + d;
`,
      "src/b.ts": "export const b = 1;\n",
      "c.ts": "export const c = 1;\n",
      "d.ts": "export const d = 1;\n",
      "tsconfig.json": tsconfig({ composite: true, noEmit: true }, { files: ["src/a.ts"] }),
    });
    const plain = await project.tsc("--tsBuildInfoFile", "plain.tsbuildinfo");
    t.regex(plain.stdout, /a\.ts\(1,19\): error TS6307/);
    for (const _ of ["first", "second"]) {
      t.is((await project.tspc("--tsBuildInfoFile", "woven.tsbuildinfo")).stdout, plain.stdout);
    }
  },
);

inMatrixSerially("--watch follows changes of tsconfig.json and finds new files", async (t) => {
  const project = await makeProject({ "src/a.ts": PAY });
  const asModule = (module: string): Record<string, string> => ({
    "tsconfig.json": tsconfig({ module, moduleResolution: "bundler" }),
  });
  await project.write(asModule("esnext"));
  const watch = new Watch(project);
  try {
    t.regex(await watch.build(), /Found 0 errors/);
    t.regex(await project.read("out/a.js"), /^import \* as lockweave/);

    await project.write(asModule("commonjs"));
    t.regex(await watch.build(), /Found 0 errors/);
    t.regex(await project.read("out/a.js"), /\nconst lockweave = require/);

    await project.write({ "src/b.ts": PAY });
    t.regex(await watch.build(), /Found 0 errors/);
    t.regex(await project.read("out/b.js"), /lockweave\.acquire/);
  } finally {
    await watch.stop();
  }
});

/** Adds a statement to each file. */
const OTHER_PLUGIN = `
module.exports = (program, config, { ts }) => (context) => (file) => {
  const marker = ts.factory.createExpressionStatement(ts.factory.createStringLiteral("marked"));
  return ts.factory.updateSourceFile(file, [...file.statements, marker]);
};
`;

for (const order of ["before", "after"]) {
  outsideMatrixSerially(`another plugin ${order} this one transforms the woven file`, async (t) => {
    const other = { transform: "./other.cjs" };
    const project = await makeProject(
      { "src/a.ts": PAY, "src/b.ts": "export const b = 1;\n", "other.cjs": OTHER_PLUGIN },
      { plugins: order === "before" ? [other, PLUGIN] : [PLUGIN, other] },
    );
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.regex(
      await project.read("out/a.js"),
      /^import \* as lockweave[^]*lockweave\.acquire[^]*\n"marked";\n$/,
    );
    t.is(await project.read("out/b.js"), `export const b = 1;\n"marked";\n`);
  });
}

/** Compiles through the API, as tools do that do not run tspc. */
const TOOL = `
const { basename, resolve } = require("node:path");
const ts = require("ts-patch/compiler");
const parsed = ts.getParsedCommandLineOfConfigFile(resolve("tsconfig.json"), {}, ts.sys);

class Host {
  constructor() {
    const { writeFile, ...rest } = ts.createCompilerHost(parsed.options);
    Object.assign(this, rest);
    this.written = [];
  }
  writeFile(name, text) {
    this.written.push(basename(name) + (text.includes("lockweave.acquire") ? " is woven" : ""));
  }
}

const host = new Host();
const create = (fitted) =>
  ts.createProgram({ rootNames: parsed.fileNames, options: parsed.options, host: Object.assign(host, fitted) });

create().emit();
const oneFile = create();
oneFile.emit(oneFile.getSourceFile(resolve("src/a.ts")));
create({
  useCaseSensitiveFileNames: () => false,
  getCanonicalFileName: (name) => name.toLowerCase(),
}).emit();
console.log(host.written.join("\\n"));
`;

inMatrixSerially(
  "a tool's compiler host writes woven files, one or all, whether or not its names are case-sensitive",
  async (t) => {
    const project = await makeProject({
      "src/a.ts": PAY,
      "src/Upper.ts": PAY.replace("pay(", "Pay("),
      "tool.cjs": TOOL,
    });
    t.like(await project.run("tool.cjs"), {
      code: 0,
      stdout: `${["Upper.js", "a.js", "a.js", "Upper.js", "a.js"].map((name) => `${name} is woven`).join("\n")}\n`,
      stderr: "",
    });
  },
);

/** Compiles twice from the source files of one parse. */
const THRIFTY_TOOL = `
const { resolve } = require("node:path");
const ts = require("ts-patch/compiler");
const { fileNames, options } = ts.getParsedCommandLineOfConfigFile(resolve("tsconfig.json"), {}, ts.sys);
const host = ts.createCompilerHost(options);
const files = new Map();
const { getSourceFile } = host;
host.getSourceFile = (name, ...rest) => {
  if (!files.has(name)) files.set(name, getSourceFile(name, ...rest));
  return files.get(name);
};
for (const module of [ts.ModuleKind.ESNext, ts.ModuleKind.CommonJS]) {
  const program = ts.createProgram({ rootNames: fileNames, options: { ...options, module }, host });
  program.emit(undefined, (_, text) => console.log(text.match(/^.*lockweave.runtime.*$/m)[0]));
}
`;

inMatrixSerially("source files that a tool caches are woven again for another module format", async (t) => {
  const project = await makeProject(
    { "src/a.ts": PAY, "tool.cjs": THRIFTY_TOOL },
    { module: "esnext", moduleResolution: "bundler" },
  );
  t.like(await project.run("tool.cjs"), {
    code: 0,
    stdout: `import * as lockweave from "lockweave/runtime";\nconst lockweave = require("lockweave/runtime");\n`,
    stderr: "",
  });
});

inMatrixSerially(
  "ts-node with type checking rejects a package that was built without its locks",
  async (t) => {
    const project = await makeProject(
      {
        "package.json": "{}",
        "shop/package.json": JSON.stringify({ name: "shop", main: "index.js" }),
        "shop/index.js": "exports.pay = async (id) => id;\n",
        "shop/index.d.ts": `/** @redisLock businessFlag=pay keyName=id */
export declare function pay(id: string): Promise<string>;
`,
        "src/main.ts": `import { configure, memoryStore } from "lockweave";
import { pay } from "shop";
configure({ store: memoryStore() });
void pay("A1");
`,
      },
      { module: "commonjs", moduleResolution: "bundler" },
    );
    await symlink(`${PACKAGE}/node_modules/ts-node`, project.path("node_modules/ts-node"));
    await symlink(project.path("shop"), project.path("node_modules/shop"));
    const settings = JSON.parse(await project.read("tsconfig.json")) as object;
    await project.write({
      "tsconfig.json": JSON.stringify({ ...settings, "ts-node": { compiler: "ts-patch/compiler" } }),
    });
    const { code, stderr } = await project.run("-r", "ts-node/register", "src/main.ts");
    t.not(code, 0);
    t.regex(stderr, /src\/main\.ts\(2,21\): error TS901403: LW1403: .*`pay`.* Fix: /);
  },
);

outsideMatrixSerially("ts-node with type checking runs woven code and rejects an invalid tag", async (t) => {
  const project = await makeProject(
    {
      "package.json": "{}",
      "src/order.ts": PAY,
      "src/main.ts": `import { configure, memoryStore, type AcquireRequest } from "lockweave";
import { pay } from "./order";
declare const console: { log(text: string): void };
const store = memoryStore();
const acquire = store.acquire.bind(store);
store.acquire = (request: AcquireRequest, timeoutMs: number) => { console.log(request.key); return acquire(request, timeoutMs); };
configure({ store });
void pay("A1").then(console.log);
`,
    },
    { module: "commonjs", moduleResolution: "bundler" },
  );
  await symlink(`${PACKAGE}/node_modules/ts-node`, project.path("node_modules/ts-node"));
  const command = ["-r", "ts-node/register", "src/main.ts"];
  const { code, ...settings } = { code: 0, "ts-node": { compiler: "ts-patch/compiler" } };
  await project.write({
    "tsconfig.json": JSON.stringify({
      ...(JSON.parse(await project.read("tsconfig.json")) as object),
      ...settings,
    }),
  });
  t.like(await project.run(...command), { code, stdout: "LOCK_payOrder_A1\npaid A1\n", stderr: "" });

  await project.write({ "src/order.ts": PAY.replace("keyName=orderNo", "keyName=order") });
  const refused = await project.run(...command);
  t.not(refused.code, 0);
  t.true(
    refused.stderr.includes(`${await project.placeOf("order */", "src/order.ts")}: error TS901202`),
    refused.stderr,
  );
});

outsideMatrixSerially(
  "configure() re-exported by a barrel is woven, and unwoven code does not start",
  async (t) => {
    const project = await makeProject({
      "src/locks.ts": `export * from "./inner.js";\n`,
      "src/inner.ts": `import * as all from "lockweave";\nexport const { configure: setUp, memoryStore } = all;\n`,
      "src/main.ts": `import { memoryStore, setUp } from "./locks.js";\nsetUp({ store: memoryStore() });\n`,
    });
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.like(await project.run("out/main.js"), { code: 0, stderr: "" });
    t.is((await project.tsc()).code, 0);
    t.regex((await project.run("out/main.js")).stderr, /This build was not woven/);
  },
);

inMatrixSerially("finds configure() behind many layers of barrels that import each other", async (t) => {
  const layers = Array.from({ length: 60 }, (_, layer) => [
    `src/layer${layer}.ts`,
    [1, 2, 3]
      .map((below) => `export * from "./${layer < below ? "inner" : `layer${layer - below}`}.js";\n`)
      .join(""),
  ]);
  const project = await makeProject({
    ...(Object.fromEntries(layers) as Files),
    "src/inner.ts": `export * from "./layer59.js";\nexport { configure as setUp, memoryStore } from "lockweave";\n`,
    "src/main.ts": `import { memoryStore, setUp } from "./layer59.js";\nsetUp({ store: memoryStore() });\n`,
  });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.like(await project.run("out/main.js"), { code: 0, stderr: "" });
});

outsideMatrixSerially("the plugin also works by its short name `lockweave`", async (t) => {
  const project = await makeProject(
    {
      "src/main.ts": `import { configure, memoryStore } from "lockweave";\nconfigure({ store: memoryStore() });\n${PAY}`,
    },
    { plugins: [{ transform: "lockweave", transformProgram: true }] },
  );
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.like(await project.run("out/main.js"), { code: 0, stderr: "" });
  t.is((await lockweave(project, "check")).code, 0);
});

inMatrixSerially("reports an unlocked reference only at the import of the tagged file", async (t) => {
  const pay = `/** @redisLock businessFlag=pay */\nexport async function pay(): Promise<void> {}\n`;
  const composite = { composite: true, rootDir: ".", outDir: "out" };
  const project = await makeProject({
    "lib/tsconfig.json": tsconfig(composite, {}),
    "lib/after.ts": "export const after = 1;\n",
    "lib/before.ts": "export const before = 1;\n",
    "lib/pay.ts": pay,
    "app/tsconfig.json": tsconfig(composite, { references: [{ path: "../lib" }] }),
    "app/main.ts": `import { before } from "../lib/before.js";
import { pay } from "../lib/pay.js";
import { after } from "../lib/after.js";
export const all = [before, pay, after];
`,
  });
  t.like(await project.tsc("-b", "lib"), { code: 0 });
  const { code, stdout } = await project.tspc("-p", "app");
  t.is(code, 2);
  const [first, ...others] = stdout.trim().split("\n");
  t.true(first?.startsWith(`app/main.ts(2,21): error TS901403: LW1403: This imports \`pay\``), stdout);
  t.deepEqual(others, []);
});

outsideMatrixSerially("an unlocked build of an indirect reference is an error", async (t) => {
  const composite = { composite: true, rootDir: ".", outDir: "out" };
  const referring = (...paths: readonly string[]): string =>
    tsconfig(composite, { references: paths.map((path) => ({ path })) });
  const project = await makeProject({
    "deep/tsconfig.json": referring(),
    "deep/pay.ts": "/** @redisLock businessFlag=pay */\nexport async function pay(): Promise<void> {}\n",
    "lib/tsconfig.json": referring("../deep"),
    "lib/shop.ts": `import { pay } from "../deep/pay.js";\nexport const shop = async (): Promise<void> => pay();\n`,
    "app/tsconfig.json": referring("../lib"),
    "app/main.ts": `import { shop } from "../lib/shop.js";\nexport const main = shop;\n`,
  });
  t.like(await project.tsc("-b", "lib"), { code: 0 });
  const { code, stdout } = await project.tspc("-p", "app");
  t.is(code, 2);
  t.regex(
    stdout,
    /error TS901403: LW1403: This imports `pay` with `@redisLock`, but `pay\.js` does not contain/,
  );
});
