import { relative, resolve, sep } from "node:path";

/** What a compiler says of a place: line and column counted from 1. */
export interface Said {
  /** `undefined` of what is in no file. */
  readonly file: string | undefined;
  readonly line: number;
  readonly column: number;
  readonly category: string;
  /** `TS2339` */
  readonly code: string;
  /** May go on over several lines. */
  readonly message: string;
}

const SAID = /^(?:(.+?)\((\d+),(\d+)\): )?(error|warning) (TS\d+): (.*)$/;

/** What `tsc --pretty false` prints, and all that is none of it. */
export interface Parsed {
  readonly said: Said[];
  readonly others: string[];
}

/** @param cwd where the compiler ran */
export function parseDiagnostics(output: string, cwd: string): Parsed {
  const said: Said[] = [];
  const others: string[] = [];
  for (const line of output.split(/\r?\n/)) {
    const [, file, row = "0", column = "0", category = "", code = "", message = ""] = SAID.exec(line) ?? [];
    const last = said.at(-1);
    if (code !== "") {
      const at = {
        file: file === undefined ? undefined : resolve(cwd, file),
        line: Number(row),
        column: Number(column),
      };
      said.push({ ...at, category, code, message });
    } else if (/^\s+\S/.test(line) && last !== undefined) {
      said[said.length - 1] = { ...last, message: `${last.message}\n${line}` };
    } else if (line.trim() !== "") others.push(line);
  }
  return { said, others };
}

/** As `tsc --pretty false` prints it, without the line break at its end. */
export function printed({ file, line, column, category, code, message }: Said, cwd: string): string {
  const place = file === undefined ? "" : `${relative(cwd, file).split(sep).join("/")}(${line},${column}): `;
  return `${place}${category} ${code}: ${message}`;
}
