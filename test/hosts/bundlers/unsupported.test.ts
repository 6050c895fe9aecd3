import test from "ava";
import { UNSUPPORTED, type Unsupported } from "../../../runtime/base/unsupported";
import { isMatrix, outsideMatrix } from "../../support/suites";
import type { SetName } from "../installed";
import type { Files, Finished } from "../project";
import { bundle, bundlerNamed, projectOf, TESTED } from "./bundlers";
import { placeIn } from "./sources";

// Builds for environments where Lockweave cannot run. The plugin must report only code that would run there. Browser
// builds of frameworks often have locked functions in their sources, but not in their output.

const PAY = `export const format = (price: number): string => price.toFixed(2);

/** @redisLock businessFlag=payOrder keyName=orderNo */
export async function pay(orderNo: string): Promise<string> {
  return "paid " + orderNo;
}
`;
const CALLS_IT: Files = {
  "src/pay.ts": PAY,
  "src/main.ts": `import { pay } from "./pay.js";\npay("A1").then(console.log);\n`,
};
const IMPORTS_BY_HAND: Files = {
  "src/main.ts": `// A lock.\nimport { withLock } from "lockweave";\nwithLock("k", {}, () => {});\n`,
};
const CALLS_ITS_NEIGHBOUR: Files = {
  "src/pay.ts": PAY,
  "src/main.ts": `import { format } from "./pay.js";\nconsole.log(format(2));\n`,
};
/** A guarded import, as in `register()` of Next.js, which runs only in Node. */
const IMPORTS_PERHAPS: Files = {
  "src/register.ts": `export async function register(): Promise<void> {
  if ("never" in globalThis) await import("lockweave").then(({ withLock }) => console.log(withLock));
}
`,
};

interface Build {
  readonly bundler: string;
  /** Distinguishes several builds for one environment. */
  readonly how?: string;
  readonly place: Unsupported;
  readonly file: string;
  readonly config: string;
  readonly inMatrix?: boolean;
  /** The sets with more packages. */
  readonly sets?: readonly SetName[];
  /** Whether the bundler removes unused code. */
  readonly shakes?: boolean;
}

const vite = (others = ""): Pick<Build, "bundler" | "file" | "config"> => ({
  bundler: "Vite",
  file: "vite.config.ts",
  config: `import lockweave from "lockweave/vite";
export default { plugins: [lockweave()], build: { rollupOptions: { input: "src/main.ts" } }, ${others} };
`,
});

const esbuild = (others = ""): Pick<Build, "bundler" | "file" | "config"> => ({
  bundler: "esbuild",
  file: "esbuild.config.mjs",
  config: `import { build } from "esbuild";
import lockweave from "lockweave/esbuild";
const plugins = [lockweave()];
await build({ entryPoints: ["src/main.ts"], bundle: true, format: "esm", outdir: "dist", plugins, ${others} });
`,
});

const rolldown = (): Pick<Build, "bundler" | "file" | "config"> => ({
  bundler: "Rolldown",
  file: "rolldown.config.mjs",
  config: `import lockweave from "lockweave/rolldown";
export default { input: "src/main.ts", platform: "browser", plugins: [lockweave()] };
`,
});

const rollup = (): Pick<Build, "bundler" | "file" | "config" | "sets" | "inMatrix"> => ({
  bundler: "Rollup",
  inMatrix: true,
  file: "rollup.config.mjs",
  sets: ["rollup"],
  config: `import { nodeResolve } from "@rollup/plugin-node-resolve";
import lockweave from "lockweave/rollup";
import esbuild from "rollup-plugin-esbuild";
const plugins = [lockweave(), nodeResolve({ browser: true, extensions: [".ts", ".js", ".mjs"] }), esbuild({ target: "es2022" })];
export default { input: "src/main.ts", plugins, output: { dir: "dist" } };
`,
});

const LOADERS: Readonly<Record<string, string>> = {
  webpack: `loader: "ts-loader", options: { transpileOnly: true, compilerOptions: { module: "esnext" } }`,
  Rspack: `loader: "builtin:swc-loader", options: { jsc: { target: "es2022", parser: { syntax: "typescript" } } }`,
};
const webpack = (
  bundler: string,
  { mode = "production", conditions = "" } = {},
): Pick<Build, "bundler" | "file" | "config"> => ({
  bundler,
  file: `${bundler.toLowerCase()}.config.mjs`,
  config: `import lockweave from "lockweave/${bundler.toLowerCase()}";
export default {
  mode: "${mode}",
  target: ["web", "es2022"],
  entry: { main: "./src/main.ts" },
  resolve: { extensions: [".ts", "..."], extensionAlias: { ".js": [".ts", ".js"] }, conditionNames: [${conditions}"..."] },
  module: { rules: [{ test: /\\.ts$/, ${LOADERS[bundler] ?? ""} }] },
  plugins: [lockweave()],
};
`,
});

