import test from "ava";
import type { Files } from "../project";
import { bundlerNamed, projectOf } from "./bundlers";
import { INPUTS, WOVEN } from "./fixtures";
import { isMatrix } from "../../support/suites";

/** A plugin that records its input in `seen` and returns an empty module. */
const ROLLUP_LIKE = `
const seen = {};
const see = {
  name: "see",
  enforce: "pre",
  transform: {
    order: "pre",
    handler(code, id) {
      const file = path.relative(process.cwd(), id);
      if (!(file in woven)) return; // A module of the bundler.
      seen[file] = code;
      return { code: "", map: null };
    },
  },
};
`;

const LOADERS = `
const seen = {};
globalThis.see = (id, code) => (seen[path.relative(process.cwd(), id)] = code);
fs.writeFileSync("see.cjs", "module.exports = function (code) { globalThis.see(this.resourcePath, code); return ''; };");
const options = {
  context: process.cwd(),
  entry: files.map((file) => "./" + file),
  module: { rules: [{ test: /src/, type: "javascript/auto", use: path.resolve("see.cjs") }] },
};
const run = (tool, plugins) => new Promise((resolve, reject) =>
  tool({ ...options, plugins }, (error, stats) => (error ?? stats.hasErrors() ? reject(error ?? stats.toString()) : resolve())));
`;

/** The script of each bundler, which builds `files` with the plugins `weaves`. */
const LIGHT: Readonly<Record<string, string>> = {
  Rollup: `${ROLLUP_LIKE}
const { rollup } = await import("rollup");
await rollup({ input: files, plugins: [...weaves, see] });`,
  Rolldown: `${ROLLUP_LIKE}
const { build } = await import("rolldown");
await build({ input: files, write: false, plugins: [...weaves, see] });`,
  Vite: `${ROLLUP_LIKE}
const { build } = await import("vite");
await build({ configFile: false, logLevel: "silent", build: { ssr: true, write: false, rollupOptions: { input: files } }, plugins: [...weaves, see] });`,
  // esbuild does not expose the text between plugins, so the outputs are compared.
  esbuild: `
const { build, transform } = await import("esbuild");
const settings = { tsconfigRaw: {}, jsx: "preserve" };
const { outputFiles } = await build({ ...settings, entryPoints: files, outdir: "out", write: false, plugins: weaves });
const built = new Map(outputFiles.map(({ path: file, text }) => [path.basename(file).replace(/\\.\\w+$/, ""), text]));
const seen = {};
for (const [file, text] of Object.entries(woven)) {
  const loader = file.endsWith("x") ? "tsx" : /\\.\\w?js$/.test(file) ? "js" : "ts";
  const { code } = await transform(text, { ...settings, loader });
  const { name } = path.parse(file);
  seen[file] = built.get(name) === code ? text : built.get(name);
}`,
};

const HEAVY: Readonly<Record<string, string>> = {
  // tsup runs esbuild internally, so its output is compared with its output for the woven texts.
  tsup: `
const { build } = await import("tsup");
const outputsOf = async (dir, esbuildPlugins) => {
  const entry = files.map((file) => path.join(dir, file));
  const outDir = path.resolve(dir, "out");
  await build({ entry, outDir, bundle: false, format: "esm", config: false, silent: true, splitting: false, esbuildPlugins });
  return new Map(fs.readdirSync(outDir).map((file) => [path.parse(file).name, fs.readFileSync(path.join(outDir, file), "utf8").replaceAll("woven/src", "src")]));
};
for (const [file, text] of Object.entries(woven)) {
  fs.mkdirSync("woven/src", { recursive: true });
  fs.writeFileSync("woven/" + file, text);
}
const [made, expected] = [await outputsOf(".", weaves), await outputsOf("woven", [])];
const seen = {};
for (const [file, text] of Object.entries(woven)) {
  const { name } = path.parse(file);
  seen[file] = made.has(name) && made.get(name) === expected.get(name) ? text : made.get(name);
}`,
  tsdown: `${ROLLUP_LIKE}
const { build } = await import("tsdown");
await build({ entry: files, config: false, dts: false, logLevel: "silent", plugins: [...weaves, see] });`,
  webpack: `${LOADERS}
await run((await import("webpack")).default, weaves);`,
  Rspack: `${LOADERS}
await run((await import("@rspack/core")).rspack, weaves);`,
};

/** The entry point for bundlers that use another bundler's plugins. */
const ENTRIES: Readonly<Record<string, string>> = { tsup: "esbuild", tsdown: "rolldown" };

/** Returns the numbers of plugins to test with. */
function timesOf(name: string): readonly number[] {
  const isFast = name === "Rollup";
  if (isFast || name === "esbuild") return isMatrix ? (isFast ? [] : [2]) : isFast ? [1, 2] : [1];
  return isMatrix ? [1, 2] : [];
}

for (const [name, script] of Object.entries({ ...LIGHT, ...HEAVY })) {
  for (const times of timesOf(name)) {
    const twice = times === 1 ? "" : ", also with two plugins";
    test(`${name}: weaves every fixture to the text that weave() returns${twice}`, async (t) => {
      t.timeout(300_000);
      const project = await projectOf(bundlerNamed(name), {
        ...INPUTS,
        "woven.json": JSON.stringify(WOVEN),
        "see.mjs": `import fs from "node:fs";
import path from "node:path";
import lockweave from "lockweave/${ENTRIES[name] ?? name.toLowerCase()}";
const woven = JSON.parse(fs.readFileSync("woven.json", "utf8"));
const files = Object.keys(woven);
const weaves = [${"lockweave(),".repeat(times)}];
${script}
fs.writeFileSync("seen.json", JSON.stringify(seen));
`,
      });
      const { code, stderr } = await project.run("see.mjs");
      t.is(code, 0, stderr);
      const seen = JSON.parse(await project.read("seen.json")) as Files;
      t.true(Object.keys(WOVEN).length > 30);
      for (const [file, text] of Object.entries(WOVEN)) t.is(seen[file], text, file);
    });
  }
}
