const MOST = 200;

/** The beginning of a text that may be of any length. */
export function shortened(text: string, bytes = Buffer.byteLength(text)): string {
  return text.length <= MOST ? text : `${text.slice(0, MOST)}... (${bytes} bytes)`;
}
