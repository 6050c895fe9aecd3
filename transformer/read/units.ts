const UNITS = [
  ["ms", /^(?:ms|msecs?|millis|milliseconds?)$/i],
  ["s", /^(?:s|secs?|seconds?)$/i],
  ["m", /^(?:m|mins?|minutes?)$/i],
  ["h", /^(?:h|hrs?|hours?)$/i],
] as const;

/** The unit as the tag has it, of one that may be spelt out: `sec`. */
export function unitCalled(word: string): string | undefined {
  return UNITS.find(([, names]) => names.test(word))?.[0];
}
