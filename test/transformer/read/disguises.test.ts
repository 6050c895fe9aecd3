import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";

const FUNCTION = "export async function pay(orderNo: string, id: string) {}";

/** Returns what the weave reports at a comment above a function, such as `LW1007 @redis-Lock`, and how many locks it weaves. */
function foundAt(comment: string, code = FUNCTION): { errors: string[]; warnings: string[]; locks: number } {
  const text = `${comment}\n${code}`;
  const { diagnostics = [], warnings = [], sites = [] } = weave("a.ts", text, { ts, module: "esm" }) ?? {};
  const worded = (found: (typeof diagnostics)[number]): string =>
    `${found.code} ${text.slice(found.start, found.end)}`;
  return { errors: diagnostics.map(worded), warnings: warnings.map(worded), locks: sites.length };
}

/** Every character of a Unicode property. */
function allOf(property: RegExp): string[] {
  const codes = Array.from({ length: 0x1_10_00 }, (_, code) => String.fromCodePoint(code));
  return codes.filter((character) => property.test(character));
}

// ---- disguised tags -------------------------------------------------------------------------------------

const JOINERS = [
  ...allOf(/\p{Dash_Punctuation}/u),
  ...allOf(/\p{Format}/u),
  ...allOf(/\p{Default_Ignorable_Code_Point}/u).filter((_, index) => index % 7 === 0),
  ...Array.from("$_-.\u00b7~*:/&+|'\u00b4^\\ "),
  "&shy;",
  "&#8208;",
  "&#x2010;",
  "&hyphen;",
  "&zwj;",
];

const NAMES = [
  ...JOINERS.map((joiner) => `@redis${joiner}Lock`),
  ...["&#64;", "&#x40;", "&commat;", "\uff20", "\ufe6b", "@ ", "\\@", "@@", "\u200b@", "@/", "<b>@"].map(
    (mark) => `${mark}redisLock`,
  ),
  // Letters that look like Latin ones: Cyrillic, small capitals, mathematical, in circles, with accents, digits.
  "@\u0433\u0435\u0501\u0456\u0455\u04cf\u043e\u0441\u043a",
  "@\u0280\u1d07\u1d05\u026a\ua731\u029f\u1d0f\u1d04\u1d0b",
  "@\u{1d42b}\u{1d41e}\u{1d41d}\u{1d422}\u{1d42c}\u{1d40b}\u{1d428}\u{1d41c}\u{1d424}",
  "@\u24e1\u24d4\u24d3\u24d8\u24e2\u24c1\u24de\u24d2\u24da",
  "@r\u00e9d\u00eesL\u00f6ck",
  "@r3disL0ck",
  "@redi$Lock",
];

const MARKUP = [
  ["", ""],
  ["_", "_"],
  ["*", "*"],
  ["**", "**"],
  ["__", "__"],
  ["~~", "~~"],
  ["<b>", "</b>"],
  ["[", "](https://example.org)"],
  ["(", ")"],
] as const;

const ATTRIBUTES = ["businessFlag=pay keyName=orderNo", "keyName=orderNo", 'key="pay:${id}"'];

const FRAMES: readonly ((tag: string) => string)[] = [
  (tag) => `/** ${tag} */`,
  (tag) => `/**\n * Pays.\n *\n * ${tag}\n * @param id the order\n */`,
  (tag) => `/**\n * - ${tag}\n */`,
  (tag) => `/**\n * > ${tag}\n */`,
  (tag) => `/** Pays, under ${tag} */`,
  (tag) => `/* ${tag} */`,
  (tag) => `// TODO ${tag}`,
];

test("a disguised tag with a Lockweave attribute is an error in every spelling and markup", (t) => {
  let forms = 0;
  for (const name of NAMES) {
    for (const [open, close] of MARKUP) {
      for (const attributes of ATTRIBUTES) {
        const tags = [`${open}${name}${close} ${attributes}`, `${open}${name} ${attributes}${close}`];
        for (const tag of tags) {
          const comment = FRAMES[forms % FRAMES.length]?.(tag) ?? "";
          if (foundAt(comment).errors.length === 0) t.fail(JSON.stringify(comment));
          forms += 1;
        }
      }
    }
  }
  t.true(forms > 5_000);
});

test("a disguised tag at the start of a JSDoc line is an error even without attributes", (t) => {
  for (const name of ["@redis\u2010Lock", "@redis$Lock", "&#64;redisLock", "@redis&shy;Lock"]) {
    t.deepEqual(foundAt(`/** ${name} */`).errors, [`LW1007 ${name}`]);
    t.deepEqual(foundAt(`// ${name}`), { errors: [], warnings: [], locks: 0 });
  }
});

