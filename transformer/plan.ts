import type * as TS from "typescript";
import { didYouMean, problem, type Problem, type Span } from "./diagnostics";
import type { JoinPoint, LockableFunction } from "./join-points";
import { returnsUnderTry } from "./returns";
import { stringLiteral } from "./string-literal";
import type { Attribute, Item, Word } from "./tag";

/** Code to be woven. `from` is the text of the tag that it stands for; `exact` when it is that very text. */
export interface Piece {
  readonly code: string;
  readonly from: Span;
  readonly exact: boolean;
}

/** One part of the key: an expression, or with `jsonField` that field of the expression's JSON. */
export interface KeyPart {
  readonly pieces: readonly Piece[];
  readonly jsonField?: Word;
}

/** All that is to be known to weave one function. */
export interface Plan {
  readonly fn: LockableFunction;
  readonly site: string;
  /** The tag itself: where it is to be reported what no attribute is to blame for. */
  readonly at: Span;
  /** The entries of the site's object: `businessFlag: "payOrder"`, ... */
  readonly options: readonly string[];
  readonly key: readonly KeyPart[];
  readonly onFailure: {
    readonly action: "throw" | "skip";
    readonly failure: Piece | undefined;
    readonly at: Span;
  };
  readonly reentrant: boolean;
  /** The body becomes an async function inside. */
  readonly isBodyApart: boolean;
}

/** Attributes for all tags of a project that do not say otherwise; from the plugin's options. */
export type Defaults = ReadonlyMap<string, Value>;

type Value =
  { readonly kind: "literal"; readonly code: string } | { readonly kind: "failure"; readonly piece: Piece };

interface Reading {
  readonly problems: Problem[];
  readonly ts: typeof TS;
}

/** The attributes that become entries of the site's object as they are, and how to read each. */
const OPTION_READERS: Record<string, (word: Word, name: string) => Value | Problem> = {
  lockTime: (word, name) => duration(word, name, "s", 100),
  retryTimes: (word, name) =>
    /^\d{1,7}$/.test(word.text) && Number(word.text) <= 1_000_000
      ? literal(String(Number(word.text)))
      : problem("badCount", word, name, word.text),
  waitTime: (word, name) => duration(word, name, "ms", 0),
  onFailure: (word) => failureAction(word),
  watchdog: boolean,
  autoUnlock: boolean,
  reentrant: boolean,
  fencing: boolean,
};

const KEY_ATTRIBUTES = ["businessFlag", "keyName", "keyType", "keyClass", "fieldName"];
const ATTRIBUTES = [...KEY_ATTRIBUTES, ...Object.keys(OPTION_READERS)];

/** The plan for a tagged function, or all that is wrong with its tag. */
export function plan(ts: typeof TS, { fn, tag, name }: JoinPoint, defaults: Defaults): Plan | Problem[] {
  const reading: Reading = { ts, problems: [] };
  const attributes = byName(tag.attributes, reading);
  const flag = readFlag(tag.word, attributes, reading);
  const key = readKey(fn, attributes, reading);
  const values = new Map(defaults);
  for (const [attribute, { items }] of attributes) {
    const read = OPTION_READERS[attribute];
    const word = read && single(attribute, items, reading);
    if (word === undefined) continue;
    const value = read?.(word, attribute);
    if (value === undefined) continue;
    if ("message" in value) reading.problems.push(value);
    else values.set(attribute, value);
  }
  const reentrant = literalOf(values.get("reentrant")) === "true";
  const isGenerator = fn.asteriskToken !== undefined;
  const isBodyApart = reentrant || (!isGenerator && ts.isBlock(fn.body) && returnsUnderTry(ts, fn.body));
  if (reentrant && isGenerator) {
    reading.problems.push(problem("reentrantGenerator", spanOf(attributes.get("reentrant")) ?? tag.word));
  }
  const redeclared = isBodyApart ? redeclaredParameter(ts, fn) : undefined;
  if (redeclared !== undefined) {
    const at = spanOf(attributes.get("reentrant")) ?? tag.word;
    reading.problems.push(problem("redeclaredParameter", at, redeclared));
  }
  if (reading.problems.length > 0) return reading.problems;
  const onFailure = values.get("onFailure");
  const failure = onFailure?.kind === "failure" ? onFailure.piece : undefined;
  const isSkip = onFailure?.kind === "literal" && onFailure.code === '"skip"';
  return {
    fn,
    site: name,
    at: tag.word,
    options: [
      `site: ${stringLiteral(name)}`,
      `businessFlag: ${stringLiteral(flag)}`,
      ...[...values].flatMap(([option, value]) =>
        value.kind === "literal" ? [`${option}: ${value.code}`] : [],
      ),
    ],
    key,
    onFailure: {
      action: isSkip ? "skip" : "throw",
      failure,
      at: spanOf(attributes.get("onFailure")) ?? tag.word,
    },
    reentrant,
    isBodyApart,
  };
}

