import {
  fileWeaver,
  formatFinding,
  type FileWeaver,
  type Finding,
  type PluginOptions,
} from "../one-file/weaver";
import type { WovenMap } from "../../weave/weave";
import { parser } from "../../parser/parser";
import { COMPONENTS, tagsInComponent } from "./components";
import { importsKeptIn, unlockedExternals, type ExternalImport } from "./externals";
import { tagsLostFrom, tagsUnseenIn, tagsUnwovenIn } from "./lost-tags";
import { INSTALLED, isInstalled } from "../../resolve/installed";
import { AS_TEXT, pathOf, shortPath, SOURCE_FILES, sourceFileOf } from "./source-files";
import { refusedPlace, unsupportedIn } from "./unsupported";

// Own declarations of the plugin API that Vite, Rollup, and Rolldown share. So a user of one of them does not need the types of the other
// two.

/** A message in the format of these hosts. */
interface Log {
  readonly message: string;
  readonly id: string;
  readonly loc: { readonly file: string; readonly line: number; readonly column: number };
  readonly frame: string;
}

interface TransformContext {
  warn(log: Log): void;
  /** Throws the error. */
  error(log: Log): never;
}

interface BuildContext extends TransformContext {
  /** Throws in Farm, which does not support it. */
  getModuleIds(): Iterable<string>;
  /** In Vite's development server, reading `code` of the result throws. */
  getModuleInfo(id: string): {
    readonly code?: string | null;
    /** Missing in Rolldown. */
    readonly isExternal?: boolean;
    /** Missing in Vite's development server. */
    readonly importedIds?: readonly string[];
    readonly dynamicallyImportedIds?: readonly string[];
    readonly importers?: readonly string[];
    readonly dynamicImporters?: readonly string[];
  } | null;
}

/** An output. Assets have no modules, and neither do Farm's chunks. */
interface Output {
  readonly type: string;
  readonly modules?: Readonly<Record<string, RenderedModule>>;
  readonly code?: string;
}

interface RenderedModule {
  readonly code?: string | null;
  readonly renderedLength: number;
}

type Bundle = Readonly<Record<string, Output>>;

interface Plugin {
  readonly name: string;
  /** Makes Vite call the plugin before its own transform, which removes comments. */
  readonly enforce: "pre";
  readonly transform: {
    /** Makes Rollup and Rolldown call the plugin first, too. */
    readonly order: "pre";
    readonly filter: { readonly id: { readonly include: RegExp[]; readonly exclude: RegExp[] } };
    handler(
      this: TransformContext,
      text: string,
      id: string,
    ): { readonly code: string; readonly map: WovenMap } | undefined;
  };
  /** Reads the options of Rollup and Rolldown. */
  options(options: {
    readonly preserveSymlinks?: boolean | undefined;
    readonly resolve?: { readonly symlinks?: boolean | undefined } | undefined;
  }): undefined;
  /** Adds a plugin to the builds of web workers, for which Vite does not use the plugins of the application. */
  config(): { readonly worker: { plugins(): WorkerPlugin[] } };
  /** Reads the options of Vite. Farm throws at names that it does not know. */
  configResolved(config: {
    readonly resolve?: { readonly preserveSymlinks?: boolean | undefined } | undefined;
  }): void;
  /** Clears the list of seen modules, because a module that an earlier build transformed may come from a cache in this one. */
  buildStart(): void;
  /**
   * Checks the modules that never reached `transform`, because another plugin renamed them, a cache kept them, or they stay outside of the
   * bundle.
   */
  buildEnd(this: BuildContext, error?: Error): void;
  /** Reports code that cannot run in the environment of the output. This is not `generateBundle`, because that crashes Farm. */
  writeBundle(this: BuildContext | undefined, options: object, bundle: Bundle): void;
}

/** Vite does not write the output of a worker itself, and so does not call `writeBundle` for it. */
interface WorkerPlugin extends Plugin {
  generateBundle: Plugin["writeBundle"];
}

