import type { Mutant } from "./mutants";

const OTHER_WORD: ReadonlyMap<string, string> = new Map([
  ["==", "~="],
  ["~=", "=="],
  ["<=", "<"],
  [">=", ">"],
  [" < ", " <= "],
  [" > ", " >= "],
  [" + ", " - "],
  [" - ", " + "],
  [" * ", " / "],
  [" and ", " or "],
  [" or ", " and "],
  ["not ", ""],
  ["true", "false"],
  ["false", "true"],
]);

const WORD = /==|~=|<=|>=| < | > | \+ | - | \* | and | or |\bnot |\btrue\b|\bfalse\b/g;
const CONDITION = /(?<=\b(?:if|elseif) ).+(?= then\b)/g;
const NUMBER = /(?<![\w.%"])\d+(?![\w.])/g;

/** An option of a command, and the value that follows it. */
const OPTION = /, "(?:NX|GET|WITHSCORES|LIMIT|PX)"(?:, (?:[\w[\]]+))?/g;

/** A call or an assignment on a line of its own. */
const STATEMENT = /^ *(?!local |return |if |for |while |end\b|else)[\w.[\]#+ ]+(?:\(.*\)|= .+)$/gm;

/** Returns the small changes that are possible in the Lua script from `start` to `end`. */
export function luaMutantsOf(text: string, start: number, end: number): Mutant[] {
  const script = text.slice(start, end).replaceAll(/--.*$/gm, (comment) => " ".repeat(comment.length));
  const found = (pattern: RegExp, replacementsOf: (found: string) => readonly string[]): Mutant[] =>
    [...script.matchAll(pattern)].flatMap(({ 0: words, index }) =>
      replacementsOf(words).map((replacement) => ({
        start: start + index,
        end: start + index + words.length,
        replacement,
      })),
    );
  return [
    ...found(WORD, (word) => [OTHER_WORD.get(word) ?? word]),
    ...found(CONDITION, () => ["true", "false"]),
    ...found(NUMBER, (number) => [String(Number(number) + 1)]),
    ...found(OPTION, () => [""]),
    ...found(STATEMENT, () => [""]),
  ];
}
