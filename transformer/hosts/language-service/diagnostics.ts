import type * as TS from "typescript";
import { weave, type Woven } from "../../weave/weave";
import { diagnosticOf, notReportedByCompiler, type TagDiagnostic } from "../diagnostics/own-problems";
import type { OpenProject } from "./project";

/** Returns the problems of the tags in one file as diagnostics of the compiler. TypeScript itself reports syntax errors. */
export function problemsOf(ts: typeof TS, project: OpenProject, fileName: string): TagDiagnostic[] {
  const sourceFile = project.program.getSourceFile(fileName);
  const woven = weaveOpen(ts, project, fileName);
  if (sourceFile === undefined || woven === undefined) return [];
  const { Error: error, Warning: warning } = ts.DiagnosticCategory;
  return [
    ...notReportedByCompiler(woven.diagnostics).map((found) => diagnosticOf(ts, found, sourceFile, error)),
    ...woven.warnings.map((doubt) => diagnosticOf(ts, doubt, sourceFile, warning)),
  ];
}

/** Weaves the file with its current text in the editor. */
export function weaveOpen(
  ts: typeof TS,
  { program, defaults }: OpenProject,
  fileName: string,
): Woven | undefined {
  const sourceFile = program.getSourceFile(fileName);
  if (sourceFile === undefined || sourceFile.isDeclarationFile) return undefined;
  if (program.isSourceFileFromExternalLibrary(sourceFile)) return undefined;
  return weave(fileName, sourceFile.text, { ts, module: "esm", defaults, sourceFile });
}
