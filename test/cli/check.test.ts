import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import test from "ava";
import ts from "typescript";
import {
  makeProject,
  PACKAGE,
  PLUGIN,
  tsconfig,
  type Files,
  type Project,
  type Settings,
} from "../hosts/project";
import { uncheckedProject } from "../../transformer/cli/unconfigured";
import { parser } from "../../transformer/parser/parser";
import { checkBundled } from "../../transformer/verify/check";
import { weave } from "../../transformer/weave/weave";
import { Watch } from "../hosts/watch";
import { lockweave } from "./command";
import { linkTypeScript7 } from "./tools";
import { inMatrixSerially, outsideMatrixSerially } from "../support/suites";
import { ofScript } from "../support/terminal";

const ORDER = `import { work } from "./work.js";
export class OrderService {
  /** @redisLock businessFlag=payOrder keyName=orderNo lockTime=20 */
  async pay(orderNo: string): Promise<string> {
    return work(orderNo);
  }
  /** @redisLock businessFlag=refund keyName=order.id,tenant onFailure=skip reentrant=true */
  async refund(order: { id: string }, tenant: string): Promise<string | undefined> {
    return work(order.id + tenant);
  }
}
/** @redisLock businessFlag=tick */
export async function* tick(): AsyncGenerator<string> { yield work("tick"); }
`;
const WORK = `export const work = async (text: string): Promise<string> => text;\n`;
const FILES = { "src/order.ts": ORDER, "src/work.ts": WORK };
const ALL = "The locks of all 3 tags are in the output. `tspc` checks the types in tags.\n";
const ALL_AND_TYPES = "The locks of all 3 tags are in the output. The types in tags were checked.\n";

/** Checks the project. The lines of the result are in the order of the source. */
async function check(project: Project, ...args: string[]): Promise<{ code: number | null; said: string }> {
  const { code, stdout, stderr } = await lockweave(project, "check", ...args);
  return { code, said: stdout + stderr };
}

/** Builds a project with tspc. */
async function built(files: Files, settings: Settings = {}): Promise<Project> {
  const project = await makeProject(files, settings);
  const { code, stdout } = await project.tspc();
  if (code !== 0) throw new Error(stdout);
  return project;
}

let compiled: Promise<string> | undefined;

/** The sample project with the output of tspc, which compiles it only once for all tests. */
async function builtSample(): Promise<Project> {
  compiled ??= built(FILES).then((project) => project.read("out/order.js"));
  return await makeProject({ ...FILES, "out/order.js": await compiled });
}

async function edit(project: Project, file: string, from: string | RegExp, to: string): Promise<void> {
  const text = await project.read(file);
  const edited = text.replace(from, to);
  if (edited === text) throw new Error(`There is no ${String(from)} in ${text}`);
  await project.write({ [file]: edited });
}

// ---- without a tsconfig.json ------------------------------------------------------------------------------

/** A project without a tsconfig.json, as with Vite, tsx, or plain Node. */
async function unconfigured(files: Files): Promise<Project> {
  const project = await makeProject(files);
  await rm(project.path("tsconfig.json"));
  return project;
}

const SOURCES_READ = (count: number): string =>
  `There is no tsconfig.json. Lockweave read ${count === 1 ? "the only source file" : `all ${count} source files`} in this directory and below, except for node_modules, dist, build, out, and coverage.\n`;

inMatrixSerially(
  "check without a tsconfig.json checks tags and their types, and prints how many sources it read",
  async (t) => {
    const project = await unconfigured({
      ...FILES,
      "dist/order.js": ORDER,
      "src/view.tsx": "export {};\n",
      "src/order.d.ts": "export {};\n",
    });
    t.deepEqual(await lockweave(project, "check"), {
      code: 0,
      stdout:
        "All 3 tags are valid. No output was checked. If you build this project, name the output with `--output`. The types in tags were checked.\n",
      stderr: SOURCES_READ(3),
    });
    await edit(project, "src/order.ts", "order.id,tenant", "order.nr,tenant");
    const { code, said } = await check(project);
    t.is(code, 1);
    t.true(
      said.includes("src/order.ts:7:52: TS2339: Property 'nr' does not exist on type '{ id: string; }'."),
      said,
    );
  },
);

