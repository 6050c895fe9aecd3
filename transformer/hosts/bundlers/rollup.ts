import { fileWeaver, shown, type Finding, type PluginOptions, type WovenFile } from "../one-file/weaver";
import { parser } from "../../parser/parser";
import { COMPONENTS, tagsInComponent } from "./components";
import { tagsLostFrom, tagsUnseenIn, tagsUnwovenIn } from "./lost-tags";
import {
  AS_TEXT,
  INSTALLED,
  isInstalled,
  pathOf,
  shortPath,
  SOURCE_FILES,
  sourceFileOf,
} from "./source-files";
import { refusedPlace, unsupportedIn } from "./unsupported";

// Vite, Rollup and Rolldown take plugins of one kind. These are the parts of it that are used here, in words of our
// own: who has installed one of the three need not have the types of the other two.

/** What is wrong, as these hosts show it. */
interface Log {
  readonly message: string;
  readonly id: string;
  readonly loc: { readonly file: string; readonly line: number; readonly column: number };
  readonly frame: string;
}

interface TransformContext {
  warn(log: Log): void;
  /** Throws. */
  error(log: Log): never;
}

interface BuildContext extends TransformContext {
  /** Throws in Farm, which does not support it. */
  getModuleIds(): Iterable<string>;
  /** Vite's development server knows no code, and throws at the name. */
  getModuleInfo(id: string): {
    readonly code?: string | null;
    readonly importers?: readonly string[];
    readonly dynamicImporters?: readonly string[];
  } | null;
}

/** An output. Assets, and Farm's chunks, have no modules. */
interface Output {
  readonly type: string;
  readonly modules?: Readonly<Record<string, RenderedModule>>;
}

interface RenderedModule {
  readonly code?: string | null;
  readonly renderedLength: number;
}

type Bundle = Readonly<Record<string, Output>>;

interface Plugin {
  readonly name: string;
  /** To Vite: before its own transform, which takes the comments away. */
  readonly enforce: "pre";
  readonly transform: {
    /** The same to Rollup and Rolldown. */
    readonly order: "pre";
    readonly filter: { readonly id: { readonly include: RegExp[]; readonly exclude: RegExp[] } };
    handler(
      this: TransformContext,
      text: string,
      id: string,
    ): { readonly code: string; readonly map: WovenFile["map"] } | undefined;
  };
  /** Sees the options of Rollup and Rolldown. */
  options(options: {
    readonly preserveSymlinks?: boolean | undefined;
    readonly resolve?: { readonly symlinks?: boolean | undefined } | undefined;
  }): undefined;
  /** Sees the options of Vite. Farm throws at names that it does not know. */
  configResolved(config: {
    readonly resolve?: { readonly preserveSymlinks?: boolean | undefined } | undefined;
  }): void;
  /** A module that an earlier build has seen may come from a cache in this one. */
  buildStart(): void;
  /** Looks at the modules that never came to `transform`: another plugin renamed them, or a cache kept them. */
  buildEnd(this: BuildContext, error?: Error): void;
  /** Looks for code that cannot run where the output runs. With `generateBundle` instead, Farm crashes. */
  writeBundle(this: BuildContext, options: object, bundle: Bundle): void;
}

/**
 * Weaves what Vite, Vitest, Rollup or Rolldown builds.
 *
 * @throws {TypeError} when the options are none
 */
