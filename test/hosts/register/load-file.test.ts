import module, { syncBuiltinESMExports } from "node:module";
import { relative } from "node:path";
import { pathToFileURL } from "node:url";
import { create } from "ts-node";
import type { Format } from "../../../transformer/hosts/register/compilers/format";
import { hookImport } from "../../../transformer/hosts/register/import-hook";
import { loadFile, pathOf } from "../../../transformer/hosts/register/load-file";
import { load as loadInThread } from "../../../transformer/hosts/register/loader-thread";
import { weaveFile } from "../../../transformer/hosts/register/tagged-file";
import { makeProject, type Files, type Project } from "../project";
import { inMatrixSerially } from "../../support/suites";

// The code that the hooks return to Node for a file, tested in this process. runs.test.ts runs it with Node.

const JAVASCRIPT = `/** @redisLock businessFlag=pay keyName=id */
export async function pay(id) { return id; }
`;
const TYPESCRIPT = JAVASCRIPT.replace("(id)", "(id: string): Promise<string>");
const SCRIPT = `${JAVASCRIPT.replace("export ", "")}exports.pay = pay;\n`;
const LOCK = /lockweave\.open\(/;

function withFiles(files: Files): Promise<Project> {
  return makeProject({ "package.json": "{}", ...files });
}

/** Returns the source map at the end of the code. */
function mapIn(code: string): {
  readonly sources: readonly string[];
  readonly sourcesContent?: readonly string[];
} {
  const [, map = ""] =
    /\n\/\/# sourceMappingURL=data:application\/json;[^,]*base64,(\S+)\s*$/.exec(code) ?? [];
  return JSON.parse(Buffer.from(map, "base64").toString()) as { sources: string[] };
}

inMatrixSerially("a tagged file loads with its lock and with a source map to the file", async (t) => {
  const project = await withFiles({ "pay.mjs": JAVASCRIPT });
  const loaded = loadFile(project.path("pay.mjs"));
  t.is(loaded?.format, "module");
  t.regex(loaded?.source ?? "", LOCK);
  t.deepEqual(mapIn(loaded?.source ?? "").sources, [pathToFileURL(project.path("pay.mjs")).href]);
});

inMatrixSerially("files without tags and files that are not scripts are ignored", async (t) => {
  const project = await withFiles({
    "plain.mjs": "export const a = 1;\n",
    "tags.json": `"@redisLock businessFlag=pay"`,
    "tags.node": JAVASCRIPT,
    "tags.d": JAVASCRIPT,
  });
  for (const file of ["plain.mjs", "tags.json", "tags.node", "tags.d"]) {
    t.is(loadFile(project.path(file)), undefined, file);
  }
  t.is(loadFile("node:fs.thing"), undefined);
});

inMatrixSerially("a `?` in the name of a directory begins no query", async (t) => {
  const path = "v1.0?beta/pay.mjs";
  const project = await withFiles({ [path]: JAVASCRIPT });
  for (const query of ["", "?again=1"]) t.regex(loadFile(project.path(path + query))?.source ?? "", LOCK);
});

inMatrixSerially("a path with a query loads the same file", async (t) => {
  const project = await withFiles({ "pay.mjs": JAVASCRIPT });
  const path = project.path("pay.mjs");
  t.deepEqual(loadFile(`${path}?again=1\n2`), loadFile(path));
});

inMatrixSerially("a file has the format that Node reports, or else that of its module syntax", async (t) => {
  const project = await withFiles({ "module.js": JAVASCRIPT, "script.js": SCRIPT, command: SCRIPT });
  const format = (file: string, reported?: string): string | undefined =>
    loadFile(project.path(file), reported)?.format;
  t.is(format("module.js"), "module");
  t.is(format("script.js"), "commonjs");
  t.is(format("module.js", "module"), "module");
  t.is(format("command"), "commonjs");
  t.is(format("command", "commonjs"), "commonjs");
});

inMatrixSerially("a file that imports only types loads the runtime in the format of the file", async (t) => {
  const text = `import type { Order } from "./order.js";\n${TYPESCRIPT.replace("export ", "")}void pay("A1");\n`;
  const project = await withFiles({ "pay.ts": text });
  const woven = (format: Format): string => weaveFile(project.path("pay.ts"), format)?.code ?? "";
  t.regex(woven("module"), /^import \* as lockweave from/);
  t.regex(woven("commonjs"), /^const lockweave = require\(/);
});

inMatrixSerially("the extension determines whether a file is TypeScript or JavaScript", async (t) => {
  const text = (types: string): string =>
    `/** @redisLock businessFlag=pay keyType=CLASS keyName=order fieldName=no keyClass=Order */\nexports.pay = async (order${types}) => 1;\n`;
  const project = await withFiles({ "pay.cts": text(": Order"), pay: text(""), "pay.cjs": text("") });
  const woven = (file: string): string => weaveFile(project.path(file), "commonjs")?.code ?? "";
  t.is(woven("pay"), woven("pay.cjs"));
  t.not(woven("pay.cts").replace(": Order", ""), woven("pay.cjs"));
});

inMatrixSerially("a command without an extension is woven as JavaScript", async (t) => {
  const project = await withFiles({ "bin/pay": SCRIPT });
  t.regex(loadFile(project.path("bin/pay"))?.source ?? "", LOCK);
});

inMatrixSerially("an installed file is not woven if it has no tag, or has its locks", async (t) => {
  const start = 'import { configure } from "lockweave";\nconfigure({});\n';
  const project = await withFiles({ "start.mjs": start, "pay.mjs": JAVASCRIPT });
  const woven = loadFile(project.path("pay.mjs"))?.source ?? "";
  t.regex(woven, LOCK);
  t.regex(loadFile(project.path("start.mjs"))?.source ?? "", /configure\(\{\}, "woven"/);
  await project.write({ "node_modules/shop/start.mjs": start, "node_modules/shop/pay.mjs": woven });
  t.is(loadFile(project.path("node_modules/shop/start.mjs")), undefined);
  t.is(loadFile(project.path("node_modules/shop/pay.mjs")), undefined);
});

inMatrixSerially(
  "installed code built without the weave is an error, by tags in its code or its declarations",
  async (t) => {
    const tag = "/** @redisLock businessFlag=pay keyName=id */";
    const plain = "exports.pay = async function pay(id) { return id; };\n";
    const project = await withFiles({
      "node_modules/own/index.js": SCRIPT,
      "node_modules/two/index.js": SCRIPT + SCRIPT.replaceAll("pay", "refund"),
      "node_modules/declared/index.cjs": plain,
      "node_modules/declared/index.d.cts": `${tag}\nexport declare function pay(id: string): Promise<string>;\n`,
      "node_modules/untagged/index.js": plain,
      "node_modules/untagged/index.d.ts": "export declare function pay(id: string): Promise<string>;\n",
      "node_modules/sources/index.ts": TYPESCRIPT,
    });
    const load = (file: string): unknown => loadFile(project.path(`node_modules/${file}`));
    for (const [file, name] of [
      ["own/index.js", "index.js"],
      ["declared/index.cjs", "index.cjs"],
      ["sources/index.ts", "index.ts"],
    ] as const) {
      const { message } = t.throws(() => load(file));
      const words = `node_modules/${file}: error LW1403: This imports \`pay\` with \`@redisLock\`, but \`${name}\` does not contain`;
      t.true(message.includes(words), message);
    }
    t.throws(() => load("two/index.js"), { message: /This imports `pay`, `refund` with/ });
    t.is(load("untagged/index.js"), undefined);
  },
);

inMatrixSerially("an error in a tag is thrown, and a warning is printed to stderr", async (t) => {
  const project = await withFiles({
    "wrong.mjs": JAVASCRIPT.replace("keyName=id", "keyName=idd"),
    "doubtful.mjs": JAVASCRIPT.replace("keyName=id", "keyName=id lockTime=30000"),
  });
  const place = relative(process.cwd(), project.path("")).replaceAll("\\", "/");
  t.throws(() => loadFile(project.path("wrong.mjs")), {
    message: new RegExp(`^${place}/?wrong\\.mjs\\(1,41\\): error LW1202: `),
  });
  const { write } = process.stderr;
  const written: string[] = [];
  process.stderr.write = (text: string | Uint8Array): boolean => written.push(String(text)) > 0;
  try {
    t.regex(loadFile(project.path("doubtful.mjs"))?.source ?? "", LOCK);
  } finally {
    process.stderr.write = write;
  }
  t.regex(written.join(""), /doubtful\.mjs\(1,\d+\): warning LW1111: .*\n$/);
});

inMatrixSerially("each project uses the defaults of its nearest tsconfig.json", async (t) => {
  const config = (lockTime: string): string =>
    JSON.stringify({
      compilerOptions: { plugins: [{ name: "other" }, { transform: "lockweave", defaults: { lockTime } }] },
    });
  const project = await withFiles({
    "a/tsconfig.json": config("11s"),
    "a/deep/pay.mjs": JAVASCRIPT,
    "b/tsconfig.json": config("22s"),
    "b/pay.mjs": JAVASCRIPT,
    "c/tsconfig.json": "{}",
    "c/pay.mjs": JAVASCRIPT,
  });
  const source = (file: string): string => loadFile(project.path(file))?.source ?? "";
  t.regex(source("a/deep/pay.mjs"), /lockTime: "11s"/);
  t.regex(source("b/pay.mjs"), /lockTime: "22s"/);
  const [withoutDefaults = ""] = source("c/pay.mjs").split("\n//#");
  t.regex(withoutDefaults, LOCK);
  t.false(withoutDefaults.includes("lockTime"));
});

const REGISTERED = Symbol.for("ts-node.register.instance");

inMatrixSerially(
  "a registered ts-node compiles the files that it does not ignore, with source maps to the files",
  async (t) => {
    const project = await withFiles({
      "pay.ts": TYPESCRIPT,
      "script.ts": TYPESCRIPT.replace("export ", "").concat("module.exports = { pay };\n"),
      "vendor/pay.js": SCRIPT,
      pay: SCRIPT,
    });
    const command = loadFile(project.path("pay"));
    const service = create({
      cwd: project.dir,
      transpileOnly: true,
      compilerOptions: { module: "commonjs", target: "es2022" },
    });
    Object.defineProperty(process, REGISTERED, { value: service, configurable: true });
    t.teardown(() => Reflect.deleteProperty(process, REGISTERED));
    const path = project.path("pay.ts");
    const loaded = loadFile(path);
    t.is(loaded?.format, "commonjs");
    t.regex(loaded?.source ?? "", LOCK);
    t.regex(loaded?.source ?? "", /exports\.pay = pay/);
    const { sources, sourcesContent } = mapIn(loaded?.source ?? "");
    t.deepEqual([sources.length, sourcesContent], [1, [TYPESCRIPT]]);
    t.is(loadFile(path, "module-typescript")?.format, "module");
    t.is(loadFile(project.path("script.ts"))?.format, "commonjs");
    t.false(loadFile(project.path("vendor/pay.js"))?.source.includes("exports.pay = pay;\nexports"));
    t.deepEqual(loadFile(project.path("pay")), command);
  },
);

inMatrixSerially("pathOf() returns the path of a file URL, and nothing for other URLs", (t) => {
  t.is(pathOf("file:///app/a%20b.ts"), "/app/a b.ts");
  t.is(pathOf("node:fs"), undefined);
  t.is(pathOf("https://example.org/a.ts"), undefined);
});

// ---- in the loader thread -------------------------------------------------------------------------------

inMatrixSerially(
  "the loader thread of older Node versions weaves modules, and CommonJS if Node passes its source",
  async (t) => {
    const project = await withFiles({ "pay.mjs": JAVASCRIPT, "script.cjs": SCRIPT, "plain.mjs": "" });
    const url = (file: string): string => pathToFileURL(project.path(file)).href;
    const asked: string[] = [];
    const next =
      (source: string | undefined) =>
      (name: string): { format: string; source: string | undefined } => {
        asked.push(name);
        return { format: "theirs", source };
      };
    const load = async (
      name: string,
      source?: string,
    ): Promise<{ source?: unknown; format?: unknown; shortCircuit?: unknown }> =>
      await loadInThread(
        name,
        { conditions: [], format: undefined, importAssertions: {}, importAttributes: {} },
        next(source),
      );
    const loaded = await load(url("pay.mjs"));
    t.like(loaded, { format: "module", shortCircuit: true });
    t.regex(String(loaded.source), LOCK);
    t.deepEqual(asked, []);
    t.regex(String((await load(url("script.cjs"), SCRIPT)).source), LOCK);
    t.deepEqual(await load(url("script.cjs")), { format: "theirs", source: undefined });
    t.deepEqual(await load(url("plain.mjs"), "text"), { format: "theirs", source: "text" });
    t.deepEqual(await load("node:fs", "text"), { format: "theirs", source: "text" });
    t.is(asked.length, 4);
  },
);

// ---- with other hooks -----------------------------------------------------------------------------------

type Load = (url: string, context: object, next: (url: string, context: object) => unknown) => unknown;
type Hooking = Record<"register" | "registerHooks", unknown>;

/** Stands in for other versions of Node. Its `load` calls the hooks as Node does, the last registered one first. */
function standIn(version: string): {
  readonly hooks: readonly Load[];
  readonly registered: readonly unknown[];
  load(url: string): unknown;
  restore(): void;
} {
  const hooked = module as unknown as Hooking;
  const { register, registerHooks } = hooked;
  const { node } = process.versions;
  const hooks: Load[] = [];
  const registered: unknown[] = [];
  const setVersion = (value: string): void => void Object.defineProperty(process.versions, "node", { value });
  setVersion(version);
  hooked.register = (hook: unknown) => registered.push(hook);
  hooked.registerHooks = ({ load }: { load: Load }) => {
    hooks.push(load);
    return { deregister: () => void hooks.splice(hooks.indexOf(load), 1) };
  };
  const ask = (url: string, context: object, at: number): unknown =>
    hooks[at]?.(url, context, (name, inner) => ask(name, inner, at - 1)) ?? "Node's";
  return {
    hooks,
    load: (url) => ask(url, {}, hooks.length - 1),
    registered,
    restore() {
      Object.assign(hooked, { register, registerHooks });
      setVersion(node);
      syncBuiltinESMExports();
    },
  };
}

inMatrixSerially("hooks registered later receive only files without tags", async (t) => {
  const node = standIn("26.0.0");
  t.teardown(() => node.restore());
  hookImport();
  const seen: string[] = [];
  const { registerHooks } = module as unknown as { registerHooks(hooks: { load: Load }): object };
  const theirs = registerHooks({
    load: (url, context, next) => {
      seen.push(url);
      return next(url, context);
    },
  });
  t.deepEqual(Object.keys(theirs), ["deregister"]);
  const project = await withFiles({ "pay.mjs": JAVASCRIPT, "plain.mjs": "" });
  const url = (file: string): string => pathToFileURL(project.path(file)).href;
  t.like(node.load(url("pay.mjs")), { format: "module", shortCircuit: true });
  t.deepEqual(seen, []);
  t.is(node.load(url("plain.mjs")), "Node's");
  t.is(node.load("node:fs"), "Node's");
  t.deepEqual(seen, [url("plain.mjs"), "node:fs"]);
  t.deepEqual(node.registered, []);
  t.is(node.hooks.length, 2);
});

for (const [version, isInThread] of [
  ["22.18.0", true],
  ["22.22.2", true],
  ["22.22.3", false],
  ["22.23.0", false],
  ["23.11.0", true],
  ["24.11.0", true],
  ["24.11.1", false],
  ["24.12.0", false],
  ["25.0.0", true],
  ["25.1.0", false],
  ["26.0.0", false],
] as const) {
  inMatrixSerially(
    `Node ${version} loads tagged files ${isInThread ? "in the loader thread, with its hook registered last" : "in the calling thread"}`,
    (t) => {
      const node = standIn(version);
      t.teardown(() => node.restore());
      hookImport();
      const ours = pathToFileURL(require.resolve("lockweave/register/thread"));
      t.deepEqual(node.registered, isInThread ? [ours] : []);
      const hooked = module as unknown as { register(...hooks: unknown[]): void };
      hooked.register("theirs");
      t.deepEqual(node.registered, isInThread ? [ours, "theirs", ours] : ["theirs"]);
    },
  );
}
