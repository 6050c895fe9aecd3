import { wordsOf, type Command } from "../command";

/** Returns the words of a command as text, the only form that node-redis sends. It adds no prefix to the keys of such commands. */
export function textOf(command: Command, prefix: string): string[] {
  const prefixed = prefix === "" ? command : { ...command, keys: command.keys.map((key) => prefix + key) };
  return wordsOf(prefixed).map(String);
}
