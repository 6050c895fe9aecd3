import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { worksWithHookThreads } from "../../../transformer/hosts/register/import-hook";
import { installNode, OTHER_NODES } from "./nodes";
import { PACKAGE } from "../project";
import { HOSTS, makeHosted, orders, ordersAsScript, withoutTypes } from "./project";
import { inMatrix, inMatrixSerially, outsideMatrix } from "../../support/suites";

const MAIN = `import { createRequire } from "node:module";
import { configure, memoryStore, shutdown } from "lockweave";

const require = createRequire(import.meta.url);
configure({ store: memoryStore() });
for (const file of process.argv.slice(2)) {
  const exported = file.includes("required") ? require(file) : await import(file);
  const { Orders } = exported.default ?? exported;
  console.log(await new Orders().pay(file));
}
await shutdown();
`;

/** Returns the output of `main`: the lock under which each file ran. */
function underLocks(files: readonly string[]): string {
  return files.map((file) => `${file} under LOCK_pay_${file}\n`).join("");
}

const FILES = {
  "package.json": JSON.stringify({ type: "module" }),
  "main.mts": MAIN,
  "main.mjs": MAIN,
  "orders.ts": orders("pay"),
  "orders.mts": orders("pay"),
  "orders.service.mts": orders("pay"),
  "orders.cts": ordersAsScript("pay"),
  "required.cts": ordersAsScript("pay"),
  "common/package.json": JSON.stringify({ type: "commonjs" }),
  "common/orders.ts": orders("pay"),
  "common/required.ts": orders("pay"),
  "common/required.service.ts": orders("pay"),
  "common/short-required/p.ts": orders("pay"),
  "unsaid/package.json": "{}",
  "unsaid/orders.ts": orders("pay"),
  "unsaid/required.ts": ordersAsScript("pay"),
  "unsaid/orders.js": withoutTypes(orders("pay")),
  "unsaid/required.js": withoutTypes(ordersAsScript("pay")),
  "orders.js": withoutTypes(orders("pay")),
  "required.js": withoutTypes(orders("pay")),
  "orders.cjs": withoutTypes(ordersAsScript("pay")),
  "required.cjs": withoutTypes(ordersAsScript("pay")),
  "orders.mjs": withoutTypes(orders("pay")),
  // Names without an extension, as commands have.
  orders: withoutTypes(orders("pay")),
  "common/required": withoutTypes(ordersAsScript("pay")),
};
const JAVASCRIPT = [
  "./orders.js",
  "./orders.cjs",
  "./orders.mjs",
  "./required.cjs",
  "./required.js",
  "./unsaid/orders.js",
  "./unsaid/required.js",
  "./orders",
  "./common/required",
];

inMatrix(
  "Node runs JavaScript under its locks, imported or required, as ES modules and as CommonJS",
  async (t) => {
    const project = await makeHosted(FILES);
    const { stdout, stderr } = await project.run(...HOSTS.Node, "main.mjs", ...JAVASCRIPT);
    t.is(stdout, underLocks(JAVASCRIPT), stderr);
  },
);

const TYPESCRIPT = ["./orders.ts", "./orders.mts", "./orders.service.mts", "./orders.cts", "./required.cts"];
const BY_TSX = [
  ...TYPESCRIPT,
  "./common/orders.ts",
  "./common/required.ts",
  "./common/required.service.ts",
  "./common/short-required/p.ts",
  "./orders.js",
  "./required.cjs",
  "./orders",
  "./common/required",
];

const TSX_SECOND = [...HOSTS.tsx.slice(2), ...HOSTS.tsx.slice(0, 2)];
for (const [inSuite, title, host] of [
  [outsideMatrix, "tsx runs each kind of file under its locks", HOSTS.tsx],
  [inMatrix, "tsx that is registered second runs each kind of file under its locks", TSX_SECOND],
] as const) {
  inSuite(title, async (t) => {
    const project = await makeHosted(FILES);
    const { stdout, stderr } = await project.run(...host, "main.mts", ...BY_TSX);
    t.is(stdout, underLocks(BY_TSX), stderr);
  });
}

