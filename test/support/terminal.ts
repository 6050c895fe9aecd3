/**
 * Returns the arguments of `script` (of util-linux), which runs a command in its own terminal. It prints what the terminal
 * shows, and exits with the command's code.
 */
export function ofScript(command: readonly string[]): string[] {
  return ["--quiet", "--return", "--command", command.map(quoted).join(" "), "/dev/null"];
}

/** Quotes a word for a shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
