import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { join, relative, sep } from "node:path";
import { parser } from "../../parser/parser";
import { mapToDisk, type TextOnDisk } from "../../text/source-map";
import { mayNeedWeave } from "../../weave/weave";
import type { PluginOptions } from "../one-file/options";
import { tagError } from "../one-file/file-error";
import { fileWeaver, formatFinding, type FileWeaver, type WovenFile } from "../one-file/weaver";

export interface JestOptions extends PluginOptions {
  /**
   * The transformer that compiles the woven files, in the form of Jest's `transform`: `"@swc/jest"`, or `["ts-jest", { ... }]`. The default
   * is `"babel-jest"`, as in Jest itself.
   */
  readonly transformer?: string | readonly [name: string, config?: unknown];
}

/** The parts of Jest's options for a file that are used here. */
interface TransformOptions {
  readonly config: { readonly rootDir: string };
  readonly configString: string;
  readonly instrument: boolean;
  /** The texts of files by path. */
  readonly cacheFS?: Map<string, string>;
}

interface Transformed {
  readonly code: string;
  readonly map?: object | string | null;
}

type TransformerMethod<Result> = (text: string, path: string, options: TransformOptions) => Result;

/** A transformer of Jest. */
interface Transformer {
  /**
   * Whether the transformer instruments the code for coverage. If not, Jest instruments its output, whose source maps lead to the files on
   * disk.
   */
  readonly canInstrument?: boolean;
  getCacheKey?: TransformerMethod<string>;
  getCacheKeyAsync?: TransformerMethod<Promise<string>>;
  process?: TransformerMethod<Transformed>;
  processAsync?: TransformerMethod<Promise<Transformed>>;
}

/** Creates a transformer that weaves each file, and passes it on to another transformer. */
export function createTransformer(options: JestOptions = {}): Transformer {
  const { transformer = "babel-jest", ...pluginOptions } = options;
  const [name, config] = typeof transformer === "string" ? [transformer] : transformer;
  const salt = JSON.stringify([lockweaveVersion(), options]);
  let weave: FileWeaver | undefined;
  let compiling: Transformer | undefined;

  const compiler = ({ config: { rootDir } }: TransformOptions): Transformer =>
    (compiling ??= transformerNamed(name, config, rootDir));
  const forCompiler = (given: TransformOptions): TransformOptions =>
    Object.assign({}, given, { transformerConfig: config ?? {}, instrument: false });
  const woven = (text: string, path: string): WovenFile | undefined => {
    if (!mayNeedWeave(text)) return undefined;
    weave ??= fileWeaver(parser(), pluginOptions);
    return withoutErrors(weave(path, text, "as written"), path);
  };
  const keyOf = (key: string): string =>
    createHash("sha256").update(salt).update("\0").update(key).digest("hex");

  const weaving: Required<Transformer> = {
    canInstrument: false,
    getCacheKey(text, path, given) {
      const inner = compiler(given);
      return keyOf(inner.getCacheKey?.(text, path, given) ?? usualCacheKey(text, path, given));
    },
    async getCacheKeyAsync(text, path, given) {
      const inner = compiler(given);
      const key = inner.getCacheKeyAsync?.(text, path, given) ?? inner.getCacheKey?.(text, path, given);
      return keyOf((await key) ?? usualCacheKey(text, path, given));
    },
    process(text, path, given) {
      const inner = compiler(given);
      const file = woven(text, path);
      const restore = cacheWovenText(file, path, given);
      try {
        const compiled = inner.process?.(file?.code ?? text, path, forCompiler(given));
        if (compiled === undefined)
          throw new Error(
            `${name} compiles imported files, but not required ones. Fix: load this file with \`import\`, or configure a transformer that has \`process()\`.`,
          );
        return mappedToDisk(file, compiled);
      } finally {
        restore();
      }
    },
    async processAsync(text, path, given) {
      const inner = compiler(given);
      if (inner.processAsync === undefined) return weaving.process(text, path, given);
      const file = woven(text, path);
      const restore = cacheWovenText(file, path, given);
      try {
        return mappedToDisk(file, await inner.processAsync(file?.code ?? text, path, forCompiler(given)));
      } finally {
        restore();
      }
    },
  };
  return weaving;
}

/**
 * Puts the woven text into Jest's cache of file texts. ts-jest reads a file that it has not seen before from this cache, and not from its
 * argument.
 *
 * @returns a function that restores the cache, from which Jest reads the file again
 */
function cacheWovenText(
  file: WovenFile | undefined,
  path: string,
  { cacheFS }: TransformOptions,
): () => void {
  if (file === undefined || cacheFS === undefined) return () => {};
  const before = cacheFS.get(path);
  cacheFS.set(path, file.code);
  return () => void (before === undefined ? cacheFS.delete(path) : cacheFS.set(path, before));
}

/** Throws an error that lists all errors of the file, so that its test does not run. Prints the warnings. */
function withoutErrors(file: WovenFile | undefined, path: string): WovenFile | undefined {
  if (file === undefined) return undefined;
  const name = relative(process.cwd(), path).replaceAll(sep, "/");
  const { errors, warnings } = file;
  if (errors.length > 0) throw tagError(name, errors);
  for (const found of warnings) process.stderr.write(`${formatFinding(name, found, "warning")}\n`);
  return file;
}

/** Returns the compiled code with source maps that lead to the text on disk. */
function mappedToDisk(file: WovenFile | undefined, compiled: Transformed): Transformed {
  if (file === undefined) return compiled;
  const source = (): TextOnDisk => file.source;
  const { map } = compiled;
  const code = mapToDisk("inline", compiled.code, source);
  if (typeof map === "string") return { ...compiled, code, map: mapToDisk(".map", map, source) };
  if (typeof map !== "object" || map === null) return { ...compiled, code };
  return { ...compiled, code, map: JSON.parse(mapToDisk(".map", JSON.stringify(map), source)) as object };
}

interface TransformerModule extends Transformer {
  readonly default?: TransformerModule;
  readonly createTransformer?: (config: unknown) => Transformer;
}

function transformerNamed(name: string, config: unknown, rootDir: string): Transformer {
  const required = createRequire(join(rootDir, "package.json"))(name) as TransformerModule;
  const found = required.default ?? required;
  return found.createTransformer?.(config) ?? found;
}

/** Returns the key that Jest uses for a transformer without its own. */
function usualCacheKey(text: string, path: string, { config, configString }: TransformOptions): string {
  return [text, relative(config.rootDir, path), configString].join("\0");
}

function lockweaveVersion(): string {
  return (require("lockweave/package.json") as { version: string }).version;
}
