import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileWeaver, formatFinding, type PluginOptions } from "../one-file/weaver";
import { parser } from "../../parser/parser";
import { COMPONENTS } from "./components";
import { unlockedExternals, type ExternalImport } from "./externals";
import { tagsUnseenIn } from "./lost-tags";
import { INSTALLED, isInstalled } from "../../resolve/installed";
import { AS_TEXT, pathOf, shortPath, SOURCE_FILES } from "./source-files";
import { refusedPlace, unsupportedIn } from "./unsupported";

// Own declarations of the parts of the plugin API of webpack and Rspack that are used here. They are types and not interfaces, because
// webpack expects objects that may have any property, and an interface is not assignable to those.

type Plugin = {
  apply(compiler: Compiler): void;
};

type Compiler = {
  readonly options: {
    readonly module: { readonly rules: unknown[] };
    readonly resolve?: { readonly symlinks?: boolean };
  };
  readonly hooks: { readonly compilation: Hook<[Compilation]> };
};

type Compilation = {
  readonly hooks: {
    readonly finishModules: Hook<[Iterable<Module>]>;
    /** Runs when each chunk has its modules, and before modules are concatenated. */
    readonly optimizeTree: Hook<[chunks: Iterable<object>, modules: Iterable<Module>]>;
  };
  readonly errors: { push(error: Error): unknown };
  readonly chunkGraph: { getModuleChunks(module: Module): readonly object[] };
  readonly moduleGraph: { getIncomingConnections(module: Module): Iterable<Connection> };
};

type Connection = {
  readonly originModule?: Module | null;
  readonly dependency?: { readonly type?: string } | null | undefined;
  /** Missing in older versions. `true` if the importer uses the module. */
  getActiveState?(runtime: undefined): unknown;
};

type Module = {
  /** The path of the file with its query. Missing for a module that stays outside of the bundle. */
  readonly resource?: string;
  readonly type?: string;
  /** The specifier of a module that stays outside of the bundle. */
  readonly userRequest?: string;
  readonly loaders?: readonly { readonly loader: string }[];
  originalSource?(): { source(): string | Buffer } | null;
};

type Hook<Arguments extends unknown[]> = {
  tap(name: string, run: (...args: Arguments) => void): void;
};

const NAME = "lockweave";
const LOADER = join(__dirname, "loader.js");

/**
 * Weaves the files that webpack or Rspack builds, before the other loaders.
 *
 * @throws {TypeError} if the options are invalid
 */
function lockweave(options: PluginOptions = {}): Plugin {
  fileWeaver(parser(), options); // Reports invalid options once here, and not again for each file.
  const rule = {
    enforce: "pre",
    test: [SOURCE_FILES, COMPONENTS],
    resourceQuery: { not: [AS_TEXT] },
    use: { loader: LOADER, options, ident: identOf(options) },
  };
  return {
    apply: ({ options: { module, resolve }, hooks }) => {
      // Without `symlinks`, a linked package has a path in `node_modules`. Otherwise a regular expression is enough. Rspack runs it faster.
      const exclude = resolve?.symlinks === false ? isInstalled : INSTALLED;
      module.rules.unshift({ ...rule, exclude });
      hooks.compilation.tap(NAME, (compilation) => {
        const { finishModules, optimizeTree } = compilation.hooks;
        const report = (message: string): unknown => compilation.errors.push(new Error(message));
        finishModules.tap(NAME, (modules) => {
          for (const one of modules) for (const message of unlockedIn(one)) report(message);
        });
        optimizeTree.tap(NAME, (_, modules) => {
          const all = [...modules];
          for (const one of all) for (const message of unsupportedBy(one, compilation)) report(message);
          const imports = all.flatMap((one) => externalImportsOf(one, compilation));
          for (const { path, findings } of unlockedExternals(imports))
            for (const finding of findings) report(formatFinding(shortPath(path), finding));
        });
      });
    },
  };
}

/**
 * Returns an identifier of the options and of Lockweave's version. A disk cache reuses the results of a loader with the same identifier.
 */
function identOf(options: PluginOptions): string {
  const { version } = require("lockweave/package.json") as { version: string };
  const key = JSON.stringify([version, options]);
  return `${NAME}-${createHash("sha256").update(key).digest("hex").slice(0, 16)}`;
}

const FIX = "import the file without `!`, so that the loaders of the configuration see it";

const FIX_OF_TEXT =
  "import the file without `?raw` or `?url`, or give such imports the type `asset/source` in the configuration";

/** webpack passes the path of a loader alone, and Rspack passes it with the query. */
function isOurs({ loader }: { readonly loader: string }): boolean {
  return pathOf(loader) === LOADER;
}

/** Reports the unlocked functions of a module that our loader did not process. A request with `!!` bypasses all configured loaders. */
function unlockedIn(module: Module): string[] {
  const { resource = "", type = "", loaders = [] } = module;
  const path = pathOf(resource);
  const isOther = isInstalled(resource) || !type.startsWith("javascript");
  if (isOther || !SOURCE_FILES.test(path) || loaders.some(isOurs)) return [];
  const code = module.originalSource?.()?.source().toString() ?? "";
  const fix = AS_TEXT.test(resource) ? FIX_OF_TEXT : FIX; // The configuration decides whether `?raw` makes a file text.
  return tagsUnseenIn(path, code, fix).map((finding) => formatFinding(shortPath(path), finding));
}

/** Returns the imports of a module that stays outside of the bundle. */
function externalImportsOf(module: Module, { moduleGraph }: Compilation): ExternalImport[] {
  const { resource, userRequest: specifier } = module;
  if (resource !== undefined || specifier === undefined) return [];
  return [...moduleGraph.getIncomingConnections(module)].flatMap(({ originModule }) =>
    originModule?.resource === undefined ? [] : [{ specifier, importer: pathOf(originModule.resource) }],
  );
}

/** Reports the importers of an entry of the runtime that throws. */
function unsupportedBy(module: Module, { chunkGraph, moduleGraph }: Compilation): string[] {
  const place = refusedPlace(module.resource ?? "");
  if (place === undefined || chunkGraph.getModuleChunks(module).length === 0) return [];
  const importers = new Set<string>();
  for (const connection of moduleGraph.getIncomingConnections(module)) {
    const { originModule, dependency } = connection;
    const isActive = connection.getActiveState?.(undefined) ?? true;
    if (originModule == null || isActive !== true || dependency?.type === "import()") continue;
    if (chunkGraph.getModuleChunks(originModule).length > 0)
      importers.add(pathOf(originModule.resource ?? ""));
  }
  const evidence = { isImportedDynamically: false }; // An unused import has no active connection.
  return [...importers].flatMap((path) =>
    unsupportedIn(path, place, evidence).map((finding) => formatFinding(shortPath(path), finding)),
  );
}

export = lockweave;
