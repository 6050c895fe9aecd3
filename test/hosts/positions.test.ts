import { SourceMap, type SourceMapPayload } from "node:module";
import test, { type ExecutionContext } from "ava";
import { makeProject, type Project } from "./project";

const ORDER = `/*! Licence */
import { receipt as write } from "./receipt.js"; const startedAt = Date.now();

export class OrderService {
  private readonly paid: string[] = [];

  /**
   * Pays.
   * @redisLock businessFlag=payOrder keyName=orderNo,this.tenant
   */
  async pay(orderNo: string): Promise<string> { this.paid.push(orderNo);
    const inner = (): number => { return startedAt + 1; };
    if (orderNo === "none") { return this.refuse(orderNo) } else inner();
    return write(orderNo);
  } tenant = "tenant";

  /** @redisLock businessFlag=payOrder keyName=orderNo reentrant=true */
  refund = async (orderNo: string) => this.refuse(orderNo); limit = 100;

  async refuse(reason: string): Promise<string> {
    throw new RangeError(reason);
  }
}
/** @redisLock businessFlag=close */ export const close = async (): Promise<boolean> => startedAt > 2_000_000;
export const after = new OrderService();
`;
const RECEIPT = `/** @redisLock businessFlag=receipt keyName=orderNo */
export async function receipt(orderNo: string): Promise<string> {
  await Promise.resolve();
  if (orderNo === "bad") throw new TypeError("bad order");
  return "paid " + orderNo;
}
`;
const FILES = { "src/order.ts": ORDER, "src/receipt.ts": RECEIPT };

/** Texts that the source and the emitted code contain equally often and in the same order. */
const ANCHORS = [
  "startedAt = Date",
  "OrderService {",
  "paid",
  "push(",
  "inner =",
  "startedAt + 1",
  `"none"`,
  "this.refuse(orderNo)",
  "inner()",
  "write(orderNo)",
  "tenant =",
  "refund =",
  "limit = 100",
  "RangeError",
  "startedAt > ",
  "after = new",
];

const REENTRANT_TAG = "@redisLock businessFlag=payOrder keyName=orderNo reentrant";

/** Returns a position as in a stack trace. */
function place(file: string, text: string, words: string): string {
  const { line, column } = placeOf(text, words);
  return `src/${file}:${line + 1}:${column + 1}`;
}

function placeOf(text: string, words: string): { line: number; column: number } {
  const lines = (text.split(words)[0] ?? "").split("\n");
  return { line: lines.length - 1, column: (lines.at(-1) ?? "").length };
}

/** Asserts that the map leads each anchor in the emitted code to the same text in the source. */
function assertLeadsTo(
  t: ExecutionContext,
  emitted: string,
  map: SourceMapPayload,
  source: string,
  anchors: readonly string[],
): void {
  const sourceMap = new SourceMap(map);
  for (const anchor of anchors) {
    t.true(emitted.includes(anchor), `${anchor} is emitted`);
    const { line, column } = placeOf(emitted, anchor);
    const entry = sourceMap.findEntry(line, column);
    t.true("originalLine" in entry, `${anchor} is mapped`);
    if (!("originalLine" in entry)) continue;
    t.deepEqual({ line: entry.originalLine, column: entry.originalColumn }, placeOf(source, anchor), anchor);
  }
}

async function mapAt(project: Project, file: string): Promise<SourceMapPayload> {
  return JSON.parse(await project.read(file)) as SourceMapPayload;
}

function inlineMap(emitted: string): SourceMapPayload {
  const [, encoded = ""] = emitted.split("sourceMappingURL=data:application/json;base64,");
  return JSON.parse(Buffer.from(encoded, "base64").toString()) as SourceMapPayload;
}

test.serial("the source map of a bundle distinguishes files that have the same name", async (t) => {
  const body = `return "the inner one";`;
  const inner = `/** @redisLock businessFlag=inner */ export async function inner() { ${body} }\n`;
  const plain = `export const plain = "the plain one";\n`;
  const outer = `export const outer = 1;\n\n/** @redisLock businessFlag=outer */\nexport async function pay() {\n  return "the outer one";\n}\n`;
  const project = await makeProject(
    { "src/pay.ts": outer, "src/inner/pay.ts": inner, "src/inner/most/pay.ts": plain },
    {
      module: "amd",
      moduleResolution: "node10",
      ignoreDeprecations: "6.0",
      sourceMap: true,
      outDir: undefined,
      outFile: "out/all.js",
    },
  );
  t.like(await project.tspc(), { code: 0, stdout: "" });
  const emitted = await project.read("out/all.js");
  const map = await mapAt(project, "out/all.js.map");
  assertLeadsTo(t, emitted, map, outer, [`"the outer one"`]);
  assertLeadsTo(t, emitted, map, inner, [`"the inner one"`]);
  assertLeadsTo(t, emitted, map, plain, [`"the plain one"`]);
});

