import { formatAttribute, refusedAmong } from "../../runtime/attributes/conflicts";
import {
  ATTRIBUTE_NAMES,
  ATTRIBUTES,
  isAttribute,
  type AttributeName,
  OPTIONS,
} from "../../runtime/attributes/tag-attributes";
import { MS_PER_UNIT, type DurationUnit, LONGEST_DURATION_HOURS } from "../../runtime/base/limits";
import type { Source } from "../parser/parser";
import { nearest, nearestOrAll, suggestion } from "../text/did-you-mean";
import { problem, replaceableBy, type Problem, type ProblemName } from "../text/problems";
import type { Span } from "../text/span";
import { attributeCalled } from "./other-names";
import type { Attribute, Item, Tag, Word } from "./tag";
import type { Choice, Count, NamesOf, OptionRow, Switch, Time } from "../../runtime/attributes/table";
import { inheritedAmong, notOwn } from "../../runtime/base/options";
import type { Piece } from "../text/edits";
import { TYPE_NAME } from "./names";

/** A tag that is being read, and the problems that were found in it. */
export interface Reading extends Source {
  readonly problems: Problem[];
  /** Likely mistakes, which are woven nevertheless. */
  readonly warnings: Problem[];
}

/** Returns the attributes by name. Reports those that are unknown or written twice. */
export function byName(attributes: readonly Attribute[], { problems }: Reading): Map<string, Attribute> {
  const found = new Map<string, Attribute>();
  for (const attribute of attributes) {
    const { text } = attribute.name;
    if (!isAttribute(text)) {
      const other = attributeCalled(text) ?? nearest(text, ATTRIBUTE_NAMES);
      const hint = suggestion(other) || nearestOrAll(text, ATTRIBUTE_NAMES);
      problems.push(replaceableBy(problem("unknownAttribute", attribute.name, text, hint), other));
    } else if (found.has(text)) {
      problems.push(problem("duplicateAttribute", attribute.name, text));
    } else {
      found.set(text, attribute);
    }
  }
  return found;
}

/** Returns the value of an attribute that takes no list. */
export function single(name: string, items: Attribute["items"], { problems }: Reading): Item | undefined {
  const [first, second] = items;
  if (second === undefined) return first;
  problems.push(problem("oneValue", { start: first.start, end: items.at(-1)?.end ?? first.end }, name));
  return undefined;
}

/** Returns the range from the attribute's name to the end of its value. */
export function spanOf(attribute: Attribute | undefined): Span | undefined {
  if (attribute === undefined) return undefined;
  return { start: attribute.name.start, end: attribute.items.at(-1)?.end ?? attribute.name.end };
}

// ---- values ----------------------------------------------------------------------------------------------

/** The values of attributes that a tag does not set. They come from the plugin's options. */
export type Defaults = ReadonlyMap<string, Value>;

export type Value =
  | { readonly kind: "literal"; readonly code: string }
  | { readonly kind: "failure"; readonly piece: Piece }
  | Expression;

/** A value that is known only at the call. */
export interface Expression {
  readonly kind: "expression";
  readonly pieces: readonly Piece[];
  /** The value as the tag writes it: `${config.lockTime}`. */
  readonly shown: string;
}

/** Whether a tag may give the option as an expression: `lockTime="${config.lockTime}"`. */
export function mayBeExpression(name: string): boolean {
  const kind = Object.hasOwn(OPTIONS, name) ? OPTIONS[name as keyof typeof OPTIONS].kind : undefined;
  return kind === "time" || kind === "count";
}

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
  onUnreachable: "badOnUnreachable",
  onLost: "badOnLost",
  release: "badRelease",
  store: "badStore",
  mode: "badMode",
} satisfies Record<NamesOf<typeof OPTIONS, "choice" | "store">, ProblemName>;

