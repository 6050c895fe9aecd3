import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import test from "ava";
import ts from "typescript";

// Phrases of an older dialect that readers had to parse twice. Each comes with the words to use instead.
const INSTEAD: Readonly<Record<string, RegExp>> = {
  "report, or notify": /\b(?:is|are|was|were|be|been|being) told\b|\b(?:tells?|told|hears?|heard) of\b/i,
  "hold, or acquire": /\b(?:is|are|was|were|be|been|to be) had\b/i,
  "hand off": /(?<!by )\bhand(?:s|ed|ing)? on\b/i,
  "release, or return": /\bg(?:ive|ives|iven|iving|ave) back\b/i,
  "a waiter, or a caller":
    /\bwho(?:ever)? (?:waits?|asks?|comes|leaves|holds) (?:for|has|is|must|may|had)\b/i,
  "a subject at the start":
    /(?:^|[.!?] |\/\*\* )(?:Of (?!course)|Whoever |Who (?!is|are|owns|holds a)|That which )/m,
  "runs, or is running": /\b(?:is|are|be) at work\b/i,
  failover: /\bfail-over/i,
  "in short sentences": /\bas ever\b|\bin vain\b|\bcomes? to (?:its|their) end\b/i,
};

const root = resolve(__dirname, "..");
const textOf = (file: string): string => readFileSync(join(root, file), "utf8");

function filesIn(folder: string, ending: string): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending) && !name.includes("node_modules"))
    .map((name) => join(folder, name));
}

/** Returns the phrases of the old dialect in a text, each with the words to use instead. */
function dialectIn(text: string): readonly string[] {
  return Object.entries(INSTEAD).flatMap(([instead, pattern]) => {
    const found = pattern.exec(text)?.[0].trim();
    return found === undefined ? [] : [`"${found}": say ${instead}`];
  });
}

/** Returns each piece of text with at least four words that a file of the product may print. */
function messagesIn(file: string): readonly string[] {
  const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true);
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node))
      if ((node.text.match(/[a-z]+ /g) ?? []).length >= 3) texts.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return texts;
}

/** Returns each comment of a file, without its decoration. */
function commentsIn(file: string): readonly string[] {
  const text = textOf(file);
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, ts.LanguageVariant.Standard, text);
  const comments: string[] = [];
  for (let token = scanner.scan(); token !== ts.SyntaxKind.EndOfFileToken; token = scanner.scan()) {
    if (token === ts.SyntaxKind.MultiLineCommentTrivia || token === ts.SyntaxKind.SingleLineCommentTrivia) {
      comments.push(
        scanner
          .getTokenText()
          .replaceAll(/^\s*\*\s?/gm, "")
          .replaceAll("\n", " "),
      );
    }
  }
  return comments;
}

const DOCS = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "CHANGELOG.md",
  "runtime/README.md",
  "transformer/README.md",
  "test/guarantees.md",
  ...filesIn("docs", ".md"),
];

for (const file of DOCS) {
  test(`${file} is in plain English`, (t) => {
    const paragraphs = textOf(file).split(/\n\s*\n/);
    t.deepEqual(
      paragraphs.flatMap((paragraph) => dialectIn(paragraph.replaceAll("\n", " "))),
      [],
    );
  });
}

for (const folder of ["runtime", "transformer"]) {
  test(`messages and comments in ${folder} are in plain English`, (t) => {
    const files = filesIn(folder, ".ts");
    t.true(files.length > 50);
    const found = files.flatMap((file) =>
      [...messagesIn(file), ...commentsIn(file)].flatMap((text) =>
        dialectIn(text).map((problem) => `${relative(root, join(root, file))}: ${problem}: ${text}`),
      ),
    );
    t.deepEqual(found, []);
  });
}

test("the old dialect is noticed in messages and in comments", (t) => {
  t.deepEqual(dialectIn("A lost lock is told at once."), ['"is told": say report, or notify']);
  t.deepEqual(dialectIn("Whoever waits for it has it."), [
    '"Whoever waits for": say a waiter, or a caller',
    '"Whoever": say a subject at the start',
  ]);
  t.deepEqual(dialectIn("The waiter retries."), []);
});
