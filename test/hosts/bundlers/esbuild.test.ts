import test from "ava";
import { inMatrix } from "../../support/suites";
import { bundle, bundlerNamed, projectOf } from "./bundlers";

const esbuild = bundlerNamed("esbuild");

test("esbuild: marks the wrong attribute, even after non-ASCII characters", async (t) => {
  const main = `/** @redisLock businessFlag=größe→😀 keyNmae=id */\nexport async function pay(id: string) {}\n`;
  const { stderr } = await bundle(await projectOf(esbuild, { "src/main.ts": main }), esbuild);
  const lines = stderr.split("\n");
  const marked = lines.findIndex((line) => line.includes("keyNmae=id"));
  const [before = ""] = (lines[marked] ?? "").split("keyNmae");
  const marks = /~+/.exec(lines[marked + 1] ?? "");
  t.is(marks?.index, Array.from(before).length, stderr);
  t.is(marks?.[0], "~~~~~~~");
});

inMatrix("esbuild: a file loaded as text is not woven", async (t) => {
  const text = `/** @redisLock businessFlag=pay */\nexport async function pay() {}\n`;
  const project = await projectOf(esbuild, {
    "src/main.ts": `import asked from "./asked.ts" with { type: "text" };
import told from "./told.txt.ts";
console.log(JSON.stringify([asked, told]));
`,
    "src/asked.ts": text,
    "src/told.txt.ts": text,
  });
  const config = await project.read("esbuild.config.mjs");
  await project.write({
    "esbuild.config.mjs": config.replace("bundle: true", 'bundle: true, loader: { ".txt.ts": "text" }'),
  });
  t.like(await bundle(project, esbuild), { code: 0 });
  t.deepEqual(JSON.parse((await project.run("dist/main.js")).stdout), [text, text]);
});

test("esbuild: files with custom extensions, or with none, are woven if their loader is for code", async (t) => {
  const pay = (flag: string): string =>
    `/** @redisLock businessFlag=${flag} */\nexport async function ${flag}() { const x = <any>1; return x; }\n`;
  const project = await projectOf(esbuild, {
    "src/main.ts": `import { one } from "./one.es";
import { two } from "./two.part+tsx";
import { three } from "./three";
console.log(one, two, three);
`,
    "src/one.es": pay("one"),
    "src/three": pay("three"),
    "src/two.part+tsx": pay("two").replace("<any>1", "<p>1</p>"),
  });
  const config = await project.read("esbuild.config.mjs");
  const loader = JSON.stringify({ ".es": "ts", ".part+tsx": "tsx", "": "ts" });
  await project.write({
    "esbuild.config.mjs": config.replace("bundle: true", `bundle: true, loader: ${loader}`),
  });
  t.like(await bundle(project, esbuild), { code: 0 });
  const code = await project.read("dist/main.js");
  t.deepEqual(code.match(/(?<=businessFlag: ")\w+(?=")/g), ["one", "two", "three"]);
});

