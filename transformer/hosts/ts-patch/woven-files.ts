import { createHash } from "node:crypto";
import type * as TS from "typescript";
import { runtimeNames } from "../../read/imports";
import { isCommonJsScript, moduleSyntax } from "../../read/module-syntax";
import type { Defaults } from "../../read/options";
import type { ModuleFormat } from "../../weave/runtime-import";
import { pathInPackage } from "../path-in-package";
import type { Compiler } from "./compiler";
import { handedOnIn } from "./re-exports";
import { mayNeedWeave, weave, type WeaveOptions, type Woven } from "../../weave/weave";

export interface WovenFile {
  readonly woven: Woven;
  /** Tells builds of other code, other defaults or another weaver apart: see {@link versionOf}. */
  readonly version: string;
  /** What diagnostics point at: the file on disk, under a path by which it is known again. */
  readonly onDisk: TS.SourceFile;
  /** The file that is compiled. */
  compiled: TS.SourceFile | undefined;
}

/** By the path of the file. */
export type WovenFiles = ReadonlyMap<string, WovenFile>;

/** TypeScript's own: a `@ts-ignore` or `@ts-expect-error`. */
export interface CommentDirective {
  readonly range: TS.TextRange;
  readonly type: number;
}

/** TypeScript's own fields, which its declarations leave out. */
export interface Internals {
  readonly path: string;
  readonly resolvedPath: string;
  readonly redirectInfo?: { readonly unredirected: TS.SourceFile };
  version?: string;
  commentDirectives?: readonly CommentDirective[];
}

interface ProgramInternals {
  getEmitModuleFormatOfFile(file: TS.SourceFile): TS.ModuleKind;
}

export const internals = (file: TS.SourceFile): Internals => file as unknown as Internals;

/** Whether the statement is the import of the runtime that the weave put into the file. */
export function isOwnImport(
  ts: typeof TS,
  statement: TS.Statement,
  { woven: { namespace } }: WovenFile,
): boolean {
  return namespace !== undefined && runtimeNames(ts, statement).includes(namespace);
}

/** The files of one watch run are woven once for each change. */
const cache = new WeakMap<TS.SourceFile, { file: WovenFile | undefined; madeFor: string }>();

/** The same of the one look at all others, which a watch would take at each change. */
const unconcerned = new WeakSet<TS.SourceFile>();

function isConcerned(file: TS.SourceFile): boolean {
  if (unconcerned.has(file)) return false;
  if (mayNeedWeave(file.text)) return true;
  unconcerned.add(file);
  return false;
}

/** The files of the program that have something to weave. */
export function wovenFiles(ts: Compiler, program: TS.Program, defaults: Defaults): WovenFiles {
  const files = new Map<string, WovenFile>();
  const salt = JSON.stringify([packageVersion(), [...defaults]]);
  const handedOnTo = handedOnIn(ts, program);
  for (const sourceFile of program.getSourceFiles()) {
    if (sourceFile.isDeclarationFile) continue;
    const handedOn = handedOnTo(sourceFile);
    if (handedOn === undefined && !isConcerned(sourceFile)) continue;
    if (program.isSourceFileFromExternalLibrary(sourceFile)) continue; // Its own project emits it, and weaves it.
    const module = formatOf(ts, program, sourceFile);
    const madeFor = `${module} ${salt}`;
    let cached = cache.get(sourceFile);
    // What another module hands on may change while this file does not.
    if (cached?.madeFor !== madeFor || handedOn !== undefined) {
      const options = { ts, module, defaults, sourceFile, ...(handedOn && { handedOn }) };
      cached = { file: wovenFile(sourceFile, options, salt), madeFor };
      cache.set(sourceFile, cached);
    }
    if (cached.file !== undefined) files.set(internals(sourceFile).path, cached.file);
  }
  return files;
}

/** The same of one file alone, without what other modules hand on. */
export function wovenAlone(
  ts: Compiler,
  program: TS.Program,
  sourceFile: TS.SourceFile,
  defaults: Defaults,
): WovenFile | undefined {
  return wovenFile(sourceFile, { ts, module: formatOf(ts, program, sourceFile), defaults, sourceFile }, "");
}

function wovenFile(sourceFile: TS.SourceFile, options: WeaveOptions, salt: string): WovenFile | undefined {
  const woven = weave(sourceFile.fileName, sourceFile.text, { ...options, pathOf: pathInPackage });
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
function formatOf(ts: Compiler, program: TS.Program, file: TS.SourceFile): ModuleFormat {
  const { CommonJS, AMD, UMD, ES2015, ESNext } = ts.ModuleKind;
  const options = program.getCompilerOptions();
  const project = ts.getEmitModuleKind(options);
  if (project >= ES2015 && project <= ESNext) return "esm"; // No `import x = require()`, not even in `.cts`.
  const { getEmitModuleFormatOfFile } = program as TS.Program & ProgramInternals;
  const isAsWritten = project === ts.ModuleKind.Preserve && moduleSyntax(ts, file) === "commonjs";
  const emitted = getEmitModuleFormatOfFile(file);
  if (!isAsWritten && ![CommonJS, AMD, UMD].includes(emitted)) return "esm";
  if (emitted === CommonJS && isCommonJsScript(ts, file)) return "raised script";
  if (options.erasableSyntaxOnly !== true) return "commonjs";
  return options.verbatimModuleSyntax === true ? "require" : "esm";
}

/**
 * Ends the path by which a build info knows the file on disk. TypeScript stores the diagnostics of an
 * incremental build by path, and looks that path up when it shows them again in the next build.
 */
export const ON_DISK = ".lockweave-on-disk";
