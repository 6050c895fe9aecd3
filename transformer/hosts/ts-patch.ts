import { createHash } from "node:crypto";
import type * as TS from "typescript";
import { didYouMean, problem, type Problem } from "../diagnostics";
import { readDefaults, type Defaults } from "../plan";
import { isRuntimeImport, type ModuleFormat } from "../runtime-import";
import { isWoven } from "../skeleton";
import { mayNeedWeave, weave, type WeaveOptions, type Woven } from "../weave";
import { correctSourceMaps, type Source } from "./source-maps";

/** The plugin's entry in tsconfig.json. */
export interface PluginConfig {
  readonly transform?: string;
  readonly transformProgram?: boolean;
  /** For all tags of the project that do not say otherwise, in the words of the tag. */
  readonly defaults?: Readonly<Record<string, unknown>>;
}

export type Compiler = typeof TS & {
  readonly originalCreateProgram?: typeof TS.createProgram;
  /** TypeScript's own, which its declarations leave out. */
  getEmitModuleKind(options: TS.CompilerOptions): TS.ModuleKind;
};

interface Extras {
  readonly ts: Compiler;
}

/**
 * A ts-patch program transformer: the program with the woven text in the place of each tagged file, before
 * anything is bound or checked. So the checker sees real code, and every error, position and source map is
 * led back to the file on disk.
 */
export function weaveProgram(
  program: TS.Program,
  host: TS.CompilerHost | undefined,
  config: PluginConfig,
  extras: Extras,
): TS.Program {
  if (config.transformProgram !== true) {
    throw new Error(
      'lockweave transforms the whole program. In tsconfig.json, write { "transform": "lockweave/transformer", "transformProgram": true }.',
    );
  }
  const { ts } = extras;
  const { defaults, problems } = readDefaults(config.defaults ?? {});
  const files = wovenFiles(ts, program, defaults);
  const original = host ?? ts.createCompilerHost(program.getCompilerOptions());
  const woven = files.size === 0 ? program : createAgain(ts, program, original, files);
  reportOnDisk(ts, woven, files, [...unknownOptions(config), ...problems]);
  emitOnDisk(ts, woven, original, files);
  return woven;
}

const OPTIONS: readonly string[] = ["defaults"];

/** ts-patch's own: not ours to judge. */
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

function unknownOptions(config: PluginConfig): Problem[] {
  return Object.keys(config)
    .filter((name) => !OPTIONS.includes(name) && !TS_PATCH_OPTIONS.has(name))
    .map((name) => {
      const message = `The plugin lockweave/transformer has no option \`${name}\`.${didYouMean(name, OPTIONS)}`;
      return problem("badPluginOption", { start: 0, end: 0 }, message);
    });
}

// ---- the files ------------------------------------------------------------------------------------------

interface WovenFile {
  readonly woven: Woven;
  /** Tells builds of other code, other defaults or another weaver apart: see {@link versionOf}. */
  readonly version: string;
  /** What diagnostics point at: the file on disk, under a path by which it is known again. */
  readonly onDisk: TS.SourceFile;
  /** The file that is compiled. */
  compiled: TS.SourceFile | undefined;
}

/** By the path of the file. */
type WovenFiles = ReadonlyMap<string, WovenFile>;

/** TypeScript's own fields, which its declarations leave out. */
interface Internals {
  readonly path: string;
  readonly resolvedPath: string;
  readonly redirectInfo?: { readonly unredirected: TS.SourceFile };
  version?: string;
}

interface ProgramInternals {
  getEmitModuleFormatOfFile(file: TS.SourceFile): TS.ModuleKind;
}

const internals = (file: TS.SourceFile): Internals => file as unknown as Internals;

/** The files of one watch run are woven once for each change. */
const cache = new WeakMap<TS.SourceFile, { file: WovenFile | undefined; madeFor: string }>();

function wovenFiles(ts: Extras["ts"], program: TS.Program, defaults: Defaults): WovenFiles {
  const files = new Map<string, WovenFile>();
  const salt = JSON.stringify([packageVersion(), [...defaults]]);
  for (const sourceFile of program.getSourceFiles()) {
    if (sourceFile.isDeclarationFile || !mayNeedWeave(sourceFile.text)) continue;
    if (program.isSourceFileFromExternalLibrary(sourceFile)) continue; // Its own project emits it, and weaves it.
    const module = formatOf(ts, program, sourceFile);
    const madeFor = `${module} ${salt}`;
    let cached = cache.get(sourceFile);
    if (cached?.madeFor !== madeFor) {
      cached = { file: wovenFile(sourceFile, { ts, module, defaults, sourceFile }, salt), madeFor };
      cache.set(sourceFile, cached);
    }
    if (cached.file !== undefined) files.set(internals(sourceFile).path, cached.file);
  }
  return files;
}

