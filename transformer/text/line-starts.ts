/** Returns the offset at which each line begins. Line breaks are those of TypeScript. */
export function lineStarts(text: string): number[] {
  return [
    0,
    ...[...text.matchAll(/\r\n|[\n\r\u2028\u2029]/g)].map(({ 0: breaks, index }) => index + breaks.length),
  ];
}
