import type * as TS from "typescript";
import { weave, type Woven } from "../../weave/weave";
import { diagnosticOf, FOUND_BY_THE_COMPILER } from "../ts-patch/report-on-disk";
import type { OpenProject } from "./project";

/** What one file tells of its tags, in the compiler's words. What does not parse is TypeScript's to tell. */
export function problemsOf(ts: typeof TS, project: OpenProject, fileName: string): TS.Diagnostic[] {
  const sourceFile = project.program.getSourceFile(fileName);
  const woven = weaveOpen(ts, project, fileName);
  if (sourceFile === undefined || woven === undefined) return [];
  const { Error: error, Warning: warning } = ts.DiagnosticCategory;
  return [
    ...woven.diagnostics
      .filter(({ code }) => !FOUND_BY_THE_COMPILER.has(code))
      .map((found) => diagnosticOf(ts, found, sourceFile, error)),
    ...woven.warnings.map((doubt) => diagnosticOf(ts, doubt, sourceFile, warning)),
  ];
}

/** The file as it is in the editor. */
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
