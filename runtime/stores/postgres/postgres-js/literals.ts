import { StatementError } from "../client-port";

/**
 * Writes the values into the text of a statement, in place of `$1`, `$2`, ... postgres.js asks the server for the types of parameters first,
 * unless the statement is prepared. So a statement with parameters would cost two round trips.
 */
export function withLiterals(text: string, values: readonly unknown[]): string {
  if (values.length === 0) return text;
  return text.replace(/\$(\d+)/g, (_, nth: string) => literalOf(values[Number(nth) - 1]));
}

/** @throws {StatementError} if the server could not store the text */
function literalOf(value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "boolean") return value ? "TRUE" : "FALSE";
  if (typeof value === "string" || typeof value === "number") return quoted(`${value}`);
  throw new TypeError(`a value of a statement is a ${typeof value}`);
}

/** A backslash means itself in some strings, depending on a setting of the server. It is always an escape in strings that begin with an E. */
function quoted(text: string): string {
  // It would end the whole statement.
  if (text.includes("\0")) throw new StatementError("a text contains a NUL character", "22021");
  const inside = text.replaceAll("'", "''");
  return text.includes("\\") ? ` E'${inside.replaceAll("\\", "\\\\")}'` : `'${inside}'`;
}
