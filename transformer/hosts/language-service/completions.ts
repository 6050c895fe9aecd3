import type * as TS from "typescript";
import { ABOUT_ATTRIBUTES } from "../../../runtime/attributes/documentation";
import { ATTRIBUTE_NAMES, ATTRIBUTES, isAttribute } from "../../../runtime/attributes/tag-attributes";
import { MS_PER_UNIT } from "../../../runtime/base/limits";
import { NEED_ATTRIBUTES } from "../../read/need";
import { NEED_NAME, TAG_NAME } from "../../read/spelling";
import type { AnyFunction } from "../../read/syntax";
import type { Tag } from "../../read/tag";
import { aboutAttribute } from "./attributes";
import { fieldsOf, parametersOf, stepsOf, typeOfField, typeOfPath, typeOfThis } from "./paths";
import type { OpenProject } from "./project";
import { errorClassesIn, typesIn } from "./scope";
import { editableTagsIn } from "./tag-at";

/** Returns the completions at the offset: those in a tag, or the name of the tag. */
export function completionsAt(
  ts: typeof TS,
  project: OpenProject,
  fileName: string,
  offset: number,
): TS.CompletionEntry[] {
  const file = project.program.getSourceFile(fileName);
  if (file === undefined) return [];
  for (const { tag, fn, writtenUpTo } of editableTagsIn({ ts, file })) {
    const written = writtenUpTo(offset);
    if (written !== undefined) {
      const rest = /^[\p{ID_Continue}$]*/u.exec(file.text.slice(offset))?.[0].length ?? 0;
      return suggestionsFor(ts, project.program.getTypeChecker(), { tag, fn, written }).map(
        ({ name, insertText = name, kind, typed }, index) => ({
          name,
          insertText,
          kind,
          kindModifiers: "",
          sortText: String(index).padStart(4, "0"),
          replacementSpan: { start: offset - typed.length, length: typed.length + rest },
        }),
      );
    }
  }
  return tagNameCompletions(ts, file.text, offset);
}

/** Returns the details of an entry of {@link completionsAt}. */
export function completionDetails(
  ts: typeof TS,
  project: OpenProject,
  fileName: string,
  offset: number,
  name: string,
): TS.CompletionEntryDetails | undefined {
  const entry = completionsAt(ts, project, fileName, offset).find((one) => one.name === name);
  if (entry === undefined) return undefined;
  const documentation = aboutAttribute(name, project.defaults);
  return {
    name,
    kind: entry.kind,
    kindModifiers: "",
    displayParts: [{ kind: "text", text: name }],
    ...(entry.insertText === `${name}=` && { documentation: [{ kind: "text", text: documentation }] }),
  };
}

/** Completes the names of our tags, next to those of JSDoc. */
function tagNameCompletions(ts: typeof TS, text: string, offset: number): TS.CompletionEntry[] {
  const line = text.slice(0, offset).split("\n").at(-1) ?? "";
  const typed = /^\s*(?:\/\*)?\*+[ \t]*@(\w*)$/.exec(line)?.[1];
  if (typed === undefined) return [];
  return [TAG_NAME, NEED_NAME].map((name, index) => ({
    name,
    insertText: `${name} businessFlag=`,
    kind: ts.ScriptElementKind.keyword,
    kindModifiers: "",
    sortText: String(index),
    replacementSpan: { start: offset - typed.length, length: typed.length },
  }));
}

interface Suggestion {
  readonly name: string;
  readonly insertText?: string;
  readonly kind: TS.ScriptElementKind;
  /** The part that is already typed, which the suggestion replaces. */
  readonly typed: string;
}

interface Place {
  readonly tag: Tag;
  readonly fn: AnyFunction | undefined;
  /** The text between the tag's name and the offset. */
  readonly written: string;
}

