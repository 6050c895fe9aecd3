import test from "ava";
import * as fc from "fast-check";
import ts from "typescript";
import type { Span } from "../../../transformer/text/span";
import { mayHaveTags } from "../../../transformer/read/spelling";
import { parseTags, type Tag } from "../../../transformer/read/tag";
import { weave } from "../../../transformer/weave/weave";

/** Reads the first tag of a text that is only a comment. */
function tagOf(comment: string): { tag: Tag | undefined; problems: string[] } {
  const { tags, problems } = parseTags(comment, { start: 0, end: comment.length });
  return { tag: tags[0], problems: problems.map(({ code }) => code) };
}

function attributesOf(comment: string): Record<string, string[]> {
  const { tag, problems } = tagOf(comment);
  if (problems.length > 0) return { problems };
  return Object.fromEntries(
    (tag?.attributes ?? []).map(({ name, items }) => [name.text, items.map(({ text }) => text)]),
  );
}

const PAY = { businessFlag: ["pay"], keyName: ["orderNo"] };

const LAYOUTS: Record<string, string> = {
  "one line": "/** @redisLock businessFlag=pay keyName=orderNo */",
  "one line without spaces": "/**@redisLock businessFlag=pay keyName=orderNo*/",
  "one line with stars at its end": "/** @redisLock businessFlag=pay keyName=orderNo **/",
  "one line with three stars": "/***\n * @redisLock businessFlag=pay keyName=orderNo\n ***/",
  "a line for each attribute": "/**\n * @redisLock\n *   businessFlag=pay\n *   keyName=orderNo\n */",
  "no margins": "/**\n@redisLock\nbusinessFlag=pay\nkeyName=orderNo\n*/",
  "blank lines between":
    "/**\n *\n * @redisLock\n *\n *   businessFlag=pay\n *\n *   keyName=orderNo\n *\n */",
  "Windows line breaks": "/**\r\n * @redisLock businessFlag=pay\r\n *   keyName=orderNo\r\n */",
  "line breaks of the classic Mac OS": "/**\r * @redisLock businessFlag=pay\r *   keyName=orderNo\r */",
  tabs: "/**\n\t*\t@redisLock\tbusinessFlag=pay\n\t*\t\tkeyName=orderNo\t*/",
  "spaces around the equals sign": "/** @redisLock businessFlag = pay keyName= orderNo */",
  "an equals sign on the next line": "/**\n * @redisLock businessFlag=pay keyName\n *   = orderNo\n */",
  "other tags around":
    "/**\n * Pays.\n *\n * @param orderNo of what=this\n * @redisLock businessFlag=pay\n *   keyName=orderNo\n * @returns a=b\n */",
  "non-ASCII text before":
    "/**\n * Bezahlt 🔒 größere Beträge. 支付\n *\n * @redisLock businessFlag=pay keyName=orderNo\n */",
  "double quotes": '/** @redisLock businessFlag="pay" keyName="orderNo" */',
  "single quotes": "/** @redisLock businessFlag='pay' keyName='orderNo' */",
  backticks: "/** @redisLock businessFlag=`pay` keyName=`orderNo` */",
  "quotes without spaces between": `/** @redisLock businessFlag="pay"keyName='orderNo'*/`,
  "an email address at the start of another line":
    "/**\n * @redisLock businessFlag=pay keyName=orderNo\n * @author a@b.c x=1\n */",
};

for (const [layout, comment] of Object.entries(LAYOUTS)) {
  test(`a tag is read from a comment with ${layout}`, (t) => {
    t.deepEqual(attributesOf(comment), PAY);
  });
}

test("a list may have spaces and line breaks around its commas, and quoted items", (t) => {
  t.deepEqual(attributesOf("/** @redisLock keyName=a,b.c , this.d,\n *   e */"), {
    keyName: ["a", "b.c", "this.d", "e"],
  });
  t.deepEqual(attributesOf(`/** @redisLock keyName=a,"b, c",'d = "e"',\`f\` */`), {
    keyName: ["a", "b, c", 'd = "e"', "f"],
  });
});