function lockweave(options?: PluginOptions): Plugin {
  const weave = fileWeaver(parser(), options);
  const seen = new Set<string>();
  const exclude = [INSTALLED, AS_TEXT];
  /** If links stay in paths, a package of the workspace is found in `node_modules`. Otherwise the filter saves much time. */
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
        if (id.startsWith("\0")) {
          failAt(this, fileBehind(id), unseenIn(id, text));
          failAt(this, id.slice(1), unwovenIn(id, text));
        }
        if (COMPONENTS.test(id) && !isInstalled(id)) failAt(this, id, tagsInComponent(text));
        const fileName = sourceFileOf(id); // Asked again: older hosts do not know the filter.
        if (fileName === undefined) return undefined;
        seen.add(id);
        failAt(this, id, tagsLostFrom(pathOf(id), text));
        const woven = weave(fileName, text);
        if (woven === undefined) return undefined;
        const { code, map, errors, warnings } = woven;
        for (const warning of warnings) this.warn(logOf(id, [warning], warning, "warning"));
        failAt(this, id, errors);
        return { code, map };
      },
    },
    options(input) {
      lookBehindLinks(input.preserveSymlinks);
      lookBehindLinks(input.resolve?.symlinks === false);
      return undefined;
    },
    configResolved({ resolve }) {
      lookBehindLinks(resolve?.preserveSymlinks);
    },
    buildStart() {
      seen.clear();
    },
    buildEnd(error) {
      if (error !== undefined) return;
      for (const id of modulesOf(this)) {
        const info = seen.has(id) ? null : this.getModuleInfo(id);
        const code = info !== null && "code" in info ? info.code : undefined;
        if (code == null) continue;
        failAt(this, fileBehind(id), unseenIn(id, code));
        failAt(this, id.replace(/^\0/, ""), unwovenIn(id, code));
      }
    },
    writeBundle(_, bundle) {
      const refused = modulesOf(this).filter((id) => refusedPlace(id) !== undefined);
      if (refused.length === 0) return;
      const modules = modulesWithCode(bundle);
      for (const id of refused) {
        const place = modules.has(id) ? refusedPlace(id) : undefined;
        if (place === undefined) continue;
        const { importers = [], dynamicImporters = [] } = this.getModuleInfo(id) ?? {};
        const isImportedDynamically = dynamicImporters.length > 0;
        for (const importer of importers) {
          const file = fileBehind(importer);
          const codes = [modules.get(importer)?.code ?? ""];
          failAt(this, file, unsupportedIn(file, place, { codes, isImportedDynamically }));
        }
      }
    },
  };
}

function modulesWithCode(bundle: Bundle): Map<string, RenderedModule> {
  const modules = Object.values(bundle).flatMap((output) => Object.entries(output.modules ?? {}));
  return new Map(modules.filter(([, { renderedLength }]) => renderedLength > 0));
}

function modulesOf(context: BuildContext): string[] {
  try {
    return [...context.getModuleIds()];
  } catch {
    return []; // Farm: `transform` is the only place that sees its modules.
  }
}

const CURE = "let the other plugin keep the file's own id, so that it comes to Lockweave's plugin";

const CURE_OF_LINK =
  "let the bundler resolve the link in `node_modules` to the package's own path, without `preserveSymlinks`";

const CURE_OF_VIRTUAL =
  "give this module an id that ends with `.js` or `.ts` and has no `\\0`, or move the function into such a file";

/** The unlocked functions of a module that our plugin does not weave. */
function unseenIn(id: string, code: string): Finding[] {
  const file = fileBehind(id);
  if (AS_TEXT.test(id) || isInstalled(file)) return [];
  return tagsUnseenIn(file, code, INSTALLED.test(file) ? CURE_OF_LINK : CURE);
}

/** The same of a module that is in no file. */
function unwovenIn(id: string, code: string): Finding[] {
  const file = fileBehind(id);
  return AS_TEXT.test(id) || isInstalled(file) ? [] : tagsUnwovenIn(file, code, CURE_OF_VIRTUAL);
}

/** The path in an id. Plugins begin the ids that they invent with `\0`, often with a name of their own behind it. */
function fileBehind(id: string): string {
  return pathOf(id.replace(/^\0(?:[\w-]+:)?/, ""));
}

/** Reports all at once: at an error these hosts stop. */
function failAt(context: TransformContext, id: string, findings: readonly Finding[]): void {
  const [first] = findings;
  if (first !== undefined) context.error(logOf(id, findings, first, "error"));
}

function logOf(id: string, findings: readonly Finding[], first: Finding, kind: string): Log {
  const file = pathOf(id);
  const said = findings.map((finding) => shown(shortPath(file), finding, kind));
  const loc = { file, line: first.line, column: first.column };
  return { message: said.join("\n"), id, loc, frame: frameOf(first) };
}

/** The line, and below it marks under the words. */
function frameOf({ line, column, length, lineText }: Finding): string {
  const margin = `${line} | `;
  const before = `${" ".repeat(margin.length - 2)}| ${lineText.slice(0, column).replaceAll(/[^\t]/g, " ")}`;
  return `${margin}${lineText}\n${before}${"^".repeat(Math.max(1, Math.min(length, lineText.length - column)))}`;
}

export = lockweave;
