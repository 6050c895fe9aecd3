import { shown, type Finding } from "./weaver";

/** Longer lines are not shown: minified code, for example. */
const LONGEST_LINE = 200;

/**
 * Returns an error about a file of the user, for hosts that print the stack of an error. The stack has no calls, since all
 * of them would be Lockweave's own.
 *
 * @param stack printed in the place of the calls, with the message
 */
export function fileError(message: string, stack = message): Error {
  const error = new Error(message);
  error.stack = `Error: ${stack}`;
  return error;
}

/**
 * Returns an error about the tags of a file. Its message is as compilers print it. Its stack also shows the lines, and its only call is the
 * place of the first tag.
 */
export function tagError(fileName: string, findings: readonly Finding[]): Error {
  const lines = findings.map((found) => shown(fileName, found));
  const framed = findings.map((found, index) => `${lines[index] ?? ""}${frameOf(found)}`);
  const [{ line, column } = { line: 1, column: 0 }] = findings;
  return fileError(lines.join("\n"), `${framed.join("\n")}\n    at ${fileName}:${line}:${column + 1}`);
}

/** The line, with the words underlined that the finding is about. */
function frameOf({ line, column, length, lineText }: Finding): string {
  if (lineText.length > LONGEST_LINE) return "";
  const indent = lineText.slice(0, column).replaceAll(/[^\t]/g, " ");
  const marks = "~".repeat(Math.max(1, Math.min(length, lineText.length - column)));
  const number = String(line);
  return `\n  ${number} | ${lineText}\n  ${" ".repeat(number.length)} | ${indent}${marks}`;
}
