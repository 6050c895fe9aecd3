import { readFileSync } from "node:fs";
import path from "node:path";
import test from "ava";
import ts from "typescript";
import { ATTRIBUTE_NAMES, ATTRIBUTES as TABLE } from "../../../runtime/attributes/tag-attributes";
import { readDefaults } from "../../../transformer/read/options";
import { weave } from "../../../transformer/weave/weave";

/** The reported words of `source` are between « and ». The first problem is the expected one. */
interface Row {
  readonly title: string;
  readonly source: string;
  readonly code: string;
  readonly message: string;
  /** The codes of the other problems, if one mistake looks like several. */
  readonly also?: readonly string[];
  /** The source has no function body that could refuse to run. */
  readonly bodiless?: true;
  readonly fileName?: string;
}

/** A module with a tagged async method of three parameters. */
function onMethod(tag: string): string {
  return `export class OrderService {
  /**
   * Pays.
   *
   * ${tag}
   */
  async pay(orderNo: string, order: Order, { tenant, lines: [first] }: Cart): Promise<Receipt> {
    return this.charge(orderNo, order, tenant, first);
  }
}`;
}

const ESM = { ts, module: "esm" } as const;
const ATTRIBUTES = `There are ${ATTRIBUTE_NAMES.map((name) => `\`${name}\``).join(", ")}.`;
const SWITCHES = ATTRIBUTE_NAMES.filter((name) => TABLE[name].kind === "switch");
const PARAMETERS = "It has `orderNo`, `order`, `tenant`, `first`.";
const DURATION_IN_SECONDS =
  "a duration such as `500ms`, `20s`, or `2m` (a bare number is in s), at least 100 ms and at most 24 hours";
const DURATION_IN_MS =
  "a duration such as `500ms`, `20s`, or `2m` (a bare number is in ms), at most 24 hours";
const REFUSED_TYPE = "`@redisLock` works only in a JSDoc comment. Begin the comment with `/**`.";
const ELSEWHERE = (what: string): string =>
  `${NO_FUNCTION(what)} The function is declared elsewhere, and would run unlocked. Put the tag on its declaration.`;
const NO_FUNCTION = (what: string): string => `\`@redisLock\` locks functions, but this is ${what}.`;
const DANGLING = "There is nothing to lock after this `@redisLock`. Put it directly before a function.";
const TWO_TAGS =
  "A function can have only one `@redisLock`. To lock several values, list them: `keyName=a,b`.";
const KEY_TYPES = "Expected `keyType` to be `VALUE`, `CLASS`, or `JSON`";

const GRAMMAR: readonly Row[] = [
  {
    title: "a colon for `=`",
    source: onMethod("@redisLock «businessFlag:» pay keyName=orderNo"),
    code: "LW1001",
    message:
      "Expected an attribute such as `keyName=orderNo`, found `businessFlag:`. Write `=` between a name and its value.",
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
      "Expected a value, got `pay;`. Separate attributes with spaces, not semicolons. Quote a value that contains a semicolon.",
  },
  {
    title: "a bare word",
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
    message: "Expected an attribute such as `keyName=orderNo`, found `-`. Prose goes before the tag.",
  },
  {
    title: "another tag on the same line",
    source: onMethod("@redisLock businessFlag=pay «@internal»"),
    code: "LW1001",
    message:
      "Expected an attribute such as `keyName=orderNo`, found `@internal`. Write `@internal` on a line of its own.",
  },
  {
    title: "another tag on the same line, whose text has an equals sign",
    source: onMethod("@redisLock businessFlag=pay «@param» orderNo if it=is new"),
    code: "LW1001",
    message:
      "Expected an attribute such as `keyName=orderNo`, found `@param`. Write `@param` on a line of its own.",
  },
  {
    title: "another tag on the same line, before an attribute",
    source: onMethod("@redisLock «@internal» businessFlag=pay keyName=orderNo"),
    code: "LW1001",
    message:
      "Expected an attribute such as `keyName=orderNo`, found `@internal`. Write `@internal` on a line of its own.",
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
      "Expected another value after the comma in `keyName=`. Separate attributes with spaces, not commas.",
    also: ["LW1001"],
  },
  {
    title: "prose between the attributes, once for each piece",
    source: onMethod("@redisLock «locks» the order businessFlag=pay and nothing else keyName=orderNo"),
    code: "LW1001",
    message: "Expected an attribute such as `keyName=orderNo`, found `locks`. Prose goes before the tag.",
    also: ["LW1001"],
  },
  {
    title: "attributes in parentheses",
    source: onMethod("@redisLock«(businessFlag=pay)»"),
    code: "LW1011",
    message: "Write the attributes without parentheses: `@redisLock businessFlag=payOrder`.",
  },
  {
    title: "attributes in parentheses, with commas between them",
    source: onMethod("@redisLock«(businessFlag=pay, keyName=orderNo)»"),
    code: "LW1011",
    message: "Write the attributes without parentheses: `@redisLock businessFlag=payOrder`.",
  },
  {
    title: "an object in parentheses",
    source: onMethod(`@redisLock«({ businessFlag: "pay", keyName: "orderNo" })»`),
    code: "LW1011",
    message: "Write the attributes without parentheses: `@redisLock businessFlag=payOrder`.",
  },
  {
    title: "attributes in parentheses that do not close",
    source: onMethod("@redisLock «(» businessFlag=pay keyName=orderNo"),
    code: "LW1011",
    message: "Write the attributes without parentheses: `@redisLock businessFlag=payOrder`.",
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
    title: "a typing slip in `keyName`",
    source: onMethod("@redisLock businessFlag=pay «keyNmae»=orderNo"),
    code: "LW1002",
    message: "There is no attribute `keyNmae`. Did you mean `keyName`?",
  },
  {
    title: "a typing slip in `businessFlag`",
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
    message: "Expected an attribute such as `keyName=orderNo`, found `each`. Prose goes before the tag.",
  },
  ...[
    ["sec", "s"],
    ["minutes", "m"],
    ["ms", "ms"],
  ].map(([unit = "", short = ""]) => ({
    title: `the unit ${unit} apart from its number`,
    source: onMethod(`@redisLock businessFlag=pay lockTime=5 «${unit}» keyName=orderNo`),
    code: "LW1001",
    message: `Expected an attribute such as \`keyName=orderNo\`, found \`${unit}\`. Write the unit directly after its number: \`lockTime=5${short}\`.`,
  })),
  {
    title: "an unknown attribute",
    source: onMethod("@redisLock businessFlag=pay «colour»=green"),
    code: "LW1002",
    message: `There is no attribute \`colour\`. ${ATTRIBUTES}`,
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
    message: "The attribute `lockTime` appears twice.",
  },
  {
    title: "an attribute given twice on different lines",
    source: onMethod("@redisLock businessFlag=pay\n   *   keyName=orderNo\n   *   «businessFlag»=pay"),
    code: "LW1003",
    message: "The attribute `businessFlag` appears twice.",
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
      "Expected another value after the comma in `keyName=`. Separate attributes with spaces, not commas.",
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
    message: "`@redisLock` must be at the start of its line in the comment.",
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
    message: "`@redisLock` must be at the start of its line in the comment.",
  },
  {
    title: "a tag with a colon in the middle of another tag's line",
    source: onMethod("@see foo «@redisLock»: businessFlag=pay"),
    code: "LW1009",
    message: "`@redisLock` must be at the start of its line in the comment.",
  },
  {
    title: "a misspelled tag in the middle of a line",
    source: onMethod("Pays. «@redisLok» businessFlag=pay"),
    code: "LW1009",
    message: "`@redisLock` must be at the start of its line in the comment.",
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

const VALUES: readonly Row[] = [
  {
    title: "a tag without attributes",
    source: onMethod("«@redisLock»"),
    code: "LW1101",
    message: "`@redisLock` needs `businessFlag=` (the namespace of its keys) or `key=` (the whole key).",
  },
  {
    title: "a tag without `businessFlag`",
    source: onMethod("«@redisLock» keyName=orderNo lockTime=20"),
    code: "LW1101",
    message: "`@redisLock` needs `businessFlag=` (the namespace of its keys) or `key=` (the whole key).",
  },
  {
    title: "a blank `businessFlag`",
    source: onMethod('@redisLock businessFlag="« »"'),
    code: "LW1102",
    message: "Expected `businessFlag` to be printable, non-empty text, got ` `.",
  },
  {
    title: "a `businessFlag` over two lines",
    source: onMethod('@redisLock businessFlag="«pay\n   * order»"'),
    code: "LW1102",
    message: "Expected `businessFlag` to be printable, non-empty text, got `pay\n     order`.",
  },
  {
    title: "a `businessFlag` with a line separator",
    source: onMethod('@redisLock businessFlag="«pay\u2028order»"'),
    code: "LW1102",
    message: "Expected `businessFlag` to be printable, non-empty text, got `pay\u2028order`.",
  },
  {
    title: "a list of flags",
    source: onMethod("@redisLock businessFlag=«pay,ship» keyName=orderNo"),
    code: "LW1103",
    message: "Expected one value for `businessFlag`, got a list.",
  },
  {
    title: "a list of conditions",
    source: onMethod("@redisLock businessFlag=pay when=«order.isLarge,order.isNew»"),
    code: "LW1103",
    message: "Expected one value for `when`, got a list.",
  },
  {
    title: "a condition without quotes",
    source: onMethod("@redisLock businessFlag=pay when=«!order.isSmall»"),
    code: "LW1201",
    message:
      "Expected a parameter or a path such as `order.user.id`, got `!order.isSmall`. Put other expressions in quotes.",
  },
  {
    title: "a holdAtMost that is shorter than the lockTime",
    source: onMethod("@redisLock businessFlag=pay lockTime=1m «holdAtMost=59s»"),
    code: "LW1132",
    message: "Expected `holdAtMost` to be at least `lockTime=1m`.",
  },
  {
    title: "a holdAtMost without a watchdog",
    source: onMethod("@redisLock businessFlag=pay «holdAtMost=5m» watchdog=false"),
    code: "LW1130",
    message:
      "`holdAtMost` and `watchdog=false` cannot be combined: without a watchdog, a lock lasts for its lock time at most. Remove one of them.",
  },
  {
    title: "a lockAtLeast that is longer than the lockTime before it",
    source: onMethod("@redisLock businessFlag=pay lockTime=10s «lockAtLeast=11s»"),
    code: "LW1131",
    message:
      "Expected `lockAtLeast` to be at most `lockTime=10s`, because the lock of a dead process expires after that time.",
  },
  {
    title: "a list of lock times",
    source: onMethod("@redisLock businessFlag=pay lockTime=«20, 30»"),
    code: "LW1103",
    message: "Expected one value for `lockTime`, got a list.",
  },
  {
    title: "a list of key types",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=«VALUE,JSON»"),
    code: "LW1103",
    message: "Expected one value for `keyType`, got a list.",
  },
  {
    title: "a list of key classes",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=CLASS fieldName=id keyClass=«A,B»"),
    code: "LW1103",
    message: "Expected one value for `keyClass`, got a list.",
  },
  ...["soon", "-20", "20 s", "20sec", "0", "99ms", "25h", "1e3", "1441m"].map((time) => {
    const [found = "", junk] = time.split(" ");
    return junk === undefined
      ? {
          title: `lockTime=${time}`,
          source: onMethod(`@redisLock businessFlag=pay lockTime=«${found}»`),
          code: "LW1104",
          message: `Expected \`lockTime\` to be ${DURATION_IN_SECONDS}, got \`${found}\`.`,
        }
      : {
          title: `lockTime=${time}`,
          source: onMethod(`@redisLock businessFlag=pay lockTime=${found} «${junk}»`),
          code: "LW1001",
          message: `Expected an attribute such as \`keyName=orderNo\`, found \`${junk}\`. Write the unit directly after its number: \`lockTime=${found}${junk}\`.`,
        };
  }),
  {
    title: "attributes that cannot be combined",
    source: onMethod("@redisLock businessFlag=pay «lockAtLeast=5s» autoUnlock=false"),
    code: "LW1130",
    message:
      "`lockAtLeast` and `autoUnlock=false` cannot be combined: with `autoUnlock=false`, a lock lasts for its lock time anyway. Remove one of them.",
  },
  {
    title: "a lockAtLeast that is longer than the lockTime after it",
    source: onMethod("@redisLock businessFlag=pay «lockAtLeast=1m» lockTime=30s"),
    code: "LW1131",
    message:
      "Expected `lockAtLeast` to be at most `lockTime=30s`, because the lock of a dead process expires after that time.",
  },
  ...["forever", "-1", "25h", "86400001"].map((time) => ({
    title: `waitTime=${time}`,
    source: onMethod(`@redisLock businessFlag=pay waitTime=«${time}»`),
    code: "LW1104",
    message: `Expected \`waitTime\` to be ${DURATION_IN_MS}, got \`${time}\`.`,
  })),
  ...["-1", "1.5", "many", "1000001", "99999999", "3x"].map((count) => ({
    title: `retryTimes=${count}`,
    source: onMethod(`@redisLock businessFlag=pay retryTimes=«${count}»`),
    code: "LW1105",
    message: `Expected \`retryTimes\` to be a whole number from 0 to 1000000, got \`${count}\`.`,
  })),
  ...["-1", "1.5", "all", "101"].map((count) => ({
    title: `replicas=${count}`,
    source: onMethod(`@redisLock businessFlag=pay replicas=«${count}»`),
    code: "LW1105",
    message: `Expected \`replicas\` to be a whole number from 0 to 100, got \`${count}\`.`,
  })),
  ...SWITCHES.filter((name) => name !== "each").map((name) => ({
    title: `${name}=yes`,
    source: onMethod(`@redisLock businessFlag=pay ${name}=«yes»`),
    code: "LW1106",
    message: `Expected \`${name}\` to be \`true\` or \`false\`, got \`yes\`.`,
  })),
  ...["skip", "false", "Error"].map((action) => ({
    title: `onLost=${action}`,
    source: onMethod(`@redisLock businessFlag=pay onLost=«${action}»`),
    code: "LW1110",
    message: `Expected \`onLost\` to be \`throw\` or \`warn\`, got \`${action}\`.`,
  })),
  {
    title: "a store whose name has a space",
    source: onMethod('@redisLock businessFlag=pay store="«pay ments»"'),
    code: "LW1112",
    message:
      "Expected `store` to be a name in `configure({ stores })` (letters, digits, `-`, and `_`), got `pay ments`.",
  },
  {
    title: "release=later",
    source: onMethod("@redisLock businessFlag=pay release=«later»"),
    code: "LW1114",
    message: "Expected `release` to be `awaited` or `background`, got `later`.",
  },
  {
    title: "mode=reads",
    source: onMethod("@redisLock businessFlag=pay mode=«reads»"),
    code: "LW1120",
    message: "Expected `mode` to be `read` or `write`, got `reads`.",
  },
  ...["0", "-1", "1.5", "1001", "many"].map((count) => ({
    title: `permits=${count}`,
    source: onMethod(`@redisLock businessFlag=pay permits=«${count}»`),
    code: "LW1121",
    message: `Expected \`permits\` to be a whole number from 1 to 1000, got \`${count}\`.`,
  })),
  {
    title: "a mode and permits",
    source: onMethod("@redisLock businessFlag=pay mode=read «permits=5»"),
    code: "LW1122",
    message: "A lock has either a `mode` or `permits`. Remove one of them.",
  },
  ...["mode=read", "permits=2"].map((sharing) => ({
    title: `a fencing token with ${sharing}`,
    source: onMethod(`@redisLock businessFlag=pay ${sharing} «fencing=true»`),
    code: "LW1123",
    message:
      "`fencing` needs an exclusive lock. Fencing tokens order holders, but `mode=read` and `permits` let several hold the lock at once. Remove one of them.",
  })),
  {
    title: "mode=read on a generator",
    source: `/** @redisLock businessFlag=pay «mode=read» */ export async function* pay() {}`,
    code: "LW1315",
    message:
      "A generator cannot have `mode=read`, because its body cannot become a separate function. Lock the functions that it calls instead.",
  },
  {
    title: "a boolean in upper case",
    source: onMethod("@redisLock businessFlag=pay watchdog=«TRUE»"),
    code: "LW1106",
    message: "Expected `watchdog` to be `true` or `false`, got `TRUE`.",
  },
  {
    title: "a key type in lower case",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=«class» fieldName=id"),
    code: "LW1107",
    message: `${KEY_TYPES}, got \`class\`. Did you mean \`CLASS\`?`,
  },
  {
    title: "a typing slip in a key type",
    source: onMethod("@redisLock businessFlag=pay keyName=orderNo keyType=«VALEU»"),
    code: "LW1107",
    message: `${KEY_TYPES}, got \`VALEU\`.`,
  },
  {
    title: "an unknown key type",
    source: onMethod("@redisLock businessFlag=pay keyName=orderNo keyType=«XML»"),
    code: "LW1107",
    message: `${KEY_TYPES}, got \`XML\`.`,
  },
  {
    title: "a call as `onFailure`",
    source: onMethod("@redisLock businessFlag=pay onFailure=«Busy()»"),
    code: "LW1108",
    message: "Expected `onFailure` to be `throw`, `skip`, or the name of an error class, got `Busy()`.",
  },
  ...["ignore", "Skip", "retry"].map((action) => ({
    title: `onFailure=${action}, which is not in scope`,
    source: onMethod(`@redisLock businessFlag=pay onFailure=«${action}»`),
    code: "LW1108",
    message: `Expected \`onFailure\` to be \`throw\`, \`skip\`, or the name of an error class, got \`${action}\`.${action === "Skip" ? " Did you mean `skip`?" : ""}`,
  })),
  {
    title: "an expression as `onFailure`",
    source: onMethod('@redisLock businessFlag=pay onFailure="«new Busy»"'),
    code: "LW1108",
    message: "Expected `onFailure` to be `throw`, `skip`, or the name of an error class, got `new Busy`.",
  },
  {
    title: "a generic type as `keyClass`",
    source: onMethod(
      "@redisLock businessFlag=pay keyName=order keyType=CLASS fieldName=id keyClass=«Page<Order>»",
    ),
    code: "LW1109",
    message: "Expected `keyClass` to be the name of a class or an interface, got `Page<Order>`.",
  },
];

