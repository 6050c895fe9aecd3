import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileWeaver, shown, type Finding, type PluginOptions } from "../one-file/weaver";
import { parser } from "../../parser/parser";
import { COMPONENTS, tagsInComponent } from "./components";
import { OTHER_FILES, shortPath, SOURCE_FILES } from "./source-files";

// The parts of esbuild's plugins that are used here, in words of our own.

interface Plugin {
  readonly name: string;
  setup(build: Build): void;
}

interface Build {
  readonly initialOptions: {
    readonly absWorkingDir?: string;
    readonly loader?: Readonly<Record<string, string>>;
    stdin?: Stdin;
  };
  onStart(start: () => Pick<Loaded, "errors" | "warnings">): void;
  onLoad(
    options: { filter: RegExp; namespace: string },
    load: (file: {
      readonly path: string;
      /** Not from Bun. */
      readonly with?: Readonly<Record<string, string>>;
    }) => Promise<Loaded | undefined>,
  ): void;
}

/** A text that is in no file. */
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
 * Weaves what esbuild or Bun builds. Of several plugins that load a file, esbuild asks the first: put this one before them.
 *
 * @throws {TypeError} when the options are none
 */
function lockweave(options?: PluginOptions): Plugin {
  const weave = fileWeaver(parser(), options);
  const load = (path: string, text: string, loader: Loader, file: string): Loaded | undefined => {
    const woven = weave(SOURCE_FILES.test(path) ? path : `${path}.${loader}`, text);
    if (woven === undefined) return undefined; // esbuild reads it itself.
    const { code, map, errors, warnings } = woven;
    if (isBun) tellBun(file, errors, warnings);
    const messageOf = (finding: Finding): Message => message(file, finding);
    map.sources = [basename(path)];
    return {
      contents: `${code}\n//# sourceMappingURL=${map.toUrl()}`,
      loader,
      errors: errors.map(messageOf),
      warnings: warnings.map(messageOf),
    };
  };
  return {
    name: "lockweave",
    setup({ initialOptions, onStart, onLoad }) {
      const loaders = { ...LOADERS, ...initialOptions.loader };
      onLoad({ filter: filterFor(loaders), namespace: "file" }, async ({ path, with: attributes = {} }) => {
        const loader = loaderOf(path, loaders);
        const isOther = OTHER_FILES.some((others) => others.test(path)) || "type" in attributes;
        const isComponent = COMPONENTS.test(path);
        if ((loader === undefined && !isComponent) || isOther) return undefined;
        const file = shortPath(path, initialOptions.absWorkingDir);
        const text = await readFile(path, "utf8");
        if (isComponent) return refuseTags(file, text);
        return loader && load(path, text, loader, file);
      });
      const { stdin } = initialOptions;
      if (stdin === undefined) return;
      const { contents, sourcefile = "<stdin>", loader = "js" } = stdin;
      const text = typeof contents === "string" ? contents : Buffer.from(contents).toString();
      const loaded = isCode(loader) ? load(sourcefile, text, loader, sourcefile) : undefined;
      if (loaded === undefined) return;
      const { contents: locked, errors, warnings } = loaded;
      initialOptions.stdin = { ...stdin, contents: locked };
      onStart(() => ({ errors, warnings }));
    },
  };
}

/** Of a component, which another plugin takes apart. */
function refuseTags(file: string, text: string): Loaded | undefined {
  const errors = tagsInComponent(text);
  if (errors.length === 0) return undefined;
  if (isBun) tellBun(file, errors, []);
  return { contents: "", loader: "js", errors: errors.map((error) => message(file, error)), warnings: [] };
}

const isBun = "bun" in process.versions;

/** Bun passes over what plugins say of a file, but not over what they throw. */
function tellBun(file: string, errors: readonly Finding[], warnings: readonly Finding[]): void {
  for (const warning of warnings) process.stderr.write(`${shown(file, warning, "warning")}\n`);
  if (errors.length > 0) throw new Error(errors.map((error) => shown(file, error)).join("\n"));
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

/** Files of all endings that are code to esbuild. */
function filterFor(loaders: Readonly<Record<string, string>>): RegExp {
  const endings = Object.keys(loaders).filter((ending) => isCode(loaders[ending]));
  const sources = endings.map((ending) => `${ending.replaceAll(/[^\w]/g, String.raw`\$&`)}$`);
  return new RegExp([SOURCE_FILES.source, COMPONENTS.source, ...sources].join("|"));
}

/** As esbuild chooses it: by the longest ending that has one. `undefined` where the file is no code. */
function loaderOf(path: string, loaders: Readonly<Record<string, string>>): Loader | undefined {
  const name = basename(path);
  const endings = Array.from(name.matchAll(/\./g), ({ index }) => name.slice(index));
  const loader = endings.map((ending) => loaders[ending]).find((found) => found !== undefined);
  return isCode(loader) ? loader : undefined;
}

function isCode(loader: string | undefined): loader is Loader {
  return loader === "js" || loader === "jsx" || loader === "ts" || loader === "tsx";
}

/** esbuild counts columns in bytes. */
function message(file: string, { code, message: said, line, column, length, lineText }: Finding): Message {
  const bytes = (from: number, to: number): number => Buffer.byteLength(lineText.slice(from, to));
  const location = {
    file,
    line,
    column: bytes(0, column),
    length: bytes(column, column + length),
    lineText,
  };
  return { id: code, text: `${code}: ${said}`, location };
}

export = lockweave;