/** Matches from the name of an attribute to the last, unfinished item of its value. */
const VALUE =
  /(?<=^|\s)(?<name>[A-Za-z_$][\w$-]*)\s*=\s*(?:(?:[^\s,"'`=]+|"[^"]*"|'[^']*'|`[^`]*`)\s*,\s*)*(?<item>[^\s,"'`=]*|"[^"]*|'[^']*|`[^`]*)$/;
const NAME = /(?<=^|\s)(?:[A-Za-z_$][\w$-]*)?$/;

function suggestionsFor(ts: typeof TS, checker: TS.TypeChecker, place: Place): Suggestion[] {
  const { name, item = "" } = VALUE.exec(place.written)?.groups ?? {};
  if (name !== undefined) return valuesFor(ts, checker, place, name, item);
  const [typed] = NAME.exec(place.written) ?? [];
  if (typed === undefined) return [];
  const given = new Set(place.tag.attributes.map((attribute) => attribute.name.text));
  const isAllowed = (attribute: string): boolean =>
    place.tag.name === TAG_NAME || NEED_ATTRIBUTES.has(attribute);
  return ATTRIBUTE_NAMES.filter((attribute) => !given.has(attribute) && isAllowed(attribute)).map(
    (attribute) => ({
      name: attribute,
      insertText: `${attribute}=`,
      kind: ts.ScriptElementKind.memberVariableElement,
      typed,
    }),
  );
}

function valuesFor(
  ts: typeof TS,
  checker: TS.TypeChecker,
  { tag, fn }: Place,
  attribute: string,
  item: string,
): Suggestion[] {
  const { classElement, enumMemberElement } = ts.ScriptElementKind;
  const words = (ABOUT_ATTRIBUTES[attribute]?.values ?? []).map((name) => ({
    name,
    kind: enumMemberElement,
  }));
  const classes = (symbols: readonly TS.Symbol[]): Omit<Suggestion, "typed">[] =>
    symbols.map(({ name }) => ({ name, kind: classElement }));
  const whole = (suggestions: readonly Omit<Suggestion, "typed">[]): Suggestion[] =>
    suggestions.map((one) => ({ ...one, typed: item }));
  if (!isAttribute(attribute)) return [];
  const row = ATTRIBUTES[attribute];
  const opened = TEMPLATE_KINDS.has(row.kind) ? OPEN_VALUE.exec(item)?.[1] : undefined;
  if (opened !== undefined) return fn === undefined ? [] : pathsFrom(ts, checker, fn, [], opened);
  switch (row.kind) {
    case "values":
    case "expression":
    case "path":
      return fn === undefined ? [] : pathsFrom(ts, checker, fn, [], item);
    case "template":
      return [];
    case "fields": {
      const object = tag.attributes.find(({ name }) => name.text === "keyName")?.items[0].text;
      return fn === undefined || object === undefined
        ? []
        : pathsFrom(ts, checker, fn, stepsOf(object), item);
    }
    case "type":
      return fn === undefined ? [] : whole(classes(typesIn(ts, checker, fn)));
    case "choice": {
      const hasClasses = "orClass" in row && fn !== undefined;
      return whole([...words, ...(hasClasses ? classes(errorClassesIn(ts, checker, fn)) : [])]);
    }
    case "time":
      return whole(/^\d+/.test(item) ? withUnits(ts, item) : words);
    default:
      return whole(words);
  }
}

/** The kinds of attributes whose values may contain `${...}`. */
const TEMPLATE_KINDS: ReadonlySet<string> = new Set(["template", "time", "count"]);

/** Matches an open placeholder, and captures the text after its brace, such as `order.` in `mutex:${order.`. */
const OPEN_VALUE = /\$\{([^}]*)$/;

function withUnits(ts: typeof TS, item: string): Omit<Suggestion, "typed">[] {
  const amount = Number.parseInt(item, 10);
  return Object.keys(MS_PER_UNIT).map((unit) => ({
    name: `${amount}${unit}`,
    kind: ts.ScriptElementKind.enumMemberElement,
  }));
}

/** Matches the path at the end of an item, which may be part of an expression. */
const PATH = /(?<before>(?:[\p{ID_Continue}$#]+(?:\[\d+\])*\??\.)*)(?<typed>[\p{ID_Continue}$#]*)$/u;

/** Suggests the next step of the path. */
function pathsFrom(
  ts: typeof TS,
  checker: TS.TypeChecker,
  fn: AnyFunction,
  from: readonly string[],
  item: string,
): Suggestion[] {
  const { before = "", typed = "" } = PATH.exec(item)?.groups ?? {};
  const steps = [...from, ...stepsOf(before)];
  const { parameterElement, memberVariableElement, keyword } = ts.ScriptElementKind;
  if (steps.length === 0) {
    const hasThis = (typeOfThis(checker, fn)?.getProperties().length ?? 0) > 0;
    return [
      ...parametersOf(ts, fn).map(({ text }) => ({ name: text, kind: parameterElement, typed })),
      ...(hasThis ? [{ name: "this", kind: keyword, typed }] : []),
    ];
  }
  const type = typeOfPath(ts, checker, fn, steps);
  const isOwn = steps.length === 1 && steps[0] === "this";
  return (type === undefined ? [] : fieldsOf(ts, checker, type))
    .filter((field) => isOwn || isPublic(ts, field))
    .filter((field) => typeOfField(checker, fn, field).getCallSignatures().length === 0)
    .map((field) => ts.symbolName(field))
    .filter((name) => /^#?[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name))
    .map((name) => ({ name, kind: memberVariableElement, typed }));
}

function isPublic(ts: typeof TS, symbol: TS.Symbol): boolean {
  const { Private, Protected } = ts.ModifierFlags;
  const isHidden = (symbol.declarations ?? []).some(
    (declaration) => (ts.getCombinedModifierFlags(declaration) & (Private | Protected)) !== 0,
  );
  return !isHidden && !ts.symbolName(symbol).startsWith("#");
}
