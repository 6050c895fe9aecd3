/**
 * The arguments of `script` (of util-linux), which runs a command in a terminal of its own. Its output is what the terminal
 * shows, and it ends as the command does.
 */
export function ofScript(command: readonly string[]): string[] {
  return ["--quiet", "--return", "--command", command.map(quoted).join(" "), "/dev/null"];
}

/** For a shell, as one word. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