test("the error is at the disguised name as it is written", (t) => {
  for (const [comment, ...errors] of [
    ["/** @redis\u2010Lock businessFlag=pay */", "LW1007 @redis\u2010Lock"],
    ["/** @redis$Lock businessFlag=pay */", "LW1007 @redis$Lock"],
    ["/** _@redisLock businessFlag=pay_ */", "LW1009 @redisLock"],
    ["/** &#64;redisLock businessFlag=pay */", "LW1007 &#64;redisLock"],
    ["/** See &#64;redis Lock: businessFlag=pay */", "LW1007 &#64;redis Lock"],
    ["// TODO &#x40;redisLock (businessFlag=pay)", "LW1007 &#x40;redisLock"],
    ["/** **redisLock** businessFlag=pay */", "LW1007 **redisLock**"],
  ])
    t.deepEqual(foundAt(comment ?? "").errors, errors);
});

// ---- attributes without a tag ---------------------------------------------------------------------------

test("attributes without a tag get a warning above a function that could have a lock", (t) => {
  for (const [doc, attributes] of [
    ["§", "businessFlag=pay"],
    ["§", 'key="pay:${id}" lockTime=20s'],
    ["Pays.\n * §\n * @param id the order", "businessFlag=pay keyName=orderNo"],
    ["Pays. §", "businessFlag=pay keyName=orderNo"],
    ["§", 'lockTime = 20s\n *   businessFlag = "pay order"'],
  ] as const) {
    const comment = `/** ${doc.replace("§", attributes)} */`;
    t.deepEqual(foundAt(comment), { errors: [], warnings: [`LW1013 ${attributes}`], locks: 0 }, comment);
    for (const code of [
      "export function pay(orderNo: string) {}",
      "export const flag = 'pay';",
      "export interface Options { businessFlag: string }",
      "export abstract class A { abstract pay(): Promise<void> }",
    ])
      t.deepEqual(foundAt(comment, code), { errors: [], warnings: [], locks: 0 }, comment);
  }
});

test("attributes in prose or after another tag get no warning", (t) => {
  for (const comment of [
    "/** Sets businessFlag=pay in the settings. */",
    "/** Sets `businessFlag=pay keyName=orderNo`. */",
    "/**\n * @example businessFlag=pay keyName=orderNo\n */",
    "/**\n * @example\n * businessFlag=pay keyName=orderNo\n */",
    "/** lockTime=20s waitTime=5s */",
    "/**\n * Pays.\n *\n * Locked by: businessFlag=pay keyName=orderNo\n */", // As `lockweave eject` leaves it.
    "// businessFlag=pay keyName=orderNo",
  ])
    t.deepEqual(foundAt(comment), { errors: [], warnings: [], locks: 0 }, comment);
});

// ---- prose ----------------------------------------------------------------------------------------------

test("prose, code, addresses, and tags of other tools get no errors and no warnings", (t) => {
  for (const comment of [
    "/** Mail to locks@redislock.example?keyName=a or _me@redislock.example_. */",
    "/** Uses @redis/lock and @redis/client, with the key=value form. */",
    '/** { "redisLock": { "businessFlag": "pay", "lockTime": 20 } } */',
    '/** `{"redisLock": true}` and lockTime = 20 in the settings. */',
    "/** Waits for the redis lock; its key=value pairs are in the store. */",
    "/** Waits for the redisLock of `businessFlag=pay`. */",
    "/* redisLock.key = order.id; redisLock.lockTime = 20; */",
    "/* const redisLock = (key = 1, mode = 2) => key; */",
    "// if (redisLock && lockTime == 20) return redisLock(key => key);",
    "/** The redisLock has a lockTime=20 by default. */",
    "/** Put `@redis\u2010Lock businessFlag=pay` there. */",
    "/** `@redisLock businessFlag=pay` and `@redisLok businessFlag=pay keyName=orderNo` differ. */",
    "/** Write ``@redisLok businessFlag=pay``, or ` @redisLok businessFlag=pay `. */",
    "/** See ``businessFlag=pay keyName=orderNo``. */",
    "// Not ` @redisLok businessFlag=pay `.",
    "/** `@r3d1sL0ck businessFlag=pay keyName=orderNo` is no tag. */",
    "/** Functions take a @redis\u2010Lock, see there. */",
    "/** &#64;redisLock in prose: `businessFlag=pay` follows. */".replace("&#64;", "the &#64;"),
    "/** Fish &amp; chips, AT&T, &copy; 2020 key=a */",
    "/** See https://example.org/redis-lock?key=a&mode=b#lockTime=1 */",
    "/** @see https://example.org/@redislock/lock?key=a */",
    "/** @type {Promise<redisLock>} key=a */",
    "/** @redirect key=a @blocklist mode=b @disclosure lockTime of it */",
    "/** | redisLock | key | lockTime=20 | */",
    "// eslint-disable-next-line @redis/lock -- key=a",
    "/** @deprecated use redisLock, key=a */",
    "/** 支付 @锁 key=a, @файл key=b, 🔒 mode=c */",
  ])
    t.deepEqual(foundAt(comment), { errors: [], warnings: [], locks: 0 }, comment);
});
