import { existsSync, readFileSync } from "node:fs";
import Module from "node:module";
import { join } from "node:path";
import { countInto } from "./counting";
import { settings } from "./settings";

// Loaded first in the processes that run tests, and in all their children. It loads the repository's code compiled from a
// mirror, except for the file with the mutant. For a file in `dist` it loads the source instead.

interface CompilingModule extends NodeJS.Module {
  _compile(code: string, path: string): void;
}

const { root, reached } = settings();

/** Maps a file of a copied package to the repository, because some tests install the package by copying it. */
function inRepository(path: string): string {
  return path.replace(/^.*\/node_modules\/lockweave(?=\/dist\/)/, root);
}

function compiledPathOf(from: string): string | undefined {
  const path = inRepository(from);
  if (!path.startsWith(root)) return undefined;
  const source = path.slice(root.length + 1);
  if (!source.endsWith(".ts")) return undefined;
  const { mirror, mutant } = settings(); // The mutant changes with each run.
  return mutant?.file === source ? mutant.compiled : join(mirror, source.replace(/\.ts$/, ".js"));
}

const loadJavaScript = require.extensions[".js"];
const load = (module: NodeJS.Module, path: string): void => {
  const compiled = compiledPathOf(path);
  const own = inRepository(path);
  if (own.startsWith(join(root, "dist/"))) {
    module.exports = module.require(own.replace(join(root, "dist"), root).replace(/\.js$/, ".ts"));
  } else if (compiled === undefined || !existsSync(compiled)) {
    loadJavaScript?.(module, path);
  } else {
    // oxlint-disable-next-line no-underscore-dangle -- Node has no other name for it.
    (module as CompilingModule)._compile(readFileSync(compiled, "utf8"), path);
  }
};
require.extensions[".js"] = load;
require.extensions[".ts"] = load;

// Tests load this file in the processes that they start. It would replace the loader above.
const transpile = join(root, "test/support/transpile.cjs");
require.cache[transpile] = Object.assign(new Module(transpile), { loaded: true });

if (reached !== undefined) countInto(reached);
