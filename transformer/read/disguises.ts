import type { Span } from "../text/span";
import { ATTRIBUTES } from "./attributes";
import { hasOurAttributes, isMeant, isMeantWithKey, isNear } from "./spelling";

/** Text that was meant as the tag, and what is wrong with it. */
export interface Disguise {
  readonly kind: "misspeltTag" | "notAtLineStart" | "notJsDoc";
  readonly span: Span;
}

/** The first text that can only be meant as the tag, in a comment without one. Prose about the tag is none. */
export function disguiseIn(content: string, isJsDoc: boolean): Disguise | undefined {
  const seen = new SeenText(content);
  const atLineStart = misspeltAtLineStart(seen, isJsDoc);
  if (atLineStart !== undefined) return { kind: "misspeltTag", span: atLineStart };
  const stray = strayIn(content, isJsDoc);
  if (stray !== undefined) return { kind: isJsDoc ? "notAtLineStart" : "notJsDoc", span: stray };
  const beside = besideAttribute(seen);
  return beside && { kind: "misspeltTag", span: beside };
}

/** A name at the start of a line: with an `@` and letters of any alphabet, with another mark, or with none. */
const DISGUISED =
  /^[ \t]*(@[ \t]*[\p{L}\p{N}\p{Pd}\p{Pc}$]+|[#$%&+!?~^]?([A-Za-z][\w-]*)(?!\.\w))(?![\w-])/gmu;

/** An attribute right behind the name. Prose about the tag has none. */
const ATTRIBUTE = /^\s*[:(]?\s*\w+\s*=/;

/** A name that looks like the tag's, or any name with attributes that only our tag has. */
function misspeltAtLineStart(seen: SeenText, isJsDoc: boolean): Span | undefined {
  for (const { index, 0: found, 1: name = "", 2: withoutAt } of seen.text.matchAll(DISGUISED)) {
    const end = index + found.length;
    const [rest = ""] = seen.text.slice(end).split(/^[ \t]*@/m);
    const span = seen.spanOf(end - name.length, end);
    const isPlain = /^@[\w-]*$/.test(seen.written(span));
    const isOther = withoutAt !== undefined && !isNear(withoutAt);
    if (isPlain || isOther) continue;
    const isTag =
      withoutAt === undefined
        ? isNear(name) && (isJsDoc || ATTRIBUTE.test(rest))
        : isMeantWithKey(withoutAt, rest);
    if (isTag || hasOurAttributes(name, rest)) return span;
  }
  return undefined;
}

/** A tag in the middle of a line, or in a comment that is no JSDoc. Its attributes or its colon show that it is no prose. */
function strayIn(content: string, isJsDoc: boolean): Span | undefined {
  for (const { index, 0: found, 1: name = "" } of content.matchAll(
    /(?<![`A-Za-z\d]|`\{)@([A-Za-z][\w-]*)/g,
  )) {
    const end = index + found.length;
    const rest = content.slice(end);
    if (isInBackticks(content, index) && /^[^\n\r]*`/.test(rest)) continue;
    const isInline = content.charAt(index - 1) === "{";
    if (isInline && !(isNear(name) && hasOurAttributes(name, rest))) continue;
    const isFirst = /^[\s*]*$/.test(content.slice(0, index));
    const hasAttributes = ATTRIBUTE.test(rest) && isNear(name);
    const hasColon = isJsDoc && isMeant(name) && /^\s*:/.test(rest);
    if (hasAttributes || hasColon || (!isJsDoc && isFirst && isMeant(name))) return { start: index, end };
  }
  return undefined;
}

/** `businessFlag=pay`, but no code such as `lock.key = 1`, `key == 1`, and `key => 1`. */
const PAIR = String.raw`(?<![\w$.])(?:${ATTRIBUTES.join("|")})\s*=(?![=>])\s*`;
const PAIRS = new RegExp(String.raw`${PAIR}\S`, "g");
/** A pair with a name that other text hardly has. */
const OWN_PAIR = /^(?:[a-z]+[A-Z][A-Za-z]*\s*=|key=["'`])/;

/** A name near the tag's, however it is marked up, with one of our attributes right behind it. */
function besideAttribute(seen: SeenText): Span | undefined {
  const { text } = seen;
  for (const { index } of text.matchAll(PAIRS)) {
    if (isInBackticks(text, index)) continue;
    const end = startOfRun(BETWEEN, text, index);
    // `@redisLock`, `@ redisLock`, `@redis Lock`, `@ redis lock`
    for (let [start, count] = [end, 1]; count <= 3 && start > 0; count += 1) {
      start = startOfRun(NO_BLANK, text, startOfRun(BLANK, text, start));
      const name = text.slice(start, end);
      if (name.includes("=")) break;
      const isFirst = count === 1 && !/[\p{L}\p{N}]/u.test(lineBefore(text, start));
      const isOwn = OWN_PAIR.test(text.slice(index));
      // `@redis/lock` may be a package.
      const isSure = name.includes("@") ? isOwn || !name.includes("/") : isOwn && isFirst;
      if (isSure && isNear(name)) return seen.spanOf(start, end);
    }
  }
  return undefined;
}

const BETWEEN = /[\s:({,-]/;
const BLANK = /\s/;
const NO_BLANK = /\S/;

/** Where the characters begin, before the offset, that are all of this kind. */
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

/** `lockweave eject` puts these words in the place of a tag whose lock it has written out. */
export const LOCKED_BY = "Locked by:";

/** Attributes before all tags of a JSDoc comment. Their own tag may have been lost. */
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

/** Whether the offset is in a code span, which as many backticks may open as close it. */
function isInBackticks(text: string, offset: number): boolean {
  const runs = lineBefore(text, offset).match(/`+/g) ?? [];
  return runs.length % 2 === 1;
}

/** A comment's content as people read it: without entities, HTML, accents, and invisible characters. */
class SeenText {
  readonly text: string;
  /** The offset in the content for each character of the text. */
  readonly #starts: number[] = [];

  constructor(private readonly content: string) {
    let text = "";
    let start: number | undefined;
    for (const { index, 0: piece } of content.matchAll(PIECE)) {
      start ??= index;
      const shown = shownAs(piece);
      if (shown === "") continue; // It belongs to the next character.
      for (let at = 0; at < shown.length; at += 1) this.#starts.push(start);
      text += shown;
      start = undefined;
    }
    this.#starts.push(start ?? content.length);
    this.text = text;
  }

  /** The part of the content that the part of the text comes from. */
  spanOf(start: number, end: number): Span {
    const at = (index: number): number => this.#starts[index] ?? this.content.length;
    return { start: at(start), end: at(end) };
  }

  written({ start, end }: Span): string {
    return this.content.slice(start, end);
  }
}

/** An entity, an HTML tag, the address of a Markdown link, or a character. */
const PIECE = /&(?:#\d{1,7}|#x[\da-f]{1,6}|[a-z]{2,8});|<\/?[a-z][a-z\d]*>|(?<=\])\([^\s()]*\)|./gisu;

/** Named entities for the signs that a tag may have. */
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