const KEYS: readonly Row[] = [
  ...[
    ["${orderNo}", "orderNo"],
    ["#order.id", "order.id"],
    ["#{orderNo}", "orderNo"],
    ["{orderNo}", "orderNo"],
    [":orderNo", "orderNo"],
  ].map(([key = "", meant = ""]) => ({
    title: `keyName=${key}, a parameter as other libraries write it`,
    source: onMethod(`@redisLock businessFlag=pay keyName=«${key}»`),
    code: "LW1201",
    message: `Expected a parameter or a path such as \`order.user.id\`, got \`${key}\`. Did you mean \`${meant}\`?`,
  })),
  ...["order.", ".order", "order..id", "order[id]", "2", "orderNo!", "orderNo+1", "f(order)"].map((key) => ({
    title: `keyName=${key}`,
    source: onMethod(`@redisLock businessFlag=pay keyName=«${key}»`),
    code: "LW1201",
    message: `Expected a parameter or a path such as \`order.user.id\`, got \`${key}\`. Put other expressions in quotes.`,
  })),
  {
    title: "a parameter in the wrong case",
    source: onMethod("@redisLock businessFlag=pay keyName=«orderNO»"),
    code: "LW1202",
    message: "The function has no parameter `orderNO`. Did you mean `orderNo`?",
  },
  {
    title: "a path that does not begin with a parameter, at its root",
    source: onMethod("@redisLock businessFlag=pay keyName=orderNo,«invoice».id"),
    code: "LW1202",
    message: `The function has no parameter \`invoice\`. ${PARAMETERS}`,
  },
  {
    title: "the outer name of a destructured parameter",
    source: onMethod("@redisLock businessFlag=pay keyName=«lines»"),
    code: "LW1202",
    message: "The function has no parameter `lines`. It has `orderNo`, `order`, `tenant`, `first`.",
  },
  {
    title: "a parameter of a function that has none",
    source: "/** @redisLock businessFlag=pay keyName=«orderNo» */\nexport async function pay() {}",
    code: "LW1202",
    message: "The function has no parameter `orderNo`. It has none.",
  },
  {
    title: "a variable of the module without quotes",
    source:
      "const shop = 7;\n/** @redisLock businessFlag=pay keyName=«shop» */\nexport async function pay(this: Till) {}",
    code: "LW1202",
    message: "The function has no parameter `shop`. It has none.",
  },
  ...[
    ["does not parse", "order."],
    ["is two statements", "order]; work(); [order"],
    ["is two expressions", "orderNo, order.id"],
    ["ends in a comma", "orderNo,"],
    ["is a spread", "...order.lines"],
    ["is only a comma", ","],
    ["is empty", ""],
    ["closes the brackets around it", "orderNo]); evil([order"],
    ["has a comment in it", "orderNo // + order.id"],
    ["opens a comment", "orderNo /* + order.id"],
    ["is a statement", "return orderNo"],
    ["has an operator between brackets", "orderNo] + [order"],
    ["is a declaration", "const x = 1"],
    ["yields", "yield"],
    ["yields a value", "order ?? (yield orderNo)"],
  ].map(([what = "", expression = ""]) => ({
    title: `a quoted key that ${what}`,
    source: onMethod(`@redisLock businessFlag=pay keyName="«${expression}»"`),
    code: "LW1203",
    message: `Expected an expression between the quotes, got \`${expression}\`.`,
  })),
  {
    title: "a quoted key whose comment swallows the next line",
    source: onMethod('@redisLock businessFlag=pay keyName="«orderNo // the number\n   *   + order.id»"'),
    code: "LW1203",
    message: "Expected an expression between the quotes, got `orderNo // the number\n       + order.id`.",
  },
  {
    title: "a field that is a call",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=CLASS fieldName=«getId()»"),
    code: "LW1204",
    message: "Expected `fieldName` to be a field or a path such as `user.id`, got `getId()`.",
  },
  {
    title: "one bad field of two",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=JSON fieldName=id,«user-id»"),
    code: "LW1204",
    message: "Expected `fieldName` to be a field or a path such as `user.id`, got `user-id`.",
  },
  {
    title: "`fieldName` without `keyType`",
    source: onMethod("@redisLock businessFlag=pay keyName=order «fieldName»=id"),
    code: "LW1205",
    message: "`fieldName` needs `keyType=CLASS` or `keyType=JSON`.",
  },
  {
    title: "`fieldName` with keyType=VALUE",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=VALUE «fieldName»=id"),
    code: "LW1205",
    message: "`fieldName` needs `keyType=CLASS` or `keyType=JSON`.",
  },
  ...["CLASS", "JSON"].map((type) => ({
    title: `keyType=${type} without \`fieldName\``,
    source: onMethod(`@redisLock businessFlag=pay keyName=order keyType=«${type}»`),
    code: "LW1206",
    message: `\`keyType=${type}\` needs \`fieldName=\`, the field that identifies the object.`,
  })),
  ...["keyType=JSON", "keyClass=Order", "fieldName=id", "each=true"].map((attribute) => {
    const [name = "", value = ""] = attribute.split("=");
    return {
      title: `\`${name}\` without \`keyName\``,
      source: onMethod(`@redisLock businessFlag=pay «${name}»=${value}`),
      code: "LW1207",
      message: `\`${name}\` needs \`keyName=\`, the parameter that it applies to.`,
    };
  }),
  {
    title: "two values of `keyName` with keyType=CLASS",
    source: onMethod("@redisLock businessFlag=pay keyName=order,«orderNo» keyType=CLASS fieldName=id"),
    code: "LW1208",
    message: "`keyType=CLASS` takes one `keyName`. For several fields of it, list them in `fieldName=a,b`.",
  },
  {
    title: "`keyClass` with keyType=VALUE",
    source: onMethod("@redisLock businessFlag=pay keyName=order keyType=VALUE «keyClass»=Order"),
    code: "LW1209",
    message: "`keyClass` needs `keyType=CLASS` or `keyType=JSON`.",
  },
  {
    title: "a whole key beside a flag",
    source: onMethod('@redisLock «businessFlag=pay» key="pay:${orderNo}"'),
    code: "LW1130",
    message: "`businessFlag` and `key` cannot be combined: `key` is the whole key. Remove one of them.",
  },
  {
    title: "a whole key beside parts of one",
    source: onMethod('@redisLock key="pay:${orderNo}" «keyName=tenant»'),
    code: "LW1130",
    message: "`keyName` and `key` cannot be combined: `key` is the whole key. Remove one of them.",
  },
  {
    title: "a whole key beside fields",
    source: onMethod('@redisLock key="pay:${orderNo}" «keyType=CLASS» keyClass=Order fieldName=id'),
    code: "LW1130",
    message: "`keyType` and `key` cannot be combined: `key` is the whole key. Remove one of them.",
    also: ["LW1130", "LW1130"],
  },
  {
    title: "two whole keys",
    source: onMethod("@redisLock key=«pay,order»"),
    code: "LW1103",
    message: "Expected one value for `key`, got a list.",
  },
  {
    title: "an unknown parameter in a whole key",
    source: onMethod('@redisLock key="pay:${tenant}:${«ordrNo».length}"'),
    code: "LW1202",
    message: "The function has no parameter `ordrNo`. Did you mean `orderNo`?",
  },
  {
    title: "an unclosed brace in a whole key",
    source: onMethod('@redisLock key="pay:${tenant}:«${orderNo»"'),
    code: "LW1210",
    message: "This `${` is not closed. Expected a parameter or a path, and `}`.",
  },
  {
    title: "a list in a whole key",
    source: onMethod('@redisLock key="pay:${«tenant,orderNo»}"'),
    code: "LW1211",
    message:
      "Expected a parameter, a path such as `order.user.id`, or another expression in `${...}`, got `tenant,orderNo`. For several values, write several `${...}` with text between them.",
  },
  {
    title: "empty braces in a whole key",
    source: onMethod('@redisLock key="pay:${«»}"'),
    code: "LW1211",
    message:
      "Expected a parameter, a path such as `order.user.id`, or another expression in `${...}`, got ``. For several values, write several `${...}` with text between them.",
  },
  {
    title: "two values in a whole key without text between them",
    source: onMethod('@redisLock key="pay:${tenant}«»${orderNo}:${first}"'),
    code: "LW1212",
    message:
      'Expected text between two values, such as `:`. Without one, "1" and "23" make the same key as "12" and "3".',
  },
  {
    title: "an empty whole key",
    source: onMethod('@redisLock key="«»"'),
    code: "LW1213",
    message: "Expected `key` to be printable, non-empty text on one line, got ``.",
  },
  {
    title: "a whole key over two lines",
    source: onMethod('@redisLock key="«pay:\n   *   ${orderNo}»"'),
    code: "LW1213",
    message: "Expected `key` to be printable, non-empty text on one line, got `pay:\n       ${orderNo}`.",
  },
  {
    title: "a whole key with the prefix of Lockweave's queues",
    source: onMethod('@redisLock key="«lockweave:»2:queue:${orderNo}"'),
    code: "LW1214",
    message: "A key must not begin with `lockweave:`. Lockweave keeps its queues there.",
  },
];

