import { dirname } from "node:path";
import { mutantsOf, type Mutant } from "./mutants";
import { textOf } from "./sources";

/** A mutant of a file of the repository. */
export interface Change extends Mutant {
  readonly file: string;
  /** The lines before and after the change. They identify the mutant. */
  readonly from: string;
  readonly to: string;
  readonly line: number;
}

export function changesOf(file: string): Change[] {
  const text = textOf(file);
  return mutantsOf(file, text).map((mutant): Change => {
    const start = text.lastIndexOf("\n", mutant.start - 1) + 1;
    const newline = text.indexOf("\n", mutant.end);
    const end = newline === -1 ? text.length : newline;
    const to = text.slice(start, mutant.start) + mutant.replacement + text.slice(mutant.end, end);
    return Object.assign(mutant, {
      file,
      from: onOneLine(text.slice(start, end)),
      to: onOneLine(to),
      line: text.slice(0, mutant.start).split("\n").length,
    });
  });
}

export function changedText({ file, start, end, replacement }: Change): string {
  const text = textOf(file);
  return text.slice(0, start) + replacement + text.slice(end);
}

/** The folder whose score the mutant counts for. */
export function folderOf({ file }: Change): string {
  return dirname(file);
}

function onOneLine(lines: string): string {
  return lines.replaceAll(/\s+/g, " ").trim();
}
