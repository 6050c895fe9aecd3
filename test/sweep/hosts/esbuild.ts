import { readFile } from "node:fs/promises";
import { context, type BuildContext, type BuildOptions, type Plugin } from "esbuild";
import type { Setup } from "../setup";
import { entryOf } from "../files";
import { compiled, TAGGED } from "./other-plugin";
import { ofEsbuild } from "./ours";
import { BuildError, bundleIn, formatIn, type Host, type Place } from "./session";

/** Another plugin that loads the tagged file, if the setup has one. */
export function otherOfEsbuild(setup: Setup): Plugin[] {
  if (!setup.order.startsWith("loads")) return [];
  const setUp: Plugin["setup"] = ({ onLoad }) => {
    onLoad({ filter: /[jt]sx?$/ }, async ({ path }) =>
      TAGGED.test(path)
        ? { contents: compiled(setup, path, await readFile(path, "utf8")), loader: "js" }
        : undefined,
    );
  };
  return [{ name: "other", setup: setUp }];
}

/** Returns the banner from docs/compilers.md, so that CommonJS in a bundle of ES modules can call `require()`. */
export function bannerOf(place: Place): { readonly js?: string } {
  if (formatIn(place) === "cjs") return {};
  const from = 'import { createRequire as requireFrom } from "node:module";';
  return { js: `${from} const require = requireFrom(import.meta.url);` };
}

/** Rebuilds in one context as a watch does, so esbuild reuses unchanged files. */
export const esbuild: Host = (place) => {
  const { dir, setup } = place;
  const options: BuildOptions = {
    absWorkingDir: dir,
    entryPoints: [entryOf(setup)],
    outfile: bundleIn(place),
    bundle: true,
    platform: "node",
    format: formatIn(place),
    external: ["lockweave", "lockweave/*"],
    banner: bannerOf(place),
    logLevel: "silent",
    minify: setup.mode === "minified",
    sourcemap: setup.mode === "mapped",
  };
  const contexts = new Map<boolean, Promise<BuildContext>>();
  return {
    async build(isWoven) {
      const plugins = [...otherOfEsbuild(setup), ...(isWoven ? [ofEsbuild()] : [])];
      const opened = contexts.get(isWoven) ?? context({ ...options, plugins });
      contexts.set(isWoven, opened);
      await (await opened).rebuild().catch((error: Error) => {
        throw new BuildError(error.message);
      });
    },
    command: () => [bundleIn(place)],
    async close() {
      for (const opened of contexts.values()) await (await opened).dispose();
    },
  };
};
