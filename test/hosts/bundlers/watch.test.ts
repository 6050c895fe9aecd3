import test from "ava";
import { bundlerNamed, projectOf } from "./bundlers";
import { isMatrix } from "../../support/suites";

/** The edits of a developer, in order. */
const VERSIONS = [
  ["a first version", "keyName=first"],
  ["a wrong one", "keyName=frist"],
  ["a better one", "keyName=second"],
] as const;

const text = (words: string): string => `/** @redisLock businessFlag=pay ${words} */
export async function pay(first: string, second: string) {
  return first + second;
}
`;

/** Scripts that call `saw` with each build or its error, and build again when the file changes. */
const LIGHT: Readonly<Record<string, string>> = {
  esbuild: `
import { context } from "esbuild";
import lockweave from "lockweave/esbuild";
const tell = { name: "tell", setup: (build) => build.onEnd(({ errors, outputFiles }) => saw(errors[0]?.text ?? outputFiles[0].text)) };
const watching = await context({ entryPoints: ["src/pay.ts"], write: false, logLevel: "silent", plugins: [lockweave(), tell] });
await watching.watch();
await over;
await watching.dispose();`,
  Rollup: `
import { watch } from "rollup";
import lockweave from "lockweave/rollup";
const strip = { name: "strip", transform: (code) => ({ code: code.replaceAll(": string", ""), map: null }) };
const output = { name: "output", generateBundle: (_, bundle) => saw(bundle["pay.js"].code) };
const watching = watch({ input: "src/pay.ts", external: /lockweave/, output: { dir: "dist" }, plugins: [lockweave(), strip, output] });
watching.on("event", async ({ code, error, result }) => {
  if (code === "ERROR") saw(error.message);
  await result?.close();
});
await over;
await watching.close();`,
  Rolldown: `
import { watch } from "rolldown";
import lockweave from "lockweave/rolldown";
const output = { name: "output", generateBundle: (_, bundle) => saw(bundle["pay.js"].code) };
const watching = watch({ input: "src/pay.ts", external: /lockweave/, output: { dir: "dist" }, plugins: [lockweave(), output] });
watching.on("event", async ({ code, error, result }) => {
  if (code === "ERROR") saw(error.message);
  await result?.close();
});
await over;
await watching.close();`,
  Vite: `
import { createServer } from "vite";
import lockweave from "lockweave/vite";
const server = await createServer({ configFile: false, logLevel: "silent", server: { middlewareMode: true, ws: false }, plugins: [lockweave()] });
const look = () => server.transformRequest("/src/pay.ts", { ssr: true }).then(({ code }) => saw(code), (error) => saw(error.message));
// One look after the other: one that began before a change may end after the next one.
let looked = look();
server.watcher.on("change", () => (looked = looked.then(look)));
await over;
await looked;
await server.close();`,
};

const HEAVY: Readonly<Record<string, string>> = {
  webpack: `
import webpack from "webpack";
import lockweave from "lockweave/webpack";
const options = { mode: "development", devtool: false, entry: "./src/pay.ts", target: "node", externals: /lockweave/, plugins: [lockweave()],
  module: { rules: [{ test: /ts$/, loader: "ts-loader", options: { transpileOnly: true } }] } };
const compiler = webpack(options);
const watching = compiler.watch({}, (error, stats) => saw(stats.compilation.errors[0]?.message ?? fs.readFileSync("dist/main.js", "utf8")));
await over;
await new Promise((resolve) => watching.close(resolve));`,
  Rspack: `
import { rspack } from "@rspack/core";
import lockweave from "lockweave/rspack";
const options = { mode: "development", devtool: false, entry: "./src/pay.ts", target: "node", externals: { "lockweave/runtime": "commonjs lockweave/runtime" }, plugins: [lockweave()],
  module: { rules: [{ test: /ts$/, loader: "builtin:swc-loader", options: { jsc: { parser: { syntax: "typescript" } } } }] } };
const compiler = rspack(options);
const watching = compiler.watch({}, (error, stats) => saw(stats.toJson({ errors: true }).errors[0]?.message ?? fs.readFileSync("dist/main.js", "utf8")));
await over;
await new Promise((resolve) => watching.close(resolve));`,
};

for (const [name, script] of Object.entries(isMatrix ? HEAVY : LIGHT)) {
  test(`${name}: a changed file is woven again, and an invalid tag is an error until it is fixed`, async (t) => {
    const project = await projectOf(bundlerNamed(name), {
      "src/pay.ts": text(VERSIONS[0][1]),
      "versions.json": JSON.stringify(VERSIONS.map(([, words]) => text(words))),
      "watch.mjs": `import fs from "node:fs";
const [, ...later] = JSON.parse(fs.readFileSync("versions.json", "utf8"));
const all = [];
let end;
const over = new Promise((resolve) => (end = resolve));
// A bundler that starts to watch only after a build misses earlier changes, so the file is touched repeatedly.
const saving = setInterval(() => fs.utimesSync("src/pay.ts", new Date(), new Date()), 50);
function saw(built) {
  const isEmpty = !/function pay|LW/.test(built); // The file was read while it was written.
  if (isEmpty || all.at(-1) === built) return;
  all.push(built);
  const next = later.shift();
  if (next === undefined) end();
  else fs.writeFileSync("src/pay.ts", next);
}
${script}
clearInterval(saving);
fs.writeFileSync("saw.json", JSON.stringify(all));
`,
    });
    const { code, stderr } = await project.run("watch.mjs");
    t.is(code, 0, stderr);
    const [first, wrong, better] = JSON.parse(await project.read("saw.json")) as string[];
    t.regex(first ?? "", /open\(\{[^}]*\}, first\)/);
    t.regex(wrong ?? "", /LW1202: The function has no parameter `frist`/);
    t.regex(better ?? "", /open\(\{[^}]*\}, second\)/);
  });
}
