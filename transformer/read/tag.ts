import { problem, type Problem } from "../text/problems";
import type { Span } from "../text/span";

/** A part of the tag's text, with where it stands in the file. */
export interface Word extends Span {
  readonly text: string;
}

/** One value of a list. Of a quoted one, the span is what stands between the quotes. */
export interface Item extends Word {
  readonly quoted: boolean;
}

export interface Attribute {
  readonly name: Word;
  readonly items: readonly [Item, ...Item[]];
}

/** `@redisLock` and its attributes, as written. What they mean is the plan's business. */
export interface Tag {
  readonly word: Word;
  readonly attributes: readonly Attribute[];
}

const TAG_NAME = "redisLock";

/**
 * The `@redisLock` tags of one comment. The grammar:
 *
 *     tag       = "@redisLock" { attribute }         at the start of a line of a JSDoc comment,
 *                                                    up to the next tag or the end of the comment
 *     attribute = name "=" item { "," item }
 *     item      = quoted | bare                      quoted in "", '' or ``; bare without white space
 */
export function parseTags(text: string, comment: Span): { tags: Tag[]; problems: Problem[] } {
  const tags: Tag[] = [];
  const problems: Problem[] = [];
  const content = blankOutMargins(text, comment);
  const starts = [...content.matchAll(/^[ \t]*@([A-Za-z][\w-]*)/gm)];
  const isJsDoc = text.startsWith("/**", comment.start);
  if (COMMENTED_OUT.test(text.slice(comment.start, comment.end))) return { tags, problems };
  if (!isJsDoc || !starts.some(([, name]) => isMeant(name))) {
    const stray = (isJsDoc ? STRAY : STRAY_OR_FIRST).exec(content);
    if (stray === null) return { tags, problems }; // Prose about the tag.
    const start = comment.start + stray.index + stray[0].indexOf("@");
    const span = { start, end: comment.start + stray.index + stray[0].length };
    return { tags, problems: [problem(isJsDoc ? "notAtLineStart" : "notJsDoc", span)] };
  }
  starts.forEach((match, index) => {
    const name = match[1] ?? "";
    if (!isMeant(name)) return;
    const nameEnd = match.index + match[0].length;
    const word = {
      start: comment.start + nameEnd - name.length - 1,
      end: comment.start + nameEnd,
      text: `@${name}`,
    };
    if (name !== TAG_NAME) {
      problems.push(problem("misspeltTag", word, word.text));
      return;
    }
    const end = starts[index + 1]?.index ?? content.length;
    const { attributes, problems: found } = parseAttributes(content.slice(0, end), nameEnd, comment.start);
    tags.push({ word, attributes });
    problems.push(...found);
  });
  return { tags, problems };
}

/** `@RedisLock`, `@redis-lock`: what can only be meant as the tag. */
function isMeant(name: string | undefined): boolean {
  return /^redis[-_]?lock$/i.test(name ?? "");
}

/** The comment's content at its own offsets, with blanks for the comment marks and for each line's `*`. */
function blankOutMargins(text: string, { start, end }: Span): string {
  const blank = (mark: string): string => " ".repeat(mark.length);
  return text
    .slice(start, end)
    .replace(/^\/[/*]\*?/, blank)
    .replace(/\*+\/$/, blank)
    .replace(/(?<=[\n\r\u2028\u2029])[ \t]*\*+/g, blank);
}

/** A line of a JSDoc comment, behind `//`. */
const COMMENTED_OUT = /^\/\/(?:\s+\*|\s*\/\*)/;

/** A tag in the middle of a line that has attributes, so it is no prose about the tag. */
const STRAY = /(?<![`\w])@redis[-_]?lock(?=\s+\w+\s*=)/i;
const STRAY_OR_FIRST = new RegExp(`^[\\s*]*@redis[-_]?lock\\b|${STRAY.source}`, "i");

const NAME = /[A-Za-z_$][\w$-]*/y;
const EQUALS = /\s*=\s*/y;
const QUOTED = /"([^"]*)"|'([^']*)'|`([^`]*)`/y;
/** A word that is followed by `=` is the next attribute's name. */
const BARE = /[^\s,"'`=]+(?!\s*=)(?![^\s,"'`=])/y;
const COMMA = /\s*,\s*/y;
const JUNK = /\S+/y;
const BLANKS = /\s*/y;

function parseAttributes(
  content: string,
  from: number,
  offset: number,
): { attributes: Attribute[]; problems: Problem[] } {
  const attributes: Attribute[] = [];
  const problems: Problem[] = [];
  let at = from;

  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(content);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  const word = (start: number, end: number): Word => ({
    start: offset + start,
    end: offset + end,
    text: content.slice(start, end),
  });

  const takeItem = (): Item | undefined => {
    const start = at;
    const quoted = take(QUOTED);
    if (quoted !== null) return { ...word(start + 1, at - 1), quoted: true };
    if (/["'`]/.test(content.charAt(at))) {
      const rest = word(at, content.trimEnd().length);
      problems.push(problem("unterminatedQuote", rest, rest.text.charAt(0)));
      at = content.length;
      return undefined;
    }
    return take(BARE) === null ? undefined : { ...word(start, at), quoted: false };
  };

  for (take(BLANKS); at < content.length; take(BLANKS)) {
    const start = at;
    const name = take(NAME) === null ? undefined : word(start, at);
    if (name === undefined || take(EQUALS) === null) {
      take(JUNK);
      const junk = word(start, at);
      problems.push(problem("notAnAttribute", junk, junk.text));
      continue;
    }
    const known = problems.length;
    const first = takeItem();
    if (first === undefined) {
      if (problems.length === known) problems.push(problem("missingValue", name, name.text));
      continue;
    }
    const items: [Item, ...Item[]] = [first];
    while (take(COMMA) !== null) {
      const item = takeItem();
      if (item !== undefined) items.push(item);
      else if (problems.length === known) problems.push(problem("missingItem", name, name.text));
    }
    attributes.push({ name, items });
  }
  return { attributes, problems };
}