const JS = `/** @redisLock businessFlag=pay keyName=orderNo */
export async function pay(orderNo) {
  return orderNo;
}
`;

inMatrixSerially("check without a tsconfig.json compares a bundle with the sources", async (t) => {
  const project = await unconfigured({ "main.mjs": JS, "dist/main.js": JS });
  const listed = await lockweave(project, "list");
  t.deepEqual([listed.code, listed.stderr], [0, SOURCES_READ(1)]);
  t.true(listed.stdout.endsWith("main.mjs:1  pay       LOCK_pay_{orderNo}\n"), listed.stdout);
  const { code, said } = await check(project, "--output", "dist");
  t.is(code, 1);
  t.true(said.includes("Cannot verify the lock of `pay`"), said);
  t.true(said.includes("-> Build again with Lockweave's plugin for your bundler"), said);
});

outsideMatrixSerially("check compares JavaScript with its bundle even if there is no compiler", async (t) => {
  const woven = weave("main.js", JS, { ts: parser(), module: "esm" })?.code ?? "";
  const project = await unconfigured({ "main.mjs": JS, "dist/main.js": woven, "unwoven.js": JS });
  const unchecked = uncheckedProject(parser(), project.path("tsconfig.json"), [project.path("main.mjs")]);
  t.false(unchecked.checksTypes);
  t.deepEqual(checkBundled([unchecked], ["dist"], project.dir), { tags: 1, unproved: [] });
  t.like(checkBundled([unchecked], ["unwoven.js"], project.dir), {
    tags: 1,
    unproved: [{ reason: "unwoven" }],
  });
});

outsideMatrixSerially("check of a bundle checks types even if tspc could check them", async (t) => {
  const project = await builtSample();
  const bundled = await check(project, "--output", "out");
  t.deepEqual(bundled, {
    code: 0,
    said: "The locks of all 3 tags are in the output. The types in tags were checked.\n",
  });
});

// ---- what is proved -------------------------------------------------------------------------------------

outsideMatrixSerially(
  "check verifies the output of tspc for every kind of file, as ES modules and as CommonJS",
  async (t) => {
    const files = {
      ...FILES,
      "src/a.mts": ORDER.replace("./work.js", "./work.mjs"),
      "src/work.mts": WORK,
      "src/b.cts": ORDER.replace("./work.js", "./work.cjs"),
      "src/work.cts": WORK,
      "src/c.js": `/** @redisLock businessFlag=c keyName=id */\nexport const c = async (id) => id;\n`,
    };
    for (const type of ["module", "commonjs"]) {
      const project = await built(
        { ...files, "package.json": JSON.stringify({ type }) },
        { allowJs: true, checkJs: false, strict: true, noImplicitAny: false },
      );
      const said = "The locks of all 10 tags are in the output. `tspc` checks the types in tags.\n";
      t.deepEqual(await check(project), { code: 0, said }, type);
    }
  },
);

for (const [title, settings] of Object.entries({
  "without outDir": { outDir: undefined, rootDir: undefined },
  "for ES2015": { target: "es2015", lib: ["es2022"] },
  "without comments, with inline source maps, and with its declarations elsewhere": {
    removeComments: true,
    inlineSourceMap: true,
    inlineSources: true,
    declaration: true,
    declarationDir: "types",
    emitBOM: true,
    newLine: "crlf",
  },
  "with the defaults of the project": {
    plugins: [{ ...PLUGIN, defaults: { lockTime: 7, retryTimes: 1_000_000, watchdog: false } }],
  },
})) {
  inMatrixSerially(`check verifies the output of tspc ${title}`, async (t) => {
    t.deepEqual(await check(await built(FILES, settings)), { code: 0, said: ALL });
  });
}

