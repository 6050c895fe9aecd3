import type * as TS from "typescript";
import { inheritedAmong, notOwn } from "../../../runtime/base/options";
import { didYouMean } from "../../text/did-you-mean";
import { problem, type Problem } from "../../text/problems";
import { OPTION_READERS, readDefaults } from "../../read/attributes";
import { wovenMark } from "../../read/woven-mark";
import { replaceDirectives } from "../diagnostics/comment-directives";
import type { PlacedProblem } from "../../verify/project";
import { readTransactions } from "../../analyze/transaction-libraries";
import { analysisOf } from "./analysis";
import { callerOf } from "./caller";
import type { Compiler } from "./compiler";
import { emitsCode, unlockedDependencies, unlockedReferences, unlockedSources } from "./dependencies";
import { emitOnDisk } from "./emit-on-disk";
import { tagsLostByOthers } from "./lost-tags";
import { isCompleteIn, importHider, resolveHiddenImports } from "./hidden-imports";
import { refuseToEmit } from "./refuse-emit";
import { asCompilerProblem, diagnosticOf } from "../diagnostics/own-problems";
import { reportOnDisk } from "./report-on-disk";
import { internals, wovenFiles, type WovenFile, type WovenFiles } from "./woven-files";

/** The plugin's entry in tsconfig.json. */
export interface PluginConfig {
  readonly transform?: string;
  readonly transformProgram?: boolean;
  /** The defaults for tags that do not set these options. They have the same names and values as in a tag. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** Whether the build reports how the tagged functions affect each other. With `"error"`, it reports all findings as errors. */
  readonly analyze?: boolean | "error";
  /** What starts transactions in this project, besides the known libraries: `@acme/db#inTransaction`. */
  readonly transactions?: readonly string[];
  /** Whether the editor shows the lock of each function. Default `true`. */
  readonly inlayHints?: boolean;
  /** The TypeScript for `lockweave build` and `lockweave check`, as a package name or a path. */
  readonly typescript?: string;
}

/** The compilers that request the errors of each file that they run, and not those of the program. */
const ASKS_FOR_FILES: ReadonlySet<string> = new Set(["ts-jest", "ts-node"]);

/**
 * A program transformer for ts-patch. A compiler gets a program with woven text in place of each tagged file, before anything is bound or
 * checked. So the checker sees real code, and every error, position, and source map is mapped to the file on disk. Every other caller gets
 * the original program, and an error if it emits a tagged file.
 */
export function weaveProgram(
  program: TS.Program,
  host: TS.CompilerHost | undefined,
  config: PluginConfig,
  extras: { readonly ts: Compiler },
): TS.Program {
  if (config.transformProgram !== true) stopBuild();
  const { isCompiler, name } = callerOf(extras.ts, host, weaveProgram);
  if (!isCompiler) {
    refuseToEmit(extras.ts, program, readDefaults(config.defaults ?? {}).defaults, name);
    return program;
  }
  const { woven, files, likelyMistakes } = wovenProgram(
    program,
    host,
    config,
    extras,
    ASKS_FOR_FILES.has(name ?? ""),
  );
  warn(extras.ts, program, files, likelyMistakes);
  return woven;
}

