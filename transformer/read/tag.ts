import { ATTRIBUTE_NAMES, ATTRIBUTES, isAttribute } from "../../runtime/attributes/tag-attributes";
import { problem, replaceableBy, type Problem } from "../text/problems";
import type { Span } from "../text/span";
import { attributesAlone, disguiseIn } from "./disguises";
import {
  DOCUMENTATION,
  hasOurAttributes,
  isMeant,
  isNear,
  NEED_NAME,
  TAG_NAME,
  tagMeantBy,
  type TagName,
} from "./spelling";
import { unitCalled } from "./units";

/** A part of the tag's text, with its position in the file. */
export interface Word extends Span {
  readonly text: string;
}

/** One value of a list. The range of a quoted value excludes the quotes. */
export interface Item extends Word {
  readonly quoted: boolean;
}

export interface Attribute {
  readonly name: Word;
  readonly items: readonly [Item, ...Item[]];
}

/** The tags of a comment, and their problems. */
export interface Parsed {
  readonly tags: Tag[];
  readonly problems: Problem[];
  /** Attributes in a JSDoc comment that has no tag. */
  readonly strayAttributes?: Span | undefined;
}

/** `@redisLock` or `@needsLock`, and its attributes, as written. `plan()` and `planNeed()` interpret them. */
export interface Tag {
  readonly name: TagName;
  readonly word: Word;
  readonly attributes: readonly Attribute[];
}

/** Parses the tags of a comment, and finds text that was meant as one. The grammar:
 *
 *     tag       = name { attribute }                 "@redisLock" or "@needsLock", at the start of a line of a JSDoc comment, outside of code blocks,
 *                                                    up to the next tag or the end of the comment
 *     attribute = name "=" item { "," item }
 *     item      = quoted | bare                      quoted in "", '' or ``; bare without white space
 */
export function parseTags(text: string, comment: Span): Parsed {
  const tags: Tag[] = [];
  const problems: Problem[] = [];
  const content = withoutMargins(text, comment);
  if (COMMENTED_OUT.test(text.slice(comment.start, comment.end))) return { tags, problems };
  const isJsDoc = text.startsWith("/**", comment.start);
  const starts = isJsDoc
    ? [...content.matchAll(AT_LINE_START)].map(({ index, 0: found }) => index + found.length - 1)
    : [];
  const ends = starts.map((_, index) => starts[index + 1] ?? content.length);
  const meant = starts.flatMap((start, index) => {
    const found = intendedTagName(content, start, ends[index] ?? content.length);
    return found === undefined ? [] : [{ start, end: ends[index] ?? content.length, name: found }];
  });
  const meantStarts = new Set(meant.map(({ start }) => start));
  const others = starts.filter((start) => !meantStarts.has(start) && JSDOC_TAG.test(content.slice(start)));
  const blocks = codeBlocksIn(content).map((block) => withOtherTags(block, others));
  const examples = blocks.filter(({ state }) => state === "closed");
  const outside = meant.filter(({ start }) => blockAround(examples, start) === undefined);
  if (outside.length === 0) {
    const shifted = ({ start, end }: Span): Span => ({
      start: comment.start + start,
      end: comment.start + end,
    });
    const prose = withoutBlocks(content, examples);
    const found = disguiseIn(prose, isJsDoc);
    if (found === undefined) {
      const strayAttributes = isJsDoc ? attributesAlone(prose) : undefined;
      return { tags, problems, strayAttributes: strayAttributes && shifted(strayAttributes) };
    }
    const { kind, span } = found;
    const written = content.slice(span.start, span.end);
    if (kind !== "misspelledTag")
      return { tags, problems: [problem(kind, shifted(span), `@${tagMeantBy(written)}`)] };
    return { tags, problems: [misspelled(shifted(span), written)] };
  }
  for (const { start, end, name } of outside) {
    const nameEnd = start + 1 + name.length;
    const word = { start: comment.start + start, end: comment.start + nameEnd, text: `@${name}` };
    const block = blockAround(blocks, start);
    if (block !== undefined) {
      problems.push(problem(block.state === "open" ? "openCodeBlock" : "unclearCodeBlock", word));
      continue;
    }
    if (name !== TAG_NAME && name !== NEED_NAME) {
      problems.push(misspelled(word, word.text));
      continue;
    }
    const found = parseAttributes(content.slice(0, end), nameEnd, comment.start);
    tags.push({ name, word, attributes: found.attributes });
    problems.push(
      ...(found.parentheses === undefined
        ? found.problems
        : // The parentheses may be the cause of all other problems.
          [problem("inParentheses", found.parentheses, word.text)]),
    );
  }
  return { tags, problems };
}

