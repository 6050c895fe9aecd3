import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test, { type ExecutionContext } from "ava";
import ts from "typescript";
import type { Parser } from "../../../transformer/parser/parser";
import { weave } from "../../../transformer/weave/weave";
import { tagAll } from "../../corpus/tag-all";
import { PACKAGE } from "../../hosts/project";

/** The published parser, which the build cuts out of TypeScript. */
const parts = require(path.join(PACKAGE, "dist/transformer/parser/typescript.js")) as Parser;

const FIXTURES = path.join(PACKAGE, "test/fixtures/weave");

const inputs = readdirSync(FIXTURES).map((name) => {
  const base = readdirSync(path.join(FIXTURES, name)).find((file) => file.startsWith("input.")) ?? "";
  return path.join(FIXTURES, name, base);
});

const sources = ["runtime", "test/lock", "test/queue", "test/runtime"].flatMap((folder) =>
  readdirSync(path.join(PACKAGE, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => path.join(PACKAGE, folder, file)),
);

function assertSame(t: ExecutionContext, file: string, text: string): void {
  const [cut, whole] = [parts, ts].map((parser: Parser) => {
    const woven = weave(file, text, { ts: parser, module: "esm" });
    return woven && { code: woven.code, diagnostics: woven.diagnostics, warnings: woven.warnings };
  });
  t.deepEqual(cut, whole, file);
}

test("the published parser is not the whole TypeScript", (t) => {
  t.false("createProgram" in parts);
});

test("the published parser weaves every fixture like TypeScript", (t) => {
  t.true(inputs.length > 0);
  for (const file of inputs) assertSame(t, file, readFileSync(file, "utf8"));
});

test("the published parser and TypeScript weave tagged copies of this repository's code into the same text", (t) => {
  let tags = 0;
  for (const [index, file] of sources.entries()) {
    const attributes = `businessFlag=all reentrant=${String(index % 2 === 0)}`;
    const { text, count } = tagAll(file, readFileSync(file, "utf8"), attributes);
    if (count > 0) assertSame(t, file, text);
    tags += count;
  }
  t.true(tags > 300);
});

test("the published parser rejects code with syntax errors like TypeScript", (t) => {
  const SHARES = [0.3, 0.5, 0.7, 0.9, 0.97];
  for (const file of inputs) {
    const text = readFileSync(file, "utf8");
    for (const share of SHARES) assertSame(t, file, text.slice(0, Math.round(share * text.length)));
    assertSame(t, file, text.replaceAll("(", "(("));
  }
});