function wovenFile(sourceFile: TS.SourceFile, options: WeaveOptions, salt: string): WovenFile | undefined {
  const woven = weave(sourceFile.fileName, sourceFile.text, options);
  if (woven === undefined) return undefined;
  const resolvedPath = `${internals(sourceFile).resolvedPath}${ON_DISK}`;
  const onDisk: TS.SourceFile = Object.create(sourceFile, { resolvedPath: { value: resolvedPath } });
  return { woven, version: versionOf(woven.code, salt), onDisk, compiled: undefined };
}

/**
 * A build info that plain `tsc` left behind must not pass for a woven build: the version that incremental
 * builds compare covers the woven text, the weaver and the defaults.
 */
function versionOf(code: string, salt: string): string {
  return createHash("sha256").update(salt).update(code).digest("hex");
}

export function packageVersion(): string {
  return (require("lockweave/package.json") as { version: string }).version;
}

/** As the compiler will emit the file: not the project alone decides, but also `.mts`, `.cts` and package.json. */
function formatOf(ts: Extras["ts"], program: TS.Program, file: TS.SourceFile): ModuleFormat {
  const { CommonJS, AMD, UMD, ES2015, ESNext } = ts.ModuleKind;
  const project = ts.getEmitModuleKind(program.getCompilerOptions());
  if (project >= ES2015 && project <= ESNext) return "esm"; // No `import x = require()`, not even in `.cts`.
  const { getEmitModuleFormatOfFile } = program as TS.Program & ProgramInternals;
  return [CommonJS, AMD, UMD].includes(getEmitModuleFormatOfFile(file)) ? "commonjs" : "esm";
}

// ---- the program ----------------------------------------------------------------------------------------

/** The same program over the woven files. Everything else is taken over from the first one. */
function createAgain(
  ts: Extras["ts"],
  program: TS.Program,
  original: TS.CompilerHost,
  files: WovenFiles,
): TS.Program {
  const options = program.getCompilerOptions();
  const projectReferences = program.getProjectReferences();
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
    return (file.compiled ??= compile(ts, found, file, settings));
  };
  const wovenHost: TS.CompilerHost = Object.assign(Object.create(original) as TS.CompilerHost, {
    getSourceFile,
    getSourceFileByPath: (fileName: string, _path: TS.Path, ...rest: [TS.ScriptTarget]) =>
      getSourceFile(fileName, ...rest),
  });
  return (ts.originalCreateProgram ?? ts.createProgram)({
    rootNames: program.getRootFileNames(),
    options,
    host: wovenHost,
    oldProgram: program,
    configFileParsingDiagnostics: program.getConfigFileParsingDiagnostics(),
    ...(projectReferences === undefined ? {} : { projectReferences }),
  });
}

function compile(
  ts: typeof TS,
  { fileName }: TS.SourceFile,
  { woven, version }: WovenFile,
  settings: TS.ScriptTarget | TS.CreateSourceFileOptions,
): TS.SourceFile {
  const compiled = ts.createSourceFile(fileName, woven.code, settings);
  internals(compiled).version = version;
  breakLines(ts, compiled);
  return compiled;
}

/** The weave keeps to the lines that are there; the emitted code has lines of its own. */
function breakLines(ts: typeof TS, node: TS.Node): void {
  const { body } = node as { body?: TS.ConciseBody & { multiLine?: boolean } };
  if (ts.isFunctionLike(node) && body !== undefined && isWoven(ts, body)) body.multiLine = true;
  ts.forEachChild(node, (child) => breakLines(ts, child));
}

// ---- diagnostics ----------------------------------------------------------------------------------------

/**
 * Ends the path by which a build info knows the file on disk. TypeScript stores the diagnostics of an
 * incremental build by path, and looks that path up when it shows them again in the next build.
 */
const ON_DISK = ".lockweave-on-disk";

/** Diagnostics of woven files speak of the file on disk, and ours are among them. */
function reportOnDisk(
  ts: typeof TS,
  program: TS.Program,
  files: WovenFiles,
  configProblems: readonly Problem[],
): void {
  const ours = (sourceFile: TS.SourceFile | undefined): TS.Diagnostic[] =>
    [...files].flatMap(([path, { woven, onDisk }]) =>
      sourceFile === undefined || internals(sourceFile).path === path
        ? woven.diagnostics.map((found) => diagnosticOf(ts, found, onDisk))
        : [],
    );

  type Method = (sourceFile?: TS.SourceFile, ...rest: unknown[]) => readonly TS.Diagnostic[];
  const methods = program as unknown as Record<string, Method>;
  const wrap = (name: string, added: (sourceFile: TS.SourceFile | undefined) => TS.Diagnostic[]): void => {
    const original = methods[name];
    if (original === undefined) return;
    methods[name] = (sourceFile, ...rest) => [
      ...original(sourceFile, ...rest).map((diagnostic) => toDisk(diagnostic, files)),
      ...added(sourceFile),
    ];
  };
  wrap("getSyntacticDiagnostics", () => []);
  wrap("getSemanticDiagnostics", ours);
  wrap("getBindAndCheckDiagnostics", ours); // What incremental builds ask for instead.
  wrap("getProgramDiagnostics", () => []); // And this, for what is wrong with the program's make-up.
  wrap("getDeclarationDiagnostics", () => []);
  wrap("getOptionsDiagnostics", () => configProblems.map((found) => diagnosticOf(ts, found, undefined)));

  const lookups = program as unknown as { getSourceFileByPath(path: string): TS.SourceFile | undefined };
  const { getSourceFileByPath } = lookups;
  lookups.getSourceFileByPath = (path) =>
    path.endsWith(ON_DISK) ? files.get(path.slice(0, -ON_DISK.length))?.onDisk : getSourceFileByPath(path);
}