inMatrixSerially(
  "check verifies projects that reference each other, and reports missing output of one",
  async (t) => {
    const into = (outDir: string): Settings => ({ composite: true, rootDir: undefined, outDir });
    const project = await makeProject({
      "tsconfig.json": JSON.stringify({ files: [], references: [{ path: "shop" }, { path: "orders" }] }),
      "orders/tsconfig.json": tsconfig(into("../out/orders"), {}),
      "orders/deep/order.ts": ORDER,
      "orders/deep/work.ts": WORK,
      "shop/tsconfig.json": tsconfig(into("../out/shop"), { references: [{ path: "../orders" }] }),
      "shop/shop.ts": `import { tick } from "../orders/deep/order.js";
/** @redisLock businessFlag=shop */
export const shop = async () => { for await (const text of tick()) return text; return ""; };
`,
    });
    t.like(await project.tspc("-b"), { code: 0, stdout: "" });
    const said = "The locks of all 4 tags are in the output. `tspc` checks the types in tags.\n";
    t.deepEqual(await check(project), { code: 0, said });

    await rm(project.path("out/orders/deep/order.js"));
    const { code, said: missing } = await check(project);
    t.is(code, 1);
    t.regex(missing, /^orders\/deep\/order\.ts:3:7: .*`out\/orders\/deep\/order\.js` does not exist\.\n/);
    t.regex(missing, /tspc -b --force/);
  },
);

outsideMatrixSerially("check names each project whose types it leaves to tspc", async (t) => {
  const into = (outDir: string, others: Settings = {}): Settings => ({
    composite: true,
    rootDir: undefined,
    outDir,
    ...others,
  });
  const project = await makeProject({
    "tsconfig.json": JSON.stringify({ files: [], references: [{ path: "orders" }, { path: "plain" }] }),
    "orders/tsconfig.json": tsconfig(into("../out/orders"), {}),
    "orders/order.ts": ORDER,
    "orders/work.ts": WORK,
    "plain/tsconfig.json": tsconfig(into("../out/plain", { plugins: [] }), {}),
    "plain/plain.ts": "export const plain = 1;\n",
  });
  t.like(await project.tspc("-b"), { code: 0, stdout: "" });
  const said =
    "The locks of all 3 tags are in the output. The types in tags were checked, except for `orders/tsconfig.json`, where `tspc` checks them.\n";
  t.deepEqual(await check(project), { code: 0, said });
});

outsideMatrixSerially(
  "check verifies functions whose names have quotes, line breaks, or non-Latin letters",
  async (t) => {
    const project = await built({
      "src/a.ts": `\uFEFFexport const 注文 = {
  /** @redisLock businessFlag='q"uo' keyName="'\`x' + id" */
  async "it's \\"\\u2028\\n"(id: string) { return id; },
};
`,
    });
    t.deepEqual(await check(project), {
      code: 0,
      said: "The lock of the only tag is in the output. `tspc` checks the types in tags.\n",
    });
  },
);

outsideMatrixSerially("check verifies output that a formatter has changed", async (t) => {
  const project = await builtSample();
  await project.run(require.resolve("prettier/bin/prettier.cjs"), "--write", "out", "--single-quote");
  t.regex(await project.read("out/order.js"), /site: 'OrderService\.pay'/);
  t.deepEqual(await check(project), { code: 0, said: ALL });
});

// ---- what is not proved ---------------------------------------------------------------------------------

outsideMatrixSerially("check reports each tag of a file whose output is missing", async (t) => {
  const project = await builtSample();
  await rm(project.path("out/order.js"));
  const { code, said } = await check(project);
  t.is(code, 1);
  t.deepEqual(said.match(/^src\/order\.ts:\d+(?=.*`out\/order\.js` does not exist)/gm), [
    "src/order.ts:3",
    "src/order.ts:7",
    "src/order.ts:12",
  ]);
});