inMatrix("tsx is also detected if its command or the URL of its loader starts Node", async (t) => {
  const project = await makeHosted(FILES);
  const dist = join(PACKAGE, "node_modules/tsx/dist");
  const [, , ...ours] = HOSTS.tsx;
  for (const host of [
    [`${dist}/cli.mjs`, ...ours],
    [`--import=${pathToFileURL(`${dist}/loader.mjs`).href}`, ...ours],
  ]) {
    const { stdout, stderr } = await project.run(...host, "main.mts", "./orders.ts");
    t.is(stdout, underLocks(["./orders.ts"]), stderr);
  }
});

inMatrix("hooks registered later through an imported `register` receive no tagged file", async (t) => {
  const project = await makeHosted({
    ...FILES,
    "late.mjs": `import { register } from "node:module";
await import("lockweave/register");
register("./hooks.mjs", import.meta.url);
`,
    "hooks.mjs": `export async function load(url, context, next) {
  if (url.endsWith("orders.mjs")) throw new Error("It came to us");
  return next(url, context);
}
`,
  });
  const { stdout, stderr } = await project.run("--import", "./late.mjs", "main.mjs", "./orders.mjs");
  t.is(stdout, underLocks(["./orders.mjs"]), stderr);
});

for (const version of OTHER_NODES) {
  inMatrixSerially(
    `Node ${version} runs each kind of file under its locks, alone and with tsx`,
    async (t) => {
      const node = await installNode(version);
      const project = await makeHosted(FILES);
      for (const [host, files] of [
        [HOSTS.Node, [...TYPESCRIPT, "./unsaid/orders.ts", "./unsaid/required.ts", ...JAVASCRIPT]],
        [HOSTS.tsx, BY_TSX],
        [TSX_SECOND, BY_TSX],
      ] as const) {
        const { stdout, stderr } = await project.runWith(node, ...host, "main.mts", ...files);
        t.is(stdout, underLocks(files), stderr);
      }
    },
  );
}

outsideMatrix(
  "synchronous hooks are used on Node versions in which they work with other hooks in a thread",
  (t) => {
    const from = ["22.22.3", "22.22.4", "22.23.0", "24.11.1", "24.12.0", "25.1.0", "25.2.0", "26.0.0"];
    const before = ["20.19.0", "22.18.9", "22.22.2", "23.11.9", "24.10.5", "24.11.0", "25.0.9"];
    t.deepEqual([...before, ...from].filter(worksWithHookThreads), from);
  },
);

inMatrix("modules that a tagged file requires load as usual", async (t) => {
  const project = await makeHosted({
    "package.json": "{}",
    "main.cjs": `const { configure, memoryStore, shutdown } = require("lockweave");
configure({ store: memoryStore() });
new (require("./outer.cjs").Orders)().pay("A1").then(console.log).then(shutdown);
`,
    "outer.cjs": `const { name } = require("./plain.cjs");
const { Orders } = require("./inner.cjs");
${withoutTypes(ordersAsScript("outer"))
  .replaceAll("Orders", "Outer")
  .replace("return orderNo", "return name + ', ' + (await new Orders().pay(orderNo)) + ', ' + orderNo")}
exports.Orders = exports.Outer;
`,
    "inner.cjs": withoutTypes(ordersAsScript("inner")),
    "plain.cjs": 'exports.name = "plain";\n',
  });
  const { stdout, stderr } = await project.run("--require", "lockweave/register", "main.cjs");
  t.is(stdout, "plain, A1 under LOCK_inner_A1, A1 under LOCK_outer_A1\n", stderr);
});