function read(name: string, row: OptionRow, word: Word, inScope: InScope): Value | Problem {
  switch (row.kind) {
    case "switch":
      return boolean(word, name, row);
    case "choice":
      return choice(word, name, row, inScope);
    case "count":
      return count(word, name, row);
    case "time":
      return duration(word, name, row);
    default:
      return row.pattern.test(word.text) ? quoted(word) : badWord(word, name, []);
  }
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

function badWord(word: Word, name: string, values: readonly string[]): Problem {
  const meant = nearest(word.text, values);
  const what = BAD_WORD[name as keyof typeof BAD_WORD];
  return replaceableBy(problem(what, word, word.text, suggestion(meant)), meant);
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

function boolean(word: Word, name: string, { or }: Switch): Value | Problem {
  if (word.text === or) return quoted(word);
  return word.text === "true" || word.text === "false"
    ? literal(word.text)
    : problem("badBoolean", word, name, word.text, or ?? "");
}

const DURATION = new RegExp(String.raw`^(\d+(?:\.\d+)?)(${Object.keys(MS_PER_UNIT).join("|")})?$`);

function duration(word: Word, name: string, row: Time): Value | Problem {
  const { unit: bareUnit, from, orForever } = row;
  const [, amount = "", unit = bareUnit] = DURATION.exec(word.text) ?? [];
  if (orForever === true && word.text === "forever") return quoted(word);
  if (bareUnit === undefined && word.text === "0") return literal("0");
  const ms = amount === "" || unit === undefined ? NaN : Number(amount) * MS_PER_UNIT[unit as DurationUnit];
  const longestMs = LONGEST_DURATION_HOURS * MS_PER_UNIT.h;
  if (ms >= from && ms <= longestMs) return literal(JSON.stringify(`${amount}${unit}`));
  const atLeast = from === 0 ? "" : `at least ${from} ms and `;
  const bare = bareUnit === undefined ? "with its unit" : `a bare number is in ${bareUnit}`;
  const others = orForever === true ? ", or `0` or `forever`" : "";
  const expected = `a duration such as \`500ms\`, \`20s\`, or \`2m\` (${bare}), ${atLeast}at most ${LONGEST_DURATION_HOURS} hours${others}`;
  const withUnit = bareUnit === undefined && amount !== "" && unit === undefined ? `${amount}s` : undefined;
  return replaceableBy(problem("badDuration", word, name, word.text, expected), withUnit);
}

function choice(word: Word, name: string, { values, orClass }: Choice, inScope: InScope): Value | Problem {
  if (values.includes(word.text)) return quoted(word);
  return orClass === true ? className(word, name, values, inScope) : badWord(word, name, values);
}

function className(word: Word, name: string, values: readonly string[], inScope: InScope): Value | Problem {
  const isSimilar = nearest(word.text, values) !== undefined;
  // The type checker reports a missing class. But nobody names a class `ignore`, so an unknown name in lower case is not meant as one.
  const isNoClass =
    (/^[\p{Ll}]/u.test(word.text) || isSimilar) && !word.text.includes(".") && !inScope(word.text);
  if (isNoClass || !TYPE_NAME.test(word.text)) return badWord(word, name, values);
  return { kind: "failure", piece: { code: word.text, from: word, exact: true } };
}

/** A number without a unit that makes no sense in the attribute's default unit. */
interface Implausible {
  /** Its meaning, such as `8.3 hours`. */
  readonly as: string;
  /** The value that was probably meant, such as `30000ms`. */
  readonly other: string;
  /** The value with its default unit, such as `30000s`. */
  readonly written: string;
}

/** Returns what a number without a unit means, and what was probably meant, if its default unit makes no sense. */
export function implausible(name: string, { text }: Word): Implausible | undefined {
  if (!/^\d+$/.test(text)) return undefined;
  const amount = Number(text);
  if (name === "lockTime" && amount >= 1_000) {
    return { as: inHours(amount), other: `${text}ms`, written: `${text}s` };
  }
  return name === "waitTime" && amount > 0 && amount < 20
    ? { as: `${text} ms`, other: `${text}s`, written: `${text}ms` }
    : undefined;
}

function inHours(seconds: number): string {
  const [amount, unit] = seconds >= 3_600 ? [seconds / 3_600, "hours"] : [seconds / 60, "minutes"];
  return `${Number(amount.toFixed(1))} ${unit}`;
}

// ---- attributes that do not go together ------------------------------------------------------------------

/**
 * Reports attributes that are valid alone, but not together. Each problem points at an attribute of the tag, or at the tag if the project's
 * defaults cause it.
 */
export function readTogether(
  tag: Tag,
  attributes: ReadonlyMap<string, Attribute>,
  values: ReadonlyMap<string, Value>,
  { problems }: Reading,
): void {
  /** Returns a value as the tag writes it: `20s`, `false`. */
  const textOf = (name: string): string | undefined => literalOf(values.get(name))?.replaceAll('"', "");
  const isGiven = (name: AttributeName): boolean =>
    values.get(name)?.kind === "expression" ||
    (name in OPTION_READERS ? hasEffect(name, textOf(name)) : attributes.has(name));
  const pairs = refusedAmong(
    ({ name, value }) => (value === undefined ? isGiven(name) : textOf(name) === value),
    ({ name }) => attributes.has(name),
  );
  for (const { one, other, because } of pairs) {
    const at = spanOf(attributes.get(one.name)) ?? spanOf(attributes.get(other.name)) ?? tag.word;
    problems.push(problem("refusedPair", at, formatAttribute(one), formatAttribute(other), because));
  }
  const [holdAtMost, lockAtLeast, lockTime] = [
    textOf("holdAtMost"),
    textOf("lockAtLeast"),
    textOf("lockTime"),
  ];
  // A tag without a lock time uses the one of `configure({ defaults })`, which is known only at run time.
  if (holdAtMost !== undefined && lockTime !== undefined && msOf(holdAtMost) < msOf(lockTime)) {
    const at = spanOf(attributes.get("holdAtMost")) ?? spanOf(attributes.get("lockTime")) ?? tag.word;
    problems.push(problem("shorterThanLockTime", at, "holdAtMost", lockTime));
  }
  if (lockAtLeast === undefined || lockTime === undefined || msOf(lockAtLeast) <= msOf(lockTime)) return;
  const at = spanOf(attributes.get("lockAtLeast")) ?? spanOf(attributes.get("lockTime")) ?? tag.word;
  problems.push(problem("longerThanLockTime", at, "lockAtLeast", lockTime));
}

/** Whether the attribute has another value than its default. An expression may have any value. */
function hasEffect(name: AttributeName, value: string | undefined): boolean {
  const row = ATTRIBUTES[name];
  if (value === undefined || !("default" in row)) return value !== undefined;
  return row.kind === "time" ? msOf(value) !== row.default : value !== String(row.default);
}

/** Returns the milliseconds of a duration such as `20s`, or NaN for any other text. */
function msOf(text: string): number {
  const [, amount, unit] = /^([\d.]+)(\D+)$/.exec(text) ?? [];
  return Number(amount) * MS_PER_UNIT[unit as DurationUnit];
}

/** Reports attributes that do not go together on a shared lock. */
export function sharingProblems(
  values: ReadonlyMap<string, Value>,
  attributes: ReadonlyMap<string, Attribute>,
): Problem[] {
  const [mode, permits] = [spanOf(attributes.get("mode")), spanOf(attributes.get("permits"))];
  const problems: Problem[] = [];
  if (mode !== undefined && permits !== undefined) problems.push(problem("modeAndPermits", permits));
  const isBesideOthers =
    literalOf(values.get("mode")) === '"read"' ||
    Number(literalOf(values.get("permits"))) > 1 ||
    values.get("permits")?.kind === "expression";
  const at = spanOf(attributes.get("fencing")) ?? mode ?? permits;
  if (isBesideOthers && at !== undefined && literalOf(values.get("fencing")) === "true") {
    problems.push(problem("fencingBesideOthers", at));
  }
  return problems;
}

// ---- the plugin's defaults -------------------------------------------------------------------------------

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
  const isOwn = ({ name }: { readonly name: string }): boolean => defaults.has(name);
  for (const { one, other, because } of refusedAmong(() => false, isOwn)) {
    const both = `\`${formatAttribute(one)}\` and \`${formatAttribute(other)}\``;
    report(`In the plugin's \`defaults\`: ${both} cannot be combined: ${because}.`);
  }
  return { defaults, problems };
}