test("esbuild: CommonJS files are woven and run in each output format", async (t) => {
  const project = await projectOf(esbuild, {
    "src/main.ts": `import { configure, memoryStore, shutdown } from "lockweave";
import orders from "./orders.cjs";
import { refund } from "./refunds.cjs";
configure({ store: memoryStore() });
void Promise.all([orders.pay("A1"), refund("A1")]).then((keys) => { console.log(...keys); return shutdown(); });
`,
    "src/orders.cjs": `const { currentLock } = require("lockweave");
/** @redisLock businessFlag=pay keyName=id */
exports.pay = async (id) => currentLock().key;
`,
    "src/refunds.cts": `/** @redisLock businessFlag=refund keyName=id */
async function refund(id: string): Promise<string> { return id; }
module.exports = { refund };
`,
  });
  const config = await project.read("esbuild.config.mjs");
  const all = config.replace(
    'packages: "external"',
    'banner: { js: process.argv[3] ?? "" }, packages: "external"',
  );
  const banner = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;
  for (const [format, head] of [
    ["esm", banner],
    ["cjs", ""],
  ] as const) {
    const name = format === "esm" ? "dist/main.js" : "dist/main.cjs";
    await project.write({
      "esbuild.config.mjs": all
        .replace('"esm"', `"${format}"`)
        .replace('outdir: "dist"', `outfile: "${name}"`),
    });
    t.like(await project.run("esbuild.config.mjs", "", head), { code: 0 });
    const { stdout, stderr } = await project.run(name);
    t.is(stdout, "LOCK_pay_A1 A1\n", stderr);
    t.is((await project.read(name)).match(/\.acquire\(/g)?.length, 2);
  }
});

/** Returns a build script for contents from stdin. */
const ofStdin = (stdin: string): string => `import { build } from "esbuild";
import lockweave from "lockweave/esbuild";
const stdin = { resolveDir: ".", ...${stdin} };
const bundled = { bundle: true, platform: "node", format: "esm", packages: "external", outfile: "dist/main.js", sourcemap: true };
await build({ ...bundled, stdin, plugins: [lockweave()] }).catch(() => process.exit(1));
`;

const PAY = `/** @redisLock businessFlag=pay */
export async function pay() { throw new Error("stopped"); }
`;

test("esbuild: contents from stdin are woven, with a source map to their own lines", async (t) => {
  const main = `import { configure, memoryStore } from "lockweave";
${PAY}configure({ store: memoryStore() });
pay().catch((error: Error) => console.log(error.stack?.match(/main\\.\\w+:\\d+:\\d+/)?.[0]));
`;
  const project = await projectOf(esbuild, {});
  const options = `loader: "ts", sourcefile: "src/main.ts"`;
  for (const contents of [JSON.stringify(main), `Buffer.from(${JSON.stringify(main)})`]) {
    await project.write({ "esbuild.config.mjs": ofStdin(`{ contents: ${contents}, ${options} }`) });
    t.like(await bundle(project, esbuild), { code: 0, stderr: "" });
    t.like(await project.run("--enable-source-maps", "dist/main.js"), {
      code: 0,
      stdout: "main.ts:3:37\n",
      stderr: "",
    });
  }
});

inMatrix("esbuild: contents from stdin are woven with each code loader", async (t) => {
  const project = await projectOf(esbuild, {});
  for (const loader of ["js", "jsx", "ts", "tsx"]) {
    await project.write({
      "esbuild.config.mjs": ofStdin(`{ contents: ${JSON.stringify(PAY)}, loader: "${loader}" }`),
    });
    t.like(await bundle(project, esbuild), { code: 0, stderr: "" }, loader);
    t.regex(await project.read("dist/main.js"), /businessFlag: "pay"/, loader);
  }
});

inMatrix(
  "esbuild: an invalid tag in contents from stdin is an error, and text contents stay unchanged",
  async (t) => {
    const project = await projectOf(esbuild, {});
    const wrong = JSON.stringify(PAY.replace(" */", " keyName=no lockTime=30000 */"));
    await project.write({ "esbuild.config.mjs": ofStdin(`{ contents: ${wrong} }`) });
    const { code, stderr } = await bundle(project, esbuild);
    t.is(code, 1);
    t.regex(stderr, /LW1202: The function has no parameter `no`[^]*<stdin>:1:40:/);
    const text = JSON.stringify(PAY);
    await project.write({ "esbuild.config.mjs": ofStdin(`{ contents: ${text}, loader: "text" }`) });
    t.like(await bundle(project, esbuild), { code: 0 });
    t.true((await project.read("dist/main.js")).includes(JSON.stringify(PAY).slice(1, 20)));
  },
);

inMatrix(
  "esbuild: in Bun, which ignores errors and warnings of plugins, the plugin throws and prints them",
  async (t) => {
    const project = await projectOf(esbuild, {});
    const asBun = `Object.defineProperty(process.versions, "bun", { value: "1.4.5" });
const plugin = require("lockweave/esbuild")();
const onLoad = (_, load) => {
  load({ path: "src/pay.ts" }).then(() => console.log("loaded"), (error) => console.log(error.message));
};
plugin.setup({ initialOptions: {}, onLoad });
`;
    await project.write({ "src/pay.ts": PAY.replace(" */", " lockTime=30000 */"), "as-bun.cjs": asBun });
    const warned = await project.run("as-bun.cjs");
    t.is(warned.stdout, "loaded\n");
    t.regex(warned.stderr, /^src\/pay\.ts\(1,42\): warning LW1111: .*\n$/);
    await project.write({ "src/pay.ts": PAY.replace(" */", " keyName=no */") });
    const { stdout } = await project.run("as-bun.cjs");
    t.is(stdout, "src/pay.ts(1,41): error LW1202: The function has no parameter `no`. It has none.\n");
  },
);

test("esbuild: a configure() re-exported by the application fails closed, and its error says why", async (t) => {
  const project = await projectOf(esbuild, {
    "src/main.ts": `import { memoryStore } from "lockweave";
import { configure } from "./locks";
/** @redisLock businessFlag=pay */
export async function pay() {}
configure({ store: memoryStore() });
`,
    "src/locks.ts": `export { configure } from "lockweave";\n`,
  });
  t.like(await bundle(project, esbuild), { code: 0 });
  const { code, stderr } = await project.run("dist/main.js");
  t.not(code, 0);
  t.regex(stderr, /LockNotWovenError/);
  t.regex(stderr, /Call configure\(\) directly by its imported name/);
});

inMatrix("esbuild: a tag in a component that another plugin loads is a build error", async (t) => {
  const component = (tag: string): string => `<script lang="ts">
/** ${tag} */
export async function pay(): Promise<number> { return 1; }
</script>
`;
  const project = await projectOf(esbuild, {
    "src/main.ts":
      'import { pay } from "./Pay.vue"; import { pay as ship } from "./Ship.vue"; console.log(pay, ship);',
    "src/Pay.vue": component("@redisLock businessFlag=pay"),
    "src/Ship.vue": component("Has no @redisLock."),
  });
  const vue = `{ name: "vue", setup: (build) => build.onLoad({ filter: /[.]vue$/ }, ({ path }) =>
  ({ loader: "ts", contents: readFileSync(path, "utf8").replace(/<.*>/g, "") })) }`;
  const config = await project.read("esbuild.config.mjs");
  await project.write({
    "esbuild.config.mjs": `import { readFileSync } from "node:fs";\n${config.replace("lockweave()]", `lockweave(), ${vue}]`)}`,
  });
  const { code, stderr } = await bundle(project, esbuild);
  t.is(code, 1);
  t.regex(stderr, /LW1404: Compilers drop comments in components[^]*src\/Pay\.vue:2:4/);
  t.notRegex(stderr, /Ship/);
  await project.write({ "src/Pay.vue": component("Pays.") });
  t.like(await bundle(project, esbuild), { code: 0 });
});