inMatrix("a require hook that a tagged file installs while it loads stays installed", async (t) => {
  const project = await makeHosted({
    "package.json": "{}",
    "main.cjs": `require("./tagged.cjs");
console.log(require.extensions[".cjs"] === globalThis.theirs);
`,
    "tagged.cjs": `globalThis.theirs = require.extensions[".cjs"] = (module, path) => module._compile("", path);
${withoutTypes(ordersAsScript("pay"))}`,
  });
  const { stdout, stderr } = await project.run("--require", "lockweave/register", "main.cjs");
  t.is(stdout, "true\n", stderr);
});

inMatrix(
  "a tagged function without async needs a promise type, which a file without an extension cannot have",
  async (t) => {
    const pay = `/** @redisLock businessFlag=pay */
exports.pay = function ()TYPE { return Promise.resolve(require("lockweave").currentLock().key); };
`;
    const project = await makeHosted({
      "package.json": "{}",
      "main.cjs": `const { configure, memoryStore, shutdown } = require("lockweave");
configure({ store: memoryStore() });
require(process.argv[2]).pay().then(console.log).finally(shutdown);
`,
      "typed.cts": `import lockweave = require("lockweave");
/** @redisLock businessFlag=pay */
export function pay(): Promise<string> { return Promise.resolve(lockweave.currentLock().key); }
`,
      untyped: pay.replace("TYPE", ""),
    });
    t.is((await project.run(...HOSTS.tsx, "main.cjs", "./typed.cts")).stdout, "LOCK_pay\n");
    const { stderr } = await project.run(...HOSTS.tsx, "main.cjs", "./untyped");
    t.true(
      stderr.includes(
        "untyped(1,5): error LW1302: `exports.pay` cannot wait for a lock. Fix: make it `async`.\n",
      ),
      stderr,
    );
  },
);

inMatrix(
  "ts-node without type checking runs CommonJS under its locks, in either order of registration",
  async (t) => {
    const files = ["./required.ts", "./required.cts", "./required.service.ts"];
    const project = await makeHosted({
      "package.json": "{}",
      "main.ts": MAIN.replace('import { createRequire } from "node:module";', "")
        .replace("const require = createRequire(import.meta.url);", "async function main() {")
        .replace("await shutdown();", "await shutdown(); }\nvoid main();"),
      "required.ts": orders("pay"),
      "required.service.ts": orders("pay"),
      "required.cts": orders("pay"),
    });
    const [a, b, c, d] = HOSTS["ts-node"];
    for (const host of [HOSTS["ts-node"], [c, d, a, b]]) {
      const { stdout, stderr } = await project.run(...host, "main.ts", ...files);
      t.is(stdout, underLocks(files), stderr);
    }
  },
);

inMatrix("ts-node without type checking runs ES modules under their locks", async (t) => {
  const project = await makeHosted(FILES);
  const files = ["./orders.ts", "./orders.mts", "./orders.service.mts"];
  const { stdout, stderr } = await project.run(...HOSTS["ts-node for ES modules"], "main.mts", ...files);
  t.is(stdout, underLocks(files), stderr);
});

for (const [inSuite, type, text] of [
  [
    outsideMatrix,
    "module",
    `import { configure, memoryStore } from "lockweave"; configure({ store: memoryStore() });`,
  ],
  [
    inMatrix,
    "commonjs",
    `const { configure, memoryStore } = require("lockweave"); configure({ store: memoryStore() });`,
  ],
] as const) {
  inSuite(`a ${type} passed to --eval does not start unlocked`, async (t) => {
    const project = await makeHosted({ "package.json": "{}" });
    const tagged = `${text} /** @redisLock businessFlag=pay */ async function pay() { console.log("ran"); } pay();`;
    const { code, stdout, stderr } = await project.run(
      ...HOSTS.Node,
      `--input-type=${type}`,
      "--eval",
      tagged,
    );
    t.deepEqual({ code, stdout }, { code: 1, stdout: "" });
    t.regex(stderr, /LOCK_NOT_WOVEN/);
  });
}
