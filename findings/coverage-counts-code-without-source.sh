#!/usr/bin/env bash
# Guess: a coverage tool ignores generated code that the source map declares to have no source (a segment with one field).
# Seen: v8-to-istanbul, which c8 and Jest use, takes such code for the code at the first column of its line. The user's function shows an
#   uncovered branch that no source text has. The branch disappears if the map has nothing at that column. @jridgewell/remapping, which Vite and
#   Rollup use, keeps only the first of several segments without a source. After that, ast-v8-to-istanbul, which Vitest uses, takes the code
#   for the next code to its right.
# Versions: v8-to-istanbul 9.3.0, ast-v8-to-istanbul 1.0.8, @jridgewell/remapping 2.3.5 (npm), Node 20.
# Locks: woven code is code without a source. Leave out the start of each statement exactly, map the code before it, and map nothing at the first
#   column of the line.
set -eu
W=$(mktemp -d)
trap 'rm -rf "$W"' EXIT
cd "$W"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund v8-to-istanbul@9.3.0 ast-v8-to-istanbul@1.0.8 @jridgewell/remapping@2.3.5 \
  @jridgewell/sourcemap-codec@1.5.5 acorn@8.15.0 >/dev/null
cat >run.mjs <<'JS'
import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import remapping from "@jridgewell/remapping";
import { encode } from "@jridgewell/sourcemap-codec";
import { parse } from "acorn";
import { convert } from "ast-v8-to-istanbul";
import v8ToIstanbul from "v8-to-istanbul";

const source = "function add(a, b) { return a + b; }\n";
const inserted = "if (!a) { log(); fail(); } ";
const at = source.indexOf("return");
const code = source.slice(0, at) + inserted + source.slice(at);
writeFileSync("add.ts", source);

/** A map of each word. The inserted code has the segments that `without` returns. */
const mapOf = (first, without) => ({
  version: 3,
  file: "add.js",
  sources: ["add.ts"],
  sourcesContent: [source],
  names: [],
  mappings: encode([
    [
      [first, 0, 0, first],
      [9, 0, 0, 9],
      [19, 0, 0, 19],
      ...without,
      [at + inserted.length, 0, 0, at],
      [code.indexOf("}", at + inserted.length), 0, 0, source.indexOf("}")],
    ],
  ]),
});
const block = code.indexOf("{ log");
const functions = [
  {
    functionName: "add",
    isBlockCoverage: true,
    ranges: [
      { startOffset: 0, endOffset: code.length - 1, count: 1 },
      { startOffset: block, endOffset: code.indexOf("}", block) + 1, count: 0 },
    ],
  },
];
const places = (branches, counts) =>
  Object.entries(branches).flatMap(([key, { loc }]) =>
    counts[key].includes(0) ? [`${loc.start.line}:${loc.start.column}`] : [],
  );

async function v8(map) {
  const converter = v8ToIstanbul("add.js", 0, { source: code, originalSource: source, sourceMap: { sourcemap: map } });
  await converter.load();
  converter.applyCoverage(structuredClone(functions));
  const [{ branchMap, b }] = Object.values(converter.toIstanbul());
  return places(branchMap, b).join() || "none";
}

async function ast(sourceMap) {
  const url = pathToFileURL("add.js").href;
  const coverage = { url, scriptId: "1", functions: structuredClone(functions) };
  const options = { code, sourceMap, coverage, ast: parse(code, { ecmaVersion: 2022, sourceType: "module" }) };
  const [{ branchMap, b }] = Object.values(await convert(options));
  return places(branchMap, b).join() || "none";
}

const spaced = [[at - 1], [at], [block]]; // The code before the `if` has no source, either.
const combined = (map) => JSON.parse(JSON.stringify(remapping(map, () => null)));
console.log("v8-to-istanbul, uncovered branches:", await v8(mapOf(0, spaced)));
console.log("v8-to-istanbul, nothing at column 0:", await v8(mapOf(1, spaced)));
console.log("ast-v8-to-istanbul, uncovered branches:", await ast(mapOf(0, spaced)));
console.log("ast-v8-to-istanbul, after remapping:", await ast(combined(mapOf(0, spaced))));
JS
node run.mjs | tee seen
cat >expected <<'TXT'
v8-to-istanbul, uncovered branches: 1:0
v8-to-istanbul, nothing at column 0: none
ast-v8-to-istanbul, uncovered branches: none
ast-v8-to-istanbul, after remapping: 1:21
TXT
cmp expected seen || { echo "behavior changed"; exit 1; }
