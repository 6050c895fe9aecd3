// A setup has one value of each dimension. Its name is these values joined by slashes.

export const DIMENSIONS = {
  host: [
    "tspc",
    "patched-tsc",
    "typescript-7",
    "ts-node",
    "ts-node-transpile",
    "tsx",
    "node",
    "esbuild",
    "rollup",
    "rolldown",
    "vite",
    "webpack",
    "webpack-loader",
    "rspack",
    "tsup",
    "tsdown",
    "farm",
    "jest",
  ],
  /** The order of the plugins. The other plugin loads or transforms the tagged file. */
  order: [
    "first",
    "loads-keeping",
    "loads-stripping",
    "transforms-keeping",
    "transforms-stripping",
    "forgotten",
  ],
  /** The state of an earlier build, and the change since then. */
  cache: ["cold", "unchanged", "tag-added", "tag-removed", "key-changed", "plugin-added", "plugin-dropped"],
  /** The path from the program to the tagged function. */
  layout: [
    "entry",
    "imported",
    "barrel",
    "dynamic",
    "paths",
    "linked-source",
    "linked-woven",
    "linked-unwoven",
  ],
  form: ["function", "arrow", "method", "object"],
  /** The extension of the tagged file, in a package of ES modules unless stated otherwise. */
  file: ["ts", "ts-in-cjs", "mts", "cts", "tsx"],
  mode: ["plain", "isolated", "metadata", "no-comments", "minified", "mapped"],
} as const;

type Dimensions = typeof DIMENSIONS;
export type Dimension = keyof Dimensions;

export type Setup = { readonly [D in Dimension]: Dimensions[D][number] };

const NAMES = Object.keys(DIMENSIONS) as Dimension[];

export function nameOf(setup: Setup): string {
  return NAMES.map((dimension) => setup[dimension]).join("/");
}

/** @throws {Error} if a value does not exist in its dimension */
export function setupNamed(name: string): Setup {
  const values = name.split("/");
  const entries = NAMES.map((dimension, index) => {
    const value = values[index] ?? "";
    const known: readonly string[] = DIMENSIONS[dimension];
    if (!known.includes(value)) {
      throw new Error(`${name}: unknown ${dimension} \`${value}\`, expected one of ${known.join(", ")}`);
    }
    return [dimension, value] as const;
  });
  return Object.fromEntries(entries) as unknown as Setup;
}

/** Returns whether a host runs TypeScript's compiler with Lockweave as a plugin in tsconfig.json. */
export function isCompiler({ host }: Setup): boolean {
  return ["tspc", "patched-tsc", "typescript-7", "ts-node"].includes(host);
}

/** Returns whether a host compiles each file when Node loads it. */
export function compilesAtLoad({ host }: Setup): boolean {
  return ["ts-node", "ts-node-transpile", "tsx", "node"].includes(host);
}

export function isWebpackLike({ host }: Setup): boolean {
  return ["webpack", "webpack-loader", "rspack"].includes(host);
}

export function isLinked({ layout }: Setup): boolean {
  return layout.startsWith("linked-");
}

/** Returns whether the tagged file becomes CommonJS. */
export function isCommonJs({ file }: Setup): boolean {
  return file === "cts" || file === "ts-in-cjs";
}
