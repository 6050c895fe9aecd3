/** Controls, formats that nobody sees (directions of text, joiners, tags), separators of lines, and halves of characters. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Escapes what would move the cursor, break the line, or not be seen, as in code: `\u001b`. */
export function onOneLine(text: string): string {
  return text.replaceAll(UNSEEN, inCode);
}

/** The same for text of several lines, such as source code. Line breaks and tabs stay. */
export function onItsLines(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replaceAll(UNSEEN, (found) => (/[\n\t]/.test(found) ? found : inCode(found)));
}

/** JSON that says the same. Its strings hold whatever is escaped here, and nothing else does. */
export function inJson(json: string): string {
  return json.replaceAll(UNSEEN, (found) => (found === "\n" ? found : inCode(found)));
}

function inCode(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
