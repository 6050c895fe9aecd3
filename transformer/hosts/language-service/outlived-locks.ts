import type * as TS from "typescript";
import { analyzeFile } from "../../analyze/analyze";
import { diagnosticOf } from "../diagnostics/own-problems";
import type { NeedPlan } from "../../read/need";
import type { Plan } from "../../read/plan";
import { weaveOpen } from "./diagnostics";
import type { OpenProject } from "./project";

/**
 * Returns findings about work that outlives a lock, locks that a transaction outlives, and locks that callers do not hold. Only this part of the analysis is fast
 * enough for an editor.
 */
export function outlivedLocks(ts: typeof TS, project: OpenProject, fileName: string): TS.Diagnostic[] {
  const { program, starters } = project;
  const source = program.getSourceFile(fileName);
  if (source === undefined || source.isDeclarationFile) return [];
  const plansOf = (file: TS.SourceFile): readonly Plan[] =>
    (weaveOpen(ts, project, file.fileName)?.sites ?? []).map(({ plan }) => plan);
  const needsOf = (file: TS.SourceFile): readonly NeedPlan[] =>
    weaveOpen(ts, project, file.fileName)?.needs ?? [];
  const findings = analyzeFile(ts, program, { source, plans: plansOf(source), plansOf, needsOf, starters });
  // A transaction may call a lock of another file. A comment without a reason may also be there.
  return findings
    .filter(({ file }) => file === source)
    .map(({ problem }) => diagnosticOf(ts, problem, source, ts.DiagnosticCategory.Warning));
}
