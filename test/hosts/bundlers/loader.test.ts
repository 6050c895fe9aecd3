import { SourceMap, type SourceMapPayload } from "node:module";
import test from "ava";
import ts from "typescript";
import lockweave = require("../../../transformer/hosts/bundlers/loader");
import webpack = require("../../../transformer/hosts/bundlers/webpack");
import { ORDER, placeIn } from "./sources";

const ANCHORS = [
  "together = false",
  "this.together ||=",
  "setTimeout(",
  `"none"`,
  "refuse(orderNo) }",
  "RangeError",
];

test("the source map is combined with that of an earlier loader", (t) => {
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

test("CommonJS is woven with require(), since an import would make it an ES module", (t) => {
  const tagged = `/** @redisLock businessFlag=pay */\nasync function pay() {}\n`;
  for (const file of ["/app/src/pay.cjs", "/app/src/pay.js", "/app/src/pay.cts"]) {
    const [, text] = loaded(`${tagged}module.exports = { pay };`, undefined, file).output;
    t.regex(String(text), /const lockweave = require\("lockweave\/runtime"\);/);
    t.notRegex(String(text), /\bimport\b/);
  }
  t.regex(String(loaded(`${tagged}export { pay };`).output[1]), /import \* as lockweave from/);
});

class WebpackError extends Error {
  loc?: unknown;
  hideStack?: boolean;
}

type Loader = ThisParameterType<typeof lockweave>;

/** Returns the output of the loader and the errors and warnings that it reports to webpack. */
function loaded(
  text: string,
  map?: string,
  resource = "/app/src/order.ts",
): { output: unknown[]; errors: WebpackError[]; warnings: WebpackError[] } {
  const [errors, warnings, output]: [WebpackError[], WebpackError[], unknown[]] = [[], [], []];
  const context: Loader = {
    resource,
    resourcePath: resource.replace(/\?.*/, ""),
    getOptions: () => ({}),
    callback: (...all) => void output.push(...all),
    emitError: () => undefined,
    emitWarning: () => undefined,
    _module: {
      addError: (error) => void errors.push(error),
      addWarning: (error) => void warnings.push(error),
    },
    _compiler: { webpack: { WebpackError } },
  };
  lockweave.call(context, text, map);
  return { output, errors, warnings };
}

test("a file without tags stays unchanged and keeps the source map of the previous loader", (t) => {
  const map = { version: 3, sources: ["a.ts"], names: [], mappings: "AAAA" };
  t.deepEqual(loaded("export {};", JSON.stringify(map)).output, [null, "export {};", map]);
  t.deepEqual(loaded("export {};").output, [null, "export {};", undefined]);
});

test("webpack errors and warnings have positions in the tag, and errors omit the stack", (t) => {
  const tag = "/** @redisLock businessFlag=pay keyName=orderNO lockTime=30000 */";
  const { errors, warnings } = loaded(`${tag}\nexport async function pay(orderNo: string) {}`);
  const reported = [...errors, ...warnings].map(({ loc, hideStack }) => ({ loc, hideStack }));
  const on = (words: string): object => ({
    loc: {
      start: { line: 1, column: tag.indexOf(words) },
      end: { line: 1, column: tag.indexOf(words) + words.length },
    },
    hideStack: true,
  });
  t.deepEqual(reported, [on("orderNO")]);
  const likely = loaded(`${tag.replace("NO", "No")}\nexport async function pay(orderNo: string) {}`);
  t.deepEqual(likely.errors, []);
  t.deepEqual(
    likely.warnings.map(({ loc }) => loc),
    [(on("30000") as { loc: unknown }).loc],
  );
});

test("a tag in a component is reported once, and not again for each part of the component", (t) => {
  const text = `<template><p/></template>
<script lang="ts">
/** @redisLock businessFlag=pay */ async function pay() {}
</script>`;
  const { errors, output } = loaded(text, undefined, "/app/src/Pay.vue");
  t.deepEqual(output, [null, text, undefined]);
  t.is(errors.length, 1);
  t.regex(errors[0]?.message ?? "", /Pay\.vue\(3,5\): error LW1404: Compilers drop comments in components/);
  t.deepEqual(loaded(text, undefined, "/app/src/Pay.vue?vue&type=script&lang=ts"), {
    output: [null, text, undefined],
    errors: [],
    warnings: [],
  });
});

test("each tag in a component is one error, wherever its comment begins and however it is spelled", (t) => {
  const errorsOf = (script: string): string[] =>
    loaded(
      `<template><p/></template>\n<script>\n${script}\n</script>`,
      undefined,
      "/app/src/Pay.vue",
    ).errors.map(({ message }) => message.replace(/^.*\((.*)\): error (\w+): .*$/, "$1 $2"));
  for (const [script, ...places] of [
    ["/**\n   Pays.\n\n   @redisLock businessFlag=pay\n */", "6,4"],
    ["const o = { /** @redisLock businessFlag=pay */ async pay() {} };", "3,17"],
    ["/** @RedisLock businessFlag=pay */", "3,5"],
    ["/** Pays. @redisLock businessFlag=pay */", "3,11"],
    ["/* @redisLock businessFlag=pay */", "3,4"],
    ["  // @redisLock businessFlag=pay", "3,6"],
    ["/** @redisLock businessFlag=a */ f;\n/** @redisLock businessFlag=b */ g;", "3,5", "4,5"],
    ["/**\n * All of src/**\n * @redisLock businessFlag=pay\n */", "5,4"],
    ['glob("src/**");\n/** @redisLock businessFlag=pay */', "4,5"],
  ] as const)
    t.deepEqual(
      errorsOf(script),
      places.map((place) => `${place} LW1404`),
      script,
    );
  for (const script of ["/** Pays under a `@redisLock`. */", "const tag = '@redisLock businessFlag=pay';"])
    t.deepEqual(errorsOf(script), [], script);
});

test("the webpack plugin's rule matches components and source files", (t) => {
  const rules: unknown[] = [];
  webpack().apply({ options: { module: { rules } }, hooks: { compilation: { tap: () => {} } } });
  const [{ test: tests }] = rules as [{ test: RegExp[] }];
  for (const file of ["/app/Pay.vue", "/app/Pay.svelte", "/app/pay.ts", "/app/pay.mjs"]) {
    t.true(
      tests.some((each) => each.test(file)),
      file,
    );
  }
});
