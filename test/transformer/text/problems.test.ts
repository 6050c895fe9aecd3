import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";
import ts from "typescript";

/** The one meaning of each code that has several messages. All other codes have one message. */
const MEANINGS: Readonly<Record<string, string>> = {
  LW1001: "something in the tag is not an attribute",
  LW1002: "the tag has no such attribute",
  LW1005: "a comma has no value after it",
  LW1014: "the tag is in a block of code that may not be an example",
  LW1301: "the tag is not on a function",
  LW1309: "the file is not an ES module",
  LW1403: "the output of another build does not contain the lock",
  LW1404: "the tag of a file never reaches the weave",
  LW1405: "a call of the runtime cannot be woven",
  LW1406: "the program runs a file that no build weaves",
  LW1502: "a tagged function waits for its own lock",
  LW1507: "a related function has no tag",
};

/** Returns the codes in the order of the table. */
function codesInTable(): string[] {
  const path = join(__dirname, "../../../transformer/text/problems.ts");
  const file = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
  const codes: string[] = [];
  const visit = (node: ts.Node): void => {
    const [code] = ts.isArrayLiteralExpression(node) ? node.elements : [];
    if (code !== undefined && ts.isStringLiteral(code) && code.text.startsWith("LW")) codes.push(code.text);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return codes;
}

test("a diagnostic code has one meaning: a code with several messages is listed with what they have in common", (t) => {
  const codes = codesInTable();
  t.true(codes.length > 80);
  const repeated = codes.filter((code, index) => codes.indexOf(code) !== index);
  t.deepEqual([...new Set(repeated)].toSorted(), Object.keys(MEANINGS));
});

test("the messages of one code are next to each other in the table", (t) => {
  const runs = codesInTable().filter((code, index, all) => code !== all[index - 1]);
  t.deepEqual(
    runs.filter((code, index) => runs.indexOf(code) !== index),
    [],
  );
});

test("every code has the form LW1 and three digits", (t) => {
  t.deepEqual(
    codesInTable().filter((code) => !/^LW1\d{3}$/.test(code)),
    [],
  );
});
