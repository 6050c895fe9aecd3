const UNITS = [
  ["ms", /^(?:ms|msecs?|millis|milliseconds?)$/i],
  ["s", /^(?:s|secs?|seconds?)$/i],
  ["m", /^(?:m|mins?|minutes?)$/i],
  ["h", /^(?:h|hrs?|hours?)$/i],
] as const;

/** Returns the unit as the tag writes it, for a unit that may be spelled out: `sec`. */
export function unitCalled(word: string): string | undefined {
  return UNITS.find(([, names]) => names.test(word))?.[0];
}
