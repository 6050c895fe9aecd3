import test from "ava";
import ts from "typescript";
import { declaredTags } from "../../../transformer/read/declared-tags";
import { weave } from "../../../transformer/weave/weave";

const TAG = "@redisLock businessFlag=pay";
const FUNCTION = "export async function pay(orderNo: string) { return orderNo; }";

function commentOf(lines: readonly string[], lineBreak = "\n"): string {
  return ["/**", ...lines.map((line) => ` * ${line}`), " */"].join(lineBreak);
}

/** Returns what the weave makes of a comment above a function: `unlocked`, `locked`, or the codes of its errors. */
function madeOf(comment: string): string {
  const { diagnostics = [], warnings = [], sites = [], code } = woven(comment) ?? {};
  if (diagnostics.length > 0) {
    const refuses = code?.includes("refuses to run unlocked") === true;
    return [...diagnostics.map((one) => one.code), ...(refuses ? [] : ["unlocked"])].join(" ");
  }
  return sites.length > 0 ? "locked" : warnings.map((one) => one.code).join(" ") || "unlocked";
}

function woven(comment: string): ReturnType<typeof weave> {
  return weave("a.ts", `${comment}\n${FUNCTION}`, { ts, module: "esm" });
}

const EXAMPLES: Record<string, readonly string[]> = {
  "a tag": ["```", TAG, "```"],
  "a tag in a language": ["Pays.", "", "@example", "```ts", TAG, "async pay() {}", "```", "@returns nothing"],
  "a tag in its own comment": ["```ts", `/** ${TAG} *\\/`, "async pay() {}", "```"],
  "a misspelled tag": [
    "```",
    "@redisLok businessFlag=pay",
    "_@redisLock businessFlag=pay_",
    "@ redisLock businessFlag=pay",
    "```",
  ],
  "attributes alone": ["```", "businessFlag=pay keyName=orderNo", "```"],
  "decorators next to the tag": ["```ts", "@Injectable", TAG, '@get("/")', "@inject.now", "```"],
  "shorter fences in a longer one": ["````md", "```ts", TAG, "```", "````"],
  "a longer end": ["```", TAG, "`````"],
  "the fences of a list and of a quote": [
    "- ```ts",
    `  ${TAG}`,
    "  ```",
    "1. ```",
    TAG,
    "   ```",
    "> ```",
    TAG,
    "> ```",
  ],
  "two blocks": ["```", TAG, "```", "and", "```", TAG, "```"],
};

for (const [title, lines] of Object.entries(EXAMPLES)) {
  test(`a code block with ${title} is prose`, (t) => {
    for (const lineBreak of ["\n", "\r\n", "\r", "\u2028"]) {
      const example = commentOf(lines, lineBreak);
      t.is(madeOf(example), "unlocked", example);
      const real = commentOf([...lines, TAG], lineBreak);
      t.is(madeOf(real), "locked", real);
      const before = commentOf([TAG, "@example", ...lines], lineBreak);
      t.is(madeOf(before), "locked", before);
    }
  });
}

test("a code block in a comment that is not JSDoc is prose", (t) => {
  t.is(madeOf(`/*\n\`\`\`\n${TAG}\n\`\`\`\n*/`), "unlocked");
  t.is(madeOf(`/*\n\`\`\`\n\`\`\`\n${TAG}\n*/`), "LW1008");
});

const UNSURE: Record<string, readonly string[]> = {
  "a block that is not closed": ["```ts", 'pay("A1");', "", TAG],
  "a block that only a tilde or a fence with text closes": ["```", "code", "~~~", "``` ts", TAG],
  "a block that is closed after the code on its last line": ["```ts", 'pay("A1"); ```', TAG],
  "a block that a shorter fence does not close": ["````", "code", "```", TAG],
  "a missing end above it, and a complete block below it": [
    "```",
    "code",
    TAG,
    "@example",
    "```",
    "pay()",
    "```",
  ],
  "a missing end above it, and the start of a block below it": [
    "```",
    "code",
    TAG,
    "@example",
    "```ts",
    "pay()",
    "```",
  ],
  "a missing end above it and below it": ["```", "code", TAG, "@param id the order", "```", "pay()"],
  "a tag of documentation before it in the block": ["```", "@param id the order", TAG, "```"],
  "a block that another list item opens again": ["```", "code", TAG, "- ```", "```"],
  "a later block that is not closed": ["```", TAG, "```", "```", "code"],
  "a misspelled name": ["```", "@redisLok businessFlag=pay"],
};

for (const [title, lines] of Object.entries(UNSURE)) {
  test(`a tag is an error, and its function refuses to run, with ${title}`, (t) => {
    const comment = commentOf(lines);
    t.is(madeOf(comment), "LW1014", comment);
  });
}

test("the error of a tag in a block without an end is at the tag, and says which fence is missing", (t) => {
  const comment = commentOf(["```ts", "pay();", TAG]);
  const [found] = woven(comment)?.diagnostics ?? [];
  t.is(found?.start, comment.indexOf("@redisLock"));
  t.regex(found?.message ?? "", /is not closed.* Fix: close the block above the tag\./);
  const unclear = commentOf(["```", "pay();", TAG, "@example", "```ts", "pay()", "```"]);
  t.regex(
    woven(unclear)?.diagnostics[0]?.message ?? "",
    /with other tags .* Fix: close the block above the tag\./,
  );
});

test("a tag next to an unclear example has an error, and its function refuses to run", (t) => {
  t.is(madeOf(commentOf([TAG, "@example", "```", TAG])), "LW1014");
});

test("declarations with a tag in a code block declare no lock", (t) => {
  const declared = (comment: string): number =>
    declaredTags({
      ts,
      file: ts.createSourceFile(
        "a.d.ts",
        `${comment}\nexport function pay(): Promise<void>;`,
        ts.ScriptTarget.Latest,
      ),
    }).length;
  t.is(declared(commentOf(["```", TAG, "```"])), 0);
  t.is(declared(commentOf(["```", "```", TAG])), 1);
});
