import { ATTRIBUTE_NAMES } from "../../../../runtime/attributes/tag-attributes";
import { onMethod, SWITCHES, type Row } from "./row";

// The problems `LW10..`.

const ATTRIBUTES = `Expected one of ${ATTRIBUTE_NAMES.map((name) => `\`${name}\``).join(", ")}.`;
const REFUSED_TYPE = "`@redisLock` works only in a JSDoc comment. Fix: begin the comment with `/**`.";
const TWO_TAGS =
  "A function can have only one `@redisLock`. Fix: list several values in one tag: `keyName=a,b`.";

export const GRAMMAR: readonly Row[] = [
  {
    title: "a colon for `=`",
    source: onMethod("@redisLock «businessFlag:» pay keyName=orderNo"),
    code: "LW1001",
    message:
      "Expected an attribute such as `keyName=orderNo`, found `businessFlag:`. Fix: write `=` between a name and its value.",
  },
  {
    title: "two `=`",
    source: onMethod("@redisLock «businessFlag»==pay"),
    code: "LW1004",
    message: "Expected a value after `businessFlag=`.",
    also: ["LW1001"],
  },
  {
    title: "a semicolon between attributes",
    source: onMethod("@redisLock businessFlag=«pay;» keyName=orderNo"),
    code: "LW1012",
    message:
      "Expected a value, got `pay;`. Fix: separate attributes with spaces, or quote a value that contains a semicolon.",
  },
  {
    title: "a word without a value",
    source: onMethod("@redisLock businessFlag=pay «urgent»"),
    code: "LW1001",
    message: "Expected an attribute such as `keyName=orderNo`, found `urgent`.",
  },
  {
    title: "a colon after the tag",
    source: onMethod("@redisLock«:» businessFlag=pay"),
    code: "LW1001",
    message: "Expected an attribute such as `keyName=orderNo`, found `:`.",
  },
  {
    title: "prose after the attributes",
    source: onMethod("@redisLock businessFlag=pay «-» one at a time"),
    code: "LW1001",
    message: "Expected an attribute such as `keyName=orderNo`, found `-`. Fix: move prose before the tag.",
  },
  {
    title: "a code block above the tag that is not closed",
    source: onMethod("```ts\n   * await pay();\n   *\n   * «@redisLock» businessFlag=pay"),
    code: "LW1014",
    message:
      "A code block (```) in this comment is not closed, so this tag may be part of an example. Fix: close the block above the tag. If the tag is an example, close the block below it.",
  },
  {
    title: "a code block with other tags",
    source: onMethod("```ts\n   * «@redisLock» businessFlag=pay\n   * @example\n   * ```"),
    code: "LW1014",
    message:
      "This tag is in a code block (```) with other tags or with another ```. A closing ``` may be missing above it. Fix: close the block above the tag. If the tag is an example, put it in a code block of its own.",
  },
  {
    title: "another tag on the same line",
    source: onMethod("@redisLock businessFlag=pay «@internal»"),
    code: "LW1001",
    message:
      "Expected an attribute such as `keyName=orderNo`, found `@internal`. Fix: write `@internal` on a line of its own.",
  },
  {
    title: "another tag on the same line, whose text has an equals sign",
    source: onMethod("@redisLock businessFlag=pay «@param» orderNo if it=is new"),
    code: "LW1001",
    message:
      "Expected an attribute such as `keyName=orderNo`, found `@param`. Fix: write `@param` on a line of its own.",
  },
  {
    title: "another tag on the same line, before an attribute",
    source: onMethod("@redisLock «@internal» businessFlag=pay keyName=orderNo"),
    code: "LW1001",
    message:
      "Expected an attribute such as `keyName=orderNo`, found `@internal`. Fix: write `@internal` on a line of its own.",
  },
  {
    title: "another tag on the same line, after an attribute without a value",
    source: onMethod("@redisLock businessFlag=pay «watchdog» @internal"),
    code: "LW1001",
    message: "Expected a value after `watchdog`, such as `watchdog=true`.",
    also: ["LW1001"],
  },
  {
    title: "another tag instead of a value",
    source: onMethod("@redisLock «businessFlag»= @internal"),
    code: "LW1004",
    message: "Expected a value after `businessFlag=`.",
    also: ["LW1001"],
  },
  {
    title: "another tag instead of a value in a list",
    source: onMethod("@redisLock businessFlag=pay «keyName»=orderNo, @internal"),
    code: "LW1005",
    message:
      "Expected another value after the comma in `keyName=`. Fix: separate attributes with spaces, not commas.",
    also: ["LW1001"],
  },
  {
    title: "prose between the attributes, once for each piece",
    source: onMethod("@redisLock «locks» the order businessFlag=pay and nothing else keyName=orderNo"),
    code: "LW1001",
    message:
      "Expected an attribute such as `keyName=orderNo`, found `locks`. Fix: move prose before the tag.",
    also: ["LW1001"],
  },
  {
    title: "attributes in parentheses",
    source: onMethod("@redisLock«(businessFlag=pay)»"),
    code: "LW1011",
    message:
      "The attributes of `@redisLock` have no parentheses. Fix: write `@redisLock businessFlag=payOrder`.",
  },
  {
    title: "attributes in parentheses, with commas between them",
    source: onMethod("@redisLock«(businessFlag=pay, keyName=orderNo)»"),
    code: "LW1011",
    message:
      "The attributes of `@redisLock` have no parentheses. Fix: write `@redisLock businessFlag=payOrder`.",
  },
  {
    title: "an object in parentheses",
    source: onMethod(`@redisLock«({ businessFlag: "pay", keyName: "orderNo" })»`),
    code: "LW1011",
    message:
      "The attributes of `@redisLock` have no parentheses. Fix: write `@redisLock businessFlag=payOrder`.",
  },
  {
    title: "attributes in parentheses that do not close",
    source: onMethod("@redisLock «(» businessFlag=pay keyName=orderNo"),
    code: "LW1011",
    message:
      "The attributes of `@redisLock` have no parentheses. Fix: write `@redisLock businessFlag=payOrder`.",
  },
  {
    title: "a value without a name",
    source: onMethod("@redisLock «=orderNo» businessFlag=pay"),
    code: "LW1001",
    message: "Expected an attribute such as `keyName=orderNo`, found `=orderNo`.",
  },
  {
    title: "an element access without quotes around it",
    source: onMethod(`@redisLock businessFlag=pay keyName=order«["id"]»`).replace(`order«[`, `order[«`),
    code: "LW1001",
    message: 'Expected an attribute such as `keyName=orderNo`, found `"id"]`.',
    also: ["LW1201"],
  },
  {
    title: "a typo in `keyName`",
    source: onMethod("@redisLock businessFlag=pay «keyNmae»=orderNo"),
    code: "LW1002",
    message: "There is no attribute `keyNmae`. Did you mean `keyName`?",
  },
  {
    title: "a typo in `businessFlag`",
    source: onMethod("@redisLock «businesFlag»=pay"),
    code: "LW1002",
    message: "There is no attribute `businesFlag`. Did you mean `businessFlag`?",
  },
  {
    title: "an attribute in the wrong case",
    source: onMethod("@redisLock businessFlag=pay «Reentrant»=true"),
    code: "LW1002",
    message: "There is no attribute `Reentrant`. Did you mean `reentrant`?",
  },
  ...[
    ["ttl", "lockTime"],
    ["lease_time", "lockTime"],
    ["lockAtLeastFor", "lockAtLeast"],
    ["retryCount", "retryTimes"],
    ["condition", "when"],
  ].map(([name = "", ours = ""]) => ({
    title: `${name}, an attribute of other libraries`,
    source: onMethod(`@redisLock businessFlag=pay «${name}»=3`),
    code: "LW1002",
    message: `There is no attribute \`${name}\`. Did you mean \`${ours}\`?`,
  })),
  {
    title: "another name for `businessFlag`",
    source: onMethod("@redisLock «prefix»=pay keyName=orderNo"),
    code: "LW1002",
    message: "There is no attribute `prefix`. Did you mean `businessFlag`?",
  },
  ...SWITCHES.map((name) => ({
    title: `${name} without a value`,
    source: onMethod(`@redisLock businessFlag=pay keyName=orderNo «${name}»`),
    code: "LW1001",
    message: `Expected a value after \`${name}\`, such as \`${name}=true\`.`,
  })),
  {
    title: "prose that begins with the name of an attribute",
    source: onMethod("@redisLock businessFlag=pay keyName=orderNo «each» order by itself"),
    code: "LW1001",
    message: "Expected an attribute such as `keyName=orderNo`, found `each`. Fix: move prose before the tag.",
  },
  ...[
    ["sec", "s"],
    ["minutes", "m"],
    ["ms", "ms"],
  ].map(([unit = "", short = ""]) => ({
    title: `the unit ${unit} apart from its number`,
    source: onMethod(`@redisLock businessFlag=pay lockTime=5 «${unit}» keyName=orderNo`),
    code: "LW1001",
    message: `Expected an attribute such as \`keyName=orderNo\`, found \`${unit}\`. Fix: write the unit directly after its number: \`lockTime=5${short}\`.`,
  })),
  {
    title: "an unknown attribute",
    source: onMethod("@redisLock businessFlag=pay «colour»=green"),
    code: "LW1002",
    message: `There is no attribute \`colour\`. ${ATTRIBUTES}`,
  },
  {
    title: "a weight, because each caller takes one permit",
    source: onMethod('@redisLock businessFlag=pay permits=10 «weight»="order.lines.length"'),
    code: "LW1002",
    message: `There is no attribute \`weight\`. ${ATTRIBUTES}`,
  },
  {
    title: "an unknown attribute that every object has as a property",
    source: onMethod("@redisLock businessFlag=pay «constructor»=true"),
    code: "LW1002",
    message: `There is no attribute \`constructor\`. ${ATTRIBUTES}`,
  },
  {
    title: "an attribute given twice",
    source: onMethod("@redisLock businessFlag=pay lockTime=20 «lockTime»=30"),
    code: "LW1003",
    message: "The attribute `lockTime` appears twice. Fix: remove one of them.",
  },
  {
    title: "an attribute given twice on different lines",
    source: onMethod("@redisLock businessFlag=pay\n   *   keyName=orderNo\n   *   «businessFlag»=pay"),
    code: "LW1003",
    message: "The attribute `businessFlag` appears twice. Fix: remove one of them.",
  },
  {
    title: "a missing value at the end of the tag",
    source: onMethod("@redisLock businessFlag=pay «keyName»="),
    code: "LW1004",
    message: "Expected a value after `keyName=`.",
  },
  {
    title: "a missing value before another attribute",
    source: onMethod("@redisLock «businessFlag»= keyName=orderNo"),
    code: "LW1004",
    message: "Expected a value after `businessFlag=`.",
  },
  {
    title: "a missing value before another tag",
    source: onMethod("@redisLock businessFlag=pay «lockTime»=\n   * @returns the receipt"),
    code: "LW1004",
    message: "Expected a value after `lockTime=`.",
  },
  {
    title: "a list that ends in a comma",
    source: onMethod("@redisLock businessFlag=pay «keyName»=orderNo,"),
    code: "LW1005",
    message: "Expected another value after the comma in `keyName=`.",
  },
  {
    title: "a list that ends in a comma before another attribute",
    source: onMethod("@redisLock businessFlag=pay «keyName»=orderNo, lockTime=20"),
    code: "LW1005",
    message:
      "Expected another value after the comma in `keyName=`. Fix: separate attributes with spaces, not commas.",
  },
  {
    title: "an unclosed double quote",
    source: onMethod(`@redisLock businessFlag=pay keyName=«"orderNo»`),
    code: "LW1006",
    message: 'This quote is not closed. Expected another " before the end of the tag.',
  },
  {
    title: "an unclosed single quote with attributes after it",
    source: onMethod(`@redisLock keyName=orderNo businessFlag=«'pay lockTime=20»`),
    code: "LW1006",
    message: "This quote is not closed. Expected another ' before the end of the tag.",
  },
  {
    title: "an unclosed backtick in a list",
    source: onMethod("@redisLock businessFlag=pay keyName=orderNo, «`order.id»"),
    code: "LW1006",
    message: "This quote is not closed. Expected another ` before the end of the tag.",
  },
  {
    title: "a quote that is closed only after the next tag",
    source: onMethod(`@redisLock businessFlag=«"pay»\n   * @see the "manual"`),
    code: "LW1006",
    message: 'This quote is not closed. Expected another " before the end of the tag.',
  },
  ...[
    ["@RedisLock", "@redislock", "@redis-lock", "@redis_lock", "@REDISLOCK"],
    ["@redisLok", "@reidsLock", "@redisLocks", "@RedisLocks", "@redisLocked", "@redisLoc", "@RedislLock"],
    ["@RedisLok", "@redisLock-", "@redis.lock", "@redis lock", "@rdisLok", "@reddisslock", "@lock", "@mutex"],
    ["@redlock", "@redisLocking", "@redis:lock"],
  ]
    .flat()
    .map((tag) => ({
      title: `the misspelled tag ${tag}`,
      source: onMethod(`«${tag}» businessFlag=pay keyName=orderNo`),
      code: "LW1007",
      message: `There is no tag \`${tag}\`. Did you mean \`@redisLock\`?`,
    })),
  ...[
    ["an invisible character after the `@`", "@\u200bredisLock"],
    ["an invisible character in its name", "@redis\u200bLock"],
    ["a letter of another alphabet", "@r\u0435disLock"],
    ["a full-width `@`", "\uff20redisLock"],
    ["no `@`", "redisLock"],
    ["no `@`, in capitals", "RedisLock"],
    ["no `@`, and a hyphen", "redis-lock"],
    ["a space after the `@`", "@ redisLock"],
    ["another mark", "#redisLock"],
    ["full-width letters", "\uff20\uff52\uff45\uff44\uff49\uff53\uff2c\uff4f\uff43\uff4b"],
    ["two letters of another alphabet at its end", "@redisL\u043e\u0441k"],
    ["a soft hyphen", "@redis\u00adLock"],
  ].flatMap(([what = "", tag = ""]) =>
    ["businessFlag=pay keyName=orderNo", 'key="pay:${orderNo}"'].map((attributes) => ({
      title: `a tag with ${what}, and ${attributes}`,
      source: onMethod(`«${tag}» ${attributes}`),
      code: "LW1007",
      message: `There is no tag \`${tag}\`. Did you mean \`@redisLock\`?`,
    })),
  ),
  {
    title: "a tag with a full-width `@` and a full-width `=`",
    source: onMethod("«\uff20redisLock» businessFlag\uff1dpay"),
    code: "LW1007",
    message: "There is no tag `\uff20redisLock`. Did you mean `@redisLock`?",
  },
  ...[
    ["a hyphen", "«@mutex» - businessFlag=pay"],
    ["a comma", "«@mutex», businessFlag=pay"],
    ["a brace", "«@mutex» { businessFlag=pay }"],
    ["a parenthesis and a quote", '«@mutex»("businessFlag=pay")'],
    ["a colon and a name", "«@mutex»:redis businessFlag=pay"],
    ["a slash and a name", "«@mutex»/redis businessFlag=pay"],
    ["a name", "«@mutex» redisLock businessFlag=pay"],
    ["a hyphen without a space", "«@mutex-businessFlag»=pay"],
  ].map(([what = "", tag = ""]) => ({
    title: `the tag's attributes after another tag and ${what}`,
    source: onMethod(tag),
    code: "LW1007",
    message: `There is no tag \`${/«(.*)»/.exec(tag)?.[1] ?? ""}\`. Did you mean \`@redisLock\`?`,
  })),
  {
    title: "an invisible character before the tag",
    source: onMethod("\u200b@redisLock businessFlag=pay").replace("\u200b@redisLock", "«\u200b@redisLock»"),
    code: "LW1007",
    message: "There is no tag `\u200b@redisLock`. Did you mean `@redisLock`?",
  },
  {
    title: "a tag in braces",
    source: onMethod("{«@redisLock» businessFlag=pay keyName=orderNo}"),
    code: "LW1009",
    message:
      "`@redisLock` must be at the start of its line in the comment. Fix: move it to a line of its own.",
  },
  {
    title: "an invisible character in the flag",
    source: onMethod("@redisLock businessFlag=«pay\u200b» keyName=orderNo"),
    code: "LW1102",
    message: "Expected `businessFlag` to be printable, non-empty text, got `pay\u200b`.",
  },
  {
    title: "a tag in a line comment",
    source: "// «@redisLock» businessFlag=pay\nexport async function pay() {}",
    code: "LW1008",
    message: REFUSED_TYPE,
  },
  {
    title: "a tag in a line comment after other words",
    source: "// TODO «@redisLock» businessFlag=pay\nexport async function pay() {}",
    code: "LW1008",
    message: REFUSED_TYPE,
  },
  {
    title: "a tag in a plain block comment",
    source: "/* «@redisLock» businessFlag=pay */\nexport const pay = async () => work();",
    code: "LW1008",
    message: REFUSED_TYPE,
  },
  {
    title: "a tag in a plain block comment of several lines",
    source: "/*\n * «@redisLock»\n *   businessFlag=pay\n */\nexport const pay = async () => work();",
    code: "LW1008",
    message: REFUSED_TYPE,
  },
  {
    title: "a tag in the middle of a line",
    source: onMethod("Pays under «@redisLock» businessFlag=pay"),
    code: "LW1009",
    message:
      "`@redisLock` must be at the start of its line in the comment. Fix: move it to a line of its own.",
  },
  {
    title: "a tag with a colon in the middle of another tag's line",
    source: onMethod("@see foo «@redisLock»: businessFlag=pay"),
    code: "LW1009",
    message:
      "`@redisLock` must be at the start of its line in the comment. Fix: move it to a line of its own.",
  },
  {
    title: "a misspelled tag in the middle of a line",
    source: onMethod("Pays. «@redisLok» businessFlag=pay"),
    code: "LW1009",
    message:
      "`@redisLock` must be at the start of its line in the comment. Fix: move it to a line of its own.",
  },
  {
    title: "a misspelled tag without attributes",
    source: onMethod("«@redisLok»"),
    code: "LW1007",
    message: "There is no tag `@redisLok`. Did you mean `@redisLock`?",
  },
  {
    title: "a misspelled tag in a line comment",
    source: "// «@redisLok» businessFlag=pay\nexport async function pay() {}",
    code: "LW1008",
    message: REFUSED_TYPE,
  },
  {
    title: "two tags in one comment",
    source: onMethod("@redisLock businessFlag=pay\n   * «@redisLock» businessFlag=ship"),
    code: "LW1010",
    message: TWO_TAGS,
  },
  {
    title: "two tags in two comments",
    source:
      "/** @redisLock businessFlag=pay */\n/** «@redisLock» businessFlag=ship */\nexport async function pay() {}",
    code: "LW1010",
    message: TWO_TAGS,
  },
  {
    title: "two tags around a modifier",
    source:
      "export class A {\n  /** @redisLock businessFlag=a */ public /** «@redisLock» businessFlag=b */ async pay() {}\n}",
    code: "LW1010",
    message: TWO_TAGS,
  },
];
