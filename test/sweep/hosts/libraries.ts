import { entryOf } from "../files";
import { bannerOf, otherOfEsbuild } from "./esbuild";
import { otherOfRollup } from "./other-plugin";
import { ofEsbuild, ofRollup } from "./ours";
import { BuildError, bundleIn, formatIn, type Host } from "./session";
import { importTool, requireTool } from "./tools";

// tsup and tsdown: bundlers for libraries, over esbuild and Rolldown.

type Build = (options: object) => Promise<unknown>;

async function reported(building: Promise<unknown>): Promise<void> {
  await building.catch((error: unknown) => {
    const errors = (error as { readonly errors?: readonly { readonly text?: string }[] }).errors ?? [];
    const texts = errors.map(({ text = "" }) => text);
    throw new BuildError([String(error instanceof Error ? error.message : error), ...texts].join("\n"));
  });
}

async function inDirectory<T>(dir: string, run: () => Promise<T>): Promise<T> {
  const before = process.cwd();
  process.chdir(dir);
  try {
    return await run();
  } finally {
    process.chdir(before);
  }
}

/** tsup builds in the current directory. */
export const tsup: Host = async (place) => {
  const { dir, setup } = place;
  const { build } = (await requireTool("tsup", "tsup")) as { readonly build: Build };
  const ours = ofEsbuild();
  return {
    build: (isWoven) =>
      inDirectory(dir, () =>
        reported(
          build({
            config: false,
            // esbuild's process keeps the directory in which it has started.
            esbuildOptions: (options: { absWorkingDir?: string }) => {
              options.absWorkingDir = dir;
            },
            entry: { main: entryOf(setup) },
            format: formatIn(place),
            outDir: "dist",
            banner: bannerOf(place),
            outExtension: () => ({ js: bundleIn(place).replace("dist/main", "") }),
            silent: true,
            minify: setup.mode === "minified",
            sourcemap: setup.mode === "mapped",
            esbuildPlugins: [...otherOfEsbuild(setup), ...(isWoven ? [ours] : [])],
          }),
        ),
      ),
    command: () => [bundleIn(place)],
  };
};

export const tsdown: Host = async (place) => {
  const { dir, setup } = place;
  const { build } = (await importTool("tsdown", "tsdown/dist/index.mjs")) as { readonly build: Build };
  const ours = ofRollup();
  return {
    build: (isWoven) =>
      reported(
        build({
          cwd: dir,
          config: false,
          entry: { main: entryOf(setup) },
          format: formatIn(place),
          outDir: "dist",
          outExtensions: () => ({ js: bundleIn(place).replace("dist/main", "") }),
          logLevel: "silent",
          dts: false,
          minify: setup.mode === "minified",
          sourcemap: setup.mode === "mapped",
          plugins: [...otherOfRollup(setup), ...(isWoven ? [ours] : [])],
        }),
      ),
    command: () => [bundleIn(place)],
  };
};
