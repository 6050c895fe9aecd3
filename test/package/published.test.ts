import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import ts from "typescript";
import * as runtime from "../support/whole-runtime";
import { PACKAGE, tsconfig } from "../hosts/project";
import { makeConsumer, pack } from "./consumer";
import { inMatrixSerially, outsideMatrixSerially } from "../support/suites";

interface Manifest {
  readonly version: string;
  readonly license: string;
}

/** The packages that the runtime loads. */
const USED = ["uuid", "ioredis", "redis", "pg", "postgres", "@opentelemetry/api"];

outsideMatrixSerially("the tarball contains only the built code, its types, and documentation", async (t) => {
  const { files } = await pack();
  const strays = files.filter(
    (file) =>
      !/^(dist\/(runtime|transformer|test\/store-contract)\/.*\.(js|d\.ts)|dist\/runtime\/(index|testing|opentelemetry|cron|nest)\.(mjs|d\.mts)|dist\/runtime\/woven\/entry\.d\.mts|dist\/runtime\/(runtime|not-in-(browser|edge|workers))\.mjs|dist\/transformer\/(THIRD-PARTY-NOTICES\.txt|page\/(index\.html|style\.css|icon\.svg))|docs\/[\w-]+\.(md|json)|bench\/results\/plot\.svg|README(?:\.zh-CN)?\.md|LICENSE|CHANGELOG\.md|tsdoc\.json|package\.json)$/.test(
        file,
      ),
  );
  t.deepEqual(strays, []);
  for (const file of ["package.json", "LICENSE", "dist/runtime/index.js", "dist/transformer/index.d.ts"]) {
    t.true(files.includes(file), file);
  }
});

outsideMatrixSerially(
  "the published code and its types import only its own files, Node built-ins, uuid, and peer packages",
  async (t) => {
    const { dir, files } = await pack();
    const asked = new Set([...USED, "typescript"]);
    const imported = files
      .filter((file) => /\.(?:m?js|d\.m?ts)$/.test(file))
      .flatMap((file) => ts.preProcessFile(readFileSync(join(dir, file), "utf8"), true, true).importedFiles)
      .map(({ fileName }) => fileName);
    for (const name of USED) t.true(imported.includes(name), name);
    const strangers = imported.filter(
      (name) => !/^(?:\.|node:|lockweave(?:\/|$))/.test(name) && !isBuiltin(name) && !asked.has(name),
    );
    t.deepEqual(strangers, []);
  },
);

outsideMatrixSerially(
  "requiring the package loads two files, and all entry points share the runtime file",
  async (t) => {
    const project = await makeConsumer({
      "loaded.cjs": `require("lockweave");
const loaded = () => Object.keys(require.cache).map((file) => file.replaceAll("\\\\", "/").replace(/^.*\\/(?=dist\\/|loaded)/, "")).join(" ");
console.log(loaded());
require("lockweave/testing");
require("lockweave/store-contract");
console.log(loaded());
`,
    });
    const own = "loaded.cjs dist/runtime/index.js dist/runtime/runtime.js";
    t.like(await project.run("loaded.cjs"), {
      code: 0,
      stdout: `${own}\n${own} dist/runtime/testing.js dist/test/store-contract/index.js\n`,
      stderr: "",
    });
  },
);

outsideMatrixSerially(
  "the published runtime contains only Latin-1 characters, which V8 stores in one byte each",
  async (t) => {
    const { dir, files } = await pack();
    const loaded = files.filter((file) => /^dist\/runtime\/.*\.m?js$/.test(file));
    t.true(loaded.length > 0);
    for (const file of loaded) t.notRegex(readFileSync(join(dir, file), "utf8"), /[^\0-\xff]/, file);
  },
);

outsideMatrixSerially("stack traces name the functions of the runtime", async (t) => {
  const project = await makeConsumer({
    "throws.mjs": `
import { configure, memoryStore, withLock } from "lockweave";
configure({ store: memoryStore(), woven: false });
const { stack } = await withLock("k", { lockTime: "never" }, () => {}).catch((error) => error);
console.log(/at (?:async )?withLock /.test(stack), /^LockOptionError: /.test(stack));
`,
  });
  t.like(await project.run("throws.mjs"), { code: 0, stdout: "true true\n", stderr: "" });
});

outsideMatrixSerially("loads the quorum code only when quorumStore() is called", async (t) => {
  const project = await makeConsumer({
    "loaded.cjs": `const { quorumStore } = require("lockweave");
const isLoaded = () => Object.keys(require.cache).some((file) => /[\\\\/]quorum[\\\\/]quorum\\.js$/.test(file));
const before = isLoaded();
try { quorumStore(["redis://a", "redis://b", "redis://c"], { longestLockTime: "2m" }).close(); } catch {}
console.log(before, isLoaded());
`,
  });
  t.like(await project.run("loaded.cjs"), { code: 0, stdout: "false true\n", stderr: "" });
});

outsideMatrixSerially(
  "the package includes the licenses of the code bundled into the transformer",
  async (t) => {
    const { dir } = await pack();
    const notices = readFileSync(join(dir, "dist/transformer/THIRD-PARTY-NOTICES.txt"), "utf8");
    for (const name of ["typescript", "magic-string", "@jridgewell/sourcemap-codec", "fastest-levenshtein"]) {
      const { version, license } = require(join(PACKAGE, "node_modules", name, "package.json")) as Manifest;
      t.true(notices.includes(`\n${name} ${version} (${license})\n`), name);
    }
    t.true(notices.includes("Apache License"));
    t.true(notices.includes("Permission is hereby granted, free of charge"));
  },
);