function toDisk<D extends TS.DiagnosticRelatedInformation>(diagnostic: D, files: WovenFiles): D {
  const file = diagnostic.file && files.get(internals(diagnostic.file).path);
  const isMapped = file === undefined || diagnostic.file === file.onDisk;
  const { start = 0, length = 0 } = diagnostic;
  const span = isMapped ? undefined : file.woven.positions.toDisk({ start, end: start + length });
  const { relatedInformation } = diagnostic as Partial<TS.Diagnostic>;
  return {
    ...diagnostic,
    ...(span && { file: file?.onDisk, start: span.start, length: span.end - span.start }),
    ...(relatedInformation && {
      relatedInformation: relatedInformation.map((related) => toDisk(related, files)),
    }),
  };
}

/** TypeScript prints codes as `TS` and a number: ours stay clear of its own. */
function diagnosticOf(
  ts: typeof TS,
  { code, message, start, end }: Problem,
  file: TS.SourceFile | undefined,
): TS.Diagnostic {
  return {
    category: ts.DiagnosticCategory.Error,
    code: 900_000 + Number(code.slice("LW".length)),
    messageText: `${code}: ${message}`,
    source: "lockweave",
    file,
    start: file && start,
    length: file && end - start,
  };
}

// ---- emit -----------------------------------------------------------------------------------------------

function emitOnDisk(ts: typeof TS, program: TS.Program, host: TS.CompilerHost, files: WovenFiles): void {
  const fileOf = (file: TS.SourceFile): WovenFile | undefined => files.get(internals(file).path);
  const sourceOf = (file: TS.SourceFile): Source | undefined => {
    const found = fileOf(file);
    return found && { text: found.onDisk.text, positions: found.woven.positions };
  };
  const writeByHost: TS.WriteFileCallback = (...file) => host.writeFile(...file);
  const { emit } = program;
  program.emit = (
    target,
    writeFile = writeByHost,
    cancellationToken,
    onlyDeclarations,
    transformers,
    ...rest
  ) => {
    const result = emit(
      target,
      (fileName, text, bom, onError, sources = [], data) =>
        writeFile(
          fileName,
          correctSourceMaps(fileName, text, sources, sourceOf),
          bom,
          onError,
          sources,
          data,
        ),
      cancellationToken,
      onlyDeclarations,
      {
        ...transformers,
        before: [
          () => (file) => (fileOf(file) ? raiseImport(ts, file) : file),
          ...(transformers?.before ?? []),
        ],
        afterDeclarations: [
          () => (file) => keepFirstComment(ts, file),
          ...(transformers?.afterDeclarations ?? []),
        ],
      },
      ...rest,
    );
    return { ...result, diagnostics: result.diagnostics.map((diagnostic) => toDisk(diagnostic, files)) };
  };
}

/** In a file without imports, the weave puts its own at the end of the text: see {@link importRuntime}. */
function raiseImport(ts: typeof TS, file: TS.SourceFile): TS.SourceFile {
  const last = file.statements.at(-1);
  if (last === undefined || !isRuntimeImport(ts, last)) return file;
  const others = file.statements.slice(0, -1);
  const directives = others.findIndex(
    (statement) => !ts.isExpressionStatement(statement) || !ts.isStringLiteral(statement.expression),
  );
  const at = directives === -1 ? others.length : directives;
  const raised = ts.factory.createNodeArray([...others.slice(0, at), last, ...others.slice(at)]);
  return ts.factory.updateSourceFile(file, ts.setTextRange(raised, file.statements));
}

/**
 * What is written before the first import came to stand before the runtime's, which no declaration file has:
 * there it belongs to the first import again.
 */
function keepFirstComment<F extends TS.SourceFile | TS.Bundle>(ts: typeof TS, declarations: F): F {
  if (ts.isBundle(declarations)) return declarations;
  const compiled = ts.getOriginalNode(declarations, ts.isSourceFile);
  const index = compiled?.statements.findIndex((statement) => isRuntimeImport(ts, statement)) ?? -1;
  const runtimeImport = compiled?.statements[index];
  const firstImport = compiled?.statements[index + 1];
  const declared = declarations.statements.find((statement) => ts.getOriginalNode(statement) === firstImport);
  if (runtimeImport !== undefined && declared !== undefined) {
    ts.setCommentRange(declared, { pos: runtimeImport.pos, end: declared.end });
  }
  return declarations;
}