outsideMatrixSerially(
  "a type error in a tag is reported if noEmitOnError keeps tspc from writing the output",
  async (t) => {
    const wrong = {
      "src/order.ts": ORDER.replace("keyName=order.id,", "keyName=order.nr,"),
      "src/work.ts": WORK,
    };
    const project = await makeProject(wrong, { noEmitOnError: true });
    t.is((await project.tspc()).code, 1);
    const { code, said } = await check(project);
    t.is(code, 1);
    t.regex(said, /^src\/order\.ts:7:\d+: TS2339: Property 'nr' does not exist/m);
    t.regex(said, /^src\/order\.ts:3:7: .*`out\/order\.js` does not exist/m);
  },
);

for (const [what, from, to, message] of [
  ["an option changed", "lockTime=20", "lockTime=30", /:3:7: .*lockTime=20s instead of lockTime=30s\./],
  ["an option was removed", "lockTime=20", "", /:3:7: .*lockTime=20s instead of lockTime=\(default\)\./],
  [
    "the flag changed",
    "=payOrder",
    "=payOrders",
    /:3:7: .*businessFlag=payOrder instead of businessFlag=payOrders\./,
  ],
  ["the parts of the key changed places", "=order.id,tenant", "=tenant,order.id", /:7:7: .*another key/],
  ["a part of the key was removed", "=order.id,tenant", "=order.id", /:7:7: .*another key/],
  [
    "an error class was added",
    "lockTime=20",
    "lockTime=20 onFailure=TypeError",
    /:3:7: .*another key, error class/,
  ],
  ["the action on failure changed", "skip", "throw", /:7:7: .*onFailure=skip instead of onFailure=throw/],
] as const) {
  outsideMatrixSerially(`check reports an output that was built before ${what}`, async (t) => {
    const project = await builtSample();
    await edit(project, "src/order.ts", from, to);
    const { code, said } = await check(project);
    t.is(code, 1);
    t.regex(said, message);
    t.is(said.match(/Cannot verify/g)?.length, 1);
    t.regex(said, /Build again/);
  });
}

outsideMatrixSerially(
  "check reports an output that was built before the project's defaults changed",
  async (t) => {
    const project = await builtSample();
    await project.write({
      "tsconfig.json": tsconfig({ plugins: [{ ...PLUGIN, defaults: { fencing: true } }] }),
    });
    t.like(await check(project), { code: 1 });
  },
);

outsideMatrixSerially("check reports an output that was built before a tag was added", async (t) => {
  const project = await builtSample();
  await project.write({ "out/work.js": "export const work = async (text) => text;\n" });
  await edit(project, "src/work.ts", "export", "/** @redisLock businessFlag=work */\nexport");
  const { code, said } = await check(project);
  t.is(code, 1);
  t.regex(said, /^src\/work\.ts:1:5: Cannot verify the lock of `work`: `out\/work\.js` does not lock it\.\n/);
});

inMatrixSerially(
  "check does not accept woven code in comments, strings, templates, or source maps",
  async (t) => {
    const project = await builtSample();
    const woven = await project.read("out/order.js");
    t.like(await project.tsc("--inlineSourceMap"), { code: 0 });
    const unwoven = await project.read("out/order.js");
    const asText = woven.replaceAll(/[`\\$]/g, String.raw`\$&`);
    await project.write({
      "out/order.js": `/*${woven.replaceAll("*/", "* /")}*/
${unwoven}
export const text = ${JSON.stringify(woven)};
export const template = \`${asText}\`;
//# sourceMappingURL=data:application/json;base64,${Buffer.from(woven).toString("base64")}
`,
    });
    const { code, said } = await check(project);
    t.is(code, 1);
    t.is(said.match(/does not lock it/g)?.length, 3);
    t.like(await check(project, "--output", "out"), { code: 1 });
  },
);

/** Two functions with the same name, options, and key. */
const TWINS = `const run = <T>(work: () => Promise<T>): Promise<T> => work();
await run(
  /** @redisLock businessFlag=pay */ async () => "one");
await run(
  /** @redisLock businessFlag=pay */ async () => "two".length);
export {};
`;

