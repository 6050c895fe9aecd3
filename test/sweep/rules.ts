import { compilesAtLoad, isCommonJs, isCompiler, isLinked, isWebpackLike, type Setup } from "./setup";

/** Excludes combinations that are impossible or equal to another one. */
interface Rule {
  readonly reason: string;
  readonly excludes: (setup: Setup) => boolean;
}

const isOneOf = <T extends string>(value: T, ...values: readonly T[]): boolean => values.includes(value);

const loads = ({ order }: Setup): boolean => order.startsWith("loads");
const transforms = ({ order }: Setup): boolean => order.startsWith("transforms");
const isBuilt = ({ layout }: Setup): boolean => isOneOf(layout, "linked-woven", "linked-unwoven");
const isBundler = (setup: Setup): boolean =>
  !isCompiler(setup) && !compilesAtLoad(setup) && setup.host !== "jest";

export const RULES: Readonly<Record<string, Rule>> = {
  "esbuild's plugins load": {
    reason: "A plugin of esbuild or tsup has no hook that transforms what another one has loaded.",
    excludes: (setup) => isOneOf(setup.host, "esbuild", "tsup") && transforms(setup),
  },
  "Jest has one transform": {
    reason: "Jest asks one transform for each file, and Lockweave's calls the other one.",
    excludes: (setup) => setup.host === "jest" && (loads(setup) || transforms(setup)),
  },
  "TypeScript 7 takes no plugins": {
    reason: "No other plugin can run together with Lockweave.",
    excludes: (setup) => setup.host === "typescript-7" && (loads(setup) || transforms(setup)),
  },
  "a request past the loaders names a file": {
    reason: "`!!` is a prefix of a path in an import, so it needs a file in the importer's directory.",
    excludes: (setup) =>
      isWebpackLike(setup) && loads(setup) && !isOneOf(setup.layout, "imported", "barrel", "dynamic"),
  },
  "decorators in a request": {
    reason: "Rspack does not pass the settings for decorators from a request to swc.",
    excludes: (setup) => setup.host === "rspack" && loads(setup) && setup.mode === "metadata",
  },
  "a compiler does not load built code": {
    reason: "A compiler reads only the declarations of a built package.",
    excludes: (setup) => isCompiler(setup) && isBuilt(setup) && (loads(setup) || transforms(setup)),
  },
  "a host without a memory": {
    reason: "ts-node has no cache between runs.",
    excludes: ({ host, cache }) => isOneOf(host, "ts-node", "ts-node-transpile") && cache !== "cold",
  },
  "a forgotten plugin": {
    reason: "The last build either has the plugin or does not.",
    excludes: ({ order, cache }) =>
      order === "forgotten"
        ? cache === "plugin-added" || cache === "tag-removed"
        : cache === "plugin-dropped",
  },
  "one entry ending": {
    reason:
      "Without its own ending, a package of CommonJS differs from one of ES modules only in package.json.",
    excludes: ({ file, layout }) => file === "cts" && layout === "entry",
  },
  "Node strips types only": {
    reason: "Node's type stripping takes no decorators, no `.tsx`, and no `export` in CommonJS.",
    excludes: (setup) =>
      setup.host === "node" &&
      (setup.file === "ts-in-cjs" ||
        setup.mode !== "plain" ||
        (!isBuilt(setup) && isOneOf(setup.file, "cts", "tsx"))),
  },
  "Node runs linked sources": {
    reason:
      "The output of a compiler imports the sources of a linked package, and Node only strips their types.",
    excludes: (setup) =>
      isCompiler(setup) &&
      setup.layout === "linked-source" &&
      (isCommonJs(setup) || setup.file === "tsx" || setup.mode === "metadata"),
  },
  "Node has no paths": {
    reason: "Node, ts-node, Rollup, and Farm resolve no `paths` of tsconfig.json.",
    excludes: ({ host, layout }) =>
      layout === "paths" && isOneOf(host, "node", "ts-node", "ts-node-transpile", "rollup", "farm"),
  },
  "Rollup takes ES modules": {
    reason: "Rollup takes CommonJS only with another plugin.",
    excludes: (setup) => setup.host === "rollup" && isBuilt(setup) && isCommonJs(setup),
  },
  "a loader of ES modules": {
    reason: "The other plugin compiles to ES modules, so it cannot load CommonJS.",
    excludes: (setup) =>
      isCommonJs(setup) &&
      (isBuilt(setup)
        ? loads(setup) || transforms(setup)
        : loads(setup) && compilesAtLoad(setup) && setup.host !== "ts-node"),
  },
  "minifying is a bundler's": {
    reason: "Only bundlers minify.",
    excludes: (setup) => setup.mode === "minified" && !isBundler(setup),
  },
  "settings of TypeScript": {
    reason: "These settings of tsconfig.json change nothing for a host that does not call TypeScript.",
    excludes: (setup) =>
      isOneOf(setup.mode, "isolated", "no-comments") &&
      !isCompiler(setup) &&
      !isOneOf(setup.host, "webpack", "webpack-loader", "ts-node-transpile") &&
      !(setup.mode === "no-comments" && isBuilt(setup)),
  },
  "links of Farm": {
    reason: "Farm 1.7 does not resolve the name of a package that is a link in `node_modules`.",
    excludes: (setup) => setup.host === "farm" && isLinked(setup),
  },
  "decorators of Farm": {
    reason: "Farm has its own settings for decorators, and does not read those of tsconfig.json.",
    excludes: ({ host, mode }) => host === "farm" && mode === "metadata",
  },
  "source maps at run": {
    reason: "A host that compiles when Node loads a file writes no source map.",
    excludes: (setup) => setup.mode === "mapped" && (compilesAtLoad(setup) || setup.host === "jest"),
  },
  "import() of tsx": {
    reason:
      "On Node 20, `import()` gives the exports of CommonJS as `default`, as docs/compilers.md#tsx says.",
    excludes: (setup) => setup.host === "tsx" && isCommonJs(setup) && setup.layout === "dynamic",
  },
  "import() of ts-node": {
    reason: "In CommonJS, ts-node's hook for `require()` does not see `import()`.",
    excludes: ({ host, file, layout }) =>
      host.startsWith("ts-node") && file === "ts-in-cjs" && layout === "dynamic",
  },
  "CommonJS that ts-node makes": {
    reason: "In a package of ES modules, ts-node's hook for `import` does not compile what it requires.",
    excludes: ({ host, file }) => host.startsWith("ts-node") && file === "cts",
  },
  "Jest runs CommonJS": {
    reason: "Jest without flags runs CommonJS, so its packages are CommonJS, and `.mts` is none.",
    excludes: ({ host, file, layout }) =>
      host === "jest" &&
      (file === "mts" || file === "cts" || (isLinked({ layout } as Setup) && file !== "ts-in-cjs")),
  },
};

/** Returns the name of the rule that excludes a setup. */
export function excludedBy(setup: Setup): string | undefined {
  return Object.keys(RULES).find((name) => RULES[name]?.excludes(setup) === true);
}
