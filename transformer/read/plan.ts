import type * as TS from "typescript";
import { ATTRIBUTE_NAMES, isAttribute } from "../../runtime/attributes/tag-attributes";
import type { Parser } from "../parser/parser";
import { didYouMean, nearestOrAll } from "../text/did-you-mean";
import type { Piece } from "../text/edits";
import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import { stringLiteral } from "../text/string-literal";
import type { JoinPoint } from "./join-points";
import { readKey, readWhen, readWholeKey, type KeyPart, type WholeKey } from "./key";
import { identifiersIn, identifiersOf } from "./names";
import { implausible, literalOf, OPTION_READERS, type Defaults, type Value } from "./options";
import { attributeCalled } from "./other-names";
import { readTogether } from "./conflicts";
import { single, spanOf, UNPRINTABLE, type Reading } from "./reading";
import { returnsValue } from "./returns";

import { extractedBodyOf, type ExtractedBody } from "./extracted-body";
import { duplicateOfParameter, declaredTwice, narrowedParameters, parameterNames } from "./parameters";
import type { LockableFunction } from "./syntax";
import type { Attribute } from "./tag";

/** Everything that the weave needs to know about one function. */
export interface Plan {
  readonly fn: LockableFunction;
  readonly site: string;
  /** The tag itself, for problems that no attribute causes. */
  readonly at: Span;
  /** The entries of the site's object: `businessFlag: "payOrder"`, ... */
  readonly options: readonly string[];
  readonly key: readonly KeyPart[];
  /** The whole key, instead of a flag and the parts of a key. */
  readonly wholeKey: WholeKey | undefined;
  /** The condition for locking. Without it, every call is locked. */
  readonly when: Piece | undefined;
  /** The names that the tag's expressions bring into the code. */
  readonly names: ReadonlySet<string>;
  readonly onFailure: {
    readonly action: "throw" | "skip";
    /**
     * The statement with which `skip` ends. It is a plain `return;` if the function never returns a value and the compiler infers its type.
     */
    readonly returns: "return;" | "return undefined;" | "return void 0;";
    readonly failure: Piece | undefined;
    readonly at: Span;
  };
  readonly reentrant: boolean;
  /** The name of the store, if the tag or a default gives one. */
  readonly store: string | undefined;
  /** For a lock that several may hold: the attribute that says so, and its position. Locks of one `kind` may have the same key. */
  readonly sharing: { readonly words: string; readonly kind: string; readonly at: Span } | undefined;
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
export function plan(
  ts: Parser,
  file: TS.SourceFile,
  point: JoinPoint,
  defaults: Defaults,
): Plan | Problem[] {
  const { fn, tag, name, named, typeOf } = point;
  const reading: Reading = { ts, file, problems: [], warnings: [] };
  const attributes = byName(tag.attributes, reading);
  const flag = readFlag(point, attributes, reading);
  const wholeKey = readWholeKey(fn, attributes, reading);
  const key = attributes.has("key") ? [] : readKey(fn, attributes, reading);
  const when = readWhen(fn, attributes, reading);
  const values = new Map(defaults);
  for (const [attribute, { items }] of attributes) {
    const read = OPTION_READERS[attribute];
    const word = read && single(attribute, items, reading);
    if (word === undefined) continue;
    const value = read?.(word, (identifier) => identifiersIn(ts, file).has(identifier));
    if (value === undefined) continue;
    if ("message" in value) reading.problems.push(value);
    else values.set(attribute, value);
    const readings = implausible(attribute, word);
    if (readings !== undefined) {
      const [as, other] = readings;
      const written = `${attribute}=${word.text}`;
      reading.warnings.push(problem("implausibleDuration", word, written, as, `${attribute}=${other}`));
    }
  }
  readTogether(tag, attributes, values, reading);
  const isReader = literalOf(values.get("mode")) === '"read"';
  // The runtime must know whether code runs inside a body that reads, because it rejects a write lock there. So such a body runs like a
  // reentrant one.
  const reentrant = literalOf(values.get("reentrant")) === "true" || isReader;
  const isGenerator = fn.asteriskToken !== undefined;
  reading.problems.push(...sharingProblems(values, attributes));
  if (reentrant && isGenerator) {
    const [what, by] = isReader
      ? (["readingGenerator", "mode"] as const)
      : (["reentrantGenerator", "reentrant"] as const);
    reading.problems.push(problem(what, spanOf(attributes.get(by)) ?? tag.word));
  }
  const duplicate = duplicateOfParameter(ts, file, fn);
  if (duplicate !== undefined)
    reading.problems.push(problem("duplicateParameter", duplicate, duplicate.text));
  const twice = isGenerator ? declaredTwice(ts, fn) : undefined;
  if (twice !== undefined) {
    const at = { start: twice.getStart(file), end: twice.end };
    reading.problems.push(problem("duplicateInGenerator", at, twice.text));
  }
  const onFailure = values.get("onFailure");
  const failure = onFailure?.kind === "failure" ? onFailure.piece : undefined;
  const names = namesIn(reading, key, wholeKey, [when, failure]);
  const extracted = isGenerator ? undefined : extractedBodyOf(ts, file, point, reentrant, names);
  if (extracted?.hidden !== undefined) {
    const at = spanOf(attributes.get("reentrant")) ?? tag.word;
    reading.problems.push(problem("redeclaredParameter", at, extracted.hidden));
  }
  if (reading.problems.length > 0) return reading.problems;
  const isSkip = onFailure?.kind === "literal" && onFailure.code === '"skip"';
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
    when,
    names,
    onFailure: {
      action: isSkip ? "skip" : "throw",
      returns: returnsWhenSkipped(ts, point),
      failure,
      at: spanOf(attributes.get("onFailure")) ?? tag.word,
    },
    reentrant,
    store: storeOf(literalOf(values.get("store"))),
    sharing: sharingOf(
      values,
      attributes,
      wholeKey?.kind ?? `${flag} ${literalOf(values.get("each")) === "true" ? 1 : key.length}`,
    ),
    extracted,
    narrowed: extracted === undefined ? narrowedParameters(ts, file, fn) : [],
    typeOf,
    named,
    warnings: reading.warnings,
  };
}

