import type * as TS from "typescript";
import { ATTRIBUTES, type AttributeName } from "../../runtime/attributes/tag-attributes";
import { RESERVED_NAMESPACE } from "../../runtime/base/limits";
import { nearest, suggestion } from "../text/did-you-mean";
import type { Piece } from "../text/edits";
import { problem, replaceableBy, type Problem } from "../text/problems";
import type { LockableFunction } from "./syntax";
import { isExpression } from "./expression";
import { isJavaScript } from "./module-syntax";
import { declaredBy, identifiersIn, namesIn, parameterNames, IDENTIFIER, TYPE_NAME } from "./names";
import { single, type Expression, type Reading } from "./attributes";
import type { Attribute, Item, Word } from "./tag";
import { kindOf, templateIn } from "./template";

/** A part of the key: an expression or, with `jsonField`, a field of the expression's JSON. */
export interface KeyPart {
  readonly pieces: readonly Piece[];
  readonly jsonField?: Word;
  /** The part in messages: `order.id`, or `JSON(order).id` for a field of JSON. */
  readonly shown: string;
}

/** The characters that are invisible in a key. */
export const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

const PATH = new RegExp(String.raw`^(?<root>${IDENTIFIER})(?:\??\.#?${IDENTIFIER}|\[\d+\])*$`, "u");
const FIELD = new RegExp(String.raw`^${IDENTIFIER}(?:\.${IDENTIFIER}|\[\d+\])*$`, "u");

/** Reads the parts of the key that a tag names. */
export function readKey(
  fn: LockableFunction,
  attributes: Map<string, Attribute>,
  reading: Reading,
): KeyPart[] {
  const { problems } = reading;
  const keyName = attributes.get("keyName");
  const keyType = attributes.get("keyType");
  const type = keyType && single("keyType", keyType.items, reading);
  const keyTypes: readonly string[] = ATTRIBUTES.keyType.values;
  if (type !== undefined && !keyTypes.includes(type.text)) {
    const meant = nearest(type.text, keyTypes);
    problems.push(replaceableBy(problem("badKeyType", type, type.text, suggestion(meant)), meant));
    return [];
  }
  if (keyName === undefined) {
    for (const name of ["keyType", "keyClass", "fieldName", "each"]) {
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
  return parts.map((part) => ({ pieces: [part], shown: part.code }));
}

/** Returns one part for each field of the object that `keyName` names. */
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
    const checked = keyClass === undefined ? [object] : checkedAgainst(keyClass, object, reading.file);
    if (type.text === "JSON") {
      return { pieces: checked, jsonField: field, shown: `JSON(${object.code}).${field.text}` };
    }
    const member: Piece = { code: field.text, from: field, exact: true };
    const shown = isPath ? `${object.code}.${field.text}` : `(${object.code}).${field.text}`;
    if (keyClass === undefined && isPath) return { pieces: [object, glue("."), member], shown };
    return { pieces: [glue("("), ...checked, glue(")."), member], shown };
  });
}

/** Returns `order satisfies Order`. In JavaScript, a comment says the same. */
function checkedAgainst(keyClass: Piece, object: Piece, file: TS.SourceFile): Piece[] {
  const glue = (code: string): Piece => ({ code, from: keyClass.from, exact: false });
  return isJavaScript(file)
    ? [glue("/** @satisfies {"), keyClass, glue("} */ ("), object, glue(")")]
    : [object, glue(" satisfies "), keyClass];
}

/** The whole key, as the tag's template writes it. */
export interface WholeKey {
  /** The code between the backticks. */
  readonly pieces: readonly Piece[];
  /** The expressions of the values, as the tag writes them: `order.id`. */
  readonly values: readonly string[];
  /** Identifies keys that differ only in their values. */
  readonly kind: string;
  /** The key in messages: `mutex:{order.id}`. */
  readonly shown: string;
}

