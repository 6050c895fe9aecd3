import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";
import { PACKAGE, type Files } from "../project";
import { bundlerNamed, isMatrix, projectOf } from "./bundlers";

const FIXTURES = join(PACKAGE, "test/fixtures/weave");

/** The inputs, each under a name of its own. */
const INPUTS: Files = Object.fromEntries(
  readdirSync(FIXTURES).map((name) => {
    const input = readdirSync(join(FIXTURES, name)).find((file) => file.startsWith("input.")) ?? "";
    return [`src/${input.replace("input", name)}`, readFileSync(join(FIXTURES, name, input), "utf8")];
  }),
);

/** As every bundler takes them: what is CommonJS in the end is the bundler's business. */
const WOVEN: Files = Object.fromEntries(
  Object.entries(INPUTS).map(([file, text]) => [file, weave(file, text, { ts, module: "esm" })?.code ?? ""]),
);

/** Each writes to `seen` what comes to it, and gives the bundler something easy. */
const ROLLUP_LIKE = `
const seen = {};
const see = {
  name: "see",
  enforce: "pre",
  transform: {
    order: "pre",
    handler(code, id) {
      const file = path.relative(process.cwd(), id);
      if (!(file in woven)) return; // The bundler's own.
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

/** What each does with the `files`, by the plugins `weaves`. */
const SCRIPTS: Readonly<Record<string, string>> = {
  Rollup: `${ROLLUP_LIKE}
const { rollup } = await import("rollup");
await rollup({ input: files, plugins: [...weaves, see] });`,
  Rolldown: `${ROLLUP_LIKE}
const { build } = await import("rolldown");
await build({ input: files, write: false, plugins: [...weaves, see] });`,
  Vite: `${ROLLUP_LIKE}
const { build } = await import("vite");
await build({ configFile: false, logLevel: "silent", build: { ssr: true, write: false, rollupOptions: { input: files } }, plugins: [...weaves, see] });`,
  // Which tells nobody the text between: the outputs are compared.
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
  ...(isMatrix && {
    webpack: `${LOADERS}
await run((await import("webpack")).default, weaves);`,
    Rspack: `${LOADERS}
await run((await import("@rspack/core")).rspack, weaves);`,
  }),
};

for (const [name, script] of Object.entries(SCRIPTS)) {
  for (const times of isMatrix || name === "Rollup" ? [1, 2] : [1]) {
    const twice = times === 1 ? "" : ", when two plugins weave it too";
    test(`${name}: the text of every fixture is that which the weave makes${twice}`, async (t) => {
      t.timeout(180_000);
      const project = await projectOf(bundlerNamed(name), {
        ...INPUTS,
        "woven.json": JSON.stringify(WOVEN),
        "see.mjs": `import fs from "node:fs";
import path from "node:path";
import lockweave from "lockweave/${name.toLowerCase()}";
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
