import { relative, resolve, sep } from "node:path";

/** A diagnostic of a compiler. Line and column start at 1. */
export interface CompilerDiagnostic {
  /** `undefined` if the diagnostic is about no file. */
  readonly file: string | undefined;
  readonly line: number;
  readonly column: number;
  readonly category: string;
  /** The code, such as `TS2339`. */
  readonly code: string;
  /** The message, which may have several lines. */
  readonly message: string;
}

const DIAGNOSTIC = /^(?:(.+?)\((\d+),(\d+)\): )?(error|warning) (TS\d+): (.*)$/;

/** The diagnostics in the output of `tsc --pretty false`, and all other lines. */
export interface Parsed {
  readonly diagnostics: CompilerDiagnostic[];
  readonly others: string[];
}

/**
 * Parses the output of a compiler.
 *
 * @param cwd the directory in which the compiler ran
 */
export function parseDiagnostics(output: string, cwd: string): Parsed {
  const diagnostics: CompilerDiagnostic[] = [];
  const others: string[] = [];
  for (const line of output.split(/\r?\n/)) {
    const [, file, row = "0", column = "0", category = "", code = "", message = ""] =
      DIAGNOSTIC.exec(line) ?? [];
    const last = diagnostics.at(-1);
    if (code !== "") {
      const at = {
        file: file === undefined ? undefined : resolve(cwd, file),
        line: Number(row),
        column: Number(column),
      };
      diagnostics.push({ ...at, category, code, message });
    } else if (/^\s+\S/.test(line) && last !== undefined) {
      diagnostics[diagnostics.length - 1] = { ...last, message: `${last.message}\n${line}` };
    } else if (line.trim() !== "") others.push(line);
  }
  return { diagnostics, others };
}

/** Formats a diagnostic like `tsc --pretty false`, without the final line break. */
export function printed(
  { file, line, column, category, code, message }: CompilerDiagnostic,
  cwd: string,
): string {
  const place = file === undefined ? "" : `${relative(cwd, file).split(sep).join("/")}(${line},${column}): `;
  return `${place}${category} ${code}: ${message}`;
}
