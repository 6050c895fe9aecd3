import type * as TS from "typescript";
import { analyzeFile } from "../../analyze/analyze";
import { diagnosticOf } from "../diagnostics";
import { weaveOpen } from "./diagnostics";
import type { OpenProject } from "./project";

/**
 * Returns findings about calls in tagged functions that may outlive their locks. Only this part of the analysis is fast enough for an
 * editor.
 */
export function workThatOutlives(ts: typeof TS, project: OpenProject, fileName: string): TS.Diagnostic[] {
  const { program } = project;
  const source = program.getSourceFile(fileName);
  const { sites = [] } = weaveOpen(ts, project, fileName) ?? {};
  if (source === undefined || sites.length === 0) return [];
  const findings = analyzeFile(ts, program, { source, plans: sites.map(({ plan }) => plan) });
  return findings.map(({ problem }) => diagnosticOf(ts, problem, source, ts.DiagnosticCategory.Warning));
}
