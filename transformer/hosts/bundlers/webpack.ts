import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileWeaver, shown, type PluginOptions } from "../one-file/weaver";
import { parser } from "../../parser/parser";
import { COMPONENTS } from "./components";
import { tagsUnseenIn } from "./lost-tags";
import { AS_TEXT, INSTALLED, isInstalled, pathOf, shortPath, SOURCE_FILES } from "./source-files";
import { refusedPlace, unsupportedIn } from "./unsupported";

// The parts of webpack's and Rspack's plugins that are used here, in words of our own. (Types, not interfaces:
// webpack asks for objects that may have any property, and an interface does not pass for one.)

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
    /** Runs when each chunk has its modules, and before modules are merged. */
    readonly optimizeTree: Hook<[chunks: Iterable<object>, modules: Iterable<Module>]>;
  };
  readonly errors: { push(error: Error): unknown };
  readonly chunkGraph: { getModuleChunks(module: Module): readonly object[] };
  readonly moduleGraph: { getIncomingConnections(module: Module): Iterable<Connection> };
};

type Connection = {
  readonly originModule?: Module | null;
  readonly dependency?: { readonly type?: string } | null | undefined;
  /** Not in older versions. `true` if the importer uses the module. */
  getActiveState?(runtime: undefined): unknown;
};

type Module = {
  /** The file, with its query. */
  readonly resource?: string;
  readonly type?: string;
  readonly loaders?: readonly { readonly loader: string }[];
  originalSource?(): { source(): string | Buffer } | null;
};

type Hook<Arguments extends unknown[]> = {
  tap(name: string, run: (...args: Arguments) => void): void;
};

const NAME = "lockweave";
const LOADER = join(__dirname, "loader.js");

/**
 * Weaves what webpack or Rspack builds, before the other loaders.
 *
 * @throws {TypeError} when the options are none
 */
function lockweave(options: PluginOptions = {}): Plugin {
  fileWeaver(parser(), options); // So that options which are none are an error here, and not one for each file.
  const rule = {
    enforce: "pre",
    test: [SOURCE_FILES, COMPONENTS],
    resourceQuery: { not: [AS_TEXT] },
    use: { loader: LOADER, options, ident: identOf(options) },
  };
  return {
    apply: ({ options: { module, resolve }, hooks }) => {
      // Only then does a link stay in a path, and a function costs more than an expression in Rspack.
      const exclude = resolve?.symlinks === false ? isInstalled : INSTALLED;
      module.rules.unshift({ ...rule, exclude });
      hooks.compilation.tap(NAME, (compilation) => {
        const { finishModules, optimizeTree } = compilation.hooks;
        const report = (message: string): unknown => compilation.errors.push(new Error(message));
        finishModules.tap(NAME, (modules) => {
          for (const one of modules) for (const message of unlockedIn(one)) report(message);
        });
        optimizeTree.tap(NAME, (_, modules) => {
          for (const one of modules) for (const message of unsupportedBy(one, compilation)) report(message);
        });
      });
    },
  };
}

/** A cache on disk keeps what a loader of the same name has made. So the name tells the options, and our version. */
function identOf(options: PluginOptions): string {
  const { version } = require("lockweave/package.json") as { version: string };
  const made = JSON.stringify([version, options]);
  return `${NAME}-${createHash("sha256").update(made).digest("hex").slice(0, 16)}`;
}

const CURE = "import the file without `!`, so that the loaders of the configuration see it";

/** webpack gives the path of a loader alone, and Rspack gives it with the query. */
function isOurs({ loader }: { readonly loader: string }): boolean {
  return pathOf(loader) === LOADER;
}

/** A request with `!!` goes past all loaders of the configuration. */
function unlockedIn(module: Module): string[] {
  const { resource = "", type = "", loaders = [] } = module;
  const path = pathOf(resource);
  const isOther = isInstalled(resource) || AS_TEXT.test(resource) || !type.startsWith("javascript");
  if (isOther || !SOURCE_FILES.test(path) || loaders.some(isOurs)) return [];
  const code = module.originalSource?.()?.source().toString() ?? "";
  return tagsUnseenIn(path, code, CURE).map((finding) => shown(shortPath(path), finding));
}

/** What uses an entry of the runtime that throws. */
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
  const evidence = { isImportedDynamically: false }; // An import that is unused has no active connection.
  return [...importers].flatMap((path) =>
    unsupportedIn(path, place, evidence).map((finding) => shown(shortPath(path), finding)),
  );
}

export = lockweave;
