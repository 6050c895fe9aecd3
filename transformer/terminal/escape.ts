/** Control characters, invisible formatting characters (text direction, joiners, tags), line separators, and lone surrogates. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Escapes characters that would move the cursor, break the line, or be invisible, as in code: `\u001b`. */
export function onOneLine(text: string): string {
  return text.replaceAll(UNSEEN, inCode);
}

/** Escapes text of several lines, such as source code. Keeps line breaks and tabs. */
export function onItsLines(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replaceAll(UNSEEN, (found) => (/[\n\t]/.test(found) ? found : inCode(found)));
}

/** Returns equivalent JSON with these characters escaped. Only its strings can contain them, except for the line breaks between values. */
export function escapeInJson(json: string): string {
  return json.replaceAll(UNSEEN, (found) => (found === "\n" ? found : inCode(found)));
}

function inCode(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
