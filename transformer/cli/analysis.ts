import type { Finding, Spot } from "../analyze/finding";
import { placeIn, type Place } from "../verify/place";
import type { Project } from "../verify/project";
import { onceEach, type ProblemRow } from "./tags";

/** What a rule has found, with the places that prove it. */
export interface FindingRow extends ProblemRow {
  readonly proof: readonly Place[];
}

/** A call of which nobody knows what it runs. */
interface UnfollowedRow extends Place {
  readonly call: string;
  /** A function of which only the value at run time is known, or a callback that is given to code outside of the program. */
  readonly why: "dynamic" | "callback";
}

export interface AnalysisRows {
  readonly certain: readonly FindingRow[];
  readonly likely: readonly FindingRow[];
  readonly unfollowed: readonly UnfollowedRow[];
  /** The projects of which nothing is known, since there is no type checker to ask. */
  readonly left: readonly Project[];
}

/** What the tagged functions of each project do to each other. */
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
      unfollowed.push({ ...placeIn(file, node.getStart(file)), call: firstLine(node.getText(file)), why });
    }
  }
  const rows = (isCertain: boolean): FindingRow[] =>
    onceEach(findings.filter((one) => one.isCertain === isCertain).map(rowOf));
  return { certain: rows(true), likely: rows(false), unfollowed: onceEach(unfollowed), left };
}

function rowOf({ file, problem: { code, message, start }, proof }: Finding): FindingRow {
  return { ...placeIn(file, start), code, message, proof: proof.map(placeOfSpot) };
}

function placeOfSpot({ file, start }: Spot): Place {
  return placeIn(file, start);
}

function firstLine(text: string): string {
  const [line = ""] = text.split("\n");
  return line === text ? text : `${line} ...`;
}
