import { PLUGINS } from "./tsconfig-plugins";
import { mainText, shopText, type Stage } from "./program";
import { isAtRun, isCommonJs, isCompiler, isLinked, type Setup } from "./setup";

/** Texts by their paths in the project. */
export type Files = Readonly<Record<string, string>>;

/** The ending of the tagged file. */
export function endingOf({ file }: Setup): string {
  return file === "ts-in-cjs" ? "ts" : file;
}

function scriptEndingOf(setup: Setup): string {
  return endingOf(setup).replace("tsx", "js").replace("ts", "js");
}

/** The entry has the tag only in one layout. All other entries are `.ts`. */
export function entryOf(setup: Setup): string {
  const ending = setup.layout === "entry" ? endingOf(setup) : "ts";
  return setup.host === "jest" ? `src/main.test.${ending}` : `src/main.${ending}`;
}

/** The file with the tag. */
export function taggedFileOf(setup: Setup): string {
  if (setup.layout === "entry") return entryOf(setup);
  const dir = inPackage(setup) ? "packages/shop/src" : "src";
  return `${dir}/shop.${endingOf(setup)}`;
}

function inPackage(setup: Setup): boolean {
  return isLinked(setup) || setup.layout === "paths";
}

/** How a host's users write the name of a file beside theirs. */
function specifierOf(setup: Setup, name: string, ending: string): string {
  const { host } = setup;
  if (host === "jest" || (isCommonJs(setup) && host.startsWith("ts-node"))) {
    return ending === "ts" || ending === "tsx" ? `./${name}` : `./${name}.${ending.replace("ts", "js")}`;
  }
  const isWrittenAsOutput = isCompiler(setup) || isAtRun(setup);
  if (!isWrittenAsOutput || host === "node") return `./${name}.${ending}`;
  return `./${name}.${ending.replace("tsx", "js").replace("ts", "js")}`;
}

/** The request that goes past the loaders of webpack's configuration is a part of the name. */
function reachOf(setup: Setup, request: string): string | undefined {
  const { layout } = setup;
  if (layout === "entry") return undefined;
  if (inPackage(setup)) return "shop";
  if (layout === "barrel") return specifierOf(setup, "all", "ts");
  return request + specifierOf(setup, "shop", endingOf(setup));
}

/** The package.json of the package that the entry imports. */
function manifestOfShop(setup: Setup): object {
  const type = setup.file === "ts-in-cjs" ? "commonjs" : "module";
  const named = { name: "shop", version: "1.0.0", type };
  const source = `src/shop.${endingOf(setup)}`;
  const script = `shop.${scriptEndingOf(setup)}`;
  if (setup.layout === "paths" && isCompiler(setup)) {
    return { ...named, main: `../../out/packages/shop/src/${script}` };
  }
  if (setup.layout === "paths" || setup.layout === "linked-source")
    return { ...named, exports: `./${source}` };
  const types = `./dist/shop.${scriptEndingOf(setup).replace("js", "d.ts").replace("md.ts", "d.mts").replace("cd.ts", "d.cts")}`;
  return { ...named, exports: { types, default: `./dist/${script}` } };
}

/** Whether the package is found by its link in `node_modules`, too. */
export function hasLink(setup: Setup): boolean {
  return isLinked(setup) || (setup.layout === "paths" && isCompiler(setup));
}

/** The settings of tsconfig.json that each mode asks for. */
const MODES: Readonly<Record<Setup["mode"], object>> = {
  plain: {},
  isolated: { isolatedModules: true },
  metadata: { experimentalDecorators: true, emitDecoratorMetadata: true },
  "no-comments": { removeComments: true },
  minified: {},
  mapped: { sourceMap: true },
};

/** Bundlers use tsconfig.json only for the files that it includes. */
function includeOf(setup: Setup): readonly string[] {
  return isCompiler(setup) ? ["src"] : ["src", "packages"];
}

/** The text of tsconfig.json. */
export function tsconfigText(
  setup: Setup,
  isWoven: boolean,
  include: readonly string[] = includeOf(setup),
): string {
  const { host, cache, layout } = setup;
  const isNodenext = isCompiler(setup) || host === "tsx" || host === "ts-node-transpile";
  const others = isCompiler(setup) ? PLUGINS[setup.order] : [];
  const ours = { transform: "lockweave/transformer", transformProgram: true };
  const compilerOptions = {
    target: "es2022",
    lib: ["es2023"],
    types: ["node"],
    ...(isNodenext ? { module: "nodenext" } : { module: "esnext", moduleResolution: "bundler" }),
    ...(host === "jest" && { module: "commonjs", moduleResolution: "node10", ignoreDeprecations: "6.0" }),
    strict: true,
    skipLibCheck: true,
    rootDir: ".",
    outDir: "out",
    jsx: "react",
    ...(isCompiler(setup) && cache !== "cold" && { incremental: true, tsBuildInfoFile: "out/.tsbuildinfo" }),
    ...(layout === "paths" && { paths: { shop: [`./packages/shop/src/shop.${endingOf(setup)}`] } }),
    plugins: isCompiler(setup) && isWoven ? [...others, ours] : others,
    ...MODES[setup.mode],
  };
  const tsNode = host === "ts-node" ? { "ts-node": { compiler: "ts-patch/compiler" } } : {};
  return JSON.stringify({ compilerOptions, include, ...tsNode }, null, 2);
}

/** The sources of a setup at a time. */
export function sourcesOf(setup: Setup, stage: Stage, { isControl = false, request = "" } = {}): Files {
  const specifier = reachOf(setup, request);
  const isDynamic = setup.layout === "dynamic";
  const main = mainText(setup, stage, { specifier, isDynamic, isControl });
  const name = specifierOf(setup, "shop", endingOf(setup));
  return {
    [entryOf(setup)]: main,
    ...(setup.layout !== "entry" && { [taggedFileOf(setup)]: shopText(setup, stage) }),
    ...(setup.layout === "barrel" && { "src/all.ts": `export * from ${JSON.stringify(request + name)};\n` }),
  };
}

/** What is in a project besides its sources. */
export function manifestsOf(setup: Setup): Files {
  const type = setup.file === "ts-in-cjs" || setup.host === "jest" ? "commonjs" : "module";
  return {
    "package.json": JSON.stringify({ type, dependencies: { lockweave: "*" } }),
    ...(inPackage(setup) && { "packages/shop/package.json": JSON.stringify(manifestOfShop(setup)) }),
  };
}
