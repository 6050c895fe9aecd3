const MOST = 200;

/** Returns the beginning of a text of any length. */
export function shortened(text: string, bytes = Buffer.byteLength(text)): string {
  return text.length <= MOST ? text : `${text.slice(0, MOST)}... (${bytes} bytes)`;
}
