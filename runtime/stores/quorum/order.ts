/**
 * Returns the masters in the order in which they serve as the gate of a key. The second one serves if the first is down, and so on.
 * Processes with the same list of masters get the same order.
 */
export function inOrder<Master>(key: string, masters: readonly Master[]): readonly Master[] {
  const first = hash(key) % masters.length;
  return [...masters.slice(first), ...masters.slice(0, first)];
}

/** FNV-1a over UTF-16 code units. */
function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 0;
}