inMatrixSerially("check requires a lock on each of two functions with the same name", async (t) => {
  const project = await built({ "src/twins.ts": TWINS });
  t.like(await check(project), { code: 0 });
  t.like(await check(project, "--output", "out"), { code: 0 });

  const locked = await project.read("out/twins.js");
  const [first = "", second = ""] = locked.match(/async \(\) => \{[^]*?\n\}/g) ?? [];
  for (const fn of [first, second]) {
    await project.write({ "out/twins.js": locked.replace(fn, "async () => 1") });
    const { code, said } = await check(project);
    t.is(code, 1);
    for (const line of [3, 5])
      t.regex(said, new RegExp(`^src/twins\\.ts:${line}:.*contains only 1 of 2 locks`, "m"));
    t.like(await check(project, "--output", "out"), { code: 1 });
  }

  // As in bundles that share code.
  const copies = locked.replace(second, first);
  await project.write({ "out/twins.js": copies, "out/again.js": copies });
  const { code, said } = await check(project, "--output", "out");
  t.is(code, 1);
  t.regex(
    said,
    /^src\/twins\.ts:3:7: .*`out` contains 4 locks of that name and key for 2 functions, but they may be copies of one\.$/m,
  );
});

inMatrixSerially(
  "check does not accept two locked copies of a function in place of another function with the same name",
  async (t) => {
    const pay = (work: string): string => `const work = async (id: string) => ${work};
/** @redisLock businessFlag=pay keyName=id */
export async function pay(id: string) { return work(id); }
`;
    for (const [first, second] of [
      [pay("id"), pay("id + 1")], // Their bodies are alike.
      [pay("id"), pay("id").replace("return work", "await work(id); return work")],
    ]) {
      const project = await built({ "src/a.ts": first ?? "", "src/b.ts": second ?? "" });
      const [a, b] = [await project.read("out/a.js"), await project.read("out/b.js")];
      const unlocked = "export async function pay(id) { return id + 1; }\n";
      const minified = a.replace("return await work(id)", "return (void 0, await work(id))");

      await project.write({
        "one/all.js": `${a}${b.replaceAll(/(?<![."])\b(pay|work|lockweave)\b(?!")/g, "$1_2")}`,
      });
      const inOne = await check(project, "--output", "one");
      t.is(inOne.code, 0, inOne.said);

      for (const copy of [a, minified]) {
        await project.write({
          "two/a.js": a,
          "two/b.js": `${unlocked}${copy.replaceAll(/(?<!\.)\bpay\b(?=\()/g, "paid")}`,
        });
        const { code, said } = await check(project, "--output", "two");
        t.is(code, 1);
        t.regex(
          said,
          /^src\/a\.ts:2:5: .*contains 2 locks of that name and key for 2 functions, but they may be copies of one\.$/m,
        );
        t.regex(said, /^src\/b\.ts:2:5: /m);
        t.regex(said, /^-> Rename functions that share a name and a key/m);
      }
    }
  },
);

inMatrixSerially(
  "check uses compiled bodies to tell apart functions with the same name and key in two files",
  async (t) => {
    const pay = (work: string): string =>
      `/** @redisLock businessFlag=pay keyName=id */\nexport async function pay(id: string) { return id.${work}(); }\n`;
    const project = await built({ "src/a.ts": pay("trim"), "src/b.ts": pay("toString") });
    t.like(await check(project, "--output", "out"), { code: 0 });
  },
);

outsideMatrixSerially("check does not accept a lock on another function with the same name", async (t) => {
  const project = await built({
    "src/a.ts": `export const first = {
  /** @redisLock businessFlag=pay */
  pay: async () => 1,
};
export const second = { pay: async () => 1 };
`,
  });
  const locked = await project.read("out/a.js");
  const [fn = ""] = /async \(\) => \{[^]*?\n {4}\}/.exec(locked) ?? [];
  const [before = "", between = "", after = ""] = locked
    .split(fn)
    .flatMap((part) => part.split("async () => 1"));
  await project.write({ "out/a.js": `${before}async () => 1${between}${fn}${after}` });
  const { code, said } = await check(project);
  t.is(code, 1);
  t.regex(said, /^src\/a\.ts:2:7: .*another key, error class, place in the file/);
});

