import type { Choice, Count, NamesOf, OptionRow, Time } from "../../runtime/attributes/table";
import { OPTIONS } from "../../runtime/attributes/tag-attributes";
import { LONGEST_DURATION_HOURS, MS_PER_UNIT, type DurationUnit } from "../../runtime/base/limits";
import { inheritedAmong, notOwn } from "../../runtime/base/options";
import { didYouMean, nearestOrAll } from "../text/did-you-mean";
import type { Piece } from "../text/edits";
import { problem, type Problem, type ProblemName } from "../text/problems";
import { TYPE_NAME } from "./reading";
import type { Word } from "./tag";

/** The values of attributes that a tag does not set. They come from the plugin's options. */
export type Defaults = ReadonlyMap<string, Value>;

export type Value =
  { readonly kind: "literal"; readonly code: string } | { readonly kind: "failure"; readonly piece: Piece };

type InScope = (identifier: string) => boolean;

type Reader = (word: Word, inScope: InScope) => Value | Problem;

const ROWS: readonly (readonly [string, OptionRow])[] = Object.entries(OPTIONS);

/** The readers of the attributes that become options of the lock. */
export const OPTION_READERS: Readonly<Record<string, Reader>> = Object.fromEntries(
  ROWS.map(([name, row]): [string, Reader] => [name, (word, inScope) => read(name, row, word, inScope)]),
);

/** The diagnostics of attributes that allow only some words. Each has its own. */
const BAD_WORD = {
  onFailure: "badOnFailure",
  onLost: "badOnLost",
  release: "badRelease",
  store: "badStore",
  mode: "badMode",
} satisfies Record<NamesOf<typeof OPTIONS, "choice" | "store">, ProblemName>;

function read(name: string, row: OptionRow, word: Word, inScope: InScope): Value | Problem {
  switch (row.kind) {
    case "switch":
      return boolean(word, name);
    case "choice":
      return choice(word, name, row, inScope);
    case "count":
      return count(word, name, row);
    case "time":
      return duration(word, name, row);
    default:
      return row.pattern.test(word.text) ? quoted(word) : badWord(word, name);
  }
}

/** Reads the plugin's `defaults`, which have the names and values of the tag's attributes. */
export function readDefaults(options: unknown): { defaults: Defaults; problems: Problem[] } {
  const defaults = new Map<string, Value>();
  const problems: Problem[] = [];
  const nowhere = { start: 0, end: 0 };
  const report = (message: string): void => void problems.push(problem("badPluginOption", nowhere, message));
  if (typeof options !== "object" || options === null) {
    report("Expected the plugin's `defaults` to be an object.");
    return { defaults, problems };
  }
  const names = ROWS.filter(([, { preset }]) => preset !== "nowhere").map(([name]) => name);
  const inherited = inheritedAmong(names, options);
  if (inherited !== undefined) report(`In the plugin's \`defaults\`: ${notOwn(inherited)}.`);
  for (const [name, given] of Object.entries(options)) {
    const reader = names.includes(name) ? OPTION_READERS[name] : undefined;
    if (reader === undefined) {
      report(`The plugin's \`defaults\` have no option \`${name}\`.${nearestOrAll(name, names)}`);
      continue;
    }
    const value = reader({ ...nowhere, text: String(given) }, () => true);
    if ("message" in value) report(`In the plugin's \`defaults\`: ${value.message}`);
    else if (value.kind === "failure")
      report("In the plugin's `defaults`, `onFailure` can be `throw` or `skip`.");
    else defaults.set(name, value);
  }
  return { defaults, problems };
}

function literal(code: string): Value {
  return { kind: "literal", code };
}

export function literalOf(value: Value | undefined): string | undefined {
  return value?.kind === "literal" ? value.code : undefined;
}

function quoted({ text }: Word): Value {
  return literal(JSON.stringify(text));
}

function badWord(word: Word, name: string, ...words: readonly string[]): Problem {
  return problem(BAD_WORD[name as keyof typeof BAD_WORD], word, word.text, ...words);
}

function count(word: Word, name: string, { from, to }: Count): Value | Problem {
  const number = /^\d+$/.test(word.text) ? Number(word.text) : NaN;
  if (number >= from && number <= to) return literal(String(number));
  return problem(
    name === "permits" ? "badPermits" : "badCount",
    word,
    name,
    word.text,
    String(from),
    String(to),
  );
}

function boolean(word: Word, name: string): Value | Problem {
  return word.text === "true" || word.text === "false"
    ? literal(word.text)
    : problem("badBoolean", word, name, word.text);
}

const DURATION = new RegExp(String.raw`^(\d+(?:\.\d+)?)(${Object.keys(MS_PER_UNIT).join("|")})?$`);

function duration(word: Word, name: string, { unit: bareUnit, from }: Time): Value | Problem {
  const [, amount = "", unit = bareUnit] = DURATION.exec(word.text) ?? [];
  const ms = amount === "" ? NaN : Number(amount) * MS_PER_UNIT[unit as DurationUnit];
  const longestMs = LONGEST_DURATION_HOURS * MS_PER_UNIT.h;
  if (ms >= from && ms <= longestMs) return literal(JSON.stringify(`${amount}${unit}`));
  const atLeast = from === 0 ? "" : `at least ${from} ms and `;
  const expected = `a duration such as \`500ms\`, \`20s\`, or \`2m\` (a bare number is in ${bareUnit}), ${atLeast}at most ${LONGEST_DURATION_HOURS} hours`;
  return problem("badDuration", word, name, word.text, expected);
}

function choice(word: Word, name: string, { values, orClass }: Choice, inScope: InScope): Value | Problem {
  if (values.includes(word.text)) return quoted(word);
  return orClass === true ? className(word, name, values, inScope) : badWord(word, name);
}

function className(word: Word, name: string, values: readonly string[], inScope: InScope): Value | Problem {
  const hint = didYouMean(word.text, values);
  // The type checker reports a missing class. But nobody names a class `ignore`, so an unknown name in lower case is not meant as one.
  const isNoClass =
    (/^[\p{Ll}]/u.test(word.text) || hint !== "") && !word.text.includes(".") && !inScope(word.text);
  if (isNoClass || !TYPE_NAME.test(word.text)) return badWord(word, name, hint);
  return { kind: "failure", piece: { code: word.text, from: word, exact: true } };
}

/** Returns what a bare number means, and what was probably meant, if its own unit makes no sense. */
export function implausible(name: string, { text }: Word): readonly [string, string] | undefined {
  if (!/^\d+$/.test(text)) return undefined;
  const amount = Number(text);
  if (name === "lockTime" && amount >= 1_000) return [inHours(amount), `${text}ms`];
  return name === "waitTime" && amount > 0 && amount < 20 ? [`${text} ms`, `${text}s`] : undefined;
}

function inHours(seconds: number): string {
  const [amount, unit] = seconds >= 3_600 ? [seconds / 3_600, "hours"] : [seconds / 60, "minutes"];
  return `${Number(amount.toFixed(1))} ${unit}`;
}