const TAG = "/** «@redisLock» businessFlag=pay */";
const ACCESSOR = "An accessor cannot wait for a lock. Put `@redisLock` on an async method.";
const SEVERAL =
  "`@redisLock` before several variables is ambiguous. Declare the function in a statement of its own.";
const GENERATOR = "A synchronous generator cannot wait for a lock. Make it an `async` generator.";
const REENTRANT_GENERATOR =
  "A generator cannot be `reentrant`, because its body cannot become a separate function. Write `reentrant=false`.";
const noBody = (what: string): string =>
  `${what} has no body to lock. Put \`@redisLock\` on the implementation.`;
const notAsync = (name: string): string =>
  `\`${name}\` cannot wait for a lock. Make it \`async\`, or give it the return type \`Promise<...>\`.`;

const PLACES: readonly Row[] = [
  {
    title: "a class",
    source: `${TAG}\nexport class OrderService { async pay() {} }`,
    code: "LW1301",
    message: NO_FUNCTION("a class declaration"),
  },
  {
    title: "a number",
    source: `${TAG}\nexport const pay = 5;`,
    code: "LW1301",
    message: NO_FUNCTION("a numeric literal"),
    bodiless: true,
  },
  {
    title: "a variable without a value",
    source: `${TAG}\nexport let pay: () => Promise<void>;`,
    code: "LW1301",
    message: NO_FUNCTION("a variable declaration"),
    bodiless: true,
  },
  {
    title: "a wrapped function expression",
    source: `${TAG}\nexport const pay = memoize(async () => work());`,
    code: "LW1301",
    message: NO_FUNCTION("a call expression"),
  },
  {
    title: "an object of functions",
    source: `${TAG}\nexport const orders = { async pay() {} };`,
    code: "LW1301",
    message: NO_FUNCTION("an object literal expression"),
  },
  {
    title: "a property without a value",
    source: `export class A { ${TAG} pay: unknown; }`,
    code: "LW1301",
    message: NO_FUNCTION("a property declaration"),
    bodiless: true,
  },
  {
    title: "a shorthand property",
    source: `export const a = { ${TAG} pay };`,
    code: "LW1301",
    message: ELSEWHERE("a shorthand property assignment"),
    bodiless: true,
  },
  {
    title: "a parameter",
    source: `export async function pay(${TAG} orderNo: string) {}`,
    code: "LW1301",
    message: NO_FUNCTION("a parameter"),
  },
  {
    title: "the body of a function",
    source: `export async function pay(orderNo: string) ${TAG} {}`,
    code: "LW1301",
    message: NO_FUNCTION("a block"),
  },
  {
    title: "the value of an arrow function",
    source: `export const pay = async () => ${TAG} work();`,
    code: "LW1301",
    message: NO_FUNCTION("a call expression"),
  },
  ...[
    ["calls", "await work();", "a call expression"],
    ["takes a value", "const order = await work();", "a call expression"],
    ["returns", "return work();", "a call expression"],
    ["decides", "if (order) work();", "an if statement"],
  ].flatMap(([what = "", statement = "", found = ""]) => [
    {
      title: `a statement that ${what} at the start of a body, which refuses to run`,
      source: `export async function pay(order: unknown) { ${TAG} ${statement} }`,
      code: "LW1301",
      message: NO_FUNCTION(found),
    },
    {
      title: `a statement that ${what} later in a body`,
      source: `export async function pay(order: unknown) { work(order); ${TAG} ${statement} }`,
      code: "LW1301",
      message: NO_FUNCTION(found),
      bodiless: true as const,
    },
  ]),
  {
    title: "the statement after the directives of a body, which refuses to run",
    source: `export const pay = async () => { "use strict"; ${TAG} work(); };`,
    code: "LW1301",
    message: NO_FUNCTION("a call expression"),
  },
  {
    title: "the variables at the start of a body, which refuses to run",
    source: `export async function pay() { ${TAG} let order = 1, count = 2; work(order, count); }`,
    code: "LW1308",
    message: SEVERAL,
  },
  ...[
    [
      "the default export of a function",
      `async function pay() {}\n${TAG}\nexport default pay;`,
      "an identifier",
    ],
    ["the export of a function", `async function pay() {}\n${TAG}\nexport { pay };`, "an export declaration"],
    [
      "the export of an arrow function",
      `const pay = async () => 1;\n${TAG}\nexport { pay as p };`,
      "an export declaration",
    ],
    ["a name in a list of exports", `async function pay() {}\nexport { ${TAG} pay };`, "an export specifier"],
    [
      "another name in a list of exports",
      `const pay = async () => 1;\nexport { ${TAG} pay as p };`,
      "an export specifier",
    ],
    [
      "a wrapped named function",
      `async function pay() {}\n${TAG}\nexport const x = retry(pay);`,
      "a call expression",
    ],
    [
      "a wrapped named function that is assigned",
      `async function pay() {}\nlet x;\n${TAG}\nx = retry(pay, 3);\nexport { x };`,
      "a call expression",
    ],
    [
      "a shorthand property of a function",
      `async function pay() {}\nexport const a = { ${TAG} pay };`,
      "a shorthand property assignment",
    ],
    [
      "an object of names of functions",
      `async function pay() {}\n${TAG}\nexport const a = { pay, now: pay };`,
      "an object literal expression",
    ],
    [
      "a wrapped function inside another function",
      `export function f() { const pay = async () => 1; ${TAG} const x = retry(pay); return x; }`,
      "a call expression",
    ],
  ].map(([title = "", source = "", what = ""]) => ({
    title: `${title}, which refuses to run`,
    source,
    code: "LW1301",
    message: NO_FUNCTION(what),
  })),
  ...[
    [
      "the default export of an import",
      `import { pay } from "./pay";\n${TAG}\nexport default pay;`,
      "an identifier",
    ],
    ["a name in an export from elsewhere", `export { ${TAG} pay } from "./pay";`, "an export specifier"],
    ["an export from elsewhere", `${TAG}\nexport { pay } from "./pay";`, "an export declaration"],
    [
      "a wrapped function from elsewhere",
      `import { pay } from "./pay";\n${TAG}\nexport const x = retry(pay);`,
      "a call expression",
    ],
    ["a wrapped method", `${TAG}\nexport const x = retry(orders.pay);`, "a call expression"],
  ].map(([title = "", source = "", what = ""]) => ({
    title: `${title}, whose function is declared elsewhere`,
    source,
    code: "LW1301",
    message: ELSEWHERE(what),
    bodiless: true as const,
  })),
  {
    title: "an import",
    source: `${TAG}\nimport { pay } from "./pay";\nexport { pay };`,
    code: "LW1301",
    message: ELSEWHERE("an import declaration"),
    bodiless: true,
  },
  {
    title: "an enum",
    source: `${TAG}\nexport enum Pay { now }`,
    code: "LW1301",
    message: NO_FUNCTION("an enum declaration"),
    bodiless: true,
  },
  {
    title: "a namespace",
    source: `${TAG}\nexport namespace Orders { export async function pay() {} }`,
    code: "LW1301",
    message: NO_FUNCTION("a module declaration"),
  },
  {
    title: "an interface",
    source: `${TAG}\nexport interface Orders { pay(): void }`,
    code: "LW1301",
    message: NO_FUNCTION("an interface declaration"),
    bodiless: true,
  },
  {
    title: "a type",
    source: `${TAG}\nexport type Pay = () => Promise<void>;`,
    code: "LW1301",
    message: NO_FUNCTION("a type alias declaration"),
    bodiless: true,
  },
  {
    title: "a static block",
    source: `export class A { ${TAG} static { work(); } }`,
    code: "LW1301",
    message: NO_FUNCTION("a class static block declaration"),
    bodiless: true,
  },
  {
    title: "the end of a template",
    source: `export const a = \`\${b ${TAG}}\`;`,
    code: "LW1301",
    message: NO_FUNCTION("a template tail"),
    bodiless: true,
  },
  {
    title: "a synchronous method",
    source: `export class A { ${TAG} pay() { return 1; } }`,
    code: "LW1302",
    message: notAsync("A.pay"),
  },
  {
    title: "a synchronous function",
    source: `${TAG}\nexport function pay() {}`,
    code: "LW1302",
    message: notAsync("pay"),
  },
  {
    title: "a synchronous function in JavaScript, which has no types",
    source: `${TAG}\nexport function pay() {}`,
    fileName: "a.js",
    code: "LW1302",
    message: "`pay` cannot wait for a lock. Make it `async`.",
  },
  {
    title: "a synchronous arrow function that returns a promise without declaring it",
    source: `${TAG}\nexport const pay = () => Promise.resolve();`,
    code: "LW1302",
    message: notAsync("pay"),
  },
  {
    title: "a function that may return undefined instead of a promise",
    source: `${TAG}\nexport function pay(): Promise<void> | undefined { return work(); }`,
    code: "LW1302",
    message: notAsync("pay"),
  },
  {
    title: "an arrow function whose variable has a type that may be synchronous",
    source: `${TAG}\nexport const pay: () => Promise<void> | void = () => work();`,
    code: "LW1302",
    message: notAsync("pay"),
  },
  {
    title: "a synchronous arrow function inside one that returns a promise",
    source: `export const pay = (): Promise<number> => { ${TAG} const sum = () => 1; return work(sum); };`,
    code: "LW1302",
    message: notAsync("pay.sum"),
  },
  {
    title: "a synchronous default export",
    source: `${TAG}\nexport default function () {}`,
    code: "LW1302",
    message: notAsync("default"),
  },
  {
    title: "a synchronous callback",
    source: `work(${TAG} () => {}); export {};`,
    code: "LW1302",
    message: notAsync("anonymous"),
  },
  ...[
    ["imported by default", 'import Promise from "bluebird";'],
    ["imported by its name", 'import type { Bluebird as Promise } from "bluebird";'],
    ["required", 'import Promise = require("bluebird");'],
    ["a class of the file", "class Promise<T> { value?: T }"],
    ["a type of the file", "type Promise<T> = Bluebird<T>;"],
  ].map(([what = "", declared = ""]) => ({
    title: `a function that returns a \`Promise\` that is ${what}`,
    source: `${declared}\n${TAG}\nexport function pay(): Promise<void> { return work(); }`,
    code: "LW1314",
    message:
      "`pay` cannot wait for a lock. It returns a `Promise` that this file declares, but a locked function returns the global one. Make it `async`.",
  })),
  {
    title: "a constructor",
    source: `export class A extends B { ${TAG} constructor() { super(); } }`,
    code: "LW1303",
    message: "A constructor cannot wait for a lock. Put `@redisLock` on an async method.",
  },
  {
    title: "a getter",
    source: `export class A { ${TAG} get pay() { return 1; } }`,
    code: "LW1304",
    message: ACCESSOR,
  },
  {
    title: "a setter of an object",
    source: `export const a = { ${TAG} set pay(value: number) {} };`,
    code: "LW1304",
    message: ACCESSOR,
  },
  {
    title: "an abstract method",
    source: `export abstract class A { ${TAG} abstract pay(): Promise<void>; }`,
    code: "LW1305",
    message: noBody("An abstract method"),
    bodiless: true,
  },
  {
    title: "an overload signature of a function, whose implementation refuses to run",
    source: `${TAG}\nexport async function pay(a: string): Promise<void>;\nexport async function pay(a: unknown) {}`,
    code: "LW1305",
    message: noBody("An overload signature"),
  },
  {
    title: "an overload signature of a method, whose implementation refuses to run",
    source: `export class A { ${TAG} pay(a: string): Promise<void>; async pay(a: unknown) {} }`,
    code: "LW1305",
    message: noBody("An overload signature"),
  },
  {
    title: "an overload signature of a default export, whose implementation refuses to run",
    source: `${TAG}\nexport default async function (a: string): Promise<void>;\nexport default async function (a: unknown) {}`,
    code: "LW1305",
    message: noBody("An overload signature"),
  },
  {
    title: "a method of an interface",
    source: `export interface A { ${TAG} pay(): Promise<void>; }`,
    code: "LW1305",
    message: noBody("A member of a type"),
    bodiless: true,
  },
  {
    title: "a property of a type literal",
    source: `export type A = { ${TAG} pay: () => Promise<void> };`,
    code: "LW1305",
    message: noBody("A member of a type"),
    bodiless: true,
  },
  {
    title: "a declared function",
    source: `${TAG}\nexport declare function pay(): Promise<void>;`,
    code: "LW1305",
    message: noBody("A declared function"),
    bodiless: true,
  },
  {
    title: "a generator",
    source: `${TAG}\nexport function* pay() {}`,
    code: "LW1306",
    message: GENERATOR,
  },
  {
    title: "a generator method with the type of a promise",
    source: `export class A { ${TAG} *pay(): Promise<void> { yield 1; } }`,
    code: "LW1306",
    message: GENERATOR,
  },
  {
    title: "a reentrant async generator",
    source: `export class A { /** @redisLock businessFlag=pay «reentrant=true» */ async *pay() { yield 1; } }`,
    code: "LW1311",
    message: REENTRANT_GENERATOR,
  },
  ...[
    ["two functions", "function a() {} function «a»() {}"],
    ["a variable and a function", "var a; function «a»() {}"],
  ].map(([what = "", body = ""]) => ({
    title: `an async generator that declares ${what} with one name`,
    source: `/** @redisLock businessFlag=pay */ export async function* pay() { ${body} yield a; }`,
    fileName: "a.js",
    code: "LW1313",
    message:
      "The body of a generator becomes a block, in which `a` can be declared only once. Rename one of them.",
  })),
  ...[
    ["class with nothing else", `export class A { ${TAG} }`],
    ["class expression", `export const A = class { ${TAG} };`],
    ["file", `export {};\n${TAG}`],
    ["file, before blank lines", `export {};\n${TAG}\n\n`],
    ["block", `export async function pay() { work(); ${TAG} }`],
    ["empty block", `export async function pay() { ${TAG} }`],
    ["object", `export const a = { pay: 1, ${TAG} };`],
    ["empty object", `export const a = { ${TAG} };`],
    ["empty array", `export const a = [${TAG}];`],
    ["argument list", `export const a = pay(1, ${TAG});`],
    ["empty argument list", `export const a = pay(${TAG});`],
    ["switch", `export function pay() { switch (1) { ${TAG} } }`],
    ["enum", `export enum A { ${TAG} }`],
    ["return statement", `export function pay() { return ${TAG}; }`],
  ].map(([where = "", source = ""]) => ({
    title: `the end of a ${where}`,
    source,
    code: "LW1307",
    message: DANGLING,
    bodiless: true as const,
  })),
  ...[
    ["after a method's name", `export class A { async ship ${TAG} (x: string) { work(x); } }`],
    ["before the word `function`", `export async ${TAG} function ship() { work(); }`],
    ["before the `=` of a variable", `export const ship ${TAG} = async () => work();`],
    ["before the colon of a property", `export const a = { ship ${TAG} : async () => work() };`],
    ["before the `=` of a class's property", `export class A { ship ${TAG} = async () => work(); }`],
    ["at the end of a class", `export class A { async pay() {} ${TAG} }`],
    ["in an empty parameter list", `export const pay = (${TAG}) => 1;`],
    ["before the braces of a class", `export class A ${TAG} { async ship() { work(); } }`],
  ].map(([where = "", source = ""]) => ({
    title: `nothing ${where}, whose functions refuse to run`,
    source,
    code: "LW1307",
    message: DANGLING,
  })),
  {
    title: "a stray semicolon of a class, whose methods refuse to run",
    source: `export class A { ${TAG}; async ship() { work(); } }`,
    code: "LW1301",
    message: NO_FUNCTION("a semicolon class element"),
  },
  {
    title: "an empty JSX expression",
    source: `export const a = <p>{${TAG}}</p>;`,
    code: "LW1307",
    message: DANGLING,
    bodiless: true,
    fileName: "a.tsx",
  },
  {
    title: "several variables, which all refuse to run",
    source: `${TAG}\nexport const pay = async () => work(), ship = async () => {};`,
    code: "LW1308",
    message: SEVERAL,
  },
  {
    title: "several variables after a modifier",
    source: `export ${TAG} const pay = async () => work(), ship = async () => {};`,
    code: "LW1308",
    message: SEVERAL,
  },
  {
    title: "a function in a script",
    source: `${TAG}\nasync function pay() { "use strict"; work(); }`,
    code: "LW1309",
    message: "`@redisLock` works only in modules. This file has no import and no export. Add `export {}`.",
  },
  {
    title: "an arrow function in a script",
    source: `${TAG}\nconst pay = async () => work();`,
    code: "LW1309",
    message: "`@redisLock` works only in modules. This file has no import and no export. Add `export {}`.",
  },
  {
    title: "a function in CommonJS, where `export {}` would do harm",
    source: `${TAG}\nasync function pay() { work(); }\nmodule.exports = { pay };`,
    code: "LW1309",
    message:
      "`@redisLock` works only in ES modules here. Fix: write this file with `import` and `export` instead of `require` and `module.exports`.",
  },
  {
    title: "a reentrant function whose body declares its parameter again",
    source: `/** @redisLock businessFlag=pay «reentrant=true» */\nexport async function pay(count?: number) { for (;;) { var { count = 1 } = work(); } }`,
    code: "LW1310",
    message:
      "The body becomes a separate function, because the lock is reentrant or the body returns a promise inside `try`. Rename `var count` in it, because it would hide the parameter.",
  },
];

