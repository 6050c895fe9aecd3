import test from "ava";
import { fileWeaver } from "../../../transformer/hosts/one-file/weaver";
import { byNode } from "../../../transformer/hosts/register/compilers/node";
import type { Format } from "../../../transformer/hosts/register/compilers/format";
import { parser } from "../../../transformer/parser/parser";
import type { Settings } from "../project";
import { HOSTS, makeHosted, withoutTypes } from "./project";

const WRONG = `export class Orders {
  /** @redisLock businessFlag=pay keyName=orderNO */
  async pay(orderNo: string): Promise<void> {}

  /** @redisLock businesFlag=pay */
  async refund(): Promise<void> {}
}
`;
const PARAMETER = `Error: src/orders.mjs(2,43): error LW1202: The function has no parameter \`orderNO\`. Did you mean \`orderNo\`?
  2 |   /** @redisLock businessFlag=pay keyName=orderNO */
    |                                           ~~~~~~~
`;
const ATTRIBUTE = `src/orders.mjs(5,18): error LW1002: There is no attribute \`businesFlag\`. Did you mean \`businessFlag\`?
  5 |   /** @redisLock businesFlag=pay */
    |                  ~~~~~~~~~~~
`;

test("a file with errors does not run, and each error shows its line without Lockweave's stack frames", async (t) => {
  const main = 'import "./orders.mjs"; console.log("runs");';
  const project = await makeHosted({ "src/main.mjs": main, "src/orders.mjs": withoutTypes(WRONG) });
  const { code, stdout, stderr } = await project.run(...HOSTS.Node, "src/main.mjs");
  t.is(code, 1);
  t.is(stdout, "");
  t.true(stderr.includes(PARAMETER + ATTRIBUTE), stderr);
  t.deepEqual(stderr.match(/^ {4}at .*/gm), ["    at src/orders.mjs:2:43"]);
  await project.write({ "src/orders.mjs": withoutTypes(WRONG.replace("businesFlag", "businessFlag")) });
  const { stderr: one } = await project.run(...HOSTS.Node, "src/main.mjs");
  t.true(one.includes(PARAMETER), one);
});

test("an error in compiled code is reported in its source, which may be only in the source map", async (t) => {
  const map = { version: 3, sources: ["../src/orders.mts"], names: [], mappings: "" };
  const output = `// compiled\n${withoutTypes(WRONG)}//# sourceMappingURL=orders.mjs.map`;
  const project = await makeHosted({
    "src/orders.mts": WRONG,
    "dist/orders.mjs": output,
    "dist/orders.mjs.map": JSON.stringify(map),
    "image/orders.mjs": output,
    "image/orders.mjs.map": JSON.stringify({
      ...map,
      sources: ["../lost/orders.mts"],
      sourcesContent: [WRONG],
    }),
    "stale/orders.mjs": output,
    "stale/orders.mjs.map": JSON.stringify({ ...map, sourcesContent: [""], sources: ["lost.mts"] }),
  });
  for (const [dir, place] of [
    ["dist", "src/orders.mts(2,43)"],
    ["image", "lost/orders.mts(2,43)"],
    ["stale", "stale/orders.mjs(3,43)"],
  ] as const) {
    const { code, stderr } = await project.run(...HOSTS.Node, `${dir}/orders.mjs`);
    t.is(code, 1);
    t.true(stderr.includes(`Error: ${place}: error LW1202`), stderr);
  }
});

test("the hook uses the defaults in tsconfig.json and reports errors in them", async (t) => {
  const plugins = (defaults: object): Settings => ({
    plugins: [{ transform: "lockweave/transformer", transformProgram: true, defaults }],
  });
  const files = {
    "src/main.mjs": `import { configure, memoryStore, assertWoven } from "lockweave";
import { Orders } from "./orders.mjs";
configure({ store: memoryStore() });
console.log(Orders.prototype.pay.toString().includes('lockTime: "20s"'));`,
    "src/orders.mjs": withoutTypes(
      WRONG.replace("orderNO", "orderNo").replace("businesFlag", "businessFlag"),
    ),
  };
  const right = await makeHosted(files, plugins({ lockTime: "20s" }));
  t.is((await right.run(...HOSTS.Node, "src/main.mjs")).stdout, "true\n");
  const wrong = await makeHosted(files, plugins({ lockTime: "soon" }));
  const { code, stderr } = await wrong.run(...HOSTS.Node, "src/main.mjs");
  t.is(code, 1);
  t.true(stderr.includes("In the plugin's `defaults`: Expected `lockTime` to be a duration"), stderr);
});

const cannotStrip = "typescript" in process.features ? test.skip : test;
cannotStrip("TypeScript on a Node that cannot strip types is an error that names the fix", async (t) => {
  const project = await makeHosted({
    "package.json": "{}",
    "src/main.cjs": 'require("./orders.cts");',
    "src/orders.cts": WRONG.replace("orderNO", "orderNo").replace("businesFlag", "businessFlag"),
  });
  const { code, stderr } = await project.run("--require", "lockweave/register", "src/main.cjs");
  t.is(code, 1);
  t.regex(
    stderr,
    /orders\.cts, which is TypeScript\. Fix: run it with tsx, `node --import tsx --import lockweave\/register`, or with Node 22\.18/,
  );
});

test("TypeScript that may contain JSX is an error on every Node and names the fix", async (t) => {
  const project = await makeHosted({
    "src/main.mjs": 'import "./orders.tsx";',
    "src/orders.tsx": WRONG.replace("orderNO", "orderNo").replace("businesFlag", "businessFlag"),
  });
  const { code, stderr } = await project.run(...HOSTS.Node, "src/main.mjs");
  t.is(code, 1);
  t.regex(
    stderr,
    /orders\.tsx, which is TypeScript that may have JSX\. Fix: run it with tsx, `node --import tsx --import lockweave\/register`\./,
  );
});

test.serial("uses Node's type stripping if process.features reports it, in either mode", (t) => {
  const file = fileWeaver(parser())(
    "/app/pay.ts",
    WRONG.replace("orderNO", "orderNo").replace("businesF", "businessF"),
  );
  if (file === undefined) throw new Error("There is nothing to weave");
  const before = Object.getOwnPropertyDescriptor(process.features, "typescript");
  const formatWhere = (typescript: unknown, format: Format = "module"): string => {
    Object.defineProperty(process.features, "typescript", { value: typescript, configurable: true });
    return byNode.compile(file, "/app/pay.ts", format).format;
  };
  try {
    for (const mode of ["strip", "transform"]) {
      t.is(formatWhere(mode), "module-typescript");
      t.is(formatWhere(mode, "commonjs"), "commonjs-typescript");
    }
    t.throws(() => formatWhere(false), { message: /cannot run \/app\/pay\.ts, which is TypeScript\. Fix: / });
  } finally {
    if (before === undefined) Reflect.deleteProperty(process.features, "typescript");
    else Object.defineProperty(process.features, "typescript", before);
  }
});
