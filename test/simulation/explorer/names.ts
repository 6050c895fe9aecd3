/** An id of 32 hex characters as a trace tells it: its process's number, and its own. */
export function shortened(id: string): string {
  return `${Number.parseInt(id.slice(0, 12), 16)}.${Number.parseInt(id.slice(12), 16)}`;
}

/** All ids in a text, so. */
export function withShortIds(text: string): string {
  return text.replaceAll(/\b[0-9a-f]{32}\b/g, shortened);
}
