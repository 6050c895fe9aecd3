import {
  LONGEST_DURATION_HOURS,
  MOST_REPLICAS,
  MOST_PERMITS,
  MOST_RETRY_TIMES,
  MS_PER_UNIT,
  SHORTEST_LOCK_TIME_MS,
  STORE_NAME,
  type DurationUnit,
} from "../../runtime/limits";
import { inheritedAmong, notOwn } from "../../runtime/options";
import { didYouMean, nearestOrAll } from "../text/did-you-mean";
import type { Piece } from "../text/edits";
import { problem, type Problem } from "../text/problems";
import type { OPTION_NAMES } from "./attributes";
import { TYPE_NAME } from "./reading";
import type { Word } from "./tag";

/** The values of attributes that a tag does not set. They come from the plugin's options. */
export type Defaults = ReadonlyMap<string, Value>;

export type Value =
  { readonly kind: "literal"; readonly code: string } | { readonly kind: "failure"; readonly piece: Piece };

type Reader = (word: Word, name: string, inScope: (identifier: string) => boolean) => Value | Problem;

/** The readers of the attributes that become options of the lock. */
export const OPTION_READERS: Record<string, Reader> = {
  lockTime: (word, name) => duration(word, name, "s", SHORTEST_LOCK_TIME_MS),
  retryTimes: (word, name) => count(word, name, MOST_RETRY_TIMES),
  waitTime: (word, name) => duration(word, name, "ms", 0),
  onFailure: (word, _name, inScope) => failureAction(word, inScope),
  onLost: (word) =>
    word.text === "throw" || word.text === "warn"
      ? literal(JSON.stringify(word.text))
      : problem("badOnLost", word, word.text),
  watchdog: boolean,
  lockAtLeast: (word, name) => duration(word, name, "s", 0),
  holdAtMost: (word, name) => duration(word, name, "s", SHORTEST_LOCK_TIME_MS),
  autoUnlock: boolean,
  release: (word) =>
    word.text === "awaited" || word.text === "background"
      ? literal(JSON.stringify(word.text))
      : problem("badRelease", word, word.text),
  reentrant: boolean,
  fencing: boolean,
  store: (word) =>
    STORE_NAME.test(word.text) ? literal(JSON.stringify(word.text)) : problem("badStore", word, word.text),
  replicas: (word, name) => count(word, name, MOST_REPLICAS),
  mode: (word) =>
    word.text === "read" || word.text === "write"
      ? literal(JSON.stringify(word.text))
      : problem("badMode", word, word.text),
  permits: (word) =>
    /^\d+$/.test(word.text) && Number(word.text) >= 1 && Number(word.text) <= MOST_PERMITS
      ? literal(String(Number(word.text)))
      : problem("badPermits", word, word.text, String(MOST_PERMITS)),
  each: boolean,
} satisfies Record<(typeof OPTION_NAMES)[number], Reader>;

/** The attributes without a default. How a lock is shared, and how many keys it has, concerns that lock alone. */
const NO_DEFAULTS = new Set(["mode", "permits", "each"]);

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
  const names = Object.keys(OPTION_READERS).filter((name) => !NO_DEFAULTS.has(name));
  const inherited = inheritedAmong(names, options);
  if (inherited !== undefined) report(`In the plugin's \`defaults\`: ${notOwn(inherited)}.`);
  for (const [name, given] of Object.entries(options)) {
    const read = names.includes(name) ? OPTION_READERS[name] : undefined;
    if (read === undefined) {
      report(`The plugin's \`defaults\` have no option \`${name}\`.${nearestOrAll(name, names)}`);
      continue;
    }
    const value = read({ ...nowhere, text: String(given) }, name, () => true);
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

function count(word: Word, name: string, max: number): Value | Problem {
  return /^\d+$/.test(word.text) && Number(word.text) <= max
    ? literal(String(Number(word.text)))
    : problem("badCount", word, name, word.text, String(max));
}

function boolean(word: Word, name: string): Value | Problem {
  return word.text === "true" || word.text === "false"
    ? literal(word.text)
    : problem("badBoolean", word, name, word.text);
}

const DURATION = new RegExp(String.raw`^(\d+(?:\.\d+)?)(${Object.keys(MS_PER_UNIT).join("|")})?$`);

function duration(word: Word, name: string, bareUnit: DurationUnit, shortestMs: number): Value | Problem {
  const [, amount = "", unit = bareUnit] = DURATION.exec(word.text) ?? [];
  const ms = amount === "" ? NaN : Number(amount) * MS_PER_UNIT[unit as DurationUnit];
  const longestMs = LONGEST_DURATION_HOURS * MS_PER_UNIT.h;
  if (ms >= shortestMs && ms <= longestMs) return literal(JSON.stringify(`${amount}${unit}`));
  const from = shortestMs === 0 ? "" : `at least ${shortestMs} ms and `;
  const expected = `a duration such as \`500ms\`, \`20s\` or \`2m\` (a bare number is in ${bareUnit}), ${from}at most ${LONGEST_DURATION_HOURS} hours`;
  return problem("badDuration", word, name, word.text, expected);
}

const FAILURE_ACTIONS = ["throw", "skip"];

function failureAction(word: Word, inScope: (identifier: string) => boolean): Value | Problem {
  const { text } = word;
  if (FAILURE_ACTIONS.includes(text)) return literal(JSON.stringify(text));
  const hint = didYouMean(text, FAILURE_ACTIONS);
  // The type checker reports a missing class. But nobody names a class `ignore`, so an unknown name in lower case is not meant as one.
  const isNoClass = (/^[\p{Ll}]/u.test(text) || hint !== "") && !text.includes(".") && !inScope(text);
  if (isNoClass || !TYPE_NAME.test(text)) return problem("badOnFailure", word, text, hint);
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