outsideMatrixSerially(
  "check reports an output that releases its lock before the returned promise settles",
  async (t) => {
    const project = await builtSample();
    await edit(project, "out/order.js", "return await work(orderNo)", "return work(orderNo)");
    for (const args of [[], ["--output", "out"]]) {
      const { code, said } = await check(project, ...args);
      t.is(code, 1);
      t.regex(said, /^src\/order\.ts:3:7: .*releases its lock before the returned promise settles\.\n->/);
    }
  },
);

outsideMatrixSerially("check reports an output whose body is outside of its lock", async (t) => {
  const project = await builtSample();
  await edit(
    project,
    "out/order.js",
    /return await (work\(orderNo\));([^]*?release\(lock\);\s*\})/,
    "$2 return $1;",
  );
  const { code, said } = await check(project);
  t.is(code, 1);
  t.regex(said, /^src\/order\.ts:3:7: .*its lock does not surround its body\.\n->/);
});

outsideMatrixSerially("check reports an invalid tag even if the output has a lock", async (t) => {
  const project = await builtSample();
  await edit(project, "src/order.ts", "keyName=orderNo", "keyName=orderN");
  const { code, said } = await check(project);
  t.is(code, 1);
  t.regex(said, /^src\/order\.ts:3:48: LW1202: /);
});

inMatrixSerially("check reports a missing or incomplete plugin entry", async (t) => {
  for (const plugins of [[], [{ transform: "lockweave/transformer" }], [{ transform: "./other.js" }]]) {
    const project = await makeProject(FILES, { plugins });
    t.like(await project.tsc(), { code: 0 });
    const { code, said } = await check(project);
    t.is(code, 1);
    t.regex(said, /\n-> Add \{ .*"transformProgram": true \} to `plugins` in `tsconfig\.json`\.\n/);
  }
});

inMatrixSerially(
  "check requires --output if the project writes no code, but reports invalid tags first",
  async (t) => {
    for (const settings of [{ noEmit: true }, { emitDeclarationOnly: true, declaration: true }]) {
      const project = await makeProject(FILES, settings);
      const { code, said } = await check(project);
      t.is(code, 2);
      t.regex(
        said,
        new RegExp(`\`${Object.keys(settings)[0]}\`, so TypeScript writes no code\\. Fix: .*\`--output\``),
      );
      t.true(
        said.includes("If no tool writes output, `npx lockweave check --watch` checks only the tags."),
        said,
      );
      await project.write({ "src/order.ts": ORDER.replace("order.id,tenant", "order.no,tenant") });
      const wrong = await check(project);
      t.is(wrong.code, 1);
      t.is(
        wrong.said,
        "src/order.ts:7:52: TS2339: Property 'no' does not exist on type '{ id: string; }'.\n",
      );
    }
  },
);

inMatrixSerially(
  "check exits with 2 if --output names no output, and accepts files, directories, and globs",
  async (t) => {
    const project = await builtSample();
    for (const path of ["nowhere", "out/*.cjs", "nowhere/**/*.js", "src"]) {
      const { code, said } = await check(project, "--output", path);
      t.is(code, 2, path);
      t.true(said.includes(`--output ${path}`), said);
    }
    for (const path of ["out", "out/order.js", "**/*.js", "o?t/{a,order}.js"]) {
      t.deepEqual(await check(project, "--output", path), { code: 0, said: ALL_AND_TYPES }, path);
    }
  },
);

outsideMatrixSerially("check does not accept the sources themselves as output", async (t) => {
  const project = await makeProject(FILES);
  t.like(await check(project, "--output", "src/order.ts"), { code: 1 });
});

