import { createHash } from "node:crypto";
import type * as TS from "typescript";
import { runtimeNames, isCommonJsScript, moduleSyntax } from "../../read/module-syntax";
import type { Defaults } from "../../read/attributes";
import type { ModuleFormat } from "../../weave/runtime-import";
import type { WovenOnDisk } from "../diagnostics/to-disk";
import { pathInPackage } from "../path-in-package";
import type { Compiler } from "./compiler";
import { reExportsIn } from "./re-exports";
import { mayNeedWeave, weave, type WeaveOptions } from "../../weave/weave";

export interface WovenFile extends WovenOnDisk {
  /** A version that depends on the code, the defaults, and the version of Lockweave: see {@link versionOf}. */
  readonly version: string;
  /** The file that the compiler compiles. */
  compiled: TS.SourceFile | undefined;
}

/** The woven files by path. */
export type WovenFiles = ReadonlyMap<string, WovenFile>;

/** Internal fields of TypeScript that its declarations omit. */
export interface Internals {
  readonly path: string;
  readonly resolvedPath: string;
  readonly redirectInfo?: { readonly unredirected: TS.SourceFile };
  version?: string;
}

interface ProgramInternals {
  getEmitModuleFormatOfFile(file: TS.SourceFile): TS.ModuleKind;
}

export const internals = (file: TS.SourceFile): Internals => file as unknown as Internals;

/** Returns a function that finds the woven file of a file in the program. */
export function findWovenIn(files: WovenFiles): (file: TS.SourceFile) => WovenFile | undefined {
  return (file) => files.get(internals(file).path);
}

/** Whether the statement is the runtime import that the weave added to the file. */
export function isOwnImport(
  ts: typeof TS,
  statement: TS.Statement,
  { woven: { namespace } }: WovenFile,
): boolean {
  return namespace !== undefined && runtimeNames(ts, statement).includes(namespace);
}

/** Caches woven files, so that a watch weaves a file once for each change. */
const cache = new WeakMap<TS.SourceFile, { file: WovenFile | undefined; madeFor: string }>();

/** Caches the files that need no weave, so that a watch does not search them at each change. */
const withoutWeave = new WeakSet<TS.SourceFile>();

function needsWeave(file: TS.SourceFile): boolean {
  if (withoutWeave.has(file)) return false;
  if (mayNeedWeave(file.text)) return true;
  withoutWeave.add(file);
  return false;
}

/** Returns the files of the program that have something to weave. */
export function wovenFiles(ts: Compiler, program: TS.Program, defaults: Defaults): WovenFiles {
  const files = new Map<string, WovenFile>();
  const salt = JSON.stringify([packageVersion(), [...defaults]]);
  const reExportsTo = reExportsIn(ts, program);
  for (const sourceFile of program.getSourceFiles()) {
    if (sourceFile.isDeclarationFile) continue;
    const findReExports = reExportsTo(sourceFile);
    if (findReExports === undefined && !needsWeave(sourceFile)) continue;
    if (program.isSourceFileFromExternalLibrary(sourceFile)) continue; // Its own project emits and weaves it.
    const module = formatOf(ts, program, sourceFile);
    const madeFor = `${module} ${salt}`;
    let cached = cache.get(sourceFile);
    // The re-exports of another module may change while this file does not.
    if (cached?.madeFor !== madeFor || findReExports !== undefined) {
      const options = { ts, module, defaults, sourceFile, ...(findReExports && { findReExports }) };
      cached = { file: wovenFile(sourceFile, options, salt), madeFor };
      cache.set(sourceFile, cached);
    }
    if (cached.file !== undefined) files.set(internals(sourceFile).path, cached.file);
  }
  return files;
}

/** Weaves one file alone, without the re-exports of other modules. */
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
 * Returns the version that incremental builds compare. It covers the woven text, the version of Lockweave, and the defaults, so a build
 * info of plain `tsc` never passes for a woven build.
 */
function versionOf(code: string, salt: string): string {
  return createHash("sha256").update(salt).update(code).digest("hex");
}

export function packageVersion(): string {
  return (require("lockweave/package.json") as { version: string }).version;
}

/**
 * Returns the module format in which the compiler will emit the file. That depends on the project, on `.mts` and `.cts`, and on
 * package.json.
 */
function formatOf(ts: Compiler, program: TS.Program, file: TS.SourceFile): ModuleFormat {
  const { CommonJS, AMD, UMD, ES2015, ESNext } = ts.ModuleKind;
  const options = program.getCompilerOptions();
  const project = ts.getEmitModuleKind(options);
  if (project >= ES2015 && project <= ESNext) return "esm"; // `import x = require()` is not possible here, not even in `.cts`.
  const { getEmitModuleFormatOfFile } = program as TS.Program & ProgramInternals;
  const isAsWritten = project === ts.ModuleKind.Preserve && moduleSyntax({ ts, file }) === "commonjs";
  const emitted = getEmitModuleFormatOfFile(file);
  if (!isAsWritten && ![CommonJS, AMD, UMD].includes(emitted)) return "esm";
  if (emitted === CommonJS && isCommonJsScript({ ts, file })) return "raised script";
  if (options.erasableSyntaxOnly !== true) return "commonjs";
  return options.verbatimModuleSyntax === true ? "require" : "esm";
}

/**
 * The suffix of the path that identifies a file on disk in a build info. TypeScript stores the diagnostics of an incremental build by path,
 * and looks up that path to show them in the next build.
 */
export const ON_DISK = ".lockweave-on-disk";