const REDECLARED: readonly Row[] = [
  ["a variable", "let «orderNo» = 1;"],
  ["a constant of a pattern", "const { id: [«first»] } = order;"],
  ["a resource", "using «order» = work();"],
  ["a class", "class «tenant» {}"],
  ["a function", "function «orderNo»() {}"],
].map(([what = "", statement = ""]) => ({
  title: `${what} that declares a parameter's name again`,
  source: onMethod("@redisLock businessFlag=pay").replace("return", `${statement} return`),
  code: "LW1312",
  message: `Duplicate identifier \`${/«(\w+)»/.exec(statement)?.[1] ?? ""}\`. A parameter has this name.`,
}));

test("prose that mentions the tag in backticks, or another tag in braces, is not a tag", (t) => {
  for (const prose of [
    "Write `{@redisLock businessFlag=x}` there.",
    "{@link pay businessFlag=x} locks.",
    "The `redisLock businessFlag=x` of old.",
    "redisLock locks it, with businessFlag=x.",
    "@médecin locks it.",
    "redis-locks take businessFlag=x.",
    "lockTime=20 is the default, - lockTime=30 another.",
    "@config mode=fast",
    "@config says: the lockTime=20 of old.",
  ]) {
    t.is(weave("a.ts", `/** ${prose} */\nexport async function pay() {}`, ESM), undefined, prose);
  }
});

