import type * as TS from "typescript";
import type { Source } from "../../parser/parser";
import { suggestionIn, nearest } from "../../text/did-you-mean";
import { commentsThatMentionIt } from "../../read/join-points";
import { hasOnlyCommonJs } from "../../read/module-syntax";
import { unitCalled } from "../../read/units";
import { editableTagsIn } from "./tag-at";

/** A change of the file that fixes a problem. */
export interface Fix {
  readonly description: string;
  readonly changes: readonly TS.TextChange[];
}

/** A problem, with the source text that it is about. */
interface Found extends Source {
  readonly start: number;
  readonly length: number;
  /** The source text at the problem. */
  readonly words: string;
  readonly message: string;
  /** The texts that the author may mean instead. */
  readonly replacements?: readonly string[] | undefined;
}

/** The fixes by the code of the problem. A problem is missing if only the author can fix it. */
const FIXES: Readonly<Record<string, (found: Found) => readonly Fix[]>> = {
  LW1001: (found) =>
    /^[A-Za-z]\w*:/.test(found.words) ? [changeTo(found, found.words.replace(":", "="))] : [],
  LW1002: replaced,
  LW1003: withoutTheSecond,
  LW1005: withoutComma,
  LW1006: closedQuote,
  LW1007: replaced,
  LW1008: asJsDoc,
  LW1009: onItsOwnLine,
  LW1011: withoutParentheses,
  LW1012: (found) => [changeTo(found, found.words.replace(/;+$/, ""))],
  LW1013: ({ start }) => [
    { description: "Write `@redisLock` before them", changes: [inserted(start, "@redisLock ")] },
  ],
  LW1101: flagOfItsName,
  LW1104: withShortUnit,
  LW1106: (found) => trueOrFalse(found).map((word) => changeTo(found, word)),
  LW1107: replaced,
  LW1108: replaced,
  LW1110: replaced,
  LW1111: replaced,
  LW1114: replaced,
  LW1120: replaced,
  LW1201: (found) => (found.replacements === undefined ? inQuotes(found) : replaced(found)),
  LW1202: replaced,
  LW1302: makeAsync,
  LW1306: makeAsync,
  LW1309: (found) => {
    const { file } = found;
    if (hasOnlyCommonJs(found)) return []; // It would no longer run as CommonJS.
    const newText = `${file.text.endsWith("\n") ? "" : "\n"}export {};\n`;
    return [{ description: "Add `export {}`", changes: [inserted(file.text.length, newText)] }];
  },
  LW1314: makeAsync,
};

export const FIXABLE_CODES = Object.keys(FIXES);

/** Returns the fixes for a problem of this code. That includes the compiler's own errors in a tag, if their message suggests a name. */
export function fixesFor(code: string, found: Found): readonly Fix[] {
  return (FIXES[code] ?? suggested)(found);
}

function changeTo({ start, length }: Pick<Found, "start" | "length">, newText: string): Fix {
  return { description: `Change to \`${newText}\``, changes: [{ span: { start, length }, newText }] };
}

function inserted(start: number, newText: string): TS.TextChange {
  return { span: { start, length: 0 }, newText };
}

function replaced(found: Found): readonly Fix[] {
  return (found.replacements ?? []).map((text) => changeTo(found, text));
}

/** Reads the suggestion of the compiler, which says it only in its message. */
function suggested(found: Found): readonly Fix[] {
  const word = suggestionIn(found.message);
  return word === undefined ? [] : [changeTo(found, word)];
}