/**
 * Weaves the files that Vite, Vitest, Rollup, or Rolldown builds.
 *
 * @throws {TypeError} if the options are invalid
 */
function lockweave(options?: PluginOptions): Plugin {
  const weave = fileWeaver(parser(), options);
  const seen = new Set<string>();
  const exclude = [INSTALLED, AS_TEXT];
  /** With `preserveSymlinks`, a package of the workspace has a path in `node_modules`. Otherwise, skipping `node_modules` saves much time. */
  const lookBehindLinks = (keepsLinks = false): void => {
    const at = keepsLinks ? exclude.indexOf(INSTALLED) : -1;
    if (at !== -1) exclude.splice(at, 1);
  };
  return {
    name: "lockweave",
    enforce: "pre",
    transform: {
      order: "pre",
      filter: { id: { include: [SOURCE_FILES, COMPONENTS], exclude } },
      handler(text, id) {
        return transformed(this, weave, seen, text, id);
      },
    },
    options(input) {
      lookBehindLinks(input.preserveSymlinks);
      lookBehindLinks(input.resolve?.symlinks === false);
      return undefined;
    },
    config: () => ({
      worker: {
        plugins: () => {
          const ofWorker = lockweave(options);
          return [{ ...ofWorker, generateBundle: ofWorker.writeBundle }];
        },
      },
    }),
    configResolved({ resolve }) {
      lookBehindLinks(resolve?.preserveSymlinks);
    },
    buildStart() {
      seen.clear();
    },
    buildEnd(error) {
      if (error === undefined) failAtUnlocked(this, seen);
    },
    writeBundle(_, bundle) {
      if (this === undefined) failInFarm(seen, bundle);
      else failAtUnsupported(this, bundle);
    },
  };
}

/** Weaves a module, and adds it to `seen`. Returns `undefined` if there is nothing to weave. */
function transformed(
  context: TransformContext,
  weave: FileWeaver,
  seen: Set<string>,
  text: string,
  id: string,
): ReturnType<Plugin["transform"]["handler"]> {
  if (id.startsWith("\0")) failAtUnseen(context, id, text);
  if (COMPONENTS.test(id) && !isInstalled(id)) failAt(context, id, tagsInComponent(text));
  const fileName = sourceFileOf(id); // Filters again, because older hosts ignore `filter`.
  if (fileName === undefined) return undefined;
  seen.add(id);
  failAt(context, id, tagsLostFrom(pathOf(id), text));
  const woven = weave(fileName, text);
  if (woven === undefined) return undefined;
  const { code, map, errors, warnings } = woven;
  for (const warning of warnings) context.warn(logOf(id, [warning], warning, "warning"));
  failAt(context, id, errors);
  return { code, map };
}

/** Reports the unlocked functions of modules that never reached `transform`, and of those outside of the bundle. */
function failAtUnlocked(context: BuildContext, seen: ReadonlySet<string>): void {
  for (const id of modulesOf(context)) {
    const info = seen.has(id) ? null : context.getModuleInfo(id);
    const code = info !== null && "code" in info ? info.code : undefined;
    if (code != null) failAtUnseen(context, id, code);
  }
  for (const { path, findings } of unlockedExternals(externalImportsOf(context)))
    failAt(context, path, findings);
}

/** Reports code that cannot run in the environment of the output. */
function failAtUnsupported(context: BuildContext, bundle: Bundle): void {
  const refused = modulesOf(context).filter((id) => refusedPlace(id) !== undefined);
  if (refused.length === 0) return;
  const modules = modulesWithCode(bundle);
  for (const id of refused) {
    const place = modules.has(id) ? refusedPlace(id) : undefined;
    if (place === undefined) continue;
    const { importers = [], dynamicImporters = [] } = context.getModuleInfo(id) ?? {};
    const isImportedDynamically = dynamicImporters.length > 0;
    for (const importer of importers) {
      const file = fileBehind(importer);
      const codes = [modules.get(importer)?.code ?? ""];
      failAt(context, file, unsupportedIn(file, place, { codes, isImportedDynamically }));
    }
  }
}