for (const module of ["nodenext", "commonjs"]) {
  test.serial(`the source maps of ${module} point to the file on disk`, async (t) => {
    const moduleSettings =
      module === "commonjs" ? { ignoreDeprecations: "6.0", moduleResolution: "bundler" } : {};
    const project = await makeProject(FILES, {
      module,
      sourceMap: true,
      inlineSources: true,
      ...moduleSettings,
    });
    t.like(await project.tspc(), { code: 0, stdout: "" });
    const emitted = await project.read("out/order.js");
    const map = await mapAt(project, "out/order.js.map");
    // CommonJS output gives the import another name.
    const anchors = ANCHORS.filter(
      (anchor) => module === "nodenext" || !/^(write|startedAt|after)/.test(anchor),
    );
    assertLeadsTo(t, emitted, map, ORDER, anchors);
    t.deepEqual(map.sources, ["../src/order.ts"]);
    t.deepEqual(map.sourcesContent, [ORDER]);
  });
}

test.serial("inline source maps point to the file on disk if the output has CRLF line endings", async (t) => {
  const project = await makeProject(FILES, { inlineSourceMap: true, inlineSources: true, newLine: "crlf" });
  t.like(await project.tspc(), { code: 0, stdout: "" });
  const emitted = await project.read("out/order.js");
  const map = inlineMap(emitted);
  assertLeadsTo(t, emitted, map, ORDER, ANCHORS);
  t.deepEqual(map.sourcesContent, [ORDER]);
});

const declarations = { composite: true, declarationMap: true };

test.serial("declaration maps equal those of plain tsc byte for byte", async (t) => {
  const project = await makeProject(FILES, declarations);
  t.like(await project.tspc("--outDir", "woven"), { code: 0, stdout: "" });
  t.like(await project.tsc("--outDir", "plain"), { code: 0, stdout: "" });
  for (const file of ["order.d.ts", "order.d.ts.map"]) {
    t.is(await project.read(`woven/${file}`), await project.read(`plain/${file}`), file);
  }
});

test.serial("declaration maps of a file without imports equal those of plain tsc", async (t) => {
  const project = await makeProject(FILES, declarations);
  await project.tspc("--outDir", "woven");
  await project.tsc("--outDir", "plain");
  t.is(await project.read("woven/receipt.d.ts.map"), await project.read("plain/receipt.d.ts.map"));
});

for (const [format, packageType] of [
  ["ES modules", "module"],
  ["CommonJS", "commonjs"],
] as const) {
  test.serial(
    `stack traces under --enable-source-maps name the lines of the file on disk, in ${format}`,
    async (t) => {
      const project = await makeProject(
        {
          ...FILES,
          "package.json": JSON.stringify({ type: packageType }),
          "calls.mjs": `
import { configure, memoryStore } from "lockweave";
import { after } from "./out/order.js";
configure({ store: memoryStore(), woven: false });
for (const call of [() => after.pay("none"), () => after.pay("bad"), () => after.refund("none")]) {
  await call().catch((error) => console.log(error.stack));
}
`,
        },
        { sourceMap: true },
      );
      t.like(await project.tspc(), { code: 0, stdout: "" });
      const { stdout } = await project.run("--enable-source-maps", "calls.mjs");
      const frames = [...stdout.matchAll(/\((?:.*\/)?(src\/.*|out\/.*)\)$/gm)].map(([, frame]) => frame);
      const thrown = place("order.ts", ORDER, "new RangeError");
      t.deepEqual(frames, [
        thrown,
        place("order.ts", ORDER, "refuse(orderNo) } else"),
        place("receipt.ts", RECEIPT, "new TypeError"),
        place("order.ts", ORDER, "write(orderNo)"),
        thrown,
        place("order.ts", ORDER, "refuse(orderNo);"),
        place("order.ts", ORDER, REENTRANT_TAG), // Added code maps to the tag.
      ]);
    },
  );
}
