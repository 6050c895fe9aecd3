import type * as TS from "typescript";
import type { Problem } from "../../text/problems";
import { internals, ON_DISK, type WovenFiles } from "./woven-files";

/** Diagnostics of woven files speak of the file on disk, and ours are among them. */
export function reportOnDisk(
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

/** The diagnostic, led back to the file on disk. */
export function toDisk<D extends TS.DiagnosticRelatedInformation>(diagnostic: D, files: WovenFiles): D {
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