outsideMatrixSerially(
  "check of a bundle without locks suggests the bundler's plugin, and not tsconfig.json",
  async (t) => {
    const project = await makeProject({ ...FILES, "bundle.js": "" }, { plugins: undefined });
    const { code, said } = await check(project, "--output", "bundle.js");
    t.is(code, 1);
    t.true(
      said.includes("\n-> Build with Lockweave's plugin for your bundler, or compile with `tspc`"),
      said,
    );
    t.true(said.includes("\n-> If no entry of the bundle imports the function, import it"), said);
    t.false(said.includes("tsconfig.json"), said);
  },
);

outsideMatrixSerially(
  "check of a bundle blames the target only if the async functions are gone, and else names the input of the tool",
  async (t) => {
    const project = await builtSample();
    const woven = await project.read("out/order.js");
    const lowered = ts.transpileModule(woven, { compilerOptions: { target: ts.ScriptTarget.ES5 } });
    await project.write({ "bundle/old.js": lowered.outputText });
    const old = await check(project, "--output", "bundle");
    t.is(old.code, 1);
    t.is(old.said.match(/it has no `await`, so its lock cannot be recognized/g)?.length, 3, old.said);
    t.true(old.said.includes("\n-> Set the `target` of bundlers and minifiers to es2018 or later"), old.said);

    await project.write({ "bundle/old.js": woven.replaceAll(/while \(/g, "work(); while (") });
    const changed = await check(project, "--output", "bundle");
    t.is(changed.code, 1);
    t.is(changed.said.match(/its lock does not surround its body/g)?.length, 3, changed.said);
    t.true(
      changed.said.includes("\n-> If a tool changed the locks, name its input with `--output`"),
      changed.said,
    );
    t.false(changed.said.includes("target"), changed.said);
  },
);

for (const major of [6, 7]) {
  outsideMatrixSerially(`check without tspc checks the types in tags with TypeScript ${major}`, async (t) => {
    const tagged = `/** @redisLock businessFlag=pay keyName=orderNo.size */
export async function pay(orderNo: string): Promise<void> {}
/** @redisLock businessFlag=ship keyName=order */
export async function ship(order: { id: string }): Promise<void> {}
/** @redisLock businessFlag=send onFailure=skip */
export async function send(): Promise<string> { return ""; }
`;
    const project = await makeProject({ "src/a.ts": tagged, "bundle.js": "" }, { plugins: undefined });
    if (major === 7) await linkTypeScript7(project);
    const { code, said } = await check(project, "--output", "bundle.js");
    t.is(code, 1);
    const ofTypes = said.split("\n").filter((line) => /: TS\d+: |^ {2}/.test(line));
    const [first, second = "", advice = "", third, fixedType = ""] = ofTypes;
    t.is(first, "src/a.ts:1:49: TS2339: Property 'size' does not exist on type 'string'.");
    t.regex(second, /^src\/a\.ts:3:42: TS2345: .* parameter of type 'KeyValue'\.$/);
    t.regex(advice, /^ {2}A key is a string, .*`keyName=order\.id`/);
    t.is(third, "src/a.ts:5:34: TS2322: Type 'undefined' is not assignable to type 'string'.");
    t.regex(fixedType, /^ {2}If the body is skipped, .* return type `Promise<string \| undefined>`/);
  });
}

inMatrixSerially(
  "check of a TypeScript 7 project accepts only what TypeScript 7 emits for woven files",
  async (t) => {
    const project = await makeProject(FILES);
    await linkTypeScript7(project);
    await project.run("node_modules/typescript/bin/tsc");
    t.like(await lockweave(project, "list"), { code: 0, stderr: "" });
    const { code, said } = await check(project);
    t.is(code, 1);
    t.true(said.includes("-> Compile with `lockweave build`. "), said);
    t.like(await lockweave(project, "build"), { code: 0, stdout: "" });
    const calls = "Calls inside locks were not analyzed, because this needs TypeScript 5.9 or 6.";
    t.deepEqual(await check(project), { code: 0, said: `${ALL_AND_TYPES.trim()} ${calls}\n` });
  },
);

const WRONG = `/** @redisLock businessFlag=ship lockTime=x */
export async function ship() {}
/** @redisLok businessFlag=pay */
export async function pay() {}
/** @redisLock businessFlag=post lockTime=30000 */
export async function post() {}
`;

outsideMatrixSerially(
  "check --json lists problems, warnings, and unverified tags, and piped text has no colors",
  async (t) => {
    const project = await makeProject({ ...FILES, "src/pay.ts": WRONG });
    const json = await lockweave(project, "check", "--json");
    type Row = {
      readonly file: string;
      readonly line: number;
      readonly code: string;
      readonly reason: string;
    };
    const { tags, problems, warnings, unproved, fixes } = JSON.parse(json.stdout) as {
      tags: number;
      problems: Row[];
      warnings: Row[];
      unproved: Row[];
      fixes: string[];
    };
    t.deepEqual([json.code, tags, json.stderr], [1, 4, ""]);
    t.like(problems, [
      { file: "src/pay.ts", line: 1, code: "LW1104" },
      { file: "src/pay.ts", line: 3, code: "LW1007" },
    ]);
    t.like(warnings, [{ file: "src/pay.ts", line: 5, code: "LW1111" }]);
    t.like(unproved, [{ file: "src/order.ts", line: 3, reason: "missing" }]);
    t.true(fixes.length > 0);

    const { said } = await check(project);
    t.false(said.includes("\u001B["));
    const places = said.match(/^src\/\w+\.ts:\d+:\d+: (?:warning: )?(?:LW\d+)?/gm) ?? [];
    t.deepEqual(
      [places[0], ...places.filter((place) => / LW(?!1111)/.test(place)), places.at(-1)],
      [
        "src/pay.ts:5:43: warning: LW1111",
        "src/pay.ts:1:43: LW1104",
        "src/pay.ts:3:5: LW1007",
        "src/pay.ts:5:5: ",
      ],
    );
  },
);

const onLinux = process.platform === "linux" ? outsideMatrixSerially : test.skip;
onLinux("check in a terminal colors problems", async (t) => {
  const project = await makeProject({ "src/pay.ts": WRONG });
  const command = [process.execPath, join(PACKAGE, "dist/transformer/cli/main.js"), "check"];
  const env = { ...process.env, TERM: "xterm", NO_COLOR: undefined, FORCE_COLOR: undefined };
  const terminal = spawn("script", ofScript(command), { cwd: project.dir, env });
  let shown = "";
  terminal.stdout.setEncoding("utf8").on("data", (text: string) => void (shown += text));
  t.deepEqual(await once(terminal, "close"), [1, null]);
  t.true(shown.includes("\u001B[31mLW1104\u001B[39m"), shown);
});

// ---- --watch --------------------------------------------------------------------------------------------

outsideMatrixSerially(
  "check --watch reports errors in tags, including type errors, after each change",
  async (t) => {
    const wrong = ORDER.replace("keyName=order.id,", "keyName=order.idd,").replace(
      "lockTime=20",
      "lockTime=x",
    );
    const project = await makeProject({ ...FILES, "src/order.ts": wrong });
    const watch = new Watch(project, [join(PACKAGE, "dist/transformer/cli/main.js"), "check", "--watch"]);
    t.teardown(() => watch.stop());
    const lines = (await watch.build()).split("\n").filter((line) => line.startsWith("src/"));
    t.is(lines.length, 2, lines.join("\n"));
    t.true(
      lines[0]?.startsWith(`${await project.placeOf("x */", "src/order.ts")}: error TS901104: LW1104: `),
      lines[0],
    );
    t.is(
      lines[1],
      `${await project.placeOf("idd,", "src/order.ts")}: error TS2339: Property 'idd' does not exist on type '{ id: string; }'.`,
    );
    await project.write({ "tsconfig.json": "{" });
    t.regex(await watch.build(), /\nerror TS\d+: .*tsconfig\.json.*\n.*Found 1 error\./);
    await project.write({ "tsconfig.json": tsconfig(), "src/order.ts": ORDER });
    let said = await watch.build();
    while (!said.includes("Found 0 errors.")) said = await watch.build(); // Both files may come one by one.
    t.pass();
  },
);