/** Reports packages that stay outside of a bundle of Farm, which calls no hook with the imports of a module. */
function failInFarm(seen: ReadonlySet<string>, bundle: Bundle): void {
  const files = new Set([...seen].map(fileBehind));
  const codes = Object.values(bundle).flatMap(({ code }) => code ?? []);
  const unlocked = unlockedExternals(importsKeptIn(files, codes));
  const messages = unlocked.flatMap(({ path, findings }) =>
    findings.map((finding) => formatFinding(shortPath(path), finding)),
  );
  if (messages.length > 0) throw new Error(messages.join("\n"));
}

function modulesWithCode(bundle: Bundle): Map<string, RenderedModule> {
  const modules = Object.values(bundle).flatMap((output) => Object.entries(output.modules ?? {}));
  return new Map(modules.filter(([, { renderedLength }]) => renderedLength > 0));
}

function modulesOf(context: BuildContext): string[] {
  try {
    return [...context.getModuleIds()];
  } catch {
    return []; // In Farm, only `transform` sees the modules.
  }
}

/** Returns the imports of modules that stay outside of the bundle. */
function externalImportsOf(context: BuildContext): ExternalImport[] {
  return modulesOf(context).flatMap((id) => {
    const info = context.getModuleInfo(id);
    if (info === null || !("importedIds" in info)) return [];
    const { importedIds = [], dynamicallyImportedIds = [] } = info;
    return [...importedIds, ...dynamicallyImportedIds]
      .filter((imported) => isExternal(context, imported))
      .map((specifier) => ({ specifier, importer: fileBehind(id) }));
  });
}

/** Rolldown does not say which modules are external, but these have no code. */
function isExternal(context: BuildContext, id: string): boolean {
  const info = context.getModuleInfo(id);
  return info?.isExternal ?? info?.code == null;
}

const FIX = "let the other plugin keep the file's own ID, so that it comes to Lockweave's plugin";

const FIX_OF_LINK =
  "let the bundler resolve the link in `node_modules` to the package's own path, without `preserveSymlinks`";

const FIX_OF_VIRTUAL =
  "give this module an ID that ends with `.js` or `.ts` and has no `\\0`, or move the function into such a file";

/** Reports the unlocked functions of a module that our plugin does not weave, because of its ID or because it is in no file. */
function failAtUnseen(context: TransformContext, id: string, code: string): void {
  const file = fileBehind(id);
  if (AS_TEXT.test(id) || isInstalled(file)) return;
  failAt(context, file, tagsUnseenIn(file, code, INSTALLED.test(file) ? FIX_OF_LINK : FIX));
  failAt(context, id.replace(/^\0/, ""), tagsUnwovenIn(file, code, FIX_OF_VIRTUAL));
}

/** Returns the path in an ID. Plugins start the IDs that they invent with `\0`, often followed by a prefix of their own. */
function fileBehind(id: string): string {
  return pathOf(id.replace(/^\0(?:[\w-]+:)?/, ""));
}

/** Reports all findings in one error, because these hosts stop at the first error. */
function failAt(context: TransformContext, id: string, findings: readonly Finding[]): void {
  const [first] = findings;
  if (first !== undefined) context.error(logOf(id, findings, first, "error"));
}

function logOf(id: string, findings: readonly Finding[], first: Finding, kind: string): Log {
  const file = pathOf(id);
  const lines = findings.map((finding) => formatFinding(shortPath(file), finding, kind));
  const loc = { file, line: first.line, column: first.column };
  return { message: lines.join("\n"), id, loc, frame: frameOf(first) };
}

/** Returns the source line with a line of marks under the affected text. */
function frameOf({ line, column, length, lineText }: Finding): string {
  const margin = `${line} | `;
  const before = `${" ".repeat(margin.length - 2)}| ${lineText.slice(0, column).replaceAll(/[^\t]/g, " ")}`;
  return `${margin}${lineText}\n${before}${"^".repeat(Math.max(1, Math.min(length, lineText.length - column)))}`;
}

export = lockweave;
