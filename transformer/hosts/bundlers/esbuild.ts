import { readFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import {
  fileWeaver,
  formatFinding,
  type FileWeaver,
  type Finding,
  type PluginOptions,
} from "../one-file/weaver";
import { parser } from "../../parser/parser";
import { COMPONENTS, tagsInComponent } from "./components";
import { externalImportsOf, isBun, unseenInputs, unsupportedInputs, type Built } from "./esbuild-metafile";
import { importsKeptIn, unlockedExternals } from "./externals";
import { tagsUnseenInOutputs } from "./lost-tags";
import { isOtherFile, shortPath, SOURCE_FILES } from "./source-files";
import { unsupportedIn } from "./unsupported";

// Own declarations of the parts of esbuild's plugin API that are used here.

interface Plugin {
  readonly name: string;
  setup(build: Build): void;
}

interface Build {
  /** Missing in Bun if the plugin is passed to `Bun.plugin`, which applies to the running program. */
  readonly initialOptions?: {
    readonly absWorkingDir?: string;
    readonly loader?: Readonly<Record<string, string>>;
    readonly format?: string;
    stdin?: Stdin;
    metafile?: boolean;
  };
  onStart(start: () => Pick<Loaded, "errors" | "warnings">): void;
  /** Missing in older versions of Bun. */
  onEnd?(end: (result: Built) => Promise<Pick<Loaded, "errors">>): void;
  onResolve(
    options: { filter: RegExp },
    resolve: (asked: {
      readonly path: string;
      readonly kind: string;
      readonly resolveDir: string;
    }) => { path: string; namespace: string; pluginData: string } | undefined,
  ): void;
  onLoad(
    options: { filter: RegExp; namespace: string },
    load: (file: {
      readonly path: string;
      /** Missing in Bun. */
      readonly with?: Readonly<Record<string, string>>;
      readonly pluginData?: unknown;
    }) => Promise<Loaded | undefined> | (Pick<Loaded, "contents"> & { readonly resolveDir: string }),
  ): void;
}

/** Source text that is not in a file. */
interface Stdin {
  readonly contents: string | Uint8Array;
  readonly sourcefile?: string;
  readonly loader?: string;
}

interface Loaded {
  contents: string;
  loader: Loader;
  errors: Message[];
  warnings: Message[];
}

type Loader = "js" | "jsx" | "ts" | "tsx";

interface Message {
  id: string;
  text: string;
  location: { file: string; line: number; column: number; length: number; lineText: string };
}

/**
 * Weaves the files that esbuild or Bun builds. If several plugins load a file, esbuild uses the first, so this plugin must come before the
 * others. A tagged file that another plugin loaded is an error at the end of the build, unless its locks are in the output.
 *
 * @throws {TypeError} if the options are invalid
 */
function lockweave(options?: PluginOptions): Plugin {
  const weave = fileWeaver(parser(), options);
  return {
    name: "lockweave",
    setup({ initialOptions, onStart, onResolve, onLoad, onEnd }) {
      if (initialOptions === undefined || initialOptions === null) throw new TypeError(NO_BUILD);
      const { absWorkingDir, stdin } = initialOptions;
      const seen = seenIn(initialOptions);
      initialOptions.metafile = true;
      onEnd?.(async (built) => ({ errors: await errorsAtEnd(built, seen, absWorkingDir) }));
      const loaders = { ...LOADERS, ...initialOptions.loader };
      onLoad({ filter: filterFor(loaders), namespace: "file" }, async ({ path, with: attributes = {} }) => {
        seen.add(path);
        const isOther = isOtherFile(path) || "type" in attributes;
        return isOther ? undefined : loadFile(weave, path, loaderOf(path, loaders), absWorkingDir);
      });
      if (initialOptions.format === "esm" && !isBun) {
        // An ES module has no `require` for what stays outside of it. So woven CommonJS requires a module that imports the runtime.
        onResolve({ filter: /^lockweave\/runtime$/ }, ({ path, kind, resolveDir }) =>
          kind === "require-call" ? { path, namespace: NAMESPACE, pluginData: resolveDir } : undefined,
        );
        onLoad({ filter: /^/, namespace: NAMESPACE }, ({ path, pluginData }) => ({
          contents: `export * from ${JSON.stringify(path)};`,
          resolveDir: String(pluginData),
        }));
      }
      if (stdin === undefined) return;
      const { contents, sourcefile = "<stdin>", loader = "js" } = stdin;
      const text = typeof contents === "string" ? contents : Buffer.from(contents).toString();
      seen.add(resolve(absWorkingDir ?? ".", sourcefile)); // This path appears only in messages.
      const loaded = isCode(loader) ? loadText(weave, sourcefile, text, loader, sourcefile) : undefined;
      if (loaded === undefined) return;
      const { contents: locked, errors, warnings } = loaded;
      initialOptions.stdin = { ...stdin, contents: locked };
      onStart(() => ({ errors, warnings }));
    },
  };
}

/** Returns the errors that only the finished build shows: tagged code that has no locks, or that cannot run where it is built for. */
async function errorsAtEnd(
  built: Built,
  seen: ReadonlySet<string>,
  dir: string | undefined,
): Promise<Message[]> {
  const messagesOf = (path: string, findings: readonly Finding[]): Message[] => {
    const file = shortPath(path, dir);
    if (isBun) reportToBun(file, findings, []);
    return findings.map((finding) => message(file, finding));
  };
  const unsupported = unsupportedInputs(built, dir).flatMap(({ path, place, evidence }) =>
    messagesOf(path, unsupportedIn(path, place, evidence)),
  );
  const unlocked = unseenInputs(built, seen, dir).flatMap(({ path, codes }) =>
    messagesOf(path, tagsUnseenInOutputs(path, codes, "put Lockweave's plugin before the others")),
  );
  const imports =
    built.metafile === undefined
      ? importsKeptIn(seen, await Promise.all((built.outputs ?? []).map((output) => output.text())))
      : externalImportsOf(built, dir);
  const external = unlockedExternals(imports).flatMap(({ path, findings }) => messagesOf(path, findings));
  return [...unsupported, ...unlocked, ...external];
}

/** Returns the woven file, or `undefined` if esbuild or another plugin should load it. */
async function loadFile(
  weave: FileWeaver,
  path: string,
  loader: Loader | undefined,
  dir: string | undefined,
): Promise<Loaded | undefined> {
  const isComponent = COMPONENTS.test(path);
  if (loader === undefined && !isComponent) return undefined;
  const file = shortPath(path, dir);
  const text = await readFile(path, "utf8");
  if (isComponent) return refuseTags(file, text);
  return loader && loadText(weave, path, text, loader, file);
}

/** Returns the woven text, or `undefined` if there is nothing to weave. */
function loadText(
  weave: FileWeaver,
  path: string,
  text: string,
  loader: Loader,
  file: string,
): Loaded | undefined {
  const woven = weave(SOURCE_FILES.test(path) ? path : `${path}.${loader}`, text, "esm or script");
  if (woven === undefined) return undefined;
  const { code, map, errors, warnings } = woven;
  if (isBun) reportToBun(file, errors, warnings);
  const messageOf = (finding: Finding): Message => message(file, finding);
  map.sources = [basename(path)];
  return {
    contents: `${code}\n//# sourceMappingURL=${map.toUrl()}`,
    loader,
    errors: errors.map(messageOf),
    warnings: warnings.map(messageOf),
  };
}

/** Reports the tags of a component, whose code another plugin extracts. */
function refuseTags(file: string, text: string): Loaded | undefined {
  const errors = tagsInComponent(text);
  if (errors.length === 0) return undefined;
  if (isBun) reportToBun(file, errors, []);
  return { contents: "", loader: "js", errors: errors.map((error) => message(file, error)), warnings: [] };
}

/**
 * The files that our plugins loaded in one build, by the build's options. If a build has two of our plugins, the first one loads every
 * file.
 */
const seenFiles = new WeakMap<object, Set<string>>();

function seenIn(build: object): Set<string> {
  const seen = seenFiles.get(build) ?? new Set<string>();
  seenFiles.set(build, seen);
  return seen;
}

const NAMESPACE = "lockweave";

const NO_BUILD =
  "lockweave/esbuild is a plugin for builds. Fix: to weave what Bun runs, preload lockweave/register instead of `Bun.plugin(lockweave())`";

/** Reports to Bun, which ignores the messages that plugins return, but not the errors that they throw. */
function reportToBun(file: string, errors: readonly Finding[], warnings: readonly Finding[]): void {
  for (const warning of warnings) process.stderr.write(`${formatFinding(file, warning, "warning")}\n`);
  if (errors.length > 0) throw new Error(errors.map((error) => formatFinding(file, error)).join("\n"));
}

const LOADERS: Readonly<Record<string, string>> = {
  ".js": "js",
  ".mjs": "js",
  ".cjs": "js",
  ".jsx": "jsx",
  ".ts": "ts",
  ".mts": "ts",
  ".cts": "ts",
  ".tsx": "tsx",
};

/** Returns a pattern for all file extensions that esbuild loads as code. */
function filterFor(loaders: Readonly<Record<string, string>>): RegExp {
  const endings = Object.keys(loaders).filter((ending) => isCode(loaders[ending]));
  const sources = endings.map((ending) =>
    ending === "" ? String.raw`(?:^|[\\/])[^.\\/]+$` : `${ending.replaceAll(/[^\w]/g, String.raw`\$&`)}$`,
  );
  return new RegExp([SOURCE_FILES.source, COMPONENTS.source, ...sources].join("|"));
}

/**
 * Returns the loader that esbuild would choose, by the longest matching extension. The extension `""` matches a name without a dot.
 *
 * @returns `undefined` if the file is not code
 */
function loaderOf(path: string, loaders: Readonly<Record<string, string>>): Loader | undefined {
  const name = basename(path);
  const endings = name.includes(".")
    ? Array.from(name.matchAll(/\./g), ({ index }) => name.slice(index))
    : [""];
  const loader = endings.map((ending) => loaders[ending]).find((found) => found !== undefined);
  return isCode(loader) ? loader : undefined;
}

function isCode(loader: string | undefined): loader is Loader {
  return loader === "js" || loader === "jsx" || loader === "ts" || loader === "tsx";
}

/** Converts a finding to a message of esbuild, which counts columns in bytes. */
function message(file: string, { code, message: text, line, column, length, lineText }: Finding): Message {
  const bytes = (from: number, to: number): number => Buffer.byteLength(lineText.slice(from, to));
  const location = {
    file,
    line,
    column: bytes(0, column),
    length: bytes(column, column + length),
    lineText,
  };
  return { id: code, text: `${code}: ${text}`, location };
}

export = lockweave;