/** Weaves the program of a caller that compiles, and returns its likely mistakes instead of printing them. */
export function wovenProgram(
  program: TS.Program,
  host: TS.CompilerHost | undefined,
  config: PluginConfig,
  extras: { readonly ts: Compiler },
  asksForFiles = false,
): {
  readonly woven: TS.Program;
  readonly files: WovenFiles;
  readonly likelyMistakes: readonly PlacedProblem[];
} {
  const { ts } = extras;
  const { defaults, problems } = readDefaults(ownDefaults(config));
  const files = wovenFiles(ts, program, defaults);
  const original = host ?? ts.createCompilerHost(program.getCompilerOptions());
  const woven = files.size === 0 ? program : recreateProgram(ts, program, original, files);
  const ofConfig = [
    ...unknownOptions(config),
    ...problems,
    ...readTransactions(config.transactions).problems,
  ].map((found) => ({
    file: undefined,
    problem: found,
  }));
  const unlocked = [
    ...unlockedDependencies(ts, program),
    ...unlockedReferences(ts, program),
    ...unlockedSources(ts, program, emitsCode(program.getCompilerOptions())),
  ];
  const { findings } =
    config.analyze === true || config.analyze === "error"
      ? analysisOf(ts, program, files, config)
      : { findings: [] };
  const certain = findings.filter(({ isCertain }) => isCertain);
  const ofFiles = [...tagsLostByOthers(ts, program), ...(asksForFiles ? unlocked : [])];
  reportOnDisk(ts, woven, files, [...ofConfig, ...unlocked, ...certain], ofFiles);
  emitOnDisk(ts, woven, original, files);
  return { woven, files, likelyMistakes: findings.filter(({ isCertain }) => !isCertain) };
}

const NOT_OF_THE_PROGRAM = problem(
  "badPluginOption",
  { start: 0, end: 0 },
  'Lockweave transforms the whole program. Fix: in tsconfig.json, write { "transform": "lockweave/transformer", "transformProgram": true }.',
);

/** Matches a compiler's command line. There, no caller would catch an error, and Node would print it with a stack trace. */
const COMMANDS = /(?:^|[\\/])(?:tsc|tspc)(?:\.js)?$/;

/**
 * Stops a build that treats the plugin as a transformer of single files. It then calls the plugin without `extras` while it emits, and
 * everything that it emits would be unlocked.
 */
function stopBuild(): never {
  if (!COMMANDS.test(process.argv[1] ?? "")) throw new Error(NOT_OF_THE_PROGRAM.message);
  const { code, message } = asCompilerProblem(NOT_OF_THE_PROGRAM);
  process.stdout.write(`error ${code}: ${message}\n`);
  process.exit(1);
}

/** The texts of the files whose warnings were printed. Another program with the same texts does not repeat them. */
const warned = new Map<string, string>();

/** Prints warnings to the error stream, because a compiler counts each diagnostic as a failure. */
function warn(
  ts: Compiler,
  program: TS.Program,
  files: WovenFiles,
  likelyMistakes: readonly PlacedProblem[],
): void {
  const ofFiles = [...files.values()].flatMap(({ woven: { warnings }, onDisk }) => {
    if (warned.get(onDisk.fileName) === onDisk.text) return [];
    warned.set(onDisk.fileName, onDisk.text);
    return warnings.map((mistake) => diagnosticOf(ts, mistake, onDisk, ts.DiagnosticCategory.Warning));
  });
  const ofProgram = likelyMistakes.flatMap(({ problem: mistake, file }) => {
    const identity = JSON.stringify([file?.fileName, mistake]);
    if (warned.has(identity)) return [];
    warned.set(identity, "");
    return [diagnosticOf(ts, mistake, file, ts.DiagnosticCategory.Warning)];
  });
  const found = [...ofFiles, ...ofProgram];
  if (found.length === 0) return;
  const host: TS.FormatDiagnosticsHost = {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => program.getCurrentDirectory(),
    getNewLine: () => "\n",
  };
  process.stderr.write(ts.formatDiagnostics(found, host));
}

const OPTIONS: readonly string[] = ["analyze", "defaults", "inlayHints", "transactions"];

/** The options of ts-patch itself, which are not checked here. */
const TS_PATCH_OPTIONS: ReadonlySet<string> = new Set([
  "transform",
  "transformProgram",
  "import",
  "name",
  "isEsm",
  "tsConfig",
  "resolvePathAliases",
  "type",
]);

function optionHint(name: string): string {
  return Object.hasOwn(OPTION_READERS, name)
    ? ` Fix: to set it for all tags of a project, write it in \`defaults\`: { "defaults": { "${name}": ... } }.`
    : didYouMean(name, OPTIONS);
}

