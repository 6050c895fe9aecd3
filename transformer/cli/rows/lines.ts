import { shortPath } from "../../verify/outputs";
import type { Position } from "../../verify/position";
import type { Project } from "../../verify/project";
import { block, bold, red, safe, type SafeText } from "../../terminal/printer";
import type { ProblemRow } from "./tags";

/** A row of a report. A tag whose lock is not proved has no code, because the tag itself is valid. */
export type Row = Partial<Position> & Pick<ProblemRow, "message"> & { readonly code?: string };

export function problemLine(row: Row, cwd: string): SafeText {
  return safe`${bold(`${placeText(row, cwd)}:`)} ${red(messageText(row))}`;
}

export function warningLine(row: Row, cwd: string): SafeText {
  return safe`${bold(`${placeText(row, cwd)}:`)} warning: ${messageText(row)}`;
}

function placeText({ file, line, column }: Row, cwd: string): string {
  const place = [file === undefined ? undefined : shortPath(file, cwd), line, column];
  return place.filter((part) => part !== undefined).join(":");
}

/** A compiler's message may have several lines. */
function messageText({ code, message }: Row): SafeText {
  return code === undefined ? block(message) : safe`${code}: ${block(message)}`;
}

/** Reports which files are the sources if there is no tsconfig.json. */
export function aboutSources(projects: readonly Project[]): SafeText[] {
  const [project] = projects;
  if (project?.builder !== "another") return [];
  const count = project.sources.length - 1; // The tsconfig.json in the list does not exist.
  return [
    safe`There is no tsconfig.json. Lockweave read ${count === 1 ? "the only source file" : `all ${count} source files`} in this directory and below, except for node_modules, dist, build, out, and coverage.`,
  ];
}