/** Reads the plugin's `defaults`, in the words of the tag. */
export function readDefaults(options: unknown): { defaults: Defaults; problems: Problem[] } {
  const defaults = new Map<string, Value>();
  const problems: Problem[] = [];
  const nowhere = { start: 0, end: 0 };
  const complain = (message: string): void =>
    void problems.push(problem("badPluginOption", nowhere, message));
  if (typeof options !== "object" || options === null) {
    complain("Expected the plugin's `defaults` to be an object.");
    return { defaults, problems };
  }
  for (const [name, given] of Object.entries(options)) {
    const read = Object.hasOwn(OPTION_READERS, name) ? OPTION_READERS[name] : undefined;
    if (read === undefined) {
      complain(
        `The plugin's \`defaults\` know no \`${name}\`.${didYouMean(name, Object.keys(OPTION_READERS))}`,
      );
      continue;
    }
    const value = read({ ...nowhere, text: String(given) }, name);
    if ("message" in value) complain(`In the plugin's \`defaults\`: ${value.message}`);
    else if (value.kind === "failure")
      complain("The plugin's `defaults` take `throw` or `skip` for `onFailure`.");
    else defaults.set(name, value);
  }
  return { defaults, problems };
}

function byName(attributes: readonly Attribute[], { problems }: Reading): Map<string, Attribute> {
  const found = new Map<string, Attribute>();
  for (const attribute of attributes) {
    const { text } = attribute.name;
    if (!ATTRIBUTES.includes(text)) {
      problems.push(problem("unknownAttribute", attribute.name, text, didYouMean(text, ATTRIBUTES)));
    } else if (found.has(text)) {
      problems.push(problem("duplicateAttribute", attribute.name, text));
    } else {
      found.set(text, attribute);
    }
  }
  return found;
}

function single(name: string, items: Attribute["items"], { problems }: Reading): Item | undefined {
  const [first, second] = items;
  if (second === undefined) return first;
  problems.push(problem("oneValue", { start: first.start, end: items.at(-1)?.end ?? first.end }, name));
  return undefined;
}

function readFlag(tag: Span, attributes: Map<string, Attribute>, reading: Reading): string {
  const attribute = attributes.get("businessFlag");
  if (attribute === undefined) {
    reading.problems.push(problem("missingFlag", tag));
    return "";
  }
  const word = single("businessFlag", attribute.items, reading);
  if (word !== undefined && (word.text.trim() === "" || /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(word.text))) {
    reading.problems.push(problem("badFlag", word, word.text));
  }
  return word?.text ?? "";
}

// ---- option values --------------------------------------------------------------------------------------

function literal(code: string): Value {
  return { kind: "literal", code };
}

function literalOf(value: Value | undefined): string | undefined {
  return value?.kind === "literal" ? value.code : undefined;
}

function boolean(word: Word, name: string): Value | Problem {
  return word.text === "true" || word.text === "false"
    ? literal(word.text)
    : problem("badBoolean", word, name, word.text);
}

const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

