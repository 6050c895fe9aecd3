import test from "ava";
import ts from "typescript";
import { writtenOut, wovenText } from "../../transformer/cli/eject/written-out";
import type { Compiler } from "../../transformer/hosts/ts-patch/compiler";
import { weave } from "../../transformer/weave/weave";
import { fixtures } from "../hosts/fixtures";

/** The tokens of a text, without comments and white space. */
function tokens(fileName: string, text: string): string[] {
  const file = ts.createSourceFile(fileName, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (node.getChildCount(file) === 0) found.push(node.getText(file));
    else for (const child of node.getChildren(file)) if (!ts.isJSDoc(child)) visit(child);
  };
  visit(file);
  return found;
}

for (const { name, input, text } of fixtures) {
  const fileName = `/${input}`;
  const woven = weave(fileName, text, { ts, module: "esm" });
  if (woven === undefined || woven.diagnostics.length > 0) continue;
  test(`the ejected code of ${name} has the tokens of the woven code, and weaving it again changes nothing`, (t) => {
    const source = { fileName, text, woven };
    const compiler = ts as unknown as Compiler;
    t.deepEqual(tokens(fileName, wovenText(compiler, source)), tokens(fileName, woven.code));
    const written = writtenOut(compiler, source);
    t.deepEqual(tokens(fileName, written), tokens(fileName, woven.code));
    t.is(weave(fileName, written, { ts, module: "esm" })?.code ?? written, written);
  });
}