function misspelled(at: Span, text: string): Problem {
  const meant = `@${tagMeantBy(text)}`;
  return replaceableBy(problem("misspelledTag", at, text, meant), meant);
}

/** Matches a documentation tag. Decorators in an example begin with a capital letter, or have arguments. */
const JSDOC_TAG = /^@[a-z]\w*(?![\w.(])/;

/** Marks a closed block as unclear if it contains documentation tags, because a closing fence may be missing above them. */
function withOtherTags(block: CodeBlock, others: readonly number[]): CodeBlock {
  const isInside = others.some((start) => block.start < start && start < block.end);
  return isInside && block.state === "closed" ? { ...block, state: "unclear" } : block;
}

function blockAround(blocks: readonly CodeBlock[], offset: number): CodeBlock | undefined {
  return blocks.find(({ start, end }) => start <= offset && offset < end);
}

const AT_LINE_START = /^[ \t]*@(?=[A-Za-z])/gm;
/** Matches a tag's name, without a full stop after it. */
const WORD = /[A-Za-z][\w-]*(?:\.[\w-]+)*/y;

/** Returns the name of the tag at the offset, if it is ours or is meant to be. */
function intendedTagName(content: string, start: number, end: number): string | undefined {
  WORD.lastIndex = start + 1;
  const name = WORD.exec(content)?.[0] ?? "";
  const rest = content.slice(start + 1 + name.length, end);
  const separated = /^redis$/i.test(name) ? /^(?:[ \t]+|:)lock\w{0,3}\b/i.exec(rest)?.[0] : undefined;
  if (separated !== undefined) return name + separated; // `@redis lock`, `@redis:lock`
  return isMeant(name) || isNear(name, rest) || hasOurAttributes(name, rest) ? name : undefined;
}

/** Returns the comment's content at its own offsets. Spaces replace the comment marks and the `*` of each line. */
export function withoutMargins(text: string, { start, end }: Span): string {
  const blank = (mark: string): string => " ".repeat(mark.length);
  return text
    .slice(start, end)
    .replace(/^\/[/*]\*?/, blank)
    .replace(/\*+\/$/, blank)
    .replace(/(?<=[\n\r\u2028\u2029])[ \t]*\*+/g, blank);
}

/** Matches a line of a JSDoc comment that is commented out with `//`. */
const COMMENTED_OUT = /^\/\/(?:\s+\*|\s*\/\*)/;

const NAME = /[A-Za-z_$][\w$-]*/y;
const EQUALS = /\s*=\s*/y;
const QUOTED = /"([^"]*)"|'([^']*)'|`([^`]*)`/y;
/** Matches an unquoted value. A word before `=` is the name of the next attribute. */
const BARE = /[^\s,"'`=]+(?!\s*=)(?![^\s,"'`=])/y;
const COMMA = /\s*,\s*/y;
const JUNK = /\S+/y;
/** Matches further text, up to the next tag or attribute. */
const MORE_JUNK = /(?:\s+(?!@\w|[A-Za-z_$][\w$-]*\s*=)\S+)+/y;
/** Matches a tag of JSDoc after ours, such as `@internal`. */
const OTHER_TAG = /^@\w/;
/** Matches the text of such a tag, up to the next tag or attribute of ours. The text may contain an `=`. */
const MORE_OF_TAG = new RegExp(String.raw`(?:\s+(?!@\w|(?:${ATTRIBUTE_NAMES.join("|")})\s*=)\S+)+`, "y");
/** Matches a whole word after a space that may be a tag of JSDoc. `@acme/pay` is a value. */
const TAG_AFTER_SPACE = /(?<=\s)@([A-Za-z]\w*)(?=[\s,]|$)/y;
/** Matches `businessFlag:`. */
const COLON = /^[A-Za-z]\w*:/;
const SPACES = /\s*/y;

/** The text of a tag, and how much of it is parsed. */
interface Cursor {
  readonly content: string;
  /** The position of the content in the file. */
  readonly offset: number;
  at: number;
  readonly problems: Problem[];
}

/** Parses the attributes after the name of a tag. Returns them with their problems, and the parentheses around them. */
function parseAttributes(
  tagged: string,
  from: number,
  offset: number,
): { attributes: Attribute[]; problems: Problem[]; parentheses: Span | undefined } {
  const attributes: Attribute[] = [];
  const problems: Problem[] = [];
  const { content, parentheses } = withoutParentheses(tagged, from);
  const cursor: Cursor = { content, offset, at: from, problems };
  for (take(cursor, SPACES); cursor.at < content.length; take(cursor, SPACES)) {
    const start = cursor.at;
    const name = take(cursor, NAME) ? wordOf(cursor, start) : undefined;
    if (name === undefined || !take(cursor, EQUALS)) {
      problems.push(takeJunk(cursor, start, attributes.at(-1)));
      continue;
    }
    const items = takeItems(cursor, name);
    if (items !== undefined) attributes.push({ name, items });
  }
  const inParentheses = parentheses && {
    start: offset + parentheses.start,
    end: offset + parentheses.end,
  };
  return { attributes, problems, parentheses: inParentheses };
}

/** Replaces the parentheses of `@redisLock(businessFlag=pay)` by spaces, so that the attributes can be read. */
function withoutParentheses(content: string, from: number): { content: string; parentheses?: Span } {
  const [opening] = /^\s*\(/.exec(content.slice(from)) ?? [];
  if (opening === undefined) return { content };
  const start = from + opening.length - 1;
  const closing = content.lastIndexOf(")");
  const end = closing > start ? closing + 1 : start + 1;
  const inside = content.slice(start + 1, closing > start ? closing : content.length);
  const blanked = `${content.slice(0, start)} ${inside}${closing > start ? ` ${content.slice(end)}` : ""}`;
  return { content: blanked, parentheses: { start, end } };
}

/** Takes text that is not an attribute. Returns the problem that fits it. */
function takeJunk(cursor: Cursor, start: number, before: Attribute | undefined): Problem {
  take(cursor, JUNK);
  const junk = wordOf(cursor, start);
  const isTag = OTHER_TAG.test(junk.text);
  const isMore = take(cursor, isTag ? MORE_OF_TAG : MORE_JUNK);
  const value = before?.items.at(-1)?.text ?? "";
  const unit = /^\d+(?:\.\d+)?$/.test(value) ? unitCalled(junk.text) : undefined;
  if (unit !== undefined) return problem("unitApart", junk, junk.text, `${before?.name.text}=${value}`, unit);
  if (!isMore && isSwitch(junk.text)) return problem("noValue", junk, junk.text);
  if (COLON.test(junk.text)) return problem("colon", junk, junk.text);
  if (isTag) return problem("otherTag", junk, junk.text);
  return problem(isMore ? "prose" : "notAnAttribute", junk, junk.text);
}

function isSwitch(name: string): boolean {
  return isAttribute(name) && ATTRIBUTES[name].kind === "switch";
}

/** Takes the values of an attribute. Returns `undefined` if the first one is missing or does not end. */
function takeItems(cursor: Cursor, name: Word): Attribute["items"] | undefined {
  const { content, problems } = cursor;
  const knownProblems = problems.length;
  const first = takeItem(cursor);
  if (first === undefined) {
    if (problems.length === knownProblems) problems.push(problem("missingValue", name, name.text));
    return undefined;
  }
  const items: [Item, ...Item[]] = [first];
  while (take(cursor, COMMA)) {
    const item = takeItem(cursor);
    if (item !== undefined) items.push(item);
    else if (problems.length === knownProblems) {
      problems.push(problem(cursor.at < content.length ? "strayComma" : "missingItem", name, name.text));
    }
  }
  return items;
}

/** Takes one value, if there is one. If a quote does not end, reports it and takes the rest of the text. */
function takeItem(cursor: Cursor): Item | undefined {
  const { content, problems, at: start } = cursor;
  TAG_AFTER_SPACE.lastIndex = start;
  const [, tag = ""] = TAG_AFTER_SPACE.exec(content) ?? [];
  if (tag === TAG_NAME || tag === NEED_NAME || DOCUMENTATION.has(tag)) return undefined; // The value is missing.
  if (take(cursor, QUOTED)) return { ...wordOf(cursor, start + 1, cursor.at - 1), quoted: true };
  if (/["'`]/.test(content.charAt(start))) {
    const rest = wordOf(cursor, start, content.trimEnd().length);
    problems.push(problem("unterminatedQuote", rest, rest.text.charAt(0)));
    cursor.at = content.length;
    return undefined;
  }
  if (!take(cursor, BARE)) return undefined;
  const bare = wordOf(cursor, start);
  if (bare.text.endsWith(";")) problems.push(problem("semicolon", bare, bare.text));
  return { ...bare, quoted: false };
}

/** Takes the text that matches the pattern, and moves the cursor past it. Returns whether there is such text. */
function take(cursor: Cursor, pattern: RegExp): boolean {
  pattern.lastIndex = cursor.at;
  const isFound = pattern.test(cursor.content);
  if (isFound) cursor.at = pattern.lastIndex;
  return isFound;
}

/** Returns a part of the text, which ends at the cursor unless the end is given. */
function wordOf({ content, offset, at }: Cursor, start: number, end = at): Word {
  return { start: offset + start, end: offset + end, text: content.slice(start, end) };
}

// ---- blocks of code in comments -------------------------------------------------------------------------

/** A block of code between two fences, which are lines of backticks. */
interface CodeBlock extends Span {
  /**
   * `closed` if all blocks of the comment end, `unclear` if the fence of another block is inside this one, and `open` if a block of the
   * comment does not end. Only in a closed block is a tag certainly an example.
   */
  readonly state: "closed" | "unclear" | "open";
}

/** Matches a fence. List or quote markers may precede it, and the name of a language may follow it. */
const FENCE = /^((?:[ \t*+>-]|\d+[.)])*)(`{3,})([^`\n\r\u2028\u2029]*)$/gm;

/** Finds the blocks of code in the content of a comment, by the rules of Markdown. */
function codeBlocksIn(content: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: (Pick<CodeBlock, "state"> & { readonly start: number; readonly length: number }) | undefined;
  for (const { index, 0: line, 1: before = "", 2: fence = "", 3: after = "" } of content.matchAll(FENCE)) {
    if (open === undefined) open = { start: index, length: fence.length, state: "closed" };
    else if (fence.length < open.length)
      continue; // A shorter fence is part of the code.
    else if (after.trim() === "" && /^[ \t>]*$/.test(before)) {
      blocks.push({ start: open.start, end: index + line.length, state: open.state });
      open = undefined;
    } else open = { ...open, state: "unclear" };
  }
  if (open === undefined) return blocks;
  const last = { start: open.start, end: content.length };
  return [...blocks, last].map(({ start, end }) => ({ start, end, state: "open" }));
}

/** Replaces blocks by spaces. */
function withoutBlocks(content: string, blocks: readonly Span[]): string {
  let rest = content;
  for (const { start, end } of blocks)
    rest = rest.slice(0, start) + " ".repeat(end - start) + rest.slice(end);
  return rest;
}
