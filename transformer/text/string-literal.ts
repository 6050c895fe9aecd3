/** The text as a literal on one line. JSON leaves U+2028 and U+2029 as they are: line breaks to a compiler. */
export function stringLiteral(text: string): string {
  return JSON.stringify(text)
    .replaceAll("\u2028", String.raw`\u2028`)
    .replaceAll("\u2029", String.raw`\u2029`);
}
