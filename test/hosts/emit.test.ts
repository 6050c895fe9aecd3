import test from "ava";
import { makeProject } from "./project";

const ORDER = `/*! Licence */
import type { Gateway } from "./gateway.js";
import { gateway, OrderBusy } from "./gateway.js";

// A detached comment.

/** Pays orders. */
export class OrderService {
  private readonly gateway: Gateway = gateway;

  /** @redisLock businessFlag=payOrder keyName=orderNo lockTime=20 */
  async pay(orderNo: string): Promise<string> {
    // Charge first.
    return this.gateway.charge(orderNo);
  }

  /** @redisLock businessFlag=refund keyName=orderNo onFailure=OrderBusy */
  async refund(orderNo: string): Promise<void> { await this.pay(orderNo); }
}

/** @redisLock businessFlag=count onFailure=skip */
export const count = async (): Promise<number | undefined> => gateway.count;
`;
const GATEWAY = `export class OrderBusy extends Error {}
export interface Gateway { charge(orderNo: string): Promise<string>; count: number }
export const gateway: Gateway = { charge: async (orderNo) => "paid " + orderNo, count: 1 };
`;
const FILES = { "src/order.ts": ORDER, "src/gateway.ts": GATEWAY };

const BODIES = `/** Pays orders. */
export class OrderService {
    gateway = gateway;
    /** @redisLock businessFlag=payOrder keyName=orderNo lockTime=20 */
    async pay(orderNo) {
        const lock = lockweave.open({ site: "OrderService.pay", businessFlag: "payOrder", lockTime: "20s" }, orderNo);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock));
        try {
            lockweave.assertHeld(lock);
            // Charge first.
            return await this.gateway.charge(orderNo);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
    /** @redisLock businessFlag=refund keyName=orderNo onFailure=OrderBusy */
    async refund(orderNo) {
        const lock = lockweave.open({ site: "OrderService.refund", businessFlag: "refund" }, orderNo);
        while (!(await lockweave.acquire(lock)))
            void (await lockweave.retryCheck(lock, OrderBusy));
        try {
            lockweave.assertHeld(lock);
            await this.pay(orderNo);
        }
        catch (error) {
            throw lockweave.fail(lock, error);
        }
        finally {
            await lockweave.release(lock);
        }
    }
}
/** @redisLock businessFlag=count onFailure=skip */
export const count = async () => {
    const lock = lockweave.open({ site: "count", businessFlag: "count", onFailure: "skip" });
    while (!(await lockweave.acquire(lock)))
        if (!(await lockweave.retryCheck(lock)))
            return undefined;
    try {
        lockweave.assertHeld(lock);
        return await gateway.count;
    }
    catch (error) {
        throw lockweave.fail(lock, error);
    }
    finally {
        await lockweave.release(lock);
    }
};
`;

test.serial(
  "woven ES modules read as if written by hand, and other files equal those of plain tsc",
  async (t) => {
    const project = await makeProject(FILES);
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.is(
      await project.read("out/order.js"),
      `/*! Licence */
import * as lockweave from "lockweave/runtime";
import { gateway, OrderBusy } from "./gateway.js";
// A detached comment.
${BODIES}`,
    );
    t.like(await project.tsc("--outDir", "plain"), { code: 0, stdout: "" });
    t.is(await project.read("out/gateway.js"), await project.read("plain/gateway.js"));
  },
);

test.serial("woven CommonJS reads as if written by hand", async (t) => {
  const project = await makeProject({ ...FILES, "package.json": "{}" });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  const bodies = BODIES.replaceAll("export const", "const")
    .replaceAll("export class", "class")
    .replaceAll(/(?<!this\.)(?<= )gateway(?=\.|;)/g, "gateway_js_1.gateway")
    .replaceAll("(lock, OrderBusy)", "(lock, gateway_js_1.OrderBusy)")
    .replace("/** @redisLock businessFlag=count", "exports.OrderService = OrderService;\n$&")
    .replace(/\};\n$/, "};\nexports.count = count;\n");
  t.is(
    await project.read("out/order.js"),
    `"use strict";
Object.defineProperty(exports, "__esModule", { value: true });
exports.count = exports.OrderService = void 0;
/*! Licence */
const lockweave = require("lockweave/runtime");
const gateway_js_1 = require("./gateway.js");
// A detached comment.
${bodies}`,
  );
});

