import { replacedBy } from "../../runtime/attributes/conflicts";
import type { Parser, Source } from "../parser/parser";
import { didYouMean } from "../text/did-you-mean";
import { type Piece, stringLiteral } from "../text/edits";
import { problem, replaceableBy, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import {
  byName,
  readTogether,
  sharingProblems,
  single,
  spanOf,
  type Reading,
  implausible,
  literalOf,
  mayBeExpression,
  OPTION_READERS,
  type Defaults,
  type Expression,
  type Value,
} from "./attributes";
import type { JoinPoint } from "./join-points";
import {
  readExpression,
  readKey,
  readOptionExpression,
  readSignal,
  readWholeKey,
  UNPRINTABLE,
  type KeyPart,
  type WholeKey,
} from "./key";
import { freeNamesOf, identifiersIn, identifiersOf, parameterNames } from "./names";
import { attributeCalled } from "./other-names";
import { returnsValue } from "./returns";
import {
  extractedBodyOf,
  type ExtractedBody,
  duplicateOfParameter,
  declaredTwice,
  hiddenName,
  narrowedParameters,
} from "./body";
import type { LockableFunction } from "./syntax";
import type { Attribute } from "./tag";

type Attributes = ReadonlyMap<string, Attribute>;
type Values = ReadonlyMap<string, Value>;

/** An option whose value is known only at the call. */
interface OptionExpression extends Expression {
  readonly name: string;
}

/** A tag of a function: its lock, or a lock that it needs. */
export interface PlannedTag {
  readonly fn: LockableFunction;
  readonly site: string;
  /** The tag itself, for problems that no attribute causes. */
  readonly at: Span;
  /** The entries of the site's object: `businessFlag: "payOrder"`, ... */
  readonly options: readonly string[];
  readonly key: readonly KeyPart[];
  /** The whole key, instead of a flag and the parts of a key. */
  readonly wholeKey: WholeKey | undefined;
  /** The names that the tag's expressions bring into the code. */
  readonly names: ReadonlySet<string>;
  /** The name of the store, if the tag or a default gives one. */
  readonly store: string | undefined;
}

/** Everything that the weave needs to know about the lock of one function. */
export interface Plan extends PlannedTag {
  /** The condition for locking. Without it, every call is locked. */
  readonly when: Piece | undefined;
  /** The entries of the site's object that are expressions: `lockTime: config.lockTime`, `signal: request.signal`. */
  readonly expressions: readonly OptionExpression[];
  /** The plugin's defaults that apply if such an expression is `undefined`: `lockTime=30s`. */
  readonly projectDefaults: string | undefined;
  readonly onFailure: {
    /** What happens after the wait. `skip` if it may skip the body, because the lock is busy or because the store does not reply. */
    readonly action: "throw" | "skip";
    /**
     * The statement with which `skip` ends. It is a plain `return;` if the function never returns a value and the compiler infers its type.
     */
    readonly returns: "return;" | "return undefined;" | "return void 0;";
    /** The value that a skipped call returns instead, if the tag gives one. */
    readonly value: Piece | undefined;
    readonly failure: Piece | undefined;
    readonly at: Span;
  };
  readonly reentrant: boolean;
  /** For a lock that several may hold: the attribute that says so, and its position. Locks of one `kind` may have the same key. */
  readonly sharing:
    | {
        /** `undefined` if the number of permits is known only at the call. */
        readonly words: string | undefined;
        readonly kind: string;
        readonly at: Span;
      }
    | undefined;
  /** Set if the body becomes a function inside the woven one. */
  readonly extracted: ExtractedBody | undefined;
  /** The parameters that become variables of the body, if the body is not extracted. */
  readonly narrowed: readonly string[];
  /** Returns the type of a parameter, as the file writes it. */
  readonly typeOf: JoinPoint["typeOf"];
  /** The name of the variable or property whose value is the function. */
  readonly named: Span | undefined;
  readonly warnings: readonly Problem[];
}

/** Returns the plan for a tagged function, or all problems of its tag. */
export function plan(source: Source, point: JoinPoint, defaults: Defaults): Plan | Problem[] {
  const { fn, tag, named, typeOf } = point;
  const reading: Reading = { ...source, problems: [], warnings: [] };
  const attributes = byName(tag.attributes, reading);
  const flag = readFlag(point, attributes, reading);
  const wholeKey = readWholeKey(fn, attributes, reading);
  const key = attributes.has("key") ? [] : readKey(fn, attributes, reading);
  const when = readExpression("when", fn, attributes, reading);
  const skipValue = readExpression("skipValue", fn, attributes, reading);
  const signal = readSignal(fn, attributes, reading);
  const values = readOptions(attributes, defaults, reading);
  readTogether(tag, attributes, values, reading);
  reading.problems.push(...sharingProblems(values, attributes));
  reading.problems.push(...functionProblems(source, point, attributes, values));
  const onFailure = readOnFailure(point, skipValue, attributes, values, reading);
  const expressions = expressionsOf(values, signal);
  const code = expressionsIn(key, wholeKey, [when, skipValue, onFailure.failure], expressions);
  // The parser finds the names, because a name may contain an escape: `\u006cock` is `lock`.
  const names = identifiersOf(source, code);
  const reentrant = isReentrant(values);
  const extracted = extractedBodyOf(source, point, reentrant, names);
  if (extracted?.hidden !== undefined) {
    const at = spanOf(attributes.get("reentrant")) ?? tag.word;
    reading.problems.push(problem("redeclaredParameter", at, extracted.hidden));
  }
  if (fn.asteriskToken !== undefined) reading.problems.push(...hiddenNameProblems(source, fn, code));
  if (reading.problems.length > 0) return reading.problems;
  const kind = wholeKey?.kind ?? `${flag} ${literalOf(values.get("each")) === "true" ? 1 : key.length}`;
  return {
    ...plannedTag(point, flag, key, wholeKey, names, values),
    when,
    expressions,
    projectDefaults: defaultsBehind(expressions, defaults),
    onFailure,
    reentrant,
    sharing: sharingOf(attributes, values, kind),
    extracted,
    narrowed: extracted === undefined ? narrowedParameters(source, fn) : [],
    typeOf,
    named,
    warnings: reading.warnings,
  };
}

/** Returns the options that the tag sets, and those of the project's defaults that it does not replace. */
function readOptions(attributes: Attributes, defaults: Defaults, reading: Reading): Values {
  const values = new Map(defaults);
  for (const inherited of replacedBy(({ name }) => attributes.has(name))) values.delete(inherited);
  for (const [name, { items }] of attributes) {
    const value = readOption(name, items, reading);
    if (value !== undefined) values.set(name, value);
  }
  return values;
}

/** Returns the value of an option, or `undefined` if the attribute is no option or if its value has a problem. */
export function readOption(name: string, items: Attribute["items"], reading: Reading): Value | undefined {
  const { ts, file, problems, warnings } = reading;
  const read = OPTION_READERS[name];
  if (read === undefined) return undefined;
  const word = single(name, items, reading);
  if (word === undefined) return undefined;
  if (mayBeExpression(name) && word.text.includes("${")) return readOptionExpression(name, word, reading);
  const value = read(word, (identifier) => identifiersIn(ts, file).has(identifier));
  if ("message" in value) {
    problems.push(value);
    return undefined;
  }
  const doubt = implausible(name, word);
  if (doubt === undefined) return value;
  const { as, other, written } = doubt;
  const warning = problem("implausibleDuration", word, `${name}=${word.text}`, as, `${name}=${other}`);
  warnings.push(replaceableBy(warning, other, written));
  return value;
}

/** Returns the problems of the function: duplicate names, and a lock that a generator cannot have. */
function functionProblems(
  source: Source,
  { fn, tag }: JoinPoint,
  attributes: Attributes,
  values: Values,
): Problem[] {
  const problems: Problem[] = [];
  const isGenerator = fn.asteriskToken !== undefined;
  if (isGenerator && isReentrant(values)) {
    const [what, by] = isReader(values)
      ? (["readingGenerator", "mode"] as const)
      : (["reentrantGenerator", "reentrant"] as const);
    problems.push(problem(what, spanOf(attributes.get(by)) ?? tag.word));
  }
  const duplicate = duplicateOfParameter(source, fn);
  if (duplicate !== undefined) problems.push(problem("duplicateParameter", duplicate, duplicate.text));
  const twice = isGenerator ? declaredTwice(source.ts, fn) : undefined;
  if (twice !== undefined) {
    const at = { start: twice.getStart(source.file), end: twice.end };
    problems.push(problem("duplicateInGenerator", at, twice.text));
  }
  return problems;
}

/** Reports a name in the expressions of a tag that the body hides from them. */
export function hiddenNameProblems(source: Source, fn: LockableFunction, code: string): Problem[] {
  const hidden = hiddenName(source, fn, freeNamesOf(source, code));
  if (hidden === undefined) return [];
  const at = { start: hidden.getStart(source.file), end: hidden.end };
  return [problem("hiddenName", at, hidden.text)];
}

/** Returns what happens after the wait. Reports a `skipValue` on a lock that never skips the body. */
function readOnFailure(
  point: JoinPoint,
  skipValue: Piece | undefined,
  attributes: Attributes,
  values: Values,
  { ts, problems }: Reading,
): Plan["onFailure"] {
  const { word } = point.tag;
  const onFailure = values.get("onFailure");
  const skip = ["onFailure", "onUnreachable"].find((one) => literalOf(values.get(one)) === '"skip"');
  if (skip === undefined && attributes.has("skipValue")) {
    problems.push(problem("skipValueWithoutSkip", spanOf(attributes.get("skipValue")) ?? word));
  }
  return {
    action: skip === undefined ? "throw" : "skip",
    returns: returnsWhenSkipped(ts, point),
    value: skipValue,
    failure: onFailure?.kind === "failure" ? onFailure.piece : undefined,
    at: spanOf(attributes.get(skip ?? "onFailure")) ?? word,
  };
}

function returnsWhenSkipped(ts: Parser, { fn, type }: JoinPoint): Plan["onFailure"]["returns"] {
  if (type === undefined && !returnsValue(ts, fn.body)) return "return;";
  return parameterNames(ts, fn).includes("undefined") ? "return void 0;" : "return undefined;";
}

/** Whether the body runs like a reentrant one. The body of a reader does, so that the runtime can reject a write lock inside it. */
function isReentrant(values: Values): boolean {
  return literalOf(values.get("reentrant")) === "true" || isReader(values);
}

export function isReader(values: Values): boolean {
  return literalOf(values.get("mode")) === '"read"';
}

/** Returns the options that are known only at the call. */
function expressionsOf(values: Values, signal: Piece | undefined): OptionExpression[] {
  const expressions = [...values].flatMap(([name, value]) =>
    value.kind === "expression" ? [{ name, ...value }] : [],
  );
  if (signal === undefined) return expressions;
  return [...expressions, { name: "signal", kind: "expression", pieces: [signal], shown: signal.code }];
}

/** Returns the defaults that the expressions replace, as a tag writes them. */
function defaultsBehind(expressions: readonly OptionExpression[], defaults: Defaults): string | undefined {
  const given = new Set(expressions.map(({ name }) => name));
  const replaced = [...given, ...replacedBy(({ name }) => given.has(name))];
  const texts = replaced.flatMap((name) => {
    const code = literalOf(defaults.get(name));
    return code === undefined ? [] : [`${name}=${String(JSON.parse(code))}`];
  });
  return texts.length === 0 ? undefined : texts.join(" ");
}

/** Returns the expressions of a tag, as the elements of a list. */
export function expressionsIn(
  key: readonly KeyPart[],
  wholeKey: WholeKey | undefined,
  others: readonly (Piece | undefined)[],
  options: readonly OptionExpression[],
): string {
  const textOf = (pieces: readonly Piece[]): string => pieces.map(({ code }) => code).join("");
  const expressions = [
    ...options.map(({ pieces }) => textOf(pieces)),
    ...key.map(({ pieces }) => textOf(pieces)),
    ...(wholeKey === undefined ? [] : [`\`${textOf(wholeKey.pieces)}\``]),
    ...others.flatMap((piece) => piece?.code ?? []),
  ];
  return expressions.join(", ");
}

/** Returns the part of a plan that `@redisLock` and `@needsLock` share. */
export function plannedTag(
  { fn, name, tag }: JoinPoint,
  flag: string,
  key: readonly KeyPart[],
  wholeKey: WholeKey | undefined,
  names: ReadonlySet<string>,
  values: Values,
): PlannedTag {
  const store = literalOf(values.get("store"));
  return {
    fn,
    site: name,
    at: tag.word,
    options: [
      `site: ${stringLiteral(name)}`,
      ...(wholeKey === undefined ? [`businessFlag: ${stringLiteral(flag)}`] : []),
      ...[...values].flatMap(([option, value]) =>
        value.kind === "literal" ? [`${option}: ${value.code}`] : [],
      ),
    ],
    key,
    wholeKey,
    names,
    store: store === undefined ? undefined : String(JSON.parse(store)),
  };
}

function sharingOf(attributes: Attributes, values: Values, kind: string): Plan["sharing"] {
  const isUnknown = values.get("permits")?.kind === "expression";
  const permits = isUnknown ? "?" : (literalOf(values.get("permits")) ?? "1");
  if (!isReader(values) && permits === "1") return undefined;
  const [name, words] = permits === "1" ? ["mode", "mode=read"] : ["permits", `permits=${permits}`];
  const at = spanOf(attributes.get(name));
  return at && { words: isUnknown ? undefined : words, kind, at };
}

/** Reads `businessFlag`. Reports a tag that has neither a flag nor a whole key. */
export function readFlag({ tag, flaw }: JoinPoint, attributes: Attributes, reading: Reading): string {
  const attribute = attributes.get("businessFlag");
  if (attribute === undefined) {
    if (attributes.has("key")) return "";
    // A tag that cannot be parsed, or that misspells the attribute, has a problem already.
    const isMisspelled = tag.attributes.some(
      ({ name: { text } }) =>
        didYouMean(text, ["businessFlag"]) !== "" || attributeCalled(text) === "businessFlag",
    );
    if (flaw === undefined && !isMisspelled)
      reading.problems.push(problem("missingFlag", tag.word, tag.word.text));
    return "";
  }
  const word = single("businessFlag", attribute.items, reading);
  if (word !== undefined && (word.text.trim() === "" || UNPRINTABLE.test(word.text))) {
    reading.problems.push(problem("badFlag", word, word.text));
  }
  return word?.text ?? "";
}
