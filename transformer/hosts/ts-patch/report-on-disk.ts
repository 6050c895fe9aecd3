import type * as TS from "typescript";
import type { PlacedProblem } from "../../verify/project";
import { applyDirectives, applyDirectivesInProgram } from "../diagnostics/comment-directives";
import { diagnosticOf, notReportedByCompiler } from "../diagnostics/own-problems";
import { findWovenIn, internals, ON_DISK, type WovenFile, type WovenFiles } from "./woven-files";

/**
 * Makes diagnostics of woven files refer to the file on disk, and adds our own.
 *
 * @param fileProblems problems to report with the errors of their files, even if a file is not woven
 */
export function reportOnDisk(
  ts: typeof TS,
  program: TS.Program,
  files: WovenFiles,
  projectProblems: readonly PlacedProblem[],
  fileProblems: readonly PlacedProblem[] = [],
): void {
  const fileOf = findWovenIn(files);
  const ofFile = ({ woven, onDisk }: WovenFile): TS.Diagnostic[] =>
    notReportedByCompiler(woven.diagnostics).map((found) => diagnosticOf(ts, found, onDisk));
  const othersIn = (fileName?: string): TS.Diagnostic[] =>
    fileProblems
      .filter(({ file }) => fileName === undefined || file?.fileName === fileName)
      .map(({ file, problem }) => diagnosticOf(ts, problem, file));
  const ours = (sourceFile: TS.SourceFile | undefined): TS.Diagnostic[] => {
    if (sourceFile === undefined) return [...[...files.values()].flatMap(ofFile), ...othersIn()];
    const file = fileOf(sourceFile);
    return [...(file === undefined ? [] : ofFile(file)), ...othersIn(sourceFile.fileName)];
  };

  type Method = (sourceFile?: TS.SourceFile, ...rest: unknown[]) => readonly TS.Diagnostic[];
  const methods = program as unknown as Record<string, Method>;
  const wrap = (
    name: string,
    added: (sourceFile: TS.SourceFile | undefined) => TS.Diagnostic[],
    apply = applyDirectives,
  ): void => {
    const original = methods[name];
    if (original === undefined) return;
    methods[name] = (sourceFile, ...rest) => [
      ...apply(original(sourceFile, ...rest), fileOf),
      ...added(sourceFile),
    ];
  };
  // Without type checks, incremental builds do not request semantic errors.
  const { noCheck = false } = program.getCompilerOptions();
  wrap("getSyntacticDiagnostics", noCheck ? ours : () => []);
  wrap("getSemanticDiagnostics", noCheck ? () => [] : ours);
  wrap("getBindAndCheckDiagnostics", noCheck ? () => [] : ours); // Other incremental builds request these instead.
  wrap("getProgramDiagnostics", () => [], applyDirectivesInProgram); // They also request these, for errors in the program's structure.
  wrap("getDeclarationDiagnostics", () => []);
  wrap("getOptionsDiagnostics", () =>
    projectProblems.map(({ file, problem }) => diagnosticOf(ts, problem, file)),
  );

  const unwovenOnDisk = (path: string): TS.SourceFile | undefined =>
    fileProblems.find(({ file }) => file !== undefined && internals(file).resolvedPath === path)?.file;
  const lookups = program as unknown as { getSourceFileByPath(path: string): TS.SourceFile | undefined };
  const { getSourceFileByPath } = lookups;
  lookups.getSourceFileByPath = (path) =>
    path.endsWith(ON_DISK)
      ? (files.get(path.slice(0, -ON_DISK.length))?.onDisk ?? unwovenOnDisk(path))
      : getSourceFileByPath(path);
}