/** The text before the tagged function, by file name. */
const STARTS: Record<string, string> = {
  licenceAndImport: `/*! Licence */\nimport { gateway } from "./gateway.js";\nvoid gateway;\n`,
  licenceOnly: "/*! Licence */\n",
  detached: "// Detached.\n\n// Another.\n\n",
  document: "/** What the file is about. */\n\nexport const first = 1;\n",
  documentOfFirst: "/** What first is. */\nexport const first = 1;\n",
  documentOfTagged: "",
  checked: `// @ts-check\nimport { gateway } from "./gateway.js";\nvoid gateway;\n`,
  shebang: "#!/usr/bin/env node\n/*! Licence */\n",
  shebangAndImport: `#!/usr/bin/env node\nimport { gateway } from "./gateway.js";\nvoid gateway;\n`,
  strict: `"use strict";\n/*! Licence */\n`,
  strictAndImport: `"use strict";\nimport { gateway } from "./gateway.js";\nvoid gateway;\n`,
  jsxPragma: `/** @jsx h */\nimport { gateway } from "./gateway.js";\nvoid gateway;\n`,
  typeImport: `/*! Licence */\n\nimport type { Gateway } from "./gateway.js";\nexport type G = Gateway;\n`,
  exportFrom: `/*! Licence */\nexport { gateway } from "./gateway.js";\n`,
  licenceAndUsedImport: `/*! Licence */\nimport { gateway } from "./gateway.js"; export const g: typeof gateway = gateway;\n`,
  detachedLicenceAndUsedImport: `/*! Licence */\n\n/** Of the import. */\nimport { gateway } from "./gateway.js"; export const g: typeof gateway = gateway;\n`,
  documentedImport: `/** Of the import. */\nimport { gateway } from "./gateway.js";\nvoid gateway;\n`,
  triple: `/// <reference lib="es2021" />\n/*! Licence */\nexport const first = 1;\n`,
};

const TAGGED = `/** @redisLock businessFlag=f */
export async function f(): Promise<void> { await Promise.resolve(); }
`;
const WOVEN_BODY =
  /    const lock = lockweave\.open.*\n    while .*\n        void .*\n    try \{\n        lockweave\.assertHeld\(lock\);\n        (await Promise\.resolve\(\);)\n    \}\n    catch \(error\) \{\n.*\n    \}\n    finally \{\n.*\n    \}\n\}/;

