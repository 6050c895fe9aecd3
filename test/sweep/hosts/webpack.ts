import { join } from "node:path";
import { entryOf } from "../files";
import type { Setup } from "../setup";
import { LOADER, ofWebpack } from "./ours";
import { fileOfTool, requireTool } from "./tools";
import { BuildError, bundleIn, formatIn, type Host, type Place } from "./session";

/** The part of webpack's and Rspack's API that the sweep uses. */
interface Compiler {
  run(
    done: (error: Error | null, stats?: { hasErrors(): boolean; toString(how: object): string }) => void,
  ): void;
  close(done: () => void): void;
}

type MakeCompiler = (config: object) => Compiler;

const TYPESCRIPT = /\.[cm]?tsx?$/;
const OTHER_LOADER = join(__dirname, "other-loader.cjs");

/** Returns the loader that removes the types. */
async function compilesBy({
  host,
  mode,
}: Setup): Promise<{ readonly loader: string; readonly options: object }> {
  if (host === "rspack") {
    const transform = mode === "metadata" ? { legacyDecorator: true, decoratorMetadata: true } : {};
    const parser = { syntax: "typescript", decorators: mode === "metadata" };
    return { loader: "builtin:swc-loader", options: { jsc: { target: "es2022", parser, transform } } };
  }
  const compilerOptions = { module: "esnext", sourceMap: mode === "mapped" };
  return {
    loader: await fileOfTool("webpack", "ts-loader"),
    options: { transpileOnly: true, compilerOptions },
  };
}

function otherRule({ order }: Setup): object[] {
  if (!order.startsWith("transforms")) return [];
  const options = { isStripping: order.endsWith("stripping") };
  return [{ test: /(?:shop|main)\.[cm]?[jt]sx?$/, enforce: "pre", use: { loader: OTHER_LOADER, options } }];
}

/** Returns Lockweave's plugin, or the rule of users who configure only the loader. */
function ours({ host }: Setup, isWoven: boolean): { readonly plugins: object[]; readonly rules: object[] } {
  if (!isWoven) return { plugins: [], rules: [] };
  if (host !== "webpack-loader") return { plugins: [ofWebpack()], rules: [] };
  return {
    plugins: [],
    rules: [{ test: /\.[cm]?[jt]sx?$/, exclude: /node_modules/, enforce: "pre", loader: LOADER }],
  };
}

async function configOf(place: Place, isWoven: boolean): Promise<object> {
  const { dir, setup } = place;
  const isEsm = formatIn(place) === "esm";
  const { plugins, rules } = ours(setup, isWoven);
  const external = (name: string): string => (isEsm ? `module ${name}` : `commonjs ${name}`);
  const type = setup.host === "rspack" ? "persistent" : "filesystem";
  const directory = join(dir, ".cache");
  const kept =
    setup.host === "rspack"
      ? { type, storage: { type: "filesystem", directory } }
      : { type, cacheDirectory: directory };
  return {
    mode: "production",
    context: dir,
    target: "node",
    entry: { main: `./${entryOf(setup)}` },
    cache: setup.cache === "cold" ? false : kept,
    experiments: isEsm ? { outputModule: true } : {},
    output: {
      path: join(dir, "dist"),
      filename: bundleIn(place).replace("dist/", ""),
      ...(isEsm && { module: true, chunkFormat: "module" }),
    },
    externals: Object.fromEntries(["lockweave", "lockweave/runtime"].map((name) => [name, external(name)])),
    externalsPresets: { node: true },
    devtool: setup.mode === "mapped" ? "source-map" : false,
    optimization: { minimize: setup.mode === "minified" },
    resolve: {
      extensions: [".ts", ".tsx", "..."],
      ...(setup.layout === "paths" && resolvesPaths(place)),
    },
    infrastructureLogging: { level: "none" },
    module: { rules: [{ test: TYPESCRIPT, ...(await compilesBy(setup)) }, ...otherRule(setup), ...rules] },
    plugins,
  };
}

function resolvesPaths({ dir, setup }: Place): object {
  const config = join(dir, "tsconfig.json");
  return setup.host === "rspack" ? { tsConfig: config } : { tsconfig: config };
}

/** Returns the request prefix that bypasses all loaders except the one that removes the types. */
export async function bypassingRequest(setup: Setup): Promise<string> {
  const removeComments = setup.order.endsWith("stripping");
  if (setup.host === "rspack") {
    const { options } = await compilesBy(setup);
    return `!!${removeComments ? `${OTHER_LOADER}?{"isStripping":true}!` : ""}builtin:swc-loader?${JSON.stringify(options)}!`;
  }
  const options = { transpileOnly: true, compilerOptions: { module: "esnext", removeComments } };
  return `!!${await fileOfTool("webpack", "ts-loader")}?${JSON.stringify(options)}!`;
}

export const webpackLike: Host = async (place) => {
  const isRspack = place.setup.host === "rspack";
  const tool = await (isRspack ? requireTool("rspack", "@rspack/core") : requireTool("webpack", "webpack"));
  const make = isRspack ? (tool as { readonly rspack: MakeCompiler }).rspack : (tool as MakeCompiler);
  return {
    async build(isWoven) {
      const compiler = make(await configOf(place, isWoven));
      const failure = await new Promise<string | undefined>((resolve) => {
        compiler.run((error, stats) => {
          if (error !== null) resolve(error.message);
          else
            resolve(stats?.hasErrors() === true ? stats.toString({ all: false, errors: true }) : undefined);
        });
      });
      await new Promise<void>((resolve) => compiler.close(resolve));
      if (failure !== undefined) throw new BuildError(failure);
    },
    command: () => [bundleIn(place)],
  };
};