export function readWholeKey(
  fn: LockableFunction,
  attributes: Map<string, Attribute>,
  reading: Reading,
): WholeKey | undefined {
  const { problems } = reading;
  const attribute = attributes.get("key");
  const item = attribute && single("key", attribute.items, reading);
  if (item === undefined) return undefined;
  const template = templateIn(reading, item);
  const { texts, values, unclosed } = template;
  if (unclosed !== undefined) problems.push(problem("unclosedValue", unclosed));
  if (item.text.trim() === "" || texts.some(({ text }) => UNPRINTABLE.test(text))) {
    problems.push(problem("badWholeKey", item, item.text));
  }
  const root = PATH.exec(item.text)?.groups?.["root"] ?? "";
  if (parameterNames(reading.ts, fn).includes(root))
    reading.warnings.push(problem("keyIsText", item, item.text));
  if (item.text.startsWith(RESERVED_NAMESPACE)) {
    const { start } = item;
    const end = start + RESERVED_NAMESPACE.length;
    problems.push(problem("reservedKey", { start, end }, RESERVED_NAMESPACE));
  }
  const pieces: Piece[] = [];
  texts.forEach((text, index) => {
    const value = values[index];
    pieces.push({ code: text.text.replaceAll(/[\\`]/g, String.raw`\$&`), from: text, exact: false });
    if (value === undefined) return;
    if (index > 0 && text.text === "") problems.push(problem("adjacentValues", text));
    const glue = (code: string): Piece => ({ code, from: value, exact: false });
    pieces.push(glue("${"), readValue(fn, value, reading), glue("}"));
  });
  const shown = texts.map(({ text }, index) => `${text}${values[index] ? `{${values[index].text}}` : ""}`);
  return { pieces, values: values.map(({ text }) => text), kind: kindOf(template), shown: shown.join("") };
}

/** Reads a path, as in `keyName`, or any other expression. */
function readValue(fn: LockableFunction, value: Word, reading: Reading): Piece {
  if (PATH.test(value.text)) return readPath(fn, { ...value, quoted: false }, reading);
  const code = onOneLine(value.text);
  if (!isExpression(reading, code)) reading.problems.push(problem("badValue", value, value.text));
  return { code, from: value, exact: true };
}

/**
 * Reads a time or a count that is known only at the call: `lockTime="${config.lockTime}"`. Around its value, a time may have text, such as
 * a unit: `lockTime="${config.seconds}s"`.
 */
export function readOptionExpression(name: string, item: Item, reading: Reading): Expression | undefined {
  const problems: Problem[] = [];
  const { texts, values, unclosed } = templateIn(reading, item);
  if (unclosed !== undefined) problems.push(problem("unclosedValue", unclosed));
  const expressions = values.map((value): Piece => {
    const code = onOneLine(value.text);
    if (!isExpression(reading, code)) problems.push(problem("badValue", value, value.text));
    return { code, from: value, exact: true };
  });
  const isBare = values.length === 1 && texts.every(({ text }) => text === "");
  const row = ATTRIBUTES[name as AttributeName];
  if (!isBare && row.kind !== "time") problems.push(problem("textAroundValue", item, name));
  reading.problems.push(...problems);
  if (problems.length > 0) return undefined;
  const glue = (code: string): Piece => ({ code, from: item, exact: false });
  const template = texts.flatMap(({ text }, index) => {
    const value = expressions[index];
    const literal = glue(onOneLine(text).replaceAll(/[\\`]/g, String.raw`\$&`));
    return value === undefined ? [literal] : [literal, glue("${"), value, glue("}")];
  });
  const pieces = isBare ? expressions : [glue("`"), ...template, glue("`")];
  return { kind: "expression", pieces, shown: item.text };
}

/** Reads `when` or `skipValue`: a path or a quoted expression, like a part of the key. */
export function readExpression(
  name: "when" | "skipValue",
  fn: LockableFunction,
  attributes: Map<string, Attribute>,
  reading: Reading,
): Piece | undefined {
  const attribute = attributes.get(name);
  const item = attribute && single(name, attribute.items, reading);
  return item && readPath(fn, item, reading);
}

/** Reads the path to the signal that ends the wait. */
export function readSignal(
  fn: LockableFunction,
  attributes: Map<string, Attribute>,
  reading: Reading,
): Piece | undefined {
  const signal = attributes.get("signal");
  const item = signal && single("signal", signal.items, reading);
  return item && readPath(fn, { ...item, quoted: false }, reading, "");
}

function readClass(attributes: Map<string, Attribute>, reading: Reading): Piece | undefined {
  const keyClass = attributes.get("keyClass");
  const word = keyClass && single("keyClass", keyClass.items, reading);
  if (word === undefined) return undefined;
  if (!TYPE_NAME.test(word.text)) reading.problems.push(problem("badKeyClass", word, word.text));
  return { code: word.text, from: word, exact: true };
}

/** @param fixOfOthers what to do with an expression that is not a path */
function readPath(
  fn: LockableFunction,
  item: Item,
  reading: Reading,
  fixOfOthers = " Fix: put other expressions in quotes.",
): Piece {
  const { ts, problems } = reading;
  const code = onOneLine(item.text);
  const piece: Piece = { code, from: item, exact: true };
  if (item.quoted) {
    if (!isExpression(reading, code)) problems.push(problem("badExpression", item, item.text));
    return piece;
  }
  const root = PATH.exec(item.text)?.groups?.["root"];
  const names = parameterNames(ts, fn);
  if (root === undefined) {
    const meant = pathIn(item.text);
    const hint = suggestion(meant) || fixOfOthers;
    problems.push(replaceableBy(problem("badPath", item, item.text, hint), meant));
  } else if (root !== "this" && !names.includes(root)) {
    const meant = nearest(root, names);
    const outer = isOfModule(reading, root)
      ? ` For a name from outside of the function, use quotes: \`"${code}"\`.`
      : "";
    const hint = suggestion(meant) || parametersHint(names) + outer;
    const at = { start: item.start, end: item.start + root.length };
    problems.push(replaceableBy(problem("unknownParameter", at, root, hint), meant));
  }
  return piece;
}

/** Whether the file imports or declares the name at its top. */
function isOfModule({ ts, file }: Reading, name: string): boolean {
  return file.statements.some((statement) =>
    ts.isImportDeclaration(statement)
      ? identifiersIn(ts, statement).has(name)
      : declaredBy(ts, statement).some((one) => namesIn(ts, one.name).some(({ text }) => text === name)),
  );
}

/** Matches a parameter as other libraries write it in the names of locks: `${id}`, `#id`, `#{id}`, `{id}`, `:id`. */
const MARKED = /^(?:[$#]?\{(.+)\}|[#$:@](.+))$/;

/** Returns the path in a parameter that is written as in other libraries. */
function pathIn(text: string): string | undefined {
  const [, braced, marked = braced ?? ""] = MARKED.exec(text) ?? [];
  return PATH.test(marked) ? marked : undefined;
}

/** Replaces line breaks by spaces. The length does not change, so offsets stay valid. */
function onOneLine(text: string): string {
  return text.replaceAll(/[\n\r\u2028\u2029]/g, " ");
}

function parametersHint(names: readonly string[]): string {
  if (names.length === 0) return " It has none.";
  return ` It has ${names.map((name) => `\`${name}\``).join(", ")}.`;
}
