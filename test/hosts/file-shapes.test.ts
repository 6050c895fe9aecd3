import test from "ava";
import { makeProject, type Files, type Project } from "./project";

/** Configures a store that records the held keys in `held`. */
const HELD = `import { configure, memoryStore } from "lockweave";
export const held = new Set();
const store = memoryStore();
const { acquire, release } = store;
store.acquire = (request, timeoutMs) => { held.add(request.key); return acquire.call(store, request, timeoutMs); };
store.release = (request, timeoutMs) => { held.delete(request.key); return release.call(store, request, timeoutMs); };
configure({ store, woven: false });
`;

const TYPED = `export class Orders {
\t/**
\t * Größe 🔒 – @see https://example.com
\t * @redisLock businessFlag=größe keyName=größe
\t */
\tasync pay(größe: string, held: ReadonlySet<string>): Promise<string> {
\t\treturn größe + " under " + [...held].join();
\t}
\t/** 🔒 @see nothing */ /** @redisLock businessFlag=lines keyName=id */ async *lines(id: string, held: ReadonlySet<string>): AsyncGenerator<string> {
\t\tyield id + " under " + [...held].join();
\t}
}
`;

const UNTYPED = TYPED.replaceAll(
  /: (?:string|ReadonlySet<string>|Promise<string>|AsyncGenerator<string>)(?=[,) ])/g,
  "",
);

/** The same code in files with different encodings, line ends, and extensions. */
const SHAPES: Files = {
  "plain.ts": TYPED,
  "byte-order-mark.ts": `\uFEFF${TYPED}`,
  "byte-order-mark-and-import.ts": `\uFEFFimport "./plain.js";\n${TYPED}`,
  "crlf.ts": TYPED.replaceAll("\n", "\r\n"),
  "byte-order-mark-and-crlf.ts": `\uFEFF${TYPED}`.replaceAll("\n", "\r\n"),
  "shebang.ts": `#!/usr/bin/env node\n${TYPED}`,
  "shebang-and-crlf.ts": `#!/usr/bin/env node\n${TYPED}`.replaceAll("\n", "\r\n"),
  "no-line-break-at-the-end.ts": TYPED.trimEnd(),
  "comment-at-the-end.ts": `${TYPED}// The end.`,
  "elements.tsx": `${TYPED}export const nothing = undefined as unknown as <T,>(value: T) => T;\n`,
  "module.mts": TYPED,
  "common.cts": TYPED,
  "script.js": UNTYPED,
  "script-module.mjs": UNTYPED,
  "script-common.cjs": UNTYPED.replace("export class", "exports.Orders = class").replace(
    /^/,
    'const { sep } = require("node:path");\nvoid sep;\n',
  ),
  "elements-script.jsx": UNTYPED,
};

const RUN = `import { held } from "./held.mjs";
for (const file of process.argv.slice(2)) {
  const { Orders } = await import("./out/" + file);
  const lines = [await new Orders().pay("A1", held)];
  for await (const line of new Orders().lines("A2", held)) lines.push(line);
  console.log(file + ": " + lines.join(", ") + ", " + held.size);
}
`;

for (const settings of [
  { target: "es2017" },
  { target: "es2018", removeComments: true },
  { target: "es2022", newLine: "crlf", removeComments: true },
  { target: "esnext", emitBOM: true },
] as const) {
  test.serial(`files of every shape run under locks with ${JSON.stringify(settings)}`, async (t) => {
    const files = Object.entries(SHAPES).map(([file, text]) => [`src/${file}`, text]);
    const project = await makeProject(
      { ...(Object.fromEntries(files) as Files), "held.mjs": HELD, "run.mjs": RUN },
      { allowJs: true, jsx: "react", lib: ["es2022"], ...settings },
    );
    t.like(await project.tspc(), { code: 0, stdout: "" });
    const outputs = Object.keys(SHAPES).map((file) => file.replace(/\.([cm]?)[jt]sx?$/, ".$1js"));
    const expected = outputs.map((file) => `${file}: A1 under LOCK_größe_A1, A2 under LOCK_lines_A2, 0\n`);
    t.like(await project.run("run.mjs", ...outputs), { code: 0, stderr: "", stdout: expected.join("") });
  });
}

test.serial("errors in files of every shape have the position of the wrong name in the tag", async (t) => {
  const broken = (text: string): string =>
    text.replace("keyName=größe", "keyName=größer").replace("keyName=id", "keyName=idd");
  const files = Object.entries(SHAPES).map(([file, text]) => [`src/${file}`, broken(text)]);
  const project = await makeProject(Object.fromEntries(files) as Files, { allowJs: true, jsx: "react" });
  const { code, stdout } = await project.tspc();
  t.is(code, 2);
  for (const file of Object.keys(SHAPES)) {
    for (const word of ["größer", "idd"]) {
      const place = await placeOf(project, word, `src/${file}`);
      const expected = `${place}: error TS901202: LW1202: The function has no parameter \`${word}\`.`;
      t.true(stdout.includes(expected), stdout);
    }
  }
});

/** Returns the position as the compiler counts it, without a column for a byte order mark. */
async function placeOf(project: Project, word: string, file: string): Promise<string> {
  const place = await project.placeOf(word, file);
  const isAfterMark = (await project.read(file)).startsWith("\uFEFF") && place.includes("(1,");
  return isAfterMark ? place.replace(/\d+(?=\)$)/, (column) => String(Number(column) - 1)) : place;
}

for (const type of ["module", "commonjs"]) {
  test.serial(
    `functions called while an import cycle still loads run under locks, with type ${type}`,
    async (t) => {
      const project = await makeProject({
        "package.json": JSON.stringify({ type }),
        "held.mjs": HELD.replaceAll("export const held", "globalThis.held"),
        "src/main.ts": 'import "./outer.js";\nimport "./inner.js";\n',
        "src/outer.ts": `import { early } from "./inner.js";
declare const held: ReadonlySet<string>;
/** @redisLock businessFlag=declaration keyName=id */
export async function declared(id: string): Promise<string> { return id + held.has("LOCK_declaration_" + id); }
export { early };
/** @redisLock businessFlag=stream keyName=id */
export async function* streamed(id: string): AsyncGenerator<string> { yield id + held.has("LOCK_stream_" + id); }
/** @redisLock businessFlag=promise keyName=id */
export function promised(id: string): Promise<string> { return Promise.resolve(id + held.has("LOCK_promise_" + id)); }
`,
        "src/inner.ts": `import { declared, promised, streamed } from "./outer.js";
export const early = "early";
declare const console: { log(text: string): void };
const results = [declared("A1"), promised("A2"), streamed("A3").next().then(({ value }) => String(value))];
for (const result of results) void result.then(console.log);
`,
      });
      t.like(await project.tspc(), { code: 0, stdout: "" });
      const { code, stdout, stderr } = await project.run("--import", "./held.mjs", "out/main.js");
      t.deepEqual({ code, stderr }, { code: 0, stderr: "" });
      t.deepEqual(stdout.trim().split("\n").toSorted(), ["A1true", "A2true", "A3true"]);
    },
  );
}