test("a file that extends the global `Promise` still has the global one", (t) => {
  const source = `declare global { interface Promise<T> { tap(): T } }\n${TAG}\nexport function pay(): Promise<void> { return work(); }`;
  t.deepEqual(weave("a.ts", source.replaceAll(/[«»]/g, ""), ESM)?.diagnostics, []);
});

test("a name that hides a parameter in a block, an inner function, or a static block is not a duplicate", (t) => {
  for (const statement of [
    "{ const count = 1; work(count); }",
    "for (const count of [1]) work(count);",
    "class A { static { var count = 1; work(count); } }",
    "const inner = function () { var count = 1; return count; }; inner();",
    "try { work(); } catch (count) { work(count); }",
  ]) {
    for (const attributes of ["", "reentrant=true"]) {
      const source = `/** @redisLock businessFlag=pay ${attributes} */\nexport async function pay(count: number) { ${statement} return count; }`;
      const woven = weave("a.ts", source, ESM);
      t.deepEqual(woven?.diagnostics, [], source);
      t.is(woven?.sites.length, 1);
    }
  }
  const script =
    "/** @redisLock businessFlag=pay */\nexport async function pay(count) { function count() {} }";
  t.deepEqual(weave("a.js", script, ESM)?.diagnostics, []);
});

const ROWS = [...GRAMMAR, ...VALUES, ...KEYS, ...PLACES, ...REDECLARED];

