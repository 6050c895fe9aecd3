import { formatFinding, type Finding } from "./weaver";

/** Longer lines, such as minified code, are not shown. */
const LONGEST_LINE = 200;

/**
 * Returns an error about a file of the user, for hosts that print the stack of an error. The stack lists no calls, because all of them
 * would be Lockweave's own.
 *
 * @param stack the text that replaces the stack, including the message
 */
export function fileError(message: string, stack = message): Error {
  const error = new Error(message);
  error.stack = `Error: ${stack}`;
  return error;
}

/**
 * Returns an error about the tags of a file. Its message has the format of compilers. Its stack also shows the source lines, and names the
 * position of the first tag as the only call.
 */
export function tagError(fileName: string, findings: readonly Finding[]): Error {
  const lines = findings.map((found) => formatFinding(fileName, found));
  const framed = findings.map((found, index) => `${lines[index] ?? ""}${frameOf(found)}`);
  const [{ line, column } = { line: 1, column: 0 }] = findings;
  return fileError(lines.join("\n"), `${framed.join("\n")}\n    at ${fileName}:${line}:${column + 1}`);
}

/** Returns the source line, with the affected text underlined. */
function frameOf({ line, column, length, lineText }: Finding): string {
  if (lineText.length > LONGEST_LINE) return "";
  const indent = lineText.slice(0, column).replaceAll(/[^\t]/g, " ");
  const marks = "~".repeat(Math.max(1, Math.min(length, lineText.length - column)));
  const number = String(line);
  return `\n  ${number} | ${lineText}\n  ${" ".repeat(number.length)} | ${indent}${marks}`;
}
