import { readFileSync } from "node:fs";
import { basename, join, sep } from "node:path";
import { inlineMap } from "../../text/source-map";
import { weaveFile } from "./tagged-file";

/** The part of Bun's global object that is used here. */
interface Bun {
  plugin(plugin: { readonly name: string; setup(build: Build): void }): void;
}

interface Build {
  onLoad(
    files: { readonly filter: RegExp; readonly namespace: string },
    load: (file: { readonly path: string }) => Loaded,
  ): void;
}

interface Loaded {
  readonly contents: string;
  readonly loader: string;
}

/** The built files of Lockweave. If the package is linked, they are outside of `node_modules`, and Bun cannot load them through a plugin. */
const OURS = join(__dirname, "../../..", sep).replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);

/**
 * Matches sources outside of installed packages. For those packages, Bun does not call the plugin. Files without an extension are left out,
 * because Bun needs a result for each file, and does not say whether an import takes it as text.
 */
const OWN_SOURCES = new RegExp(
  String.raw`^(?!${OURS})(?!.*[\\/]node_modules[\\/]).*\.[cm]?[jt]sx?(?:\?.*)?$`,
);

/** Makes Bun load files with their locks. Bun has no hooks like those of Node, but it applies plugins to the running program. */
export function hookBun(): void {
  const { Bun } = globalThis as unknown as { readonly Bun: Bun };
  Bun.plugin({
    name: "lockweave",
    setup({ onLoad }) {
      onLoad({ filter: OWN_SOURCES, namespace: "file" }, ({ path: id }) => {
        const path = id.replace(/\?.*$/s, ""); // A query makes Bun load the file again.
        return { contents: codeOf(path), loader: loaderOf(path) };
      });
    },
  });
}

/** Returns the woven code, or the original text. Bun requires a result for each file that matches the filter. */
function codeOf(path: string): string {
  const woven = weaveFile(path, "module");
  if (woven === undefined) return readFileSync(path, "utf8");
  return woven.code + inlineMap(Object.assign(woven.map, { sources: [basename(path)] }));
}

function loaderOf(path: string): string {
  return path.replace(/^.*\.[cm]?/s, "");
}
