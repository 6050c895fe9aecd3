import { join } from "node:path";
import { rolldown as rolldownOf } from "rolldown";
import { rollup as rollupOf, type Plugin as RollupPlugin, type RollupCache } from "rollup";
import viaEsbuild from "rollup-plugin-esbuild";
import { build as viteBuild } from "vite";
import { entryOf } from "../files";
import { ofRollup } from "./ours";
import { otherOfRollup } from "./other-plugin";
import { BuildError, bundleIn, formatIn, type Host } from "./session";
import { requireTool } from "./tools";

const EXTERNAL = [/^node:/, /^lockweave/];

function asBuildError(error: unknown): never {
  throw new BuildError(error instanceof Error ? error.message : String(error));
}

/** Rollup resolves packages by its own plugin, and TypeScript by esbuild's. The second build has the cache of the first. */
export const rollup: Host = async (place) => {
  const { dir, setup } = place;
  const { nodeResolve } = (await requireTool("rollup", "@rollup/plugin-node-resolve")) as {
    readonly nodeResolve: (options: object) => RollupPlugin;
  };
  const ours = ofRollup();
  let cache: RollupCache | undefined;
  return {
    async build(isWoven) {
      const loaders = { ".ts": "ts", ".mts": "ts", ".cts": "ts", ".tsx": "tsx" } as const;
      const bundle = await rollupOf({
        input: join(dir, entryOf(setup)),
        external: EXTERNAL,
        logLevel: "silent",
        ...(cache !== undefined && { cache }),
        plugins: [
          ...otherOfRollup(setup),
          ...(isWoven ? [ours] : []),
          nodeResolve({ extensions: [".ts", ".mts", ".cts", ".tsx", ".js"] }),
          viaEsbuild({
            target: "es2022",
            loaders,
            include: /\.[cm]?[jt]sx?$/,
            minify: setup.mode === "minified",
          }),
        ],
      }).catch(asBuildError);
      cache = bundle.cache;
      await bundle
        .write({
          file: join(dir, bundleIn(place)),
          format: formatIn(place),
          inlineDynamicImports: true,
          sourcemap: setup.mode === "mapped",
        })
        .catch(asBuildError);
    },
    command: () => [bundleIn(place)],
  };
};

/** The second build has the same plugin. */
export const rolldown: Host = (place) => {
  const { dir, setup } = place;
  const ours = ofRollup();
  return {
    async build(isWoven) {
      const bundle = await rolldownOf({
        cwd: dir,
        input: entryOf(setup),
        platform: "node",
        tsconfig: true,
        external: EXTERNAL,
        logLevel: "silent",
        plugins: [...otherOfRollup(setup), ...(isWoven ? [ours] : [])],
      });
      try {
        await bundle
          .write({
            file: bundleIn(place),
            format: formatIn(place),
            codeSplitting: false,
            minify: setup.mode === "minified",
            sourcemap: setup.mode === "mapped",
          })
          .catch(asBuildError);
      } finally {
        await bundle.close();
      }
    },
    command: () => [bundleIn(place)],
  };
};

/** The second build has the same plugin. */
export const vite: Host = (place) => {
  const { dir, setup } = place;
  const ours = ofRollup();
  return {
    async build(isWoven) {
      await viteBuild({
        root: dir,
        configFile: false,
        logLevel: "silent",
        resolve: { tsconfigPaths: true },
        plugins: [...otherOfRollup(setup), ...(isWoven ? [ours] : [])],
        build: {
          ssr: entryOf(setup),
          outDir: "dist",
          minify: setup.mode === "minified",
          sourcemap: setup.mode === "mapped",
          rollupOptions: {
            external: EXTERNAL,
            output: { format: formatIn(place), entryFileNames: bundleIn(place).replace("dist/", "") },
          },
        },
      }).catch(asBuildError);
    },
    command: () => [bundleIn(place)],
  };
};
