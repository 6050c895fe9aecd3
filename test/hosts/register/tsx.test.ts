import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Script } from "node:vm";
import test from "ava";
import { fileWeaver } from "../../../transformer/hosts/one-file/weaver";
import type { Compiler } from "../../../transformer/hosts/register/compilers/compiler";
import { registeredTsx } from "../../../transformer/hosts/register/compilers/tsx";
import { parser } from "../../../transformer/parser/parser";

// The code that tsx compiles from a tagged file. runs.test.ts runs it with Node.

const PATH = "/app/src/pay.ts";

function tsx(): Compiler | undefined {
  const { NODE_OPTIONS = "" } = process.env;
  process.env["NODE_OPTIONS"] = "--import tsx";
  try {
    return registeredTsx();
  } finally {
    process.env["NODE_OPTIONS"] = NODE_OPTIONS;
  }
}

function compiled(text: string, format: "module" | "commonjs", path = PATH): string {
  const file = fileWeaver(parser())(
    path,
    `/** @redisLock businessFlag=pay */\nasync function pay() {}\n${text}`,
  );
  if (file === undefined) throw new Error("There is nothing to weave");
  return tsx()?.compile(file, path, format).source ?? "";
}

test("CommonJS output requires modules, and its `import.meta.url` is the URL of the file", (t) => {
  const text = compiled(
    `import { sep } from "node:path"; export const url = import.meta.url + sep;`,
    "commonjs",
  );
  const module = { exports: {} as { url?: string } };
  // oxlint-disable-next-line no-implied-eval -- Node wraps modules in the same way.
  const run = new Function("module", "exports", "require", text) as (...of: unknown[]) => void;
  run(module, module.exports, (id: string) => (id === "lockweave" ? {} : createRequire(__filename)(id)));
  t.is(module.exports.url, `${pathToFileURL(PATH).href}/`);
});

test("CommonJS output lists its exports, so that they can be imported by name", (t) => {
  const text = compiled("export const first = 1, second = 2;", "commonjs");
  t.regex(text, /\bmodule\.exports = \{\s*first,\s*second\s*\}/);
});

test("ES module output keeps Node's `import.meta.url`, which may have a query", (t) => {
  const text = compiled("export const { url } = import.meta, other = import.meta.url;", "module");
  t.regex(text, /\bother = import\.meta\.url\b/);
});

test("`export =` in an ES module becomes the default export", (t) => {
  t.regex(compiled("export = pay;", "module"), /^export default /m);
});

test("syntax that this Node does not support is compiled", (t) => {
  const text = compiled("class Order { accessor id = 1 }\nvoid Order;", "commonjs");
  t.notThrows(() => new Script(text));
  t.regex(text, /get id\(\)/);
});

test("the extension determines whether a file may contain types and JSX", (t) => {
  const generic = "export const first = <T>(value: T) => <T>value;";
  for (const ending of ["ts", "mts", "cts"]) {
    t.regex(compiled(generic, "module", `/app/src/pay.${ending}`), /const first = .*\(value\) => value/);
  }
  for (const ending of ["tsx", "jsx"]) {
    t.regex(
      compiled("export const line = <b>1</b>;", "module", `/app/src/pay.${ending}`),
      /createElement\("b"/,
    );
  }
  for (const ending of ["js", "mjs", "cjs", "jsx"]) {
    t.throws(() => compiled(generic, "module", `/app/src/pay.${ending}`));
  }
});

test("functions keep their names from the source", (t) => {
  t.regex(compiled("export const first = () => 1;", "module"), /__name\(.*"first"\)/);
});
