const MOST = 200;

/** What somebody else wrote may be as long as he likes. */
export function shortened(text: string): string {
  return text.length <= MOST ? text : `${text.slice(0, MOST)}... (${text.length} characters)`;
}

export function isShortened(text: string): boolean {
  return text.length > MOST;
}
