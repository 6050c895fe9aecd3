import test from "ava";
import ts from "typescript";
import { isSettled } from "../../../transformer/read/returns";

/** The expression of a return. */
function expressionOf(text: string): ts.Expression {
  const file = ts.createSourceFile("a.ts", `async () => { return ${text}; }`, ts.ScriptTarget.Latest, true);
  let found: ts.Expression | undefined;
  const visit = (node: ts.Node): void => {
    if (found === undefined && ts.isReturnStatement(node)) found = node.expression;
    ts.forEachChild(node, visit);
  };
  visit(file);
  if (found === undefined) throw new Error(`no expression in ${text}`);
  return found;
}

const BINARY = ["<", ">", "<=", ">=", "==", "!=", "===", "!==", "+", "-", "*", "/", "%", "**"];
const BITWISE = ["<<", ">>", ">>>", "&", "|", "^"];

const SETTLED = [
  ...[...BINARY, ...BITWISE, "in", "instanceof"].map((operator) => `a ${operator} b`),
  "undefined null true false 1 1n 'a' `a` `a${b}` /a/ [a] {} {a} {then_:b} {...a} {'a':b}".split(" "),
  ["await a", "typeof a", "void a", "delete a.b", "!a", "-a", "+a", "~a", "++a", "--a", "a++", "a--"],
  ["() => a", "function () { return a; }", "async () => a", "{ a() {} }", "{ get a() { return b; } }"],
  ["(1)", "1 as unknown", "1 satisfies unknown", "<unknown>1", "1!", "a, 1", "a = 1"],
  ["a ? 1 : 2", "1 && 2", "1 || 2", "1 ?? 2"],
].flat();

const OPEN = [
  ["a", "a()", "a.b", "a[0]", "a?.b", "a?.()", "this", "new A()", "import('a')", "a`b`", "async"],
  ["(a)", "a as unknown", "a satisfies unknown", "<unknown>a", "a!", "1, a", "b = a", "a ??= 1", "a += 1"],
  ["a ? 1 : b", "a ? b : 1", "1 && a", "a && 1", "1 || a", "a || 1", "1 ?? a", "a ?? 1"],
  [
    "{ then }",
    "{ then: a }",
    "{ then() {} }",
    "{ 'then': a }",
    "{ [a]: 1 }",
    "{ __proto__: a }",
    "{ a, then }",
  ],
].flat();

for (const text of SETTLED) {
  test(`${text} cannot be a promise`, (t) => {
    t.true(isSettled(ts, expressionOf(text)));
  });
}

for (const text of OPEN) {
  test(`${text} may be a promise`, (t) => {
    t.false(isSettled(ts, expressionOf(text)));
  });
}

test("a name may be a promise unless its scope shows that it is not", (t) => {
  const scope = new Map([
    ["one", true],
    ["undefined", false],
  ]);
  t.true(isSettled(ts, expressionOf("one"), scope));
  t.false(isSettled(ts, expressionOf("two"), scope));
  t.false(isSettled(ts, expressionOf("undefined"), scope));
  t.true(isSettled(ts, expressionOf("(two ? one : [two])"), scope));
});
