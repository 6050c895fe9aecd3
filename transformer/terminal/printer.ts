import { createInterface } from "node:readline/promises";
import { redacted } from "../../runtime/base/format-value";
import { escapeInJson, onItsLines, onOneLine } from "./escape";
import { palette, type Style } from "./palette";

// All output of the command line goes through this file. Keys, tags, values, and errors may come from anyone. So this file removes terminal
// control characters and the credentials of URLs. The types allow no other way to print.

interface Piece {
  readonly text: string;
  readonly style?: Style;
}

class SafeText {
  readonly #pieces: readonly Piece[];

  constructor(pieces: readonly Piece[]) {
    this.#pieces = pieces;
  }

  get length(): number {
    return this.#pieces.reduce((sum, { text }) => sum + text.length, 0);
  }

  get pieces(): readonly Piece[] {
    return this.#pieces;
  }
}

/** Text that is safe to print. Only the functions of this file create it. */
export type { SafeText };

/** The values that a {@link safe} template accepts. Strings are escaped. */
export type Value = string | number | SafeText;

/** Creates safe text from a template. Inserted strings are escaped onto one line. */
export function safe(literals: TemplateStringsArray, ...values: readonly Value[]): SafeText {
  return new SafeText(
    literals.flatMap((literal, index) => {
      const value = values[index];
      return [{ text: literal }, ...(value === undefined ? [] : piecesOf(value))];
    }),
  );
}

/** Creates safe text of several lines, such as source code or the output of a program, and keeps its line breaks. */
export function block(text: string): SafeText {
  return new SafeText([{ text: onItsLines(redacted(text)) }]);
}

export function joined(values: readonly Value[], separator = ""): SafeText {
  const pieces = values.flatMap((value, index) => [
    ...(index === 0 ? [] : [{ text: separator }]),
    ...piecesOf(value),
  ]);
  return new SafeText(pieces);
}

export const bold = (value: Value): SafeText => styled("bold", value);
export const red = (value: Value): SafeText => styled("red", value);
export const cyan = (value: Value): SafeText => styled("cyan", value);

/** Pads the text with spaces up to the width. */
export function padded(value: Value, width: number): SafeText {
  const text = safe`${value}`;
  return joined([text, " ".repeat(Math.max(0, width - text.length))]);
}

function styled(style: Style, value: Value): SafeText {
  return new SafeText(piecesOf(value).map(({ text }) => ({ text, style })));
}

function piecesOf(value: Value): readonly Piece[] {
  if (typeof value === "number") return [{ text: String(value) }];
  return typeof value === "string" ? [{ text: onOneLine(redacted(value)) }] : value.pieces;
}

// ---- printing -------------------------------------------------------------------------------------------

/** Prints each text on its own line. */
export function print(...lines: readonly SafeText[]): void {
  write(process.stdout, lines);
}

/** Prints each text on its own line to the error stream. */
export function printError(...lines: readonly SafeText[]): void {
  write(process.stderr, lines);
}

/** Prints a value as JSON for programs. Strings are not redacted, and JSON escapes them itself. */
export function printJson(value: unknown, indent?: number): void {
  process.stdout.write(`${escapeInJson(JSON.stringify(value, undefined, indent))}\n`);
}

const CLEAR = "\u001B[2J\u001B[H";

/** Clears the terminal and prints the lines. */
export function printScreen(...lines: readonly SafeText[]): void {
  process.stdout.write(CLEAR);
  print(...lines);
}

function write(stream: NodeJS.WriteStream, lines: readonly SafeText[]): void {
  const paint = palette(stream, process.env);
  const rendered = lines.map(({ pieces }) => {
    const line = pieces.map(({ text, style }) => (style === undefined ? text : paint[style](text))).join("");
    return `${line.replaceAll(/[ ]+$/gm, "")}\n`;
  });
  stream.write(rendered.join(""));
}

for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(); // The reader closed the pipe early, as `head` does.
    throw error;
  });
}

// ---- the terminal ---------------------------------------------------------------------------------------

/** Whether standard output is a terminal. */
export function isTerminal(): boolean {
  return process.stdout.isTTY;
}

export function terminalSize(): { readonly columns: number; readonly rows: number } {
  const { columns, rows } = process.stdout;
  return { columns, rows };
}

/** Asks the user at the terminal. Returns `false` if there is no terminal. */
export async function confirms(question: SafeText): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false;
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const prompt = question.pieces.map(({ text }) => text).join("");
  const answer = await terminal.question(`${prompt} [y/N] `);
  terminal.close();
  return /^y(?:es)?$/i.test(answer.trim());
}

/** The exit code if the user did not agree, so that nothing was changed. */
export const NOT_AGREED = 3;