for (const [format, packageType, removeComments] of [
  ["ES modules", "module", false],
  ["CommonJS", "commonjs", false],
  ["ES modules without comments", "module", true],
  ["CommonJS without comments", "commonjs", true],
] as const) {
  test.serial(`in ${format}, only the body and the import differ from the output of plain tsc`, async (t) => {
    const files = Object.entries(STARTS).map(([name, start]) => [`src/${name}.ts`, start + TAGGED]);
    const project = await makeProject(
      {
        ...(Object.fromEntries(files) as Record<string, string>),
        "src/gateway.ts": GATEWAY,
        "package.json": JSON.stringify({ type: packageType }),
      },
      { declaration: true, removeComments },
    );
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.like(await project.tsc("--outDir", "plain"), { code: 0, stdout: "" });
    const runtime =
      packageType === "module"
        ? `import * as lockweave from "lockweave/runtime";\n`
        : `const lockweave = require("lockweave/runtime");\n`;
    for (const name of Object.keys(STARTS)) {
      const woven = await project.read(`out/${name}.js`);
      const plain = await project.read(`plain/${name}.js`);
      t.true(woven.includes(runtime), woven);
      const unwoven = woven.replace(runtime, "").replace(WOVEN_BODY, (_, body: string) => `    ${body}\n}`);
      t.is(
        unwoven,
        plain.replace("{ await Promise.resolve(); }", "{\n    await Promise.resolve();\n}"),
        name,
      );
      t.is(await project.read(`out/${name}.d.ts`), await project.read(`plain/${name}.d.ts`), name);
      t.regex(
        woven.split(runtime)[0] ?? "",
        /^(#!.*\n|"use strict";\n|\/[/*].*\n|\n|Object\.def.*\n|exports\..*\n|.*gateway.*\n)*$/,
        name,
      );
    }
  });
}

for (const [target, module, settings] of [
  ["es2017", "commonjs", {}],
  ["es2018", "nodenext", {}],
  ["es2019", "esnext", {}],
  ["es2020", "preserve", {}],
  ["es2021", "nodenext", { verbatimModuleSyntax: true }],
  ["es2022", "commonjs", { removeComments: true }],
  ["esnext", "esnext", { verbatimModuleSyntax: true }],
  ["esnext", "node20", { useDefineForClassFields: false }],
] as const) {
  const title = `${module} for ${target} with ${JSON.stringify(settings)}`;
  test.serial(`${title} runs under locks`, async (t) => {
    const isNode = module.startsWith("node");
    const project = await makeProject(
      {
        ...FILES,
        "package.json": JSON.stringify({ type: module === "commonjs" ? "commonjs" : "module" }),
        "calls.mjs": `
import { configure, memoryStore } from "lockweave";
import { OrderService, count } from "./out/order.js";
const keys = [];
const store = memoryStore();
const { acquire } = store;
store.acquire = (request, timeoutMs) => { keys.push(request.key); return acquire.call(store, request, timeoutMs); };
configure({ store, woven: false });
console.log(await new OrderService().pay("A1"), await count(), keys.join());
`,
      },
      { target, lib: ["es2022"], module, ...(isNode ? {} : { moduleResolution: "bundler" }), ...settings },
    );
    t.like(await project.tspc(), { code: 0, stdout: "" });
    t.like(await project.run("calls.mjs"), {
      code: 0,
      stdout: "paid A1 1 LOCK_payOrder_A1,LOCK_count\n",
      stderr: "",
    });
    const emitted = await project.read("out/order.js");
    t.notRegex(emitted, /\(0, lockweave|__import|__await|__generator/);
  });
}

const EXPORTED = `/** @redisLock businessFlag=f keyName=id */
export async function f(id: string): Promise<string> { return id; }
`;

for (const [module, ofTs, ofMts, ofCts] of [
  ["commonjs", "const lockweave = require(", "import * as lockweave from ", "const lockweave = require("],
  ["esnext", "import * as lockweave from ", "import * as lockweave from ", "const lockweave = __importStar("],
  ["es2015", "import * as lockweave from ", "import * as lockweave from ", "const lockweave = __importStar("],
  ["preserve", "import * as lockweave from ", "import * as lockweave from ", "const lockweave = require("],
  [
    undefined,
    "import * as lockweave from ",
    "import * as lockweave from ",
    "const lockweave = __importStar(",
  ],
] as const) {
  test.serial(
    `with module ${module}, .ts, .mts, and .cts each load the runtime in their own format`,
    async (t) => {
      const files = { "src/a.ts": EXPORTED, "src/b.mts": EXPORTED, "src/c.cts": EXPORTED };
      const project = await makeProject(files, { module, moduleResolution: "bundler" });
      t.like(await project.tspc(), { code: 0, stdout: "" });
      for (const [file, runtime] of [
        ["a.js", ofTs],
        ["b.mjs", ofMts],
        ["c.cjs", ofCts],
      ] as const) {
        t.true(
          (await project.read(`out/${file}`)).includes(`\n${runtime}`) ||
            (await project.read(`out/${file}`)).startsWith(runtime),
          file,
        );
      }
    },
  );
}

test.serial("with module preserve, a file with CommonJS syntax runs as CommonJS", async (t) => {
  const project = await makeProject(
    {
      "package.json": "{}",
      "src/pay.ts": `import lockweave = require("lockweave");
lockweave.configure({ store: lockweave.memoryStore() });
/** @redisLock businessFlag=pay keyName=id */
async function pay(id: string): Promise<string> { return id + " under " + lockweave.currentLock().key; }
export = pay;
`,
    },
    { module: "preserve", moduleResolution: "bundler" },
  );
  t.like(await project.tspc(), { code: 0, stdout: "" });
  t.deepEqual(await project.run("--eval", 'require("./out/pay.js")("A1").then(console.log)'), {
    code: 0,
    stdout: "A1 under LOCK_pay_A1\n",
    stderr: "",
  });
});

for (const settings of [{ module: "nodenext" }, { module: "commonjs", moduleResolution: "bundler" }]) {
  test.serial(
    `JavaScript with CommonJS syntax keeps its exports with module ${settings.module}`,
    async (t) => {
      const project = await makeProject(
        {
          "package.json": "{}",
          "src/pay.js": `/** @redisLock businessFlag=pay keyName=order.id
 * @param {{ id: string }} order */
exports.pay = async (order) => order.id + " under " + lockweave.currentLock().key;
const lockweave = require("lockweave");
`,
          "src/main.js": `const { configure, memoryStore } = require("lockweave");
const { pay } = require("./pay.js");
configure({ store: memoryStore() });
pay({ id: "A1" }).then(console.log);
`,
        },
        { allowJs: true, checkJs: true, declaration: true, types: ["node"], ...settings },
      );
      t.like(await project.tsc("--outDir", "plain"), { code: 0, stdout: "" });
      t.like(await project.tspc(), { code: 0, stdout: "" });
      t.is(await project.read("out/pay.d.ts"), await project.read("plain/pay.d.ts"));
      t.deepEqual(await project.run("out/main.js"), {
        code: 0,
        stdout: "A1 under LOCK_pay_A1\n",
        stderr: "",
      });
    },
  );
}