/** Returns the text without its marks, and the offsets of the text between them. */
function unmark(source: string): { text: string; start: number; end: number } {
  const start = source.indexOf("«");
  const end = source.indexOf("»") - 1;
  return { text: source.replace("«", "").replace("»", ""), start, end };
}

for (const row of ROWS) {
  const { title, source, code, message, also = [], bodiless = false, fileName = "a.ts" } = row;
  test(`${code} reports ${PLACES.includes(row) ? "a tag on " : ""}${title}`, (t) => {
    const { text, start, end } = unmark(source);
    const woven = weave(fileName, text, { ts, module: "esm" });
    t.truthy(woven, "nothing was found");
    const [first, ...others] = woven?.diagnostics ?? [];
    t.deepEqual(first, { start, end, code, message });
    t.deepEqual(
      others.map((problem) => problem.code),
      also,
    );
    const emitted = woven?.code ?? "";
    t.false(emitted.includes(".open({"), "a function with a bad tag was woven");
    t.regex(emitted, /lockweave\.refuse\(|\(\(\) => \{ throw new Error\(/);
    t.is(emitted.includes("The file refuses to run unlocked."), bodiless, emitted);
    t.deepEqual(woven?.sites, []);
    t.deepEqual(syntaxErrors(fileName, emitted), syntaxErrors(fileName, text));
  });
}

const OTHER_UNIT = (written: string, as: string, other: string): string =>
  `\`${written}\` is ${as}. If you mean that, write the unit. Otherwise, did you mean \`${other}\`?`;

const UNPARSED = `// Pays.
export const pay = 1; const = 3;
/** @redisLock businessFlag=pay */
export async function ship() { work(); }`;

test("a file that does not parse is not woven, keeps its errors, and refuses to run", (t) => {
  const woven = weave("dir/a.ts", UNPARSED, ESM);
  const start = UNPARSED.indexOf("@redisLock");
  const message = "This file has a syntax error, so it is not woven, and refuses to run.";
  t.deepEqual(woven?.diagnostics, [{ start, end: start + "@redisLock".length, code: "LW1402", message }]);
  t.deepEqual(woven?.sites, []);
  const refusal = `throw new Error("a.ts:3: LW1402: ${message}"); `;
  t.is(woven?.code, UNPARSED.replace("export const", `${refusal}export const`));
  t.deepEqual(syntaxErrors("a.ts", woven?.code ?? ""), syntaxErrors("a.ts", UNPARSED));
});

const DOUBTFUL = [
  {
    source: onMethod("@redisLock businessFlag=pay lockTime=«30000»"),
    message: OTHER_UNIT("lockTime=30000", "8.3 hours", "lockTime=30000ms"),
  },
  {
    source: onMethod("@redisLock businessFlag=pay lockTime=«1000»"),
    message: OTHER_UNIT("lockTime=1000", "16.7 minutes", "lockTime=1000ms"),
  },
  {
    source: onMethod("@redisLock businessFlag=pay waitTime=«5»"),
    message: OTHER_UNIT("waitTime=5", "5 ms", "waitTime=5s"),
  },
];

test("a whole key that is only the name of a parameter is woven with a warning", (t) => {
  for (const [key, isDoubtful] of [
    ["orderNo", true],
    ["order.id", true],
    ["orders", false],
    ["order:1", false],
    ["pay:${orderNo}", false],
  ] as const) {
    const { text, start, end } = unmark(onMethod(`@redisLock key=«${key}»`));
    const woven = weave("a.ts", text, ESM);
    const message = `\`key=${key}\` is exactly this text, so every call has the same key. For the value of \`${key}\`, write \`key="...:\${${key}}"\`, or \`businessFlag=... keyName=${key}\`.`;
    t.deepEqual(woven?.warnings, isDoubtful ? [{ start, end, code: "LW1215", message }] : []);
    t.deepEqual(woven?.diagnostics, []);
  }
});

for (const { source, message } of DOUBTFUL) {
  test(`a number that is unlikely in its unit is woven with a warning that names both readings: ${message}`, (t) => {
    const { text, start, end } = unmark(source);
    const woven = weave("a.ts", text, ESM);
    t.deepEqual(woven?.warnings, [{ start, end, code: "LW1111", message }]);
    t.deepEqual(woven?.diagnostics, []);
    t.is(woven?.sites.length, 1);
  });
}

test("likely times and times with a unit get no warning", (t) => {
  for (const time of ["lockTime=999", "lockTime=3000s", "waitTime=20", "waitTime=0", "waitTime=5ms"]) {
    const woven = weave("a.ts", onMethod(`@redisLock businessFlag=pay ${time}`), ESM);
    t.deepEqual([woven?.warnings, woven?.diagnostics], [[], []], time);
  }
});

test("a file throws when it loads if a wrong tag has no function body beside it", async (t) => {
  const tag = "/** @redisLock businessFlag=pay */";
  for (const source of [
    `${tag};\nexport async function pay() {}`,
    `export async function pay() {}\n${tag}`,
    `export async function pay() { await 1; ${tag} }`,
    `${tag}\nexport function pay(): Promise<void> { return work(); }\nexport class A { ${tag} }`,
    `export function pay(): Promise<void> { return work(); }\n/** @redisLock businessFlag=ship */\nexport const ship = 1;`,
  ]) {
    const { code, diagnostics } = weave("a.ts", source, ESM) ?? { code: "", diagnostics: [] };
    t.is(diagnostics.length, 1, source);
    const { outputText } = ts.transpileModule(code, { compilerOptions: { module: ts.ModuleKind.ESNext } });
    const js = outputText.replace(/^import .*/m, "");
    const loaded = import(`data:text/javascript,${encodeURIComponent(js)}`);
    await t.throwsAsync(
      loaded,
      { message: /^a\.ts:\d: LW13\d\d: .* The file refuses to run unlocked\.$/ },
      js,
    );
  }
});

test("each function that a bad tag applies to refuses to run", (t) => {
  const source =
    "/** @redisLock businessFlag=pay */\nexport const pay = async () => work(), ship = async () => {};";
  const emitted = weave("a.ts", source, { ts, module: "esm" })?.code ?? "";
  t.is(emitted.split("lockweave.refuse(").length - 1, 2);
});

test("a script with a bad tag throws its own error instead of importing the runtime", (t) => {
  const emitted =
    weave("a.ts", "/** @redisLock businessFlag=pay */\nasync function pay() { work(); }", {
      ts,
      module: "esm",
    })?.code ?? "";
  t.false(emitted.includes("lockweave/runtime"));
  t.true(emitted.includes('async function pay() { (() => { throw new Error("a.ts:1: LW1309: '));
});

test("a bad tag inside a woven function makes only the inner function refuse to run", (t) => {
  const source =
    "/** @redisLock businessFlag=pay */\nexport const pay = async () => /** @redisLock */ async () => work();";
  const woven = weave("a.ts", source, { ts, module: "esm" });
  const emitted = woven?.code ?? "";
  t.deepEqual(syntaxErrors("a.ts", emitted), []);
  t.regex(
    emitted,
    /open\(\{ site: "pay".*return async \(\) =>.*lockweave\.refuse\(.*\), work\(\)\); \} catch/,
  );
});

test("a good tag beside a bad one is woven", (t) => {
  const woven = weave(
    "a.ts",
    `export class A {
  /** @redisLock businessFlag=pay */ async pay() {}
  /** @redisLock businessFlag= */ async ship() {}
}`,
    { ts, module: "esm" },
  );
  t.deepEqual(
    woven?.sites.map(({ name }) => name),
    ["A.pay"],
  );
  const [, pay = "", ship = ""] = woven?.code.split("\n") ?? [];
  t.true(pay.includes("lockweave.open({"));
  t.true(ship.includes("lockweave.refuse("));
});

test("at least 60 rows show every code except those that need a build or more than one tag", (t) => {
  t.true(ROWS.length >= 60);
  const source = readFileSync(path.join(__dirname, "../../../transformer/text/problems.ts"), "utf8");
  const codes = new Set(source.match(/(?<=^ .*")LW\d+(?=")/gm));
  t.true(codes.size > 30);
  const { problems } = readDefaults({ lockTme: 20 });
  const warnings = DOUBTFUL.flatMap((row) => weave("a.ts", unmark(row.source).text, ESM)?.warnings ?? []);
  const unparsed = weave("a.ts", UNPARSED, ESM)?.diagnostics ?? [];
  const textual = weave("a.ts", onMethod("@redisLock key=orderNo"), ESM)?.warnings ?? [];
  const alone = weave("a.ts", onMethod("businessFlag=pay"), ESM)?.warnings ?? [];
  const found = [...ROWS, ...problems, ...warnings, ...textual, ...alone, ...unparsed];
  const shown = new Set(found.map(({ code }) => code));
  // The tests in test/hosts show the codes that need a build: lost weaves, callers of a patched TypeScript, components, stores,
  // and unsupported places. cost.test.ts, handshake.test.ts, and sharing.test.ts show the others. The tests of the analysis show
  // the codes `LW15..`, which are about several tags.
  const isAboutOneTag = (code: string): boolean => !code.startsWith("LW15");
  t.deepEqual(
    [...codes].filter((code) => !shown.has(code) && isAboutOneTag(code)),
    ["LW1113", "LW1124", "LW1403", "LW1404", "LW1405", "LW1406", "LW1408", "LW1407", "LW1409"],
  );
});

function syntaxErrors(fileName: string, text: string): unknown[] {
  const { parseDiagnostics = [] } = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest) as {
    parseDiagnostics?: readonly ts.Diagnostic[];
  };
  return parseDiagnostics.map(({ messageText }) => messageText);
}