test("an unquoted value may contain anything but spaces, commas, quotes, and equals signs", (t) => {
  t.deepEqual(attributesOf("/** @redisLock businessFlag=pay/größe🔒@v2 keyName=order?.lines[0].#id */"), {
    businessFlag: ["pay/größe🔒@v2"],
    keyName: ["order?.lines[0].#id"],
  });
});

test("a value may contain an `@` anywhere, and a quoted value may contain a JSDoc tag", (t) => {
  for (const value of ["ops@example.com", "@acme/pay", "@internal", "pay@internal", "pay@"]) {
    t.deepEqual(attributesOf(`/** @redisLock businessFlag=${value} */`), { businessFlag: [value] });
  }
  for (const value of ["@internal", "pay @internal", " @param a=b "]) {
    t.deepEqual(attributesOf(`/** @redisLock key= "${value}" */`), { key: [value] });
  }
  t.deepEqual(attributesOf("/** @redisLock businessFlag= @acme/pay */"), { businessFlag: ["@acme/pay"] });
});

test("a quoted value keeps its spaces, equals signs, and other quotes", (t) => {
  t.deepEqual(attributesOf(`/** @redisLock businessFlag="  pay='now', \`x\`  " */`), {
    businessFlag: ["  pay='now', `x`  "],
  });
});

test("a quoted value over two lines keeps its line break, with spaces for the margin", (t) => {
  const comment = '/**\n * @redisLock keyName="a +\n *   b"\n */';
  const [item] = tagOf(comment).tag?.attributes[0]?.items ?? [];
  t.is(item?.text, "a +\n     b");
  t.is(comment.slice(item?.start, item?.end), "a +\n *   b");
});

test("a tag without attributes is read as a tag", (t) => {
  t.deepEqual(attributesOf("/** @redisLock */"), {});
  t.is(tagOf("/** @redisLock */").tag?.word.text, "@redisLock");
});

test("the span of a quoted item is the text between the quotes", (t) => {
  const comment = '/** @redisLock keyName="a.b" */';
  const [item] = tagOf(comment).tag?.attributes[0]?.items ?? [];
  t.true(item?.quoted);
  t.is(comment.slice(item?.start, item?.end), "a.b");
});

test("every tag of a comment is found", (t) => {
  const comment = "/**\n * @redisLock businessFlag=a\n * @see b\n * @redisLock businessFlag=c\n */";
  const { tags } = parseTags(comment, { start: 0, end: comment.length });
  t.deepEqual(
    tags.map(({ attributes }) => attributes[0]?.items[0].text),
    ["a", "c"],
  );
});

test("offsets count from the start of the file", (t) => {
  const before = "const größe = '🔒';\r\n";
  const comment = "/** @redisLock businessFlag=pay */";
  const text = `\uFEFF${before}${comment} async function pay() {}`;
  const start = text.indexOf("/**");
  const { tags } = parseTags(text, { start, end: start + comment.length });
  const [attribute] = tags[0]?.attributes ?? [];
  const word = (span: Span | undefined): string => text.slice(span?.start, span?.end);
  t.is(word(tags[0]?.word), "@redisLock");
  t.is(word(attribute?.name), "businessFlag");
  t.is(word(attribute?.items[0]), "pay");
});

// ---- any tag in any layout ------------------------------------------------------------------------------

