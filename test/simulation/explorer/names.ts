/** Shortens an ID of 32 hex characters for a trace, to the number of its process and its own number. */
export function shortened(id: string): string {
  return `${Number.parseInt(id.slice(0, 12), 16)}.${Number.parseInt(id.slice(12), 16)}`;
}

/** Shortens all IDs in a text. */
export function withShortIds(text: string): string {
  return text.replaceAll(/\b[0-9a-f]{32}\b/g, shortened);
}