const BUILDS: readonly Build[] = [
  { place: "browser", ...vite() },
  {
    place: "browser",
    how: "ssr.target",
    inMatrix: true,
    ...vite(`ssr: { target: "webworker", noExternal: true }`),
  },
  { place: "workers", inMatrix: true, ...vite(`resolve: { conditions: ["workerd"] }`) },
  { place: "browser", ...esbuild() },
  { place: "edge", inMatrix: true, ...esbuild(`conditions: ["edge-light"]`) },
  { place: "workers", inMatrix: true, ...esbuild(`conditions: ["workerd", "worker", "browser"]`) },
  { place: "browser", inMatrix: true, ...rolldown() },
  { place: "browser", ...rollup() },
  ...["webpack", "Rspack"].flatMap((bundler): Build[] => [
    { place: "browser", ...webpack(bundler) },
    { place: "browser", how: "in development", shakes: false, ...webpack(bundler, { mode: "development" }) },
    { place: "edge", ...webpack(bundler, { conditions: `"edge-light", ` }) },
  ]),
];

const TESTED_BUILDS = BUILDS.filter(({ bundler, inMatrix = false }) =>
  inMatrix ? isMatrix : TESTED.some(({ name }) => name === bundler),
);

async function built({ bundler: name, file, config, sets = [] }: Build, files: Files): Promise<Finished> {
  const bundler = bundlerNamed(name);
  const project = await projectOf({ ...bundler, sets: [...(bundler.sets ?? []), ...sets] }, files);
  await project.write({ [file]: config });
  return bundle(project, bundler);
}

for (const build of TESTED_BUILDS) {
  const { bundler, how, place, shakes = true } = build;
  const { where, fix } = UNSUPPORTED[place];
  const title = `${bundler}, ${place}${how === undefined ? "" : `, ${how}`}`;
  const placeOf = (file: string, text: string, words: string): string => {
    const { line, column } = placeIn(text, words);
    return bundler === "esbuild" ? `${file}:${line}:${column - 1}: ` : `${file}(${line},${column}): error `;
  };

  test(`${title}: a locked function in the output is an error at its tag`, async (t) => {
    const { code, stdout, stderr } = await built(build, CALLS_IT);
    const output = stdout + stderr;
    t.not(code, 0, output);
    t.true(
      output.includes(`LW1409: \`pay\` is in a build that runs ${where}. Lockweave cannot run there.`),
      output,
    );
    t.true(output.includes(`Fix: ${fix}.`), output);
    t.true(output.includes(placeOf("src/pay.ts", PAY, "@redisLock")), output);
  });

  if (place === "browser" && how === undefined)
    test(`${title}: an import of lockweave in the output is an error at the import`, async (t) => {
      const { code, stdout, stderr } = await built(build, IMPORTS_BY_HAND);
      const output = stdout + stderr;
      t.not(code, 0, output);
      t.true(output.includes(`LW1409: \`lockweave\` is in a build that runs ${where}.`), output);
      t.true(
        output.includes(placeOf("src/main.ts", String(IMPORTS_BY_HAND["src/main.ts"]), '"lockweave"')),
        output,
      );
    });

  test(`${title}: code that is not in the output or may never run is not an error`, async (t) => {
    const imports = `import { register } from "./register.js";\nregister();\n`;
    const neighbour = shakes ? CALLS_ITS_NEIGHBOUR : {};
    const { code, stdout, stderr } = await built(build, {
      ...neighbour,
      ...IMPORTS_PERHAPS,
      "src/main.ts": `${imports}${neighbour["src/main.ts"] ?? ""}`,
    });
    t.is(code, 0, stdout + stderr);
  });
}

outsideMatrix("Vite: a locked function in a web worker is an error at its tag", async (t) => {
  for (const creation of [
    `new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });`,
    `import OwnWorker from "./worker.ts?worker";\nnew OwnWorker();`,
  ]) {
    const { code, stdout, stderr } = await built(
      { place: "browser", ...vite(`worker: { format: "es" }`) },
      {
        "src/pay.ts": PAY,
        "src/worker.ts": `import { pay } from "./pay.js";\npay("A1").then(console.log);\n`,
        "src/main.ts": `${creation}\n`,
      },
    );
    const output = stdout + stderr;
    t.not(code, 0, output);
    t.true(output.includes("src/pay.ts(3,5): error LW1409: `pay` is in a build"), output);
  }
});
