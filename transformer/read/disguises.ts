import { ATTRIBUTE_NAMES } from "../../runtime/attributes/tag-attributes";
import type { Span } from "../text/span";
import { ATTRIBUTE, hasOurAttributes, isMeant, isMeantWithKey, isNear } from "./spelling";

/** Text that was meant as the tag, and the reason why it is not one. */
export interface Disguise {
  readonly kind: "misspelledTag" | "notAtLineStart" | "notJsDoc";
  readonly span: Span;
}

/** Finds the first text that can only be meant as the tag, in a comment without a tag. Prose about the tag does not count. */
export function disguiseIn(content: string, isJsDoc: boolean): Disguise | undefined {
  const seen = new VisibleText(content);
  const atLineStart = misspelledAtLineStart(seen, isJsDoc);
  if (atLineStart !== undefined) return { kind: "misspelledTag", span: atLineStart };
  const stray = strayIn(content, isJsDoc);
  if (stray !== undefined) return { kind: isJsDoc ? "notAtLineStart" : "notJsDoc", span: stray };
  const found = nameBeforeAttribute(seen);
  return found && { kind: "misspelledTag", span: found };
}

/** Matches a name at the start of a line. Before it is an `@`, another mark, or nothing. After an `@`, letters of any alphabet match. */
const DISGUISED =
  /^[ \t]*(@[ \t]*[\p{L}\p{N}\p{Pd}\p{Pc}$]+|[#$%&+!?~^]?([A-Za-z][\w-]*)(?!\.\w))(?![\w-])/gmu;

/** Finds a name that resembles the tag's, or any name with attributes that only our tag has. */
function misspelledAtLineStart(seen: VisibleText, isJsDoc: boolean): Span | undefined {
  for (const { index, 0: found, 1: name = "", 2: withoutAt } of seen.text.matchAll(DISGUISED)) {
    const end = index + found.length;
    const [rest = ""] = seen.text.slice(end).split(/^[ \t]*@/m);
    const span = seen.spanOf(end - name.length, end);
    const isPlain = /^@[\w-]*$/.test(seen.written(span));
    const isOther = withoutAt !== undefined && !isNear(withoutAt, rest);
    if (isPlain || isOther) continue;
    const isTag =
      withoutAt === undefined
        ? isNear(name, rest) && (isJsDoc || ATTRIBUTE.test(rest))
        : isMeantWithKey(withoutAt, rest);
    if (isTag || hasOurAttributes(name, rest)) return span;
  }
  return undefined;
}

/**
 * Finds a tag in the middle of a line, or in a comment that is not JSDoc. Attributes, a colon, or a place at the start of the comment show
 * that it is not prose.
 */
function strayIn(content: string, isJsDoc: boolean): Span | undefined {
  for (const { index, 0: found, 1: name = "" } of content.matchAll(
    /(?<![`A-Za-z\d]|`\{)@([A-Za-z][\w-]*)/g,
  )) {
    const end = index + found.length;
    const rest = content.slice(end);
    if (isInBackticks(content, index) && /^[^\n\r]*`/.test(rest)) continue;
    const isInline = content.charAt(index - 1) === "{";
    if (isInline && !(isNear(name, rest) && hasOurAttributes(name, rest))) continue;
    const isFirst = /^[\s*]*$/.test(content.slice(0, index));
    const hasAttributes = ATTRIBUTE.test(rest) && isNear(name, rest);
    const hasColon = isJsDoc && isMeant(name) && /^\s*:/.test(rest);
    if (hasAttributes || hasColon || (!isJsDoc && isFirst && isMeant(name))) return { start: index, end };
  }
  return undefined;
}

/** Matches `businessFlag=pay`, but not code such as `lock.key = 1`, `key == 1`, or `key => 1`. */
const PAIR = String.raw`(?<![\w$.])(?:${ATTRIBUTE_NAMES.join("|")})\s*=(?![=>])\s*`;
const PAIRS = new RegExp(String.raw`${PAIR}\S`, "g");
/** Matches a pair that is unlikely in other text. */
const OWN_PAIR = /^(?:[a-z]+[A-Z][A-Za-z]*\s*=|key=["'`])/;

/** Finds a name that resembles the tag's, in any markup, directly before one of our attributes. */
function nameBeforeAttribute(seen: VisibleText): Span | undefined {
  const { text } = seen;
  for (const { index } of text.matchAll(PAIRS)) {
    if (isInBackticks(text, index)) continue;
    const end = startOfRun(BETWEEN, text, index);
    // `@redisLock`, `@ redisLock`, `@redis Lock`, `@ redis lock`
    for (let [start, count] = [end, 1]; count <= 3 && start > 0; count += 1) {
      start = startOfRun(NON_BLANK, text, startOfRun(BLANK, text, start));
      const name = text.slice(start, end);
      if (name.includes("=")) break;
      const isFirst = count === 1 && !/[\p{L}\p{N}]/u.test(lineBefore(text, start));
      const isOwn = OWN_PAIR.test(text.slice(index));
      // `@redis/lock` may be the name of a package.
      const isSure = name.includes("@") ? isOwn || !name.includes("/") : isOwn && isFirst;
      if (isSure && isNear(name, text.slice(end))) return seen.spanOf(start, end);
    }
  }
  return undefined;
}

const BETWEEN = /[\s:({,-]/;
const BLANK = /\s/;
const NON_BLANK = /\S/;

/** Returns the start of the run of characters of this kind that ends at the offset. */
function startOfRun(kind: RegExp, text: string, offset: number): number {
  let at = offset;
  while (at > 0 && kind.test(text.charAt(at - 1))) at -= 1;
  return at;
}

function lineBefore(text: string, offset: number): string {
  return text.slice(startOfRun(/[^\n\r]/, text, offset), offset);
}

const VALUE = String.raw`(?:"[^"]*"|'[^']*'|[^\s"'\x60]+)`;
const RUN = new RegExp(String.raw`(?<!\S)(?:${PAIR}${VALUE}(?:\s+|$))+`, "g");

const NAMES = new RegExp(String.raw`(?<!\S)${PAIR}`, "g");

/** The words with which `lockweave eject` replaces a tag after it writes the lock as code. */
export const LOCKED_BY = "Locked by:";

/** Finds attributes of a lock before the first tag of a JSDoc comment. Their `@redisLock` may have been lost. */
export function attributesAlone(content: string): Span | undefined {
  const [prose = ""] = content.split(/^[ \t]*@/m, 1);
  if (prose.includes(LOCKED_BY)) return undefined;
  for (const { index, 0: run } of prose.matchAll(RUN)) {
    const names = [...run.matchAll(NAMES)].map(([pair]) => pair.replace(/\s*=\s*/, ""));
    const isFirst = lineBefore(prose, index).trim() === "";
    const isLock = names.includes("businessFlag") || (names.includes("key") && names.length > 1);
    if (isLock && (isFirst || names.length > 1) && !isInBackticks(prose, index))
      return { start: index, end: index + run.trimEnd().length };
  }
  return undefined;
}

/** Whether the offset is in a code span. A run of several backticks opens or closes a span, like a single one. */
function isInBackticks(text: string, offset: number): boolean {
  const runs = lineBefore(text, offset).match(/`+/g) ?? [];
  return runs.length % 2 === 1;
}

/** The content of a comment as people see it, without entities, HTML, accents, and invisible characters. */
class VisibleText {
  readonly text: string;
  /** The offset in the content of each character of the text. */
  readonly #starts: number[] = [];

  constructor(private readonly content: string) {
    let text = "";
    let start: number | undefined;
    for (const { index, 0: piece } of content.matchAll(PIECE)) {
      start ??= index;
      const shown = shownAs(piece);
      if (shown === "") continue; // An invisible piece belongs to the next character.
      for (let at = 0; at < shown.length; at += 1) this.#starts.push(start);
      text += shown;
      start = undefined;
    }
    this.#starts.push(start ?? content.length);
    this.text = text;
  }

  /** Returns the part of the content that a part of the text comes from. */
  spanOf(start: number, end: number): Span {
    const at = (index: number): number => this.#starts[index] ?? this.content.length;
    return { start: at(start), end: at(end) };
  }

  written({ start, end }: Span): string {
    return this.content.slice(start, end);
  }
}

/** Matches an entity, an HTML tag, the address of a Markdown link, or a character. */
const PIECE = /&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z]{2,8});|<\/?[a-z][a-z\d]*>|(?<=\])\([^\s()]*\)|./gisu;

/** The named entities for characters that a tag may contain. */
const ENTITIES: Readonly<Record<string, string>> = {
  commat: "@",
  equals: "=",
  hyphen: "-",
  dash: "-",
  ndash: "-",
  mdash: "-",
  lowbar: "_",
  dollar: "$",
  period: ".",
  quot: '"',
  apos: "'",
  nbsp: " ",
  shy: "",
  zwj: "",
  zwnj: "",
};

function shownAs(piece: string): string {
  if (piece.length <= 2)
    return piece.normalize("NFKD").replaceAll(/[\p{M}\p{Default_Ignorable_Code_Point}]/gu, "");
  if (!piece.startsWith("&")) return "";
  const name = piece.slice(1, -1).toLowerCase();
  if (!name.startsWith("#")) return ENTITIES[name] ?? piece;
  const code = name.startsWith("#x") ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
  return code <= 0x10_ff_ff ? shownAs(String.fromCodePoint(code)) : piece;
}
