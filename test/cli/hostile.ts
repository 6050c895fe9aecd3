import * as fc from "fast-check";

/** Pieces of hostile texts. They move the cursor, break lines, hide, or turn the direction of text. */
export const PIECES: readonly string[] = [
  "\u001B[2J",
  "\u001B]0;title\u0007",
  "\u001B[31m",
  "\u009B1A",
  "\u0090q\u009C",
  "\r",
  "\n",
  "\u0000",
  "\b\b\b",
  "\u007F",
  "\u0085",
  "\u2028",
  "\u2029",
  "\u202E",
  "\u2066",
  "\u200B",
  "\u200F",
  "\u00AD",
  "\u{E0041}",
  "\uFEFF",
  "\uFFF9",
  "lock",
  "é",
  "😀",
  "%",
  "\\",
  "`",
  "$(id)",
  "'",
  "x".repeat(3_000),
];

/** Texts of one or more pieces. */
export const hostileText = fc
  .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 6 })
  .map((pieces) => pieces.join(""));

/** Hostile texts without line breaks, for tags and file names. */
export const hostileWord = hostileText.map((text) =>
  text.replaceAll(/[\r\n\u2028\u2029\0/]/g, "").slice(0, 60),
);

/** Returns that many different texts, the same ones in each run. */
export function hostileTexts(count: number, of = hostileText): string[] {
  const sample = fc.sample(of, { numRuns: 20 * count, seed: 32 });
  return [...new Set(sample)].filter((text) => text.trim() !== "").slice(0, count);
}

/** Ranges of code points that no terminal may receive: controls, formats, and separators. */
const FORBIDDEN: readonly (readonly [from: number, to: number])[] = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x61c, 0x61c],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
  [0xfff9, 0xfffb],
  [0xe0000, 0xe0fff],
];

/** Returns the forbidden characters of an output, as hexadecimal numbers. */
export function forbiddenIn(output: string): string[] {
  const points = Array.from(output, (character) => character.codePointAt(0) ?? 0);
  const wrong = points.filter((point) => FORBIDDEN.some(([from, to]) => from <= point && point <= to));
  return [...new Set(wrong)].map((point) => point.toString(16));
}
