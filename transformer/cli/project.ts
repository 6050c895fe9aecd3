import { realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type * as TS from "typescript";
import type { Analysis } from "../analyze/analyze";
import { readTransactions } from "../analyze/transaction-libraries";
import { compilerErrorsInTags } from "../hosts/diagnostics/to-disk";
import { checkableProject } from "../hosts/native/checkable";
import { nativeCompiler, type NativeCompiler } from "../hosts/native/compiler";
import { projectsInOrder } from "../hosts/native/config";
import { NoProjectError } from "../hosts/native/project";
import { analysisOf } from "../hosts/ts-patch/analysis";
import {
  emitsCode,
  linkedSources,
  unlockedDependencies,
  unlockedSources,
} from "../hosts/ts-patch/dependencies";
import { wovenProgram, type PluginConfig } from "../hosts/ts-patch/weave-program";
import type { Compiler } from "../hosts/ts-patch/compiler";
import { wovenFiles, type WovenFiles } from "../hosts/ts-patch/woven-files";
import { parser } from "../parser/parser";
import { readDefaults, type Defaults } from "../read/attributes";
import type { PlacedProblem, Project, TaggedFile, WovenSource } from "../verify/project";
import { taggedFile } from "../verify/tagged-file";
import { resolvedFrom } from "../resolve/loaded-file";
import { UsageError } from "../terminal/usage-error";
import { apiFor, apiNear, compilingFor } from "./typescript";
import { sourcesUnder, uncheckedProject, usualOptions } from "./unconfigured";
import { mayNeedWeave, weave } from "../weave/weave";

interface Choice {
  /** The TypeScript that compiles the project, as a package name or a path. */
  readonly typescript?: string | undefined;
  /** Whether to prefer TypeScript's JavaScript API, even if TypeScript 7 compiles the project. */
  readonly prefersApi?: boolean;
}

/**
 * Opens the project and the projects that it references. Without a tsconfig.json, opens the sources of the directory.
 *
 * @throws {UsageError} if there is no such project, or no compiler for it
 */
export function openProjects(path: string | undefined, cwd: string, choice: Choice = {}): Project[] {
  const config = path === undefined ? nearestConfig(cwd) : configFile(path, cwd);
  if (config === undefined) return [openUnconfigured(cwd, choice)];
  const { installed, isChosen } = compilingFor(config, choice.typescript, cwd);
  if (installed !== undefined && installed.major >= 7) {
    const native = nativeCompiler(installed);
    const api = apiNear(config);
    const isNative = choice.prefersApi !== true || api === undefined;
    if (native !== undefined && isNative) return openNativeProjects(native, config, cwd, api);
  }
  const ts = apiFor(config, isChosen ? installed : undefined);
  const isOfTspc = installed === undefined || (installed.name === "typescript" && installed.isOriginal);
  return openWithApi(ts, config, isOfTspc && (installed?.major ?? 0) < 7 ? "tspc" : "lockweave build");
}

function openWithApi(ts: Compiler, config: string, builder: Project["builder"]): Project[] {
  const projects: Project[] = [];
  const seen = new Set<string>();
  const open = (configPath: string): void => {
    if (seen.has(configPath)) return;
    seen.add(configPath);
    const parsed = parseConfig(ts, configPath);
    for (const reference of parsed.projectReferences ?? []) {
      open(resolve(ts.resolveProjectReferencePath(reference)));
    }
    if (parsed.fileNames.length > 0) projects.push(projectOf(ts, configPath, parsed, builder));
  };
  open(config);
  return projects;
}

function openNativeProjects(
  compiler: NativeCompiler,
  config: string,
  cwd: string,
  api: Compiler | undefined,
): Project[] {
  try {
    return projectsInOrder(parser(), config).map((path) =>
      checkableProject(parser(), compiler, path, cwd, () => analysisWith(api, path)),
    );
  } catch (error) {
    if (!(error instanceof NoProjectError)) throw error;
    const [first] = error.diagnostics;
    throw new UsageError(`${config}: ${first?.message ?? error.message}`);
  }
}

/**
 * Analyzes the project with the JavaScript API. Returns `undefined` if that TypeScript does not understand the tsconfig.json, which was
 * written for another version.
 */
function analysisWith(api: Compiler | undefined, config: string): Analysis | undefined {
  if (api === undefined) return undefined;
  try {
    return projectOf(api, config, parseConfig(api, config), "lockweave build").analysis();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return undefined;
  }
}

function openUnconfigured(cwd: string, { typescript }: Choice): Project {
  const config = join(cwd, "tsconfig.json"); // The file does not exist. This is where it would be.
  const fileNames = sourcesUnder(cwd);
  const { installed, isChosen } = compilingFor(config, typescript, cwd);
  const ts = isChosen ? apiFor(config, installed) : (apiNear(config) ?? apiNear(__filename));
  if (ts === undefined) return uncheckedProject(parser(), config, fileNames);
  return {
    ...projectOf(ts, config, { fileNames, options: usualOptions(ts), errors: [] }, "another"),
    unlockedSources: () => [], // It is unknown what runs these sources.
  };
}

// ---- the tsconfig.json ---------------------------------------------------------------------------------------

/**
 * Returns the path of the tsconfig.json.
 *
 * @throws {UsageError} if it does not exist
 */
export function configFile(path: string | undefined, cwd: string): string {
  if (path === undefined) {
    const found = nearestConfig(cwd);
    if (found === undefined) throw new UsageError("There is no tsconfig.json here. Fix: name it with `-p`.");
    return found;
  }
  const given = resolve(cwd, path);
  const config = isFile(given) ? given : join(given, "tsconfig.json");
  if (!isFile(config))
    throw new UsageError(`There is no file or directory \`${path}\`. Expected the path of a tsconfig.json.`);
  return config;
}

/** Whether the path names a file, and not a directory with a tsconfig.json. */
export function namesFile(path: string, cwd: string): boolean {
  return isFile(resolve(cwd, path));
}

function nearestConfig(cwd: string): string | undefined {
  for (let dir = cwd; ; dir = dirname(dir)) {
    const found = join(dir, "tsconfig.json");
    if (isFile(found)) return found;
    if (dir === dirname(dir)) return undefined;
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function parseConfig(ts: Compiler, config: string): TS.ParsedCommandLine {
  const fail = (diagnostic: TS.Diagnostic): never => {
    throw new UsageError(`${config}: ${ts.flattenDiagnosticMessageText(diagnostic.messageText, "\n")}`);
  };
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: fail };
  const parsed = ts.getParsedCommandLineOfConfigFile(config, {}, host);
  if (parsed === undefined) throw new UsageError(`${config} cannot be read.`);
  for (const found of ts.getConfigFileParsingDiagnostics(parsed)) {
    if (found.category === ts.DiagnosticCategory.Error) fail(found);
  }
  return parsed;
}

// ---- the project ----------------------------------------------------------------------------------------

function projectOf(
  ts: Compiler,
  config: string,
  parsed: TS.ParsedCommandLine,
  builder: Project["builder"],
): Project {
  const { options } = parsed;
  const plugin = pluginIn(config, options);
  const { defaults, problems } = readDefaults(plugin?.defaults ?? {});
  const program = createProgram(ts, parsed, emitOptions(config, options));
  const own = program.getSourceFiles().filter((file) => !program.isSourceFileFromExternalLibrary(file));
  const paths = own.map(({ fileName }) => fileName).filter((path) => !path.includes("/node_modules/"));
  const files = taggedIn(ts, own, defaults);
  const linked = lazy(() => taggedIn(ts, linkedSources(program), defaults));
  const woven = lazy(() => wovenBy(ts, plugin, program));
  const wovenWithLinked = lazy(() =>
    wovenBy(ts, plugin, createProgram(ts, withSources(parsed, linked()), emitOptions(config, options))),
  );
  const settings = { ...options, noEmit: true };
  const withTypes = lazy(() => createProgram(ts, parsed, settings));
  const hasTags = files.some(({ tags }) => tags.length > 0);
  return {
    ts,
    config,
    builder,
    checksTypes: true,
    options,
    plugin,
    files,
    sources: [config, ...paths],
    problems: [...problems, ...readTransactions(plugin?.transactions).problems],
    // Referenced projects are not included here, because they are checked as projects of their own.
    unlocked: () => unlockedDependencies(ts, program),
    unlockedSources: () => unlockedSources(ts, program, emitsCode(options)),
    linked,
    typeProblems: () => typeProblemsIn(ts, wovenBy(ts, plugin, withTypes()), files),
    analysis: () =>
      hasTags
        ? analysisOf(ts, withTypes(), wovenFiles(ts, withTypes(), defaults), plugin)
        : { findings: [], unfollowed: [] },
    wovenSources: () => wovenSourcesOf(wovenFiles(ts, withTypes(), defaults)),
    errorsWith: (texts) => errorsOf(ts, createProgram(ts, parsed, settings, hostWith(ts, settings, texts))),
    emitWoven: (file) => outputsOf(linked().includes(file) ? wovenWithLinked() : woven(), file),
  };
}

function createProgram(
  ts: Compiler,
  { fileNames, projectReferences }: TS.ParsedCommandLine,
  options: TS.CompilerOptions,
  host?: TS.CompilerHost,
): TS.Program {
  return (ts.originalCreateProgram ?? ts.createProgram)({
    rootNames: fileNames,
    options,
    ...(host && { host }),
    ...(projectReferences && { projectReferences }),
  });
}

/** Adds the sources as root files, so that TypeScript emits them, too. A bundler includes them like the project's own files. */
function withSources(parsed: TS.ParsedCommandLine, added: readonly TaggedFile[]): TS.ParsedCommandLine {
  return { ...parsed, fileNames: [...parsed.fileNames, ...added.map(({ source }) => source.fileName)] };
}

function taggedIn(ts: Compiler, sources: readonly TS.SourceFile[], defaults: Defaults): TaggedFile[] {
  return sources.flatMap((source): TaggedFile[] => {
    if (source.isDeclarationFile || !mayNeedWeave(source.text)) return [];
    return taggedFile(
      source,
      weave(source.fileName, source.text, { ts, module: "esm", defaults, sourceFile: source }),
    );
  });
}

/** Returns a function that calls `create` only the first time. */
function lazy<T extends object>(create: () => T): () => T {
  let value: T | undefined;
  return () => (value ??= create());
}

function wovenBy(ts: Compiler, plugin: PluginConfig | undefined, program: TS.Program): TS.Program {
  const entry = { transformProgram: true, ...(plugin?.defaults && { defaults: plugin.defaults }) };
  return wovenProgram(program, undefined, entry, { ts }).woven;
}

function typeProblemsIn(ts: Compiler, checked: TS.Program, files: readonly TaggedFile[]): PlacedProblem[] {
  return files.flatMap(({ source, tags }) => {
    const found = checked.getSemanticDiagnostics(checked.getSourceFile(source.fileName));
    return compilerErrorsInTags(found, tags, source.text).map((one) => placedError(ts, one, source));
  });
}

function wovenSourcesOf(files: WovenFiles): WovenSource[] {
  return [...files.values()].map(({ woven, onDisk: { fileName, text } }) => ({ fileName, text, woven }));
}

/** Emits a file. Returns the JavaScript by the paths of the output files. */
function outputsOf(program: TS.Program, { source }: TaggedFile): Map<string, string> {
  const outputs = new Map<string, string>();
  program.emit(program.getSourceFile(source.fileName), (name, text) => {
    if (/\.[cm]?jsx?$/.test(name)) outputs.set(resolve(name), text);
  });
  return outputs;
}

function hostWith(
  ts: Compiler,
  settings: TS.CompilerOptions,
  texts: ReadonlyMap<string, string>,
): TS.CompilerHost {
  const host = ts.createCompilerHost(settings);
  const { readFile } = host;
  host.readFile = (path) => texts.get(path) ?? readFile(path);
  return host;
}

function errorsOf(ts: Compiler, program: TS.Program): PlacedProblem[] {
  return ts
    .getPreEmitDiagnostics(program)
    .filter(({ category }) => category === ts.DiagnosticCategory.Error)
    .map((one) => placedError(ts, one, one.file));
}

function placedError(
  ts: Compiler,
  { code, messageText, start = 0, length = 0 }: TS.Diagnostic,
  file: TS.SourceFile | undefined,
): PlacedProblem {
  const message = ts.flattenDiagnosticMessageText(messageText, "\n");
  return { file, problem: { code: `TS${code}`, message, start, end: start + length } };
}

/** Returns options that emit only JavaScript, and write it to the same paths as the project's own build. */
function emitOptions(config: string, options: TS.CompilerOptions): TS.CompilerOptions {
  const { tsBuildInfoFile: _, ...rest } = options;
  const isComposite = options.composite === true;
  return {
    ...rest,
    ...(isComposite && options.rootDir === undefined ? { rootDir: dirname(config) } : {}),
    composite: false,
    declaration: false,
    declarationMap: false,
    emitDeclarationOnly: false,
    incremental: false,
    inlineSourceMap: false,
    noEmit: false,
    noEmitOnError: false,
    noLib: true, // The emitted code does not depend on the library's types, and they take half of the time.
    sourceMap: false,
    suppressOutputPathCheck: true, // Without `outDir`, a JavaScript file would be its own output.
  };
}

const TRANSFORMER = new Set(["lockweave/transformer", "lockweave"]);

function pluginIn(config: string, { plugins }: TS.CompilerOptions): PluginConfig | undefined {
  const entries = (Array.isArray(plugins) ? plugins : []) as PluginConfig[];
  const own = realpathSync(require.resolve("lockweave/transformer"));
  return entries.find(({ transform = "" }) => {
    if (TRANSFORMER.has(transform)) return true;
    const path = resolvedFrom(config, transform);
    return path !== undefined && realpathSync(path) === own;
  });
}
