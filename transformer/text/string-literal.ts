/** Returns the text as a literal on one line. JSON does not escape U+2028 and U+2029, which are line breaks to a compiler. */
export function stringLiteral(text: string): string {
  return JSON.stringify(text)
    .replaceAll("\u2028", String.raw`\u2028`)
    .replaceAll("\u2029", String.raw`\u2029`);
}
