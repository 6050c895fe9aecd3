import { readFileSync } from "node:fs";
import { dirname, extname, isAbsolute, join, resolve } from "node:path";
import type { Parser, Source } from "../../parser/parser";
import { isCommonJsScript, moduleSyntax } from "../../read/module-syntax";
import { readDefaults } from "../../read/attributes";
import type { Problem } from "../../text/problems";
import type { ModuleFormat } from "../../weave/runtime-import";
import { mayNeedWeave, weave } from "../../weave/weave";
import type { WovenText } from "../diagnostics/to-disk";
import { pathInPackage } from "../path-in-package";
import type { NativeCompiler } from "./compiler";
import { configFiles, type ConfigFile } from "./config";
import { parseDiagnostics, type CompilerDiagnostic } from "./compiler-output";

/** A project as a compiler without an API describes it. */
export interface NativeProject {
  readonly compiler: NativeCompiler;
  readonly config: string;
  readonly options: Readonly<Record<string, unknown>>;
  /** The files that the tsconfig.json includes, by name or by pattern. */
  readonly rootNames: readonly string[];
  /** All files that the compiler reads, except for its own library and installed packages. */
  readonly sources: readonly string[];
  /** All declaration files that the compiler reads, including those of installed packages. */
  readonly declarations: readonly string[];
  readonly configs: readonly ConfigFile[];
  readonly plugin: PluginEntry | undefined;
  /** The problems of our entry in tsconfig.json. */
  readonly problems: readonly Problem[];
  readonly woven: ReadonlyMap<string, WovenText>;
}

interface PluginEntry {
  readonly transform?: string;
  /** The TypeScript that compiles the project, as a package name or a path. */
  readonly typescript?: unknown;
  readonly transformProgram?: boolean;
  readonly defaults?: Readonly<Record<string, unknown>>;
}

/** Thrown if the compiler cannot create a project from the tsconfig.json. */
export class NoProjectError extends Error {
  readonly diagnostics: readonly CompilerDiagnostic[];

  constructor(output: string, cwd: string) {
    const { diagnostics, others } = parseDiagnostics(output, cwd);
    super(others.filter((line) => !isAbsolute(line)).join("\n")); // The compiler may list files after the error.
    this.diagnostics = diagnostics;
  }
}

/**
 * Opens a project.
 *
 * @throws {NoProjectError} if the compiler rejects the tsconfig.json
 */
export function openNativeProject(
  ts: Parser,
  compiler: NativeCompiler,
  config: string,
  cwd: string,
): NativeProject {
  const ask = (...args: string[]): string => {
    const { code, output } = compiler.run(["-p", config, "--pretty", "false", ...args], cwd);
    if (code !== 0) throw new NoProjectError(output, cwd);
    return output;
  };
  const shownConfig = JSON.parse(ask("--showConfig")) as ShownConfig;
  const { compilerOptions: options = {}, files: rootNames = [] } = shownConfig;
  const here = dirname(config);
  // The compiler accepts this option only with `noEmit`, which this call turns off.
  const extraArgs =
    options["allowImportingTsExtensions"] === true ? ["--allowImportingTsExtensions", "false"] : [];
  const files = ask("--listFilesOnly", "--noEmit", "false", ...extraArgs)
    .split(/\r?\n/)
    .filter((file) => file !== "" && !/[\\/]lib\.[\w.]*d\.ts$/.test(file))
    .map((file) => resolve(cwd, file));
  const sources = files.filter((file) => !/[\\/]node_modules[\\/]/.test(file));
  const configs = configFiles(ts, config);
  const plugin = pluginIn(configs);
  const { defaults, problems } = readDefaults(plugin?.defaults ?? {});
  const woven = new Map(
    sources.flatMap((file): [string, WovenText][] => {
      if (!/(?<!\.d)\.[cm]?[jt]sx?$/.test(file)) return [];
      const text = readFileSync(file, "utf8");
      if (!mayNeedWeave(text)) return [];
      const sourceFile = ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
      const found = weave(file, text, {
        ts,
        module: formatOf({ ts, file: sourceFile }, options),
        defaults,
        sourceFile,
        pathOf: pathInPackage,
      });
      return found === undefined ? [] : [[file, { text, woven: found }]];
    }),
  );
  return {
    compiler,
    config,
    options,
    rootNames: rootNames.map((file) => resolve(here, file)),
    sources,
    declarations: files.filter((file) => /\.d\.[cm]?ts$/.test(file)),
    configs,
    plugin,
    problems,
    woven,
  };
}

interface ShownConfig {
  readonly compilerOptions?: Readonly<Record<string, unknown>>;
  readonly files?: readonly string[];
}

/** Returns our entry, and the path of the tsconfig.json that contains it. */
export function entryIn(
  configs: readonly ConfigFile[],
): { readonly entry: PluginEntry; readonly path: string } | undefined {
  const holder = configs.find(({ settings }) => "plugins" in settings);
  const entry = pluginIn(configs);
  return holder === undefined || entry === undefined ? undefined : { entry, path: holder.path };
}

function pluginIn(configs: readonly ConfigFile[]): PluginEntry | undefined {
  const plugins = configs.find(({ settings }) => "plugins" in settings)?.settings["plugins"];
  const entries = (Array.isArray(plugins) ? plugins : []) as PluginEntry[];
  return entries.find(({ transform }) => transform === "lockweave/transformer" || transform === "lockweave");
}

/** Returns the module format in which the compiler will emit the file. */
function formatOf(source: Source, options: NativeProject["options"]): ModuleFormat {
  const { file } = source;
  const module = typeof options["module"] === "string" ? options["module"].toLowerCase() : "";
  const isCommonJs =
    (["commonjs", "amd", "umd"].includes(module) && !extname(file.fileName).startsWith(".m")) ||
    (module === "preserve" && moduleSyntax(source) === "commonjs") ||
    (/^node(?:16|18|20|next)$/.test(module) && isCommonJsFile(file.fileName));
  if (!isCommonJs) return "esm";
  if (module !== "amd" && module !== "umd" && isCommonJsScript(source)) return "script";
  if (options["erasableSyntaxOnly"] !== true) return "commonjs";
  return options["verbatimModuleSyntax"] === true ? "require" : "esm";
}

function isCommonJsFile(file: string): boolean {
  const ending = extname(file);
  if (ending.startsWith(".m")) return false;
  if (ending.startsWith(".c")) return true;
  for (let dir = dirname(file); ; dir = dirname(dir)) {
    const type = packageTypeIn(dir);
    if (type !== undefined || dir === dirname(dir)) return type !== "module";
  }
}

/** Returns the package type, or `undefined` if the directory has no package.json. */
function packageTypeIn(dir: string): string | undefined {
  try {
    const { type = "commonjs" } = JSON.parse(readFileSync(join(dir, "package.json"), "utf8")) as {
      type?: string;
    };
    return type;
  } catch {
    return undefined;
  }
}