/** Returns the names in the expressions. The parser finds them, because a name may contain an escape: `\u006cock` is `lock`. */
function namesIn(
  { ts, file }: Reading,
  key: readonly KeyPart[],
  wholeKey: WholeKey | undefined,
  others: readonly (Piece | undefined)[],
): ReadonlySet<string> {
  const textOf = (pieces: readonly Piece[]): string => pieces.map(({ code }) => code).join("");
  const expressions = [
    ...key.map(({ pieces }) => textOf(pieces)),
    ...(wholeKey === undefined ? [] : [`\`${textOf(wholeKey.pieces)}\``]),
    ...others.flatMap((piece) => piece?.code ?? []),
  ];
  return identifiersOf(ts, expressions.join(", "), file);
}

function storeOf(code: string | undefined): string | undefined {
  return code === undefined ? undefined : String(JSON.parse(code));
}

function sharingOf(
  values: ReadonlyMap<string, Value>,
  attributes: ReadonlyMap<string, Attribute>,
  kind: string,
): Plan["sharing"] {
  const permits = literalOf(values.get("permits")) ?? "1";
  if (literalOf(values.get("mode")) !== '"read"' && permits === "1") return undefined;
  const [name, words] = permits === "1" ? ["mode", "mode=read"] : ["permits", `permits=${permits}`];
  const at = spanOf(attributes.get(name));
  return at && { words, kind, at };
}

/** Reports attributes that do not go together on a shared lock. */
function sharingProblems(
  values: ReadonlyMap<string, Value>,
  attributes: ReadonlyMap<string, Attribute>,
): Problem[] {
  const [mode, permits] = [spanOf(attributes.get("mode")), spanOf(attributes.get("permits"))];
  const problems: Problem[] = [];
  if (mode !== undefined && permits !== undefined) problems.push(problem("modeAndPermits", permits));
  const isBesideOthers =
    literalOf(values.get("mode")) === '"read"' || Number(literalOf(values.get("permits"))) > 1;
  const at = spanOf(attributes.get("fencing")) ?? mode ?? permits;
  if (isBesideOthers && at !== undefined && literalOf(values.get("fencing")) === "true") {
    problems.push(problem("fencingBesideOthers", at));
  }
  return problems;
}

function returnsWhenSkipped(ts: Parser, { fn, type }: JoinPoint): Plan["onFailure"]["returns"] {
  if (type === undefined && !returnsValue(ts, fn.body)) return "return;";
  return parameterNames(ts, fn).includes("undefined") ? "return void 0;" : "return undefined;";
}

function byName(attributes: readonly Attribute[], { problems }: Reading): Map<string, Attribute> {
  const found = new Map<string, Attribute>();
  for (const attribute of attributes) {
    const { text } = attribute.name;
    if (!isAttribute(text)) {
      const other = attributeCalled(text);
      const hint = other === undefined ? nearestOrAll(text, ATTRIBUTE_NAMES) : ` Did you mean \`${other}\`?`;
      problems.push(problem("unknownAttribute", attribute.name, text, hint));
    } else if (found.has(text)) {
      problems.push(problem("duplicateAttribute", attribute.name, text));
    } else {
      found.set(text, attribute);
    }
  }
  return found;
}

function readFlag({ tag, flaw }: JoinPoint, attributes: Map<string, Attribute>, reading: Reading): string {
  const attribute = attributes.get("businessFlag");
  if (attribute === undefined) {
    if (attributes.has("key")) return "";
    // A tag that cannot be parsed, or that misspells the attribute, has a problem already.
    const isMisspelled = tag.attributes.some(
      ({ name: { text } }) =>
        didYouMean(text, ["businessFlag"]) !== "" || attributeCalled(text) === "businessFlag",
    );
    if (flaw === undefined && !isMisspelled) reading.problems.push(problem("missingFlag", tag.word));
    return "";
  }
  const word = single("businessFlag", attribute.items, reading);
  if (word !== undefined && (word.text.trim() === "" || UNPRINTABLE.test(word.text))) {
    reading.problems.push(problem("badFlag", word, word.text));
  }
  return word?.text ?? "";
}
