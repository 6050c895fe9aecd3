import { existsSync, readFileSync } from "node:fs";
import Module from "node:module";
import { join } from "node:path";
import { countInto } from "./counting";
import { settings } from "./settings";

// Required before all else in the processes that run tests, and in all that these start. The code of the repository
// comes compiled from a mirror, but for the file that has a mutant. `dist` has no more than the ways in, with all that
// they need: there the sources are taken in.

interface CompilingModule extends NodeJS.Module {
  _compile(code: string, path: string): void;
}

const { root, reached } = settings();

/** Tests also install the package, by copying it. */
function inRepository(path: string): string {
  return path.replace(/^.*\/node_modules\/lockweave(?=\/dist\/)/, root);
}

function compiledPathOf(from: string): string | undefined {
  const path = inRepository(from);
  if (!path.startsWith(root)) return undefined;
  const source = path.slice(root.length + 1);
  if (!source.endsWith(".ts")) return undefined;
  const { mirror, mutant } = settings(); // Each run of tests has another mutant.
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

// The tests ask for it in the processes that they start: it would take the place of this.
const transpile = join(root, "test/support/transpile.cjs");
require.cache[transpile] = Object.assign(new Module(transpile), { loaded: true });

if (reached !== undefined) countInto(reached);