/** Quotes the whole expression. If a quote follows it, only the author knows which quotes to use. */
function inQuotes(found: Found): readonly Fix[] {
  const following = found.file.text.charAt(found.start + found.length);
  return /["'`]/.test(following) ? [] : [changeTo(found, `"${found.words}"`)];
}

function withoutTheSecond(found: Found): readonly Fix[] {
  const { file, start } = found;
  const all = editableTagsIn(found).flatMap(({ tag }) => tag.attributes);
  const attribute = all.find(({ name }) => name.start === start);
  if (attribute === undefined) return [];
  const blanks = /[ \t]*$/.exec(file.text.slice(0, start))?.[0].length ?? 0;
  const last = attribute.items.at(-1) ?? attribute.items[0];
  const end = last.end + (last.quoted ? 1 : 0);
  const changes = [{ span: { start: start - blanks, length: end - start + blanks }, newText: "" }];
  return [{ description: `Remove the second \`${attribute.name.text}\``, changes }];
}

/** Closes the quote before the next attribute, or at the end of the line. */
function closedQuote({ start, words }: Found): readonly Fix[] {
  const [inside = ""] = /^.*?(?=\s+[A-Za-z]\w*=|\s*$)/m.exec(words) ?? [];
  const quote = words.charAt(0);
  return inside.length < 2
    ? []
    : [
        {
          description: `Close the quote: \`${inside}${quote}\``,
          changes: [inserted(start + inside.length, quote)],
        },
      ];
}

/** Adds a flag named like the function. */
function flagOfItsName(found: Found): readonly Fix[] {
  const { start, length } = found;
  const name = editableTagsIn(found).find(({ tag }) => tag.word.start === start)?.name;
  const flag = /[A-Za-z]\w*$/.exec(name ?? "")?.[0];
  if (flag === undefined) return [];
  const newText = ` businessFlag=${flag}`;
  return [{ description: `Add \`${newText.trim()}\``, changes: [inserted(start + length, newText)] }];
}

/** Removes the comma after the last value of the attribute at `start`. */
function withoutComma({ file, start, length }: Found): readonly Fix[] {
  const following = file.text.slice(start + length);
  const [before] = /^[^\n@]*?,(?=\s*(?:$|\*|\n|[A-Za-z_$][\w$-]*\s*=))/.exec(following) ?? [];
  if (before === undefined) return [];
  const span = { start: start + length + before.length - 1, length: 1 };
  return [{ description: "Remove the comma", changes: [{ span, newText: "" }] }];
}

/** Turns `/* @redisLock ... *\/` or `// @redisLock ...` into a doc comment. */
function asJsDoc(found: Found): readonly Fix[] {
  const { file, start } = found;
  const comments = [...commentsThatMentionIt(found)].map(({ comment }) => comment);
  return comments
    .filter((comment) => comment.start <= start && start < comment.end)
    .map((comment) => {
      const text = file.text.slice(comment.start, comment.end);
      const words = text.slice("//".length).trim();
      const span = { start: comment.start, length: text.length };
      const change = text.startsWith("//")
        ? { span, newText: `/** ${words} */` }
        : inserted(comment.start + "/*".length, "*");
      return { description: "Begin the comment with `/**`", changes: [change] };
    });
}

function onItsOwnLine({ file: { text }, start }: Found): readonly Fix[] {
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  const before = text.slice(lineStart, start);
  const [, indent = "", mark = ""] = /^(\s*)(\/\*\*|\*)?/.exec(before) ?? [];
  const margin = mark === "*" ? indent : `${indent} `;
  const blanks = before.length - before.trimEnd().length;
  const span = { start: start - blanks, length: blanks };
  return [{ description: "Put the tag on a line of its own", changes: [{ span, newText: `\n${margin}* ` }] }];
}

function withoutParentheses({ start, length, words, file: { text } }: Found): readonly Fix[] {
  const inside = words.replace(/^\(\s*/, "").replace(/\s*\)$/, "");
  const blank = /\s/.test(text.charAt(start - 1)) ? "" : " ";
  const changes = [{ span: { start, length }, newText: `${blank}${inside}` }];
  return [{ description: "Remove the parentheses", changes }];
}

function trueOrFalse({ words }: Found): string[] {
  const word = nearest(words, ["true", "false"]);
  if (/^(?:yes|y|on|1)$/i.test(words) || word === "true") return ["true"];
  return /^(?:no|n|off|0)$/i.test(words) || word === "false" ? ["false"] : [];
}

/** Replaces `5sec` by `5s`. A number without a known unit has no obvious fix. */
function withShortUnit(found: Found): readonly Fix[] {
  const [, amount = "", word = ""] = /^(\d+(?:\.\d+)?)([a-z]+)$/i.exec(found.words) ?? [];
  const unit = unitCalled(word);
  // If the unit is correct, the amount is wrong.
  return unit === undefined || unit === word ? [] : [changeTo(found, `${amount}${unit}`)];
}

/** Adds `async` to the function whose tag has the problem. */
function makeAsync(found: Found): readonly Fix[] {
  const { file, start } = found;
  const fn = editableTagsIn(found).find(({ tag }) => tag.word.start === start)?.fn;
  if (fn === undefined) return [];
  const modifier = fn.modifiers?.at(-1);
  const after = modifier === undefined ? fn.getStart(file) : modifier.end;
  const newText = modifier === undefined ? "async " : " async";
  return [{ description: "Make the function `async`", changes: [inserted(after, newText)] }];
}
