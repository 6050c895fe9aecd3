import { wordsOf, type Command } from "../command";
import { markingErrors } from "./scripts";

/** Returns the words of a command as text, the only form that GLIDE sends. */
export function textOf(command: Command): string[] {
  const { script } = command;
  return wordsOf(script === undefined ? command : { ...command, script: markingErrors(script) }).map(String);
}
