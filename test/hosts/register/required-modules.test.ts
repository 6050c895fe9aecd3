import { mkdir, symlink } from "node:fs/promises";
import { importsAreUnseen } from "../../../transformer/hosts/register/required-modules";
import type { Files, Project } from "../project";
import { inMatrix, outsideMatrix } from "../../support/suites";
import { installNode, OTHER_NODES } from "./nodes";
import { HOSTS, makeHosted, orders, ordersAsScript, withoutTypes } from "./project";

const START = `const { configure, memoryStore } = require("lockweave");
configure({ store: memoryStore() });
`;
const REQUIRE = `${START}const { Orders } = require("./entry.mjs");
new Orders().pay("A1").then(console.log);
`;
const LOCKED = "A1 under LOCK_pay_A1\n";
const TAGGED = withoutTypes(orders("pay"));

function withEntry(entry: string, files: Files = {}): Promise<Project> {
  return makeHosted({
    "package.json": JSON.stringify({ name: "shop", imports: { "#orders": "./orders.mjs" } }),
    "main.cjs": REQUIRE,
    "entry.mjs": entry,
    "orders.mjs": TAGGED,
    ...files,
  });
}

for (const [inSuite, how, entry, files = {}] of [
  [outsideMatrix, "directly", 'export { Orders } from "./orders.mjs";'],
  [
    inMatrix,
    "through another module",
    'export * from "./all.mjs";',
    { "all.mjs": 'export * from "./orders.mjs";' },
  ],
  [inMatrix, "by a name of the package", 'import { Orders } from "#orders"; export { Orders };'],
  [
    outsideMatrix,
    "through a module in a cycle",
    'import { Orders } from "./cycle.mjs"; export { Orders };',
    { "cycle.mjs": 'import "./entry.mjs"; export { Orders } from "./orders.mjs";' },
  ],
] as readonly [typeof inMatrix, string, string, Files?][]) {
  inSuite(
    `a tagged file that a required ES module imports ${how} runs under its lock, or is an error`,
    async (t) => {
      const project = await withEntry(entry, files);
      const { code, stdout, stderr } = await project.run(...HOSTS.Node, "main.cjs");
      if (importsAreUnseen) {
        t.like({ code, stdout }, { code: 1, stdout: "" });
        t.true(stderr.includes("orders.mjs: error LW1404: This file would run without its locks."), stderr);
      } else {
        t.is(stdout, LOCKED, stderr);
      }
    },
  );
}

inMatrix(
  "a linked package that a required ES module imports runs under its lock, or is an error",
  async (t) => {
    const project = await withEntry('export { Orders } from "orders";', {
      "packages/orders/package.json": JSON.stringify({ name: "orders", exports: { import: "./index.mjs" } }),
      "packages/orders/index.mjs": TAGGED,
    });
    await mkdir(project.path("node_modules"), { recursive: true });
    await symlink(project.path("packages/orders"), project.path("node_modules/orders"));
    const { stdout, stderr } = await project.run(...HOSTS.Node, "main.cjs");
    if (importsAreUnseen) t.regex(stderr, /packages\/orders\/index\.mjs: error LW1404:/);
    else t.is(stdout, LOCKED, stderr);
  },
);

inMatrix("a tool that imports what it cannot require gets the lock", async (t) => {
  const project = await withEntry('export { Orders } from "./orders.mjs";', {
    "main.cjs": `${START}async function load(file) {
  try {
    return require(file);
  } catch (error) {
    if (error.code !== "ERR_REQUIRE_ESM") throw error;
    return await import(file);
  }
}
load("./entry.mjs").then(({ Orders }) => new Orders().pay("A1")).then(console.log);
`,
  });
  const { stdout, stderr } = await project.run(...HOSTS.Node, "main.cjs");
  t.is(stdout, LOCKED, stderr);
});

inMatrix("a required ES module may have tags, and may import files without tags and CommonJS", async (t) => {
  const project = await withEntry(
    `import { readFileSync } from "node:fs";
import "fs";
import "./plain.mjs";
import "./data.json" with { type: "json" };
import script from "./orders.cjs";
export const Script = script.Orders;
${TAGGED}`,
    {
      "main.cjs": `${START}const { Orders, Script } = require("./entry.mjs");
Promise.all([new Orders().pay("A1"), new Script().pay("A2")]).then(console.log);
`,
      "plain.mjs": 'import "./entry.mjs"; export const plain = true;',
      "data.json": "{}",
      "orders.cjs": withoutTypes(ordersAsScript("script")),
    },
  );
  const { stdout, stderr } = await project.run(...HOSTS.Node, "main.cjs");
  t.is(stdout, "[ 'A1 under LOCK_pay_A1', 'A2 under LOCK_script_A2' ]\n", stderr);
});

inMatrix("an ES module that was required before runs under its lock if another one imports it", async (t) => {
  const project = await withEntry('export { Orders } from "./orders.mjs";', {
    "main.cjs": REQUIRE.replace("const {", 'require("./orders.mjs");\nconst {'),
  });
  const { stdout, stderr } = await project.run(...HOSTS.Node, "main.cjs");
  t.is(stdout, LOCKED, stderr);
});

inMatrix("tsx loads the imports of a required module under their locks", async (t) => {
  const project = await withEntry("", {
    "main.cjs": REQUIRE.replace("entry.mjs", "entry.mts"),
    "entry.mts": 'export { Orders } from "./orders.mjs";',
  });
  const { stdout, stderr } = await project.run(...HOSTS.tsx, "main.cjs");
  t.is(stdout, LOCKED, stderr);
});

// Node 22 with `--import` fails to link the imports of a required ES module if any hook returns the source of the CommonJS entry.
for (const version of OTHER_NODES) {
  inMatrix(`Node ${version} weaves what a required ES module imports`, async (t) => {
    const project = await withEntry('export { Orders } from "./orders.mjs";');
    const node = await installNode(version);
    const { stdout, stderr } = await project.runWith(node, "--require", "lockweave/register", "main.cjs");
    t.is(stdout, LOCKED, stderr);
  });
}
