import test from "ava";
import ts from "typescript";
import { weave } from "../../../transformer/weave/weave";

/** The woven text; `undefined` when there is nothing to weave. */
function wovenText(text: string): string | undefined {
  return weave("app.ts", text, { ts, module: "esm" })?.code;
}

for (const [description, text, woven] of [
  [
    "imported by its name",
    'import { configure } from "lockweave";\nconfigure({ redis });',
    'import { configure } from "lockweave";\nconfigure({ redis }, "woven");',
  ],
  [
    "imported by another name, from the runtime's own path",
    'import { configure as setUp } from "lockweave/runtime";\nsetUp(options);',
    'import { configure as setUp } from "lockweave/runtime";\nsetUp(options, "woven");',
  ],
  [
    "reached through a namespace",
    'import * as locks from "lockweave";\nlocks.configure({ redis, },);',
    'import * as locks from "lockweave";\nlocks.configure({ redis, }, "woven",);',
  ],
  [
    "called inside a function",
    'import { configure } from "lockweave";\nexport const start = () => configure(pick());',
    'import { configure } from "lockweave";\nexport const start = () => configure(pick(), "woven");',
  ],
] as const) {
  test(`configure() is told that the build is woven: ${description}`, (t) => {
    t.is(wovenText(text), woven);
    t.is(wovenText(woven), undefined, "once is enough");
  });
}

for (const [description, text] of [
  ["another module's", 'import { configure } from "elsewhere";\nconfigure({});\nimport "lockweave";'],
  ["a type of that name", 'import { type Configuration } from "lockweave";\nconst configure = 1;'],
  ["a call that tells it itself", 'import { configure } from "lockweave";\nconfigure({}, "woven");'],
  ["a call with a spread", 'import { configure } from "lockweave";\nconfigure(...all);'],
] as const) {
  test(`nothing is woven into ${description}`, (t) => {
    t.is(wovenText(text), undefined);
  });
}

test("a tag and configure() in one file are both woven", (t) => {
  const text = `import { configure } from "lockweave";
configure({ redis });
/** @redisLock businessFlag=a */
export async function a() {}`;
  t.regex(
    wovenText(text) ?? "",
    /^import \* as lockweave .*\nconfigure\(\{ redis \}, "woven"\);\n.*\n.*lockweave\.open\(/,
  );
});
