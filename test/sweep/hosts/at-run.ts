import { join } from "node:path";
import { entryOf, type Files } from "../files";
import type { Setup } from "../setup";
import { fileOfTool } from "./tools";
import type { Host, Session } from "./session";

// Hosts that compile each file when Node loads it. They have no build step.

const TS_NODE_ESM = `import { register } from "node:module";
register("ts-node/esm", import.meta.url);
`;

const HOOKS = `import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { change, compile, TAGGED } from "./other-common.cjs";
export async function load(url, context, next) {
  if (!TAGGED.test(url) || !url.startsWith("file:")) return await next(url, context);
  const path = fileURLToPath(url);
  if (process.env.OTHER.startsWith("loads")) {
    const source = compile(path, await readFile(path, "utf8"), "ESNext");
    return { format: "module", source, shortCircuit: true };
  }
  const loaded = await next(url, context);
  return loaded.source == null ? loaded : { ...loaded, source: change(String(loaded.source)) };
}
`;

const COMMON = String.raw`const ts = require("typescript");
const isStripping = process.env.OTHER.endsWith("stripping");
exports.TAGGED = /^(?!.*[\\/]node_modules[\\/]).*[\\/](?:shop|main)\.[cm]?[jt]sx?$/;
exports.change = (text) => (isStripping ? text.replace(/\/\*\*[^]*?\*\//g, "") : text + "\n// Seen.\n");
exports.compile = (fileName, text, module) => ts.transpileModule(text, {
  fileName,
  compilerOptions: {
    module: ts.ModuleKind[module],
    target: ts.ScriptTarget.ES2022,
    experimentalDecorators: true,
    removeComments: isStripping,
  },
}).outputText;
`;

const HOOK = String.raw`const Module = require("node:module");
const { pathToFileURL } = require("node:url");
const { readFileSync } = require("node:fs");
const { change, compile, TAGGED } = require("./other-common.cjs");
const isLoading = process.env.OTHER.startsWith("loads");
for (const ending of [".ts", ".cts", ".js", ".cjs"]) {
  const before = Module._extensions[ending] ?? Module._extensions[".js"];
  Module._extensions[ending] = (module, path) => {
    if (!TAGGED.test(path)) return before(module, path);
    if (isLoading) return module._compile(compile(path, readFileSync(path, "utf8"), "CommonJS"), path);
    const { _compile } = module;
    module._compile = function (text, ...rest) {
      module._compile = _compile;
      return _compile.call(this, change(text), ...rest);
    };
    return before(module, path);
  };
}
Module.register("./other-hooks.mjs", pathToFileURL(__filename));
`;

/** The files of the hooks. */
export const HOOK_FILES: Files = {
  "ts-node-esm.mjs": TS_NODE_ESM,
  "other-hooks.mjs": HOOKS,
  "other-common.cjs": COMMON,
  "other-hook.cjs": HOOK,
};

function otherOf({ order }: Setup): string[] {
  return order === "first" || order === "forgotten" ? [] : ["--require", "./other-hook.cjs"];
}

function session(
  setup: Setup,
  flags: readonly string[],
  others: Partial<Session> = {},
  flag = "--import",
): Session {
  const ours = [flag, "lockweave/register"];
  return {
    build: async () => {},
    command: (isWoven) => [...flags, ...otherOf(setup), ...(isWoven ? ours : []), entryOf(setup)],
    ...others,
    env: { OTHER: setup.order, ...others.env },
  };
}

export const tsx: Host = ({ setup }) => session(setup, ["--import", "tsx"]);

export const node: Host = async ({ setup, dir }) =>
  session(setup, [], {
    node: await fileOfTool("node-24", "node/bin/node"),
    ...(setup.cache !== "cold" && { env: { NODE_COMPILE_CACHE: join(dir, ".compile-cache") } }),
  });

export const tsNodeTranspile: Host = ({ setup }) =>
  setup.file === "ts-in-cjs"
    ? session(setup, ["--require", "ts-node/register/transpile-only"], {}, "--require")
    : session(setup, ["--import", "./ts-node-esm.mjs"], { env: { TS_NODE_TRANSPILE_ONLY: "true" } });

/** ts-node with type checking uses the plugin in tsconfig.json. */
export const tsNode: Host = ({ setup }) => ({
  build: async () => {},
  command: () => [
    ...(setup.file === "ts-in-cjs" ? ["--require", "ts-node/register"] : ["--import", "./ts-node-esm.mjs"]),
    entryOf(setup),
  ],
});
