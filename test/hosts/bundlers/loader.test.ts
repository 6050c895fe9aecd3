import { SourceMap, type SourceMapPayload } from "node:module";
import test from "ava";
import ts from "typescript";
import lockweave = require("../../../transformer/hosts/bundlers/loader");
import { ORDER, placeIn } from "./sources";

const ANCHORS = [
  "together = false",
  "this.together ||=",
  "setTimeout(",
  `"none"`,
  "refuse(orderNo) }",
  "RangeError",
];

test("the source map leads through that of an earlier loader", (t) => {
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, sourceMap: true };
  const compiled = ts.transpileModule(`type Unused = string;\n\n${ORDER}`, { compilerOptions });
  const results: { text: string; map: SourceMapPayload }[] = [];
  lockweave.call(
    {
      resource: "/app/src/order.ts?v=1",
      resourcePath: "/app/src/order.ts",
      getOptions: () => ({}),
      callback: (_error, text, map) => void results.push({ text: text ?? "", map: map as SourceMapPayload }),
      emitError: (error) => t.fail(error.message),
      emitWarning: (warning) => t.fail(warning.message),
    },
    compiled.outputText,
    compiled.sourceMapText,
  );
  const [result] = results;
  t.true(result?.text.includes("lockweave.acquire"));
  if (result === undefined) return;
  const map = new SourceMap(result.map);
  for (const anchor of ANCHORS) {
    const words = anchor.replace(" }", ";");
    t.true(result.text.includes(words), words);
    const { line, column } = placeIn(result.text, words);
    const entry = map.findEntry(line - 1, column - 1);
    const source = placeIn(`type Unused = string;\n\n${ORDER}`, anchor);
    t.like(entry, { originalLine: source.line - 1, originalColumn: source.column - 1 }, anchor);
  }
});