function duration(word: Word, name: string, bareUnit: string, shortestMs: number): Value | Problem {
  const [, amount = "", unit = bareUnit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(word.text) ?? [];
  const ms = amount === "" ? NaN : Number(amount) * (MS_PER_UNIT[unit] ?? NaN);
  if (ms >= shortestMs && ms <= 24 * 3_600_000) return literal(JSON.stringify(`${amount}${unit}`));
  const from = shortestMs === 0 ? "" : `at least ${shortestMs} ms and `;
  const expected = `a duration such as \`500ms\`, \`20s\` or \`2m\` (a bare number is in ${bareUnit}), ${from}at most 24 hours`;
  return problem("badDuration", word, name, word.text, expected);
}

function failureAction(word: Word): Value | Problem {
  if (word.text === "throw" || word.text === "skip") return literal(JSON.stringify(word.text));
  if (!TYPE_NAME.test(word.text)) {
    return problem("badOnFailure", word, word.text);
  }
  return { kind: "failure", piece: { code: word.text, from: word, exact: true } };
}

// ---- the key --------------------------------------------------------------------------------------------

const IDENTIFIER = String.raw`[\p{ID_Start}$_][\p{ID_Continue}$]*`;
const PATH = new RegExp(String.raw`^(?<root>${IDENTIFIER})(?:\??\.#?${IDENTIFIER}|\[\d+\])*$`, "u");
const FIELD = new RegExp(String.raw`^${IDENTIFIER}(?:\.${IDENTIFIER}|\[\d+\])*$`, "u");
const TYPE_NAME = new RegExp(String.raw`^${IDENTIFIER}(?:\.${IDENTIFIER})*$`, "u");

function readKey(fn: LockableFunction, attributes: Map<string, Attribute>, reading: Reading): KeyPart[] {
  const { problems } = reading;
  const keyName = attributes.get("keyName");
  const keyType = attributes.get("keyType");
  const type = keyType && single("keyType", keyType.items, reading);
  if (type !== undefined && !["VALUE", "CLASS", "JSON"].includes(type.text)) {
    problems.push(problem("badKeyType", type, type.text, didYouMean(type.text, ["VALUE", "CLASS", "JSON"])));
  }
  if (keyName === undefined) {
    for (const name of ["keyType", "keyClass", "fieldName"]) {
      const attribute = attributes.get(name);
      if (attribute !== undefined) problems.push(problem("needsKeyName", attribute.name, name));
    }
    return [];
  }
  const parts = keyName.items.map((item) => readPath(fn, item, reading));
  return type?.text === "CLASS" || type?.text === "JSON"
    ? readFields(type, keyName, parts, attributes, reading)
    : readValues(parts, attributes, reading);
}

function readValues(parts: Piece[], attributes: Map<string, Attribute>, { problems }: Reading): KeyPart[] {
  const fieldName = attributes.get("fieldName");
  if (fieldName !== undefined) problems.push(problem("fieldNeedsType", fieldName.name));
  const keyClass = attributes.get("keyClass");
  if (keyClass !== undefined) problems.push(problem("classNeedsType", keyClass.name));
  return parts.map((part) => ({ pieces: [part] }));
}

/** One part for each field, of the one object that `keyName` names. */
function readFields(
  type: Item,
  keyName: Attribute,
  parts: Piece[],
  attributes: Map<string, Attribute>,
  reading: Reading,
): KeyPart[] {
  const { problems } = reading;
  const [object, another] = parts;
  if (object === undefined) return [];
  if (another !== undefined) problems.push(problem("oneKeyName", another.from, type.text));
  const fieldName = attributes.get("fieldName");
  if (fieldName === undefined) {
    problems.push(problem("typeNeedsField", type, type.text));
    return [];
  }
  const keyClass = readClass(attributes, reading);
  const isPath = !keyName.items[0].quoted;
  return fieldName.items.map((field) => {
    if (!FIELD.test(field.text)) problems.push(problem("badField", field, field.text));
    const glue = (code: string): Piece => ({ code, from: field, exact: false });
    const checked =
      keyClass === undefined
        ? [object]
        : [object, { code: " satisfies ", from: keyClass.from, exact: false }, keyClass];
    if (type.text === "JSON") return { pieces: checked, jsonField: field };
    const member: Piece = { code: field.text, from: field, exact: true };
    if (keyClass === undefined && isPath) return { pieces: [object, glue("."), member] };
    return { pieces: [glue("("), ...checked, glue(")."), member] };
  });
}

function readClass(attributes: Map<string, Attribute>, reading: Reading): Piece | undefined {
  const keyClass = attributes.get("keyClass");
  const word = keyClass && single("keyClass", keyClass.items, reading);
  if (word === undefined) return undefined;
  if (!TYPE_NAME.test(word.text)) reading.problems.push(problem("badKeyClass", word, word.text));
  return { code: word.text, from: word, exact: true };
}

function readPath(fn: LockableFunction, item: Item, { ts, problems }: Reading): Piece {
  const code = item.text.replaceAll(/[\n\r\u2028\u2029]/g, " "); // Of the same length: the offsets hold.
  const piece: Piece = { code, from: item, exact: true };
  if (item.quoted) {
    if (!isExpression(ts, code)) problems.push(problem("badExpression", item, item.text));
    return piece;
  }
  const root = PATH.exec(item.text)?.groups?.["root"];
  const names = parameterNames(ts, fn);
  if (root === undefined) problems.push(problem("badPath", item, item.text));
  else if (root !== "this" && !names.includes(root)) {
    const hint = didYouMean(root, names) || parametersHint(names);
    problems.push(
      problem("unknownParameter", { start: item.start, end: item.start + root.length }, root, hint),
    );
  }
  return piece;
}

function parametersHint(names: readonly string[]): string {
  if (names.length === 0) return " It has none.";
  return ` It has ${names.map((name) => `\`${name}\``).join(", ")}.`;
}

function parameterNames(ts: typeof TS, fn: LockableFunction): string[] {
  return fn.parameters.flatMap(({ name }) => boundNames(ts, name));
}

function boundNames(ts: typeof TS, name: TS.BindingName): string[] {
  if (ts.isIdentifier(name)) return name.text === "this" ? [] : [name.text];
  return name.elements.flatMap((element) =>
    ts.isBindingElement(element) ? boundNames(ts, element.name) : [],
  );
}

/** A parameter that the body declares once more with `var`. */
function redeclaredParameter(ts: typeof TS, fn: LockableFunction): string | undefined {
  const parameters = parameterNames(ts, fn);
  const visit = (node: TS.Node): string | undefined => {
    if (ts.isFunctionLike(node) || ts.isClassStaticBlockDeclaration(node)) return undefined;
    const isVar = ts.isVariableDeclarationList(node) && (node.flags & ts.NodeFlags.BlockScoped) === 0;
    const names = isVar ? node.declarations.flatMap(({ name }) => boundNames(ts, name)) : [];
    return names.find((name) => parameters.includes(name)) ?? ts.forEachChild(node, visit);
  };
  return ts.isBlock(fn.body) ? visit(fn.body) : undefined;
}

/** Whether the text is one expression that cannot reach out of its place, not even by a comment. */
function isExpression(ts: typeof TS, text: string): boolean {
  const file = ts.createSourceFile("key.ts", `async () => [${text}];`, ts.ScriptTarget.Latest);
  const { parseDiagnostics = [] } = file as { parseDiagnostics?: readonly unknown[] };
  const [statement, anotherStatement] = file.statements;
  if (parseDiagnostics.length > 0 || anotherStatement !== undefined) return false;
  const arrow =
    statement !== undefined && ts.isExpressionStatement(statement) ? statement.expression : undefined;
  if (arrow === undefined || !ts.isArrowFunction(arrow) || !ts.isArrayLiteralExpression(arrow.body))
    return false;
  const { elements } = arrow.body;
  const [element, another] = elements;
  if (element === undefined || another !== undefined || elements.hasTrailingComma) return false;
  return !ts.isSpreadElement(element) && !ts.isOmittedExpression(element);
}

function spanOf(attribute: Attribute | undefined): Span | undefined {
  if (attribute === undefined) return undefined;
  return { start: attribute.name.start, end: attribute.items.at(-1)?.end ?? attribute.name.end };
}
