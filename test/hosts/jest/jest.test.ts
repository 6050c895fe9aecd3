import { SourceMap, type SourceMapPayload } from "node:module";
import { join } from "node:path";
import test from "ava";
import { createTransformer, type JestOptions } from "../../../transformer/hosts/jest/transformer";
import { makeProject, PACKAGE, type Project } from "../project";

const ORDERS = `export class Orders {
  /** @redisLock businessFlag=pay keyName=orderNo */
  async pay(orderNo: string): Promise<void> { return fails(orderNo); }
}
`;

/** A Jest transformer that returns its source map next to the code or inside it. */
const INNER = `const ts = require("typescript");
exports.createTransformer = (config) => ({
  getCacheKey: (text) => JSON.stringify(config) + text,
  process(text, path, { instrument }) {
    const { inlineSourceMap, sourceMap = false } = config ?? {};
    const compilerOptions = { module: "commonjs", target: "es2022", inlineSourceMap, sourceMap: sourceMap !== false };
    const { outputText, sourceMapText } = ts.transpileModule(text, { fileName: path, compilerOptions });
    if (instrument) throw new Error("coverage would count the inserted code");
    return { code: outputText, map: config?.sourceMap === "object" ? JSON.parse(sourceMapText) : sourceMapText };
  },
});
`;

interface Given {
  readonly config: { readonly rootDir: string };
  readonly configString: string;
  readonly instrument: boolean;
}

async function withInner(): Promise<{ project: Project; given: Given; path: string }> {
  const project = await makeProject({ "package.json": "{}", "inner.js": INNER });
  const given = { config: { rootDir: project.dir }, configString: "", instrument: true };
  return { project, given, path: project.path("src/orders.ts") };
}

for (const [what, config] of [
  ["as text", { sourceMap: true }],
  ["as an object", { sourceMap: "object" }],
  ["in the code", { inlineSourceMap: true }],
] as const) {
  test(`another transformer compiles the woven code, and its source map ${what} points to the file on disk`, async (t) => {
    const { given, path } = await withInner();
    const transformer = createTransformer({ transformer: ["./inner", config] });
    const made = transformer.process?.(ORDERS, path, given);
    t.deepEqual(await transformer.processAsync?.(ORDERS, path, given), made);
    const { code = "", map } = made ?? {};
    t.regex(code, /lockweave\.open\(\{ site: "Orders\.pay", businessFlag: "pay" \}, orderNo\)/);
    const [, inline = ""] = /base64,(\S+)/.exec(code) ?? [];
    const text = typeof map === "string" ? map : Buffer.from(inline, "base64").toString();
    const content = typeof map === "object" && map !== null ? map : (JSON.parse(text) as object);
    const lines = (code.split("fails(")[0] ?? "").split("\n");
    const entry = new SourceMap(content as SourceMapPayload).findEntry(
      lines.length - 1,
      lines.at(-1)?.length ?? 0,
    );
    const { originalLine, originalColumn } = entry as Record<string, number | undefined>;
    t.is(ORDERS.split("\n")[originalLine ?? 0]?.slice(originalColumn).slice(0, 5), "fails");
  });
}

test("leaves the instrumentation for coverage to Jest", async (t) => {
  const { given, path } = await withInner();
  const transformer = createTransformer({ transformer: "./inner" });
  t.false(transformer.canInstrument);
  t.notThrows(() => transformer.process?.(ORDERS, path, given));
});

test("a file without tags is compiled unchanged", async (t) => {
  const { given, path } = await withInner();
  const made = createTransformer({ transformer: "./inner" }).process?.("export const a = 1;", path, given);
  t.true(made?.code.endsWith("exports.a = 1;\n"));
});

test("reports all errors of a file in the compiler's format", async (t) => {
  const { given } = await withInner();
  const wrong = ORDERS.replace("keyName=orderNo", "keyName=orderNO lockTim=1s");
  const transformer = createTransformer({ transformer: "./inner" });
  const path = join(process.cwd(), "src/orders.ts");
  const message = `src/orders.ts(2,51): error LW1002: There is no attribute \`lockTim\`. Did you mean \`lockTime\`?
src/orders.ts(2,43): error LW1202: The function has no parameter \`orderNO\`. Did you mean \`orderNo\`?`;
  t.throws(() => transformer.process?.(wrong, path, given), { message });
  await t.throwsAsync(async () => transformer.processAsync?.(wrong, path, given), { message });
  const oneError = wrong.replace(" lockTim=1s", "");
  t.throws(() => transformer.process?.(oneError, path, given), { message: message.replace(/^.*\n/, "") });
});

test.serial(
  "the cache key depends on the transformer, the defaults, the text, and the version",
  async (t) => {
    const { given, path } = await withInner();
    const keyOf = (options: JestOptions, text = ORDERS): string | undefined =>
      createTransformer({ transformer: "./inner", ...options }).getCacheKey?.(text, path, given);
    const usual = keyOf({});
    t.is(keyOf({}), usual);
    t.is(await createTransformer({ transformer: "./inner" }).getCacheKeyAsync?.(ORDERS, path, given), usual);
    const others = [
      keyOf({ transformer: ["./inner", { a: 1 }] }),
      keyOf({ defaults: { lockTime: "20s" } }),
      keyOf({}, `${ORDERS} `),
    ];
    const manifest = require(join(PACKAGE, "package.json")) as { version: string };
    const { version } = manifest;
    manifest.version = `${version}-next`;
    others.push(keyOf({}));
    manifest.version = version;
    t.is(new Set([usual, ...others]).size, 5);
  },
);

test("an unknown option is an error", async (t) => {
  const { given, path } = await withInner();
  const transformer = createTransformer({ transformer: "./inner", default: {} } as JestOptions);
  t.throws(() => transformer.process?.(ORDERS, path, given), {
    message: "lockweave's plugin has no option `default`. Did you mean `defaults`?",
  });
});
