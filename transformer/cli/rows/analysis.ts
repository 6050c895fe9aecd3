import type { Finding, Spot } from "../../analyze/finding";
import { positionIn, type Position } from "../../verify/position";
import type { Project } from "../../verify/project";
import { onceEach, type ProblemRow } from "./tags";

/** A finding of a rule, with the places that prove it. */
export interface FindingRow extends ProblemRow {
  readonly proof: readonly Position[];
}

/** A call whose target is unknown. */
interface UnfollowedRow extends Position {
  readonly call: string;
  /** `dynamic`: the function is known only at run time. `callback`: the program passes a callback to code outside of it. */
  readonly why: "dynamic" | "callback";
}

export interface AnalysisRows {
  readonly certain: readonly FindingRow[];
  readonly likely: readonly FindingRow[];
  readonly unfollowed: readonly UnfollowedRow[];
  /** The projects that were not analyzed, because no type checker is available for them. */
  readonly left: readonly Project[];
}

/** Analyzes how the tagged functions of each project affect each other. */
export function analysisRows(projects: readonly Project[]): AnalysisRows {
  const left: Project[] = [];
  const findings: Finding[] = [];
  const unfollowed: UnfollowedRow[] = [];
  for (const project of projects) {
    const analysis = project.analysis();
    if (analysis === undefined) {
      left.push(project);
      continue;
    }
    findings.push(...analysis.findings);
    for (const { node, why } of analysis.unfollowed) {
      const file = node.getSourceFile();
      unfollowed.push({ ...positionIn(file, node.getStart(file)), call: firstLine(node.getText(file)), why });
    }
  }
  const rows = (isCertain: boolean): FindingRow[] =>
    onceEach(findings.filter((one) => one.isCertain === isCertain).map(rowOf));
  return { certain: rows(true), likely: rows(false), unfollowed: onceEach(unfollowed), left };
}

function rowOf({ file, problem: { code, message, start }, proof }: Finding): FindingRow {
  return { ...positionIn(file, start), code, message, proof: proof.map(placeOfSpot) };
}

function placeOfSpot({ file, start }: Spot): Position {
  return positionIn(file, start);
}

function firstLine(text: string): string {
  const [line = ""] = text.split("\n");
  return line === text ? text : `${line} ...`;
}