outsideMatrixSerially("an ES module can import every public name and the plugin", async (t) => {
  const names = Object.keys(runtime).join(", ");
  const project = await makeConsumer({
    "names.mjs": `
import { ${names} } from "lockweave";
import * as runtime from "lockweave/runtime";
import plugin from "lockweave/transformer";
const imported = { ${names} };
for (const [name, value] of Object.entries(imported)) {
  if (value === undefined || runtime[name] !== value) console.log(name);
}
console.log(typeof plugin);
`,
    "names.cjs": `console.log(typeof require("lockweave/transformer"))`,
  });
  t.like(await project.run("names.mjs"), { code: 0, stdout: "function\n", stderr: "" });
  t.like(await project.run("names.cjs"), { code: 0, stdout: "function\n", stderr: "" });
});

const IMPORTER = `
import { configure, currentLock, lockKey, memoryStore, withLock } from "lockweave";
import { LockError, LockKeyError, type HeldLock, type LockOptions, type Store } from "lockweave";
import * as runtime from "lockweave/runtime";
import plugin from "lockweave/transformer";
import vite from "lockweave/vite";
import esbuild from "lockweave/esbuild";
import webpack from "lockweave/webpack";
import { testLocks } from "lockweave/testing";

export const hosts: readonly object[] = [vite, esbuild, webpack, testLocks];
configure({ store: memoryStore() });
export const options: LockOptions = { lockTime: "20s" };
export const key: Promise<string> = withLock("k", { lockTime: "20s" }, (lock) => lock.key);
export const error: LockError = new LockKeyError("bad");
export const failure: runtime.FailureClass = LockKeyError;
export const store: Store = memoryStore();
export const lock: HeldLock = runtime.open({ site: "pay", businessFlag: "pay" });
export const released: Promise<void> = currentLock().release();
export const config: Parameters<typeof plugin>[2] = { defaults: { lockTime: "20s" } };
// @ts-expect-error -- There is no such option: what is resolved is no \`any\`.
configure({ stor: memoryStore() });
// @ts-expect-error -- Nor here.
lockKey({});
// @ts-expect-error -- Nor here.
runtime.open({ site: "pay" });
// @ts-expect-error -- Nor here.
plugin(1);
`;

for (const [moduleResolution, module, files] of [
  ["node10", "commonjs", ["a.ts"]],
  ["node16", "node16", ["a.mts", "a.cts"]],
  ["nodenext", "nodenext", ["a.mts", "a.cts"]],
  ["bundler", "esnext", ["a.ts"]],
] as const) {
  inMatrixSerially(`the published types resolve under moduleResolution ${moduleResolution}`, async (t) => {
    const project = await makeConsumer({
      ...Object.fromEntries(files.map((file) => [`src/${file}`, IMPORTER])),
      "package.json": "{}",
      "tsconfig.json": tsconfig({
        types: ["node"],
        skipLibCheck: false,
        noEmit: true,
        module,
        moduleResolution,
        esModuleInterop: true,
        ...(moduleResolution === "node10" ? { ignoreDeprecations: "6.0" } : {}),
      }),
    });
    t.like(await project.tsc(), { code: 0, stdout: "" });
  });
}

const HIDDEN = `
import * as lockweave from "lockweave";
import * as runtime from "lockweave/runtime";
// @ts-expect-error -- Woven code imports "lockweave/runtime".
lockweave.open({ site: "pay", businessFlag: "pay" });
// @ts-expect-error -- People import "lockweave".
runtime.configure({ store: lockweave.memoryStore() });
`;

inMatrixSerially("the types of `lockweave` hide what only woven code calls", async (t) => {
  const project = await makeConsumer({
    "src/a.mts": HIDDEN,
    "src/b.cts": HIDDEN,
    "package.json": "{}",
    "tsconfig.json": tsconfig({ types: ["node"], skipLibCheck: false, noEmit: true, module: "nodenext" }),
  });
  t.like(await project.tsc(), { code: 0, stdout: "" });
});

inMatrixSerially("the published types need no lib later than es2020", async (t) => {
  const project = await makeConsumer({
    "src/a.mts": `
      import { LockKeyError } from "lockweave";
      import type { FailureClass } from "lockweave/runtime";
      class Busy extends Error { constructor(message: string) { super(message); } }
      export const failures: FailureClass[] = [Busy, LockKeyError];`,
    "package.json": "{}",
    "tsconfig.json": tsconfig({
      types: ["node"],
      skipLibCheck: false,
      noEmit: true,
      target: "es2020",
      lib: ["es2020"],
      module: "nodenext",
    }),
  });
  t.like(await project.tsc(), { code: 0, stdout: "" });
});

const TAGGED = `/** @redisLock businessFlag=payOrder keyName=orderNo */
export async function pay(orderNo: string): Promise<string> {
  return "paid " + orderNo;
}
`;

for (const type of ["module", "commonjs"]) {
  inMatrixSerially(
    `a tagged file compiled with the published plugin runs without ioredis in a ${type} project`,
    async (t) => {
      const project = await makeConsumer({
        "src/order.ts": TAGGED,
        "src/main.ts": `import { configure, memoryStore } from "lockweave";
import { pay } from "./order.js";
const store = memoryStore();
const acquire = store.acquire.bind(store);
configure({ store: Object.assign(store, { acquire: (...request: Parameters<typeof acquire>) => {
  console.log(request[0].key);
  return acquire(...request);
} }) });
void pay("A1").then(console.log);
`,
        "package.json": JSON.stringify({ type }),
      });
      t.like(await project.tspc(), { code: 0, stdout: "" });
      t.like(await project.run("out/main.js"), {
        code: 0,
        stdout: "LOCK_payOrder_A1\npaid A1\n",
        stderr: "",
      });
    },
  );
}
