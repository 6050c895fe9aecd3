/**
 * The masters in the order in which they are the gate of a key: the second where the first is dead, and so on. All
 * processes with the same list of masters come to the same order.
 */
export function inOrder<Master>(key: string, masters: readonly Master[]): readonly Master[] {
  const first = hash(key) % masters.length;
  return [...masters.slice(first), ...masters.slice(0, first)];
}

/** FNV-1a over the units of UTF-16. */
function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 0;
}