function ownDefaults(config: PluginConfig): unknown {
  return Object.hasOwn(config, "defaults") ? (config.defaults ?? {}) : {};
}

function unknownOptions(config: PluginConfig): Problem[] {
  const messages = Object.keys(config)
    .filter((name) => !OPTIONS.includes(name) && !TS_PATCH_OPTIONS.has(name))
    .map((name) => `The plugin lockweave/transformer has no option \`${name}\`.${optionHint(name)}`);
  const inherited = inheritedAmong(OPTIONS, config);
  if (inherited !== undefined) messages.push(`The plugin lockweave/transformer: ${notOwn(inherited)}.`);
  const analyze: unknown = config.analyze ?? false;
  if (typeof analyze !== "boolean" && analyze !== "error") {
    messages.push(
      `Expected the plugin's \`analyze\` to be true, false, or "error", got \`${JSON.stringify(analyze)}\`.`,
    );
  }
  return messages.map((message) => problem("badPluginOption", { start: 0, end: 0 }, message));
}

/** Creates the same program with the woven files. Everything else is reused from the original one. */
export function recreateProgram(
  ts: Compiler,
  program: TS.Program,
  original: TS.CompilerHost,
  files: WovenFiles,
  oldProgram = program,
): TS.Program {
  const options = program.getCompilerOptions();
  const projectReferences = program.getProjectReferences();
  const hideImport = importHider(ts, program, original);
  const getSourceFile = (
    fileName: string,
    settings: TS.ScriptTarget | TS.CreateSourceFileOptions,
    onError?: (message: string) => void,
    shouldCreate?: boolean,
  ): TS.SourceFile | undefined => {
    const found = program.getSourceFile(fileName);
    if (found === undefined) return original.getSourceFile(fileName, settings, onError, shouldCreate);
    const file = files.get(internals(found).path);
    if (file === undefined) return internals(found).redirectInfo?.unredirected ?? found;
    if (file.compiled === undefined || !isCompleteIn(program, file.compiled)) {
      file.compiled = compile(ts, found, file, settings);
      hideImport(file.compiled, file);
    }
    return file.compiled;
  };
  const wovenHost: TS.CompilerHost = Object.assign(Object.create(original) as TS.CompilerHost, {
    getSourceFile,
    getSourceFileByPath: (fileName: string, _path: TS.Path, ...rest: [TS.ScriptTarget]) =>
      getSourceFile(fileName, ...rest),
  });
  const woven = (ts.originalCreateProgram ?? ts.createProgram)({
    rootNames: program.getRootFileNames(),
    options,
    host: wovenHost,
    oldProgram,
    configFileParsingDiagnostics: program.getConfigFileParsingDiagnostics(),
    ...(projectReferences === undefined ? {} : { projectReferences }),
  });
  resolveHiddenImports(woven);
  return woven;
}

function compile(
  ts: typeof TS,
  { fileName }: TS.SourceFile,
  { woven, version }: WovenFile,
  settings: TS.ScriptTarget | TS.CreateSourceFileOptions,
): TS.SourceFile {
  const compiled = ts.createSourceFile(fileName, woven.code, settings);
  internals(compiled).version = version;
  replaceDirectives(compiled);
  breakLines(ts, compiled);
  return compiled;
}

/** Puts the statements of woven bodies on lines of their own in the output. The weave itself adds no lines. */
function breakLines(ts: typeof TS, file: TS.SourceFile): void {
  const isWoven = wovenMark({ ts, file });
  const opened = [...file.text.matchAll(/\.open\(/g)].map(({ index }) => index);
  const visit = (node: TS.Node): void => {
    // Only few nodes contain woven code, and the first build runs this before it is optimized.
    if (!opened.some((at) => node.pos <= at && at < node.end)) return;
    const { body } = node as { body?: TS.ConciseBody & { multiLine?: boolean } };
    if (ts.isFunctionLike(node) && body !== undefined && isWoven(body)) body.multiLine = true;
    ts.forEachChild(node, visit);
  };
  visit(file);
}
