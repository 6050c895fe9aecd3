import { PLUGINS } from "./tsconfig-plugins";
import { mainText, shopText, type Stage } from "./program";
import { compilesAtLoad, isCommonJs, isCompiler, isLinked, type Setup } from "./setup";

/** File contents by path in the project. */
export type Files = Readonly<Record<string, string>>;

/** Returns the extension of the tagged file. */
export function extensionOf({ file }: Setup): string {
  return file === "ts-in-cjs" ? "ts" : file;
}

function scriptExtensionOf(setup: Setup): string {
  return extensionOf(setup).replace("tsx", "js").replace("ts", "js");
}

/** Returns the path of the entry. It contains the tag only in one layout, and is `.ts` in all others. */
export function entryOf(setup: Setup): string {
  const extension = setup.layout === "entry" ? extensionOf(setup) : "ts";
  return setup.host === "jest" ? `src/main.test.${extension}` : `src/main.${extension}`;
}

/** Returns the path of the file with the tag. */
export function taggedFileOf(setup: Setup): string {
  if (setup.layout === "entry") return entryOf(setup);
  const dir = inPackage(setup) ? "packages/shop/src" : "src";
  return `${dir}/shop.${extensionOf(setup)}`;
}

function inPackage(setup: Setup): boolean {
  return isLinked(setup) || setup.layout === "paths";
}

/** Returns the import specifier of a file in the same directory, as users of the host write it. */
function specifierOf(setup: Setup, name: string, extension: string): string {
  const { host } = setup;
  if (host === "jest" || (isCommonJs(setup) && host.startsWith("ts-node"))) {
    return extension === "ts" || extension === "tsx"
      ? `./${name}`
      : `./${name}.${extension.replace("ts", "js")}`;
  }
  const isWrittenAsOutput = isCompiler(setup) || compilesAtLoad(setup);
  if (!isWrittenAsOutput || host === "node") return `./${name}.${extension}`;
  return `./${name}.${extension.replace("tsx", "js").replace("ts", "js")}`;
}

/** Returns the specifier by which the entry imports the function. It includes the request that bypasses webpack's loaders. */
function shopSpecifierOf(setup: Setup, request: string): string | undefined {
  const { layout } = setup;
  if (layout === "entry") return undefined;
  if (inPackage(setup)) return "shop";
  if (layout === "barrel") return specifierOf(setup, "all", "ts");
  return request + specifierOf(setup, "shop", extensionOf(setup));
}

/** Returns the package.json of the package that the entry imports. */
function manifestOfShop(setup: Setup): object {
  const type = setup.file === "ts-in-cjs" ? "commonjs" : "module";
  const named = { name: "shop", version: "1.0.0", type };
  const source = `src/shop.${extensionOf(setup)}`;
  const script = `shop.${scriptExtensionOf(setup)}`;
  if (setup.layout === "paths" && isCompiler(setup)) {
    return { ...named, main: `../../out/packages/shop/src/${script}` };
  }
  if (setup.layout === "paths" || setup.layout === "linked-source")
    return { ...named, exports: `./${source}` };
  const types = `./dist/shop.${scriptExtensionOf(setup).replace("js", "d.ts").replace("md.ts", "d.mts").replace("cd.ts", "d.cts")}`;
  return { ...named, exports: { types, default: `./dist/${script}` } };
}

/** Returns whether the package has a link in `node_modules`. */
export function hasLink(setup: Setup): boolean {
  return isLinked(setup) || (setup.layout === "paths" && isCompiler(setup));
}

/** The settings in tsconfig.json for each mode. */
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

/** Returns the text of tsconfig.json. */
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
    ...(layout === "paths" && { paths: { shop: [`./packages/shop/src/shop.${extensionOf(setup)}`] } }),
    plugins: isCompiler(setup) && isWoven ? [...others, ours] : others,
    ...MODES[setup.mode],
  };
  const tsNode = host === "ts-node" ? { "ts-node": { compiler: "ts-patch/compiler" } } : {};
  return JSON.stringify({ compilerOptions, include, ...tsNode }, null, 2);
}

/** Returns the sources of a setup at a stage. */
export function sourcesOf(setup: Setup, stage: Stage, { isControl = false, request = "" } = {}): Files {
  const specifier = shopSpecifierOf(setup, request);
  const isDynamic = setup.layout === "dynamic";
  const main = mainText(setup, stage, { specifier, isDynamic, isControl });
  const name = specifierOf(setup, "shop", extensionOf(setup));
  return {
    [entryOf(setup)]: main,
    ...(setup.layout !== "entry" && { [taggedFileOf(setup)]: shopText(setup, stage) }),
    ...(setup.layout === "barrel" && { "src/all.ts": `export * from ${JSON.stringify(request + name)};\n` }),
  };
}

/** Returns the manifests of a project. */
export function manifestsOf(setup: Setup): Files {
  const type = setup.file === "ts-in-cjs" || setup.host === "jest" ? "commonjs" : "module";
  return {
    "package.json": JSON.stringify({ type, dependencies: { lockweave: "*" } }),
    ...(inPackage(setup) && { "packages/shop/package.json": JSON.stringify(manifestOfShop(setup)) }),
  };
}