const name = fc.stringMatching(/^[A-Za-z_$][A-Za-z0-9_$-]{0,8}$/);
const bare = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 8 })
  .filter((value) => !/[\s,"'`=]|\*|;$/u.test(value));
const quoted = fc
  .tuple(
    fc.constantFrom('"', "'", "`"),
    fc.array(fc.constantFrom("a", "é", "🔒", " ", ",", "=", "@", "/", '"', "'", "`", "."), { maxLength: 8 }),
  )
  .map(([quote, parts]) => ({ quote, value: parts.filter((part) => part !== quote).join("") }));
const item = fc.oneof(
  bare.map((value) => ({ quote: "", value })),
  quoted,
);
const attribute = fc.record({
  name,
  items: fc.array(fc.record({ item, comma: fc.constantFrom(",", ", ", " ,", " , ") }), {
    minLength: 1,
    maxLength: 3,
  }),
  equals: fc.constantFrom("=", " = ", "= "),
  gap: fc.constantFrom(" ", "  ", "\t", "LINE", "LINE  "),
});
const layout = fc.record({
  lineBreak: fc.constantFrom("\n", "\r\n", "\r"),
  margin: fc.constantFrom("", "   ", " * ", "\t *\t", "*", " *** "),
  prose: fc.constantFrom("", "Pays 🔒.", "{@link Order} größer"),
  before: fc.constantFrom("", "\uFEFF", "const größe = 1; ", "🔒"),
  after: fc.constantFrom("", "LINE", "LINE@returns x=1"),
});

test("any tag in any layout is read, with each word at its offsets", (t) => {
  const property = fc.property(fc.array(attribute, { maxLength: 5 }), layout, (attributes, page) => {
    const line = `${page.lineBreak}${page.margin}`;
    const words = attributes.map(({ name: word, items, equals, gap }) => {
      const list = items
        .map(
          ({ item: { quote, value }, comma }, index) => `${index === 0 ? "" : comma}${quote}${value}${quote}`,
        )
        .join("");
      return `${gap.replace("LINE", line)}${word}${equals}${list}`;
    });
    const prose = page.prose === "" ? "" : ` ${page.prose}${line}`;
    const comment = `/**${prose}@redisLock${words.join("")}${page.after.replace("LINE", line)} */`;
    const text = `${page.before}${comment}\nasync function pay() {}`;
    const start = page.before.length;
    const { tags, problems } = parseTags(text, { start, end: start + comment.length });
    t.deepEqual(problems, [], text);
    t.is(tags.length, 1);
    const [tag] = tags;
    t.deepEqual(
      tag?.attributes.map(({ name: word, items }) => [word.text, ...items.map((value) => value.text)]),
      attributes.map(({ name: word, items }) => [word, ...items.map((value) => value.item.value)]),
      text,
    );
    for (const { name: word, items } of tag?.attributes ?? []) {
      for (const span of [word, ...items]) t.is(text.slice(span.start, span.end), span.text);
      for (const value of items) {
        t.is(
          /["'`]/.test(text.charAt(value.start - 1)) && /["'`]/.test(text.charAt(value.end)),
          value.quoted,
        );
      }
    }
  });
  t.notThrows(() => fc.assert(property, { numRuns: 500 }));
});

test("no comment makes the parser throw or return offsets outside of the comment", (t) => {
  const piece = fc.constantFrom(
    ..." \n\t*/@=,\"'`aé🔒#[]".split(""),
    "@redisLock",
    "businessFlag=",
    "keyName",
    "\r\n",
    "@param",
  );
  const property = fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
    const comment = `/** @redisLock ${pieces.join("").replaceAll("*/", "")} */`;
    const { tags, problems } = parseTags(comment, { start: 0, end: comment.length });
    for (const { start, end } of [...tags.map(({ word }) => word), ...problems]) {
      t.true(start >= 0 && start < end && end <= comment.length, JSON.stringify(comment));
    }
  });
  t.notThrows(() => fc.assert(property, { numRuns: 500 }));
});

// ---- what is not a tag ----------------------------------------------------------------------------------

const MENTIONS: Record<string, string> = {
  "a string": `export const a = "@redisLock businessFlag=x";`,
  "a string that looks like a comment": `export const a = "/** @redisLock businessFlag=x */";`,
  "a template": "export const a = `/** @redisLock businessFlag=x */`;",
  "the middle of a template": "export const a = `${1} /** @redisLock businessFlag=x */ ${2}`;",
  "the end of a template": "export const a = `${1} /** @redisLock businessFlag=x */`;",
  "a tagged template": "export const a = String.raw`// @redisLock businessFlag=x`;",
  "a template type": "export type A = `/** @redisLock businessFlag=x */`;",
  "JSX text": "export const a = <p>/** @redisLock businessFlag=x */</p>;",
  "JSX text in brackets":
    "export const a = <p>(/** @redisLock businessFlag=x */) {1} [// @redisLock a=b\n]</p>;",
  "a JSX attribute": `export const a = <p title="/** @redisLock businessFlag=x */" />;`,
  "a regular expression": "export const a = /[/]** @redisLock businessFlag=x/;",
  "a decorator":
    "export class A { @redisLock() async pay() {} @redislock({ businessFlag: 'x' }) async ship() {} }",
  "a decorator with a comment after it": "export class A { @redisLock /* soon */ async pay() {} }",
  "an identifier": "const redisLock = 1; export const a = { redisLock };",
  "a line comment": "// Functions take a @redisLock.\nexport const a = 1;",
  "a line comment, in backticks": "// Put `@redisLock businessFlag=x` here.\nexport const a = 1;",
  "a block comment": "/* Functions take a @redisLock. */ export const a = 1;",
  "a JSDoc comment": "/** Functions take a @redisLock, see there. */ export const a = 1;",
  "a JSDoc comment, in backticks": "/** Put `@redisLock businessFlag=x` there. */ export const a = 1;",
  "a link": "/** {@link redisLock} */ export const a = 1;",
  "another tag's text": "/**\n * @see the @redisLock tag\n */ export const a = 1;",
  "a tag of another tool that has a key and a mode":
    "/** @cache key=orderNo mode=strict */ export async function pay() {}",
  "a JSDoc tag with a Lockweave attribute":
    "/**\n * @example businessFlag=x\n * @param lockTime=20 the time\n */ export async function pay() {}",
  "a tag that shares letters with `@redisLock`":
    "/** @reduxBlock @required @islands @stock @lock */ export const a = 1;",
  "an email address": "/** me@redislock.example */ export const a = 1;",
  "a directive": `"@redisLock"; export const a = 1;`,
  "a tag that is commented out": "// /** @redisLock businessFlag=x */\nexport async function pay() {}",
  "a tag that is commented out line by line":
    "// /**\n//  * @redisLock\n//  *   businessFlag=x\n//  */\nexport async function pay() {}",
  "an indented tag that is commented out":
    "//   /**\n//    * @redisLock businessFlag=x\n//    */\nexport async function pay() {}",
};

for (const [place, text] of Object.entries(MENTIONS)) {
  test(`the weave finds no tag in ${place}`, (t) => {
    t.is(weave("a.tsx", text, { ts, module: "esm" }), undefined);
  });
}

test("the quick search for tags misses no name with up to two typos", (t) => {
  const slip = fc.record({
    at: fc.nat(8),
    kind: fc.constantFrom("drop", "add", "change", "separate"),
    letter: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz".split("")),
  });
  const slips = fc.array(slip, { maxLength: 2 });
  const property = fc.property(slips, fc.boolean(), (made, isUpperCase) => {
    const letters = "redislock".split("");
    for (const { at, kind, letter } of made) {
      if (kind === "drop") letters[at] = "";
      else if (kind === "add") letters[at] += letter;
      else if (kind === "change") letters[at] = letter;
      else if (at > 0) letters[at] = `-${letters[at] ?? ""}`;
    }
    const spelling = isUpperCase ? letters.join("").toUpperCase() : letters.join("");
    fc.pre(/^[a-z]/i.test(spelling));
    const text = `/** @${spelling} businessFlag=x keyName=a */ export async function pay(a) {}`;
    t.true(mayHaveTags(`@${spelling} `), spelling);
    t.not(weave("a.ts", text, { ts, module: "esm" }), undefined, spelling);
  });
  t.notThrows(() => fc.assert(property, { numRuns: 2_000 }));
});
