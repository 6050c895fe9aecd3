import { createRequire } from "node:module";
import { join } from "node:path";
import { transform } from "esbuild";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";
import { installed } from "../../hosts/installed";
import { inMatrix } from "../../support/suites";

/** Values with different first tokens. Each token could also follow a name, if a parser took `await` for one. */
const RETURNED = [
  String.raw`/^\d+$/.test(id)`,
  "`order`.concat(id)",
  "[id].map(String)",
  "(id).trim()",
  "new Map()",
  '"a".concat(id)',
  "function () {}.call(id)",
  "class {}.of(id)",
  "{}.of(id)",
  "async function () {}()",
  'import("node:fs")',
  "-id",
  "+id",
  "++id",
];

type Minify = (code: string) => Promise<{ readonly code?: string }>;

async function terser(): Promise<Minify> {
  const modules = await installed("terser");
  const load = createRequire(join(modules, "terser/package.json"));
  return (load("terser") as { readonly minify: Minify }).minify;
}

inMatrix(
  "terser and esbuild can parse the value that a woven function returns, whatever its first token is",
  async (t) => {
    const minify = await terser();
    for (const returned of RETURNED) {
      const text = `/** @redisLock businessFlag=pay keyName=id */\nexport async function pay(id) { return ${returned}; }\n`;
      const { code = "" } = weave("pay.js", text, { ts, module: "esm" }) ?? {};
      await t.notThrowsAsync(minify(code), code);
      await t.notThrowsAsync(transform(code, { minify: true }), code);
    }
  },
);
