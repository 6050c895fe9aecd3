import { loadCrypto } from "../../base/node-crypto";

/** A key with more bytes is stored by its hash, because an index of PostgreSQL has no room for long entries. */
const MOST_BYTES = 1_000;

/** The number of first characters of a long key that the table shows. */
const READABLE_CHARACTERS = 100;

/**
 * Returns the text that stands for a key in the tables. It is the key itself, unless the key contains a NUL character or a backslash, or is
 * very long. Different keys have different texts.
 *
 *   \\    a backslash
 *   \0    a NUL character, which no text of PostgreSQL can contain
 *   \#    begins the text of a long key: its SHA-256, and its first characters
 */
export function storedKey(key: string): string {
  const escaped = key.includes("\\") || key.includes("\0") ? escape(key) : key;
  // A character has at most three bytes for each unit of its length.
  if (escaped.length * 3 <= MOST_BYTES || Buffer.byteLength(escaped) <= MOST_BYTES) return escaped;
  const hash = loadCrypto().createHash("sha256").update(key).digest("hex");
  return `\\#${hash} ${Array.from(escaped).slice(0, READABLE_CHARACTERS).join("")}`;
}

/** Whether the text stands for a long key, of which it contains only the beginning. */
export function isTextOfLongKey(text: string): boolean {
  return /^\\#[0-9a-f]{64} /.test(text);
}

/** Returns the key for its text in the tables. The text of a long key stays as it is, because it does not contain the whole key. */
export function keyOf(stored: string): string {
  return isTextOfLongKey(stored)
    ? stored
    : stored.replaceAll(/\\([\\0])/g, (_, code) => (code === "0" ? "\0" : "\\"));
}

function escape(key: string): string {
  return key.replaceAll("\\", "\\\\").replaceAll("\0", "\\0");
}
