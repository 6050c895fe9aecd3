import type * as TS from "typescript";
import type { Span } from "../../text/span";
import type { PlacedProblem } from "../../verify/project";
import type { Woven } from "../../weave/weave";
import { adviceInTag, diagnosticOf, foundOnlyByUs } from "../diagnostics";
import { applyDirectives, applyDirectivesInProgram } from "./comment-directives";
import { internals, ON_DISK, type WovenFile, type WovenFiles } from "./woven-files";

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
  const ofFile = ({ woven, onDisk }: WovenFile): TS.Diagnostic[] =>
    foundOnlyByUs(woven.diagnostics).map((found) => diagnosticOf(ts, found, onDisk));
  const othersIn = (fileName?: string): TS.Diagnostic[] =>
    fileProblems
      .filter(({ file }) => fileName === undefined || file?.fileName === fileName)
      .map(({ file, problem }) => diagnosticOf(ts, problem, file));
  const ours = (sourceFile: TS.SourceFile | undefined): TS.Diagnostic[] => {
    if (sourceFile === undefined) return [...[...files.values()].flatMap(ofFile), ...othersIn()];
    const file = files.get(internals(sourceFile).path);
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
      ...apply(original(sourceFile, ...rest), files, (diagnostic) => toDisk(diagnostic, files)),
      ...added(sourceFile),
    ];
  };
  // Without type checks, incremental builds do not request semantic errors.
  const { noCheck = false } = program.getCompilerOptions();
  wrap("getSyntacticDiagnostics", noCheck ? ours : () => []);
  wrap("getSemanticDiagnostics", noCheck ? () => [] : ours);
  wrap("getBindAndCheckDiagnostics", noCheck ? () => [] : ours); // Other incremental builds request these instead.
  wrap("getProgramDiagnostics", () => [], applyDirectivesInProgram); // And these, for errors in the program's structure.
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

/** Maps the diagnostic to the file on disk. */
export function toDisk<D extends TS.DiagnosticRelatedInformation>(diagnostic: D, files: WovenFiles): D {
  const file = diagnostic.file && files.get(internals(diagnostic.file).path);
  const isMapped = file === undefined || diagnostic.file === file.onDisk;
  const { start = 0, length = 0 } = diagnostic;
  const span = isMapped ? undefined : file.woven.positions.toDisk({ start, end: start + length });
  const { relatedInformation } = diagnostic as Partial<TS.Diagnostic>;
  const inside = span && file && insideExpression(diagnostic, span, file.woven);
  return {
    ...diagnostic,
    ...inside?.message,
    ...(span && file && withAdvice(diagnostic, span, file)),
    ...(span && placed(inside?.at ?? span, file)),
    ...(relatedInformation && {
      relatedInformation: relatedInformation.map((related) => toDisk(related, files)),
    }),
  };
}

function placed({ start, end }: Span, file: WovenFile | undefined): Partial<TS.Diagnostic> {
  return { file: file?.onDisk, start, length: end - start };
}

const NOT_ASSIGNABLE = 2322;

/** Replaces an error about the type of a function by the error about its return value. See {@link NamedExpression}. */
function insideExpression(
  { code, messageText }: TS.DiagnosticRelatedInformation,
  { start, end }: Span,
  { expressions }: Woven,
): { at: Span; message: Pick<TS.Diagnostic, "messageText"> } | undefined {
  const named = expressions.find(({ name }) => name.start === start && name.end === end);
  if (named === undefined || code !== NOT_ASSIGNABLE || typeof messageText === "string") return undefined;
  const [inner, another] = messageText.next ?? [];
  if (inner?.code !== NOT_ASSIGNABLE || another !== undefined) return undefined;
  return { at: named.value, message: { messageText: inner } };
}

/** Adds advice that the compiler cannot give. */
function withAdvice(
  { category, code, messageText }: TS.DiagnosticRelatedInformation,
  { start }: Span,
  { woven, onDisk }: WovenFile,
): Partial<Pick<TS.Diagnostic, "messageText">> {
  const chain = typeof messageText === "string" ? { category, code, messageText } : messageText;
  const error = { code: `TS${code}`, message: chain.messageText, offset: start };
  const advice = adviceInTag(woven, onDisk.text, error);
  if (advice === undefined) return {};
  const { next = [] } = chain as Partial<TS.DiagnosticMessageChain>;
  return { messageText: { ...chain, next: [...next, { category, code, messageText: advice }] } };
}
