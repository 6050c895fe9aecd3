/** A character of a key, as the tables store it: see `storedKey`. */
const CHARACTER = String.raw`(?:\\[\\0#]|[^\\])`;
const BACKSLASH = String.raw`\\\\`;

/** A long key is stored as its hash and its first characters. */
const HASH = String.raw`(?:\\#[0-9a-f]{64} )?`;

/** A part of a pattern of `SCAN`: an escaped character, a set of characters, or another character. */
const PART = /\\([^])|\[(\^?)((?:\\[^]|[^\]\\])+)\]|([^])/gu;
const IN_SET = /\\([^])|([^])/gu;

/**
 * Returns the regular expression of PostgreSQL that matches the same keys as a pattern of `SCAN` in Redis: `*` matches any text, `?` a character,
 * `[ab]` one of these, and `[^ab]` another one. A backslash escapes the next character.
 */
export function patternOf(match: string): string {
  const parts = match.replace(PART, (_, escaped?: string, not = "", set?: string, other = "") => {
    if (set !== undefined) return `[${not}${setOf(set)}]`;
    if (escaped === undefined && other === "*") return `${CHARACTER}*`;
    if (escaped === undefined && other === "?") return CHARACTER;
    const character = escaped ?? other;
    return character === "\\" ? BACKSLASH : literal(character);
  });
  return `^${HASH}${parts}$`;
}

function setOf(set: string): string {
  return set.replace(IN_SET, (_, escaped?: string, other = "") =>
    other === "-" ? "-" : literal(escaped ?? other),
  );
}

/** Escapes punctuation. A letter with a backslash would have another meaning. */
function literal(character: string): string {
  return /[\w\u0080-\u{10FFFF}]/u.test(character) ? character : `\\${character}`;
}
