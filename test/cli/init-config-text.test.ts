import test from "ava";
import { ConfigText } from "../../transformer/cli/init/config-text";
import { parser } from "../../transformer/parser/parser";

// How `lockweave init` reads configurations that somebody has written, and what it leaves of their layout.

function configOf(text: string, file = "a.config.ts"): ConfigText {
  return new ConfigText(parser(), file, text);
}

/** @throws where there is no object that can be changed */
function rootOf(config: ConfigText): NonNullable<ReturnType<ConfigText["root"]>> {
  const root = config.root();
  if (root === undefined) throw new Error(`there is none in ${config.toString()}`);
  return root;
}

// ---- which object it is ---------------------------------------------------------------------------------

for (const [what, text] of [
  ["is exported", "export default { a: 1 };"],
  ["is exported in CommonJS, behind other statements", "run();\nmodule.exports = { a: 1 };"],
  ["stands in parentheses", "module.exports = ({ a: 1 });"],
  ["satisfies a type", "export default { a: 1 } satisfies Config;"],
  ["is said to have a type", "export default { a: 1 } as Config;"],
  ["is given to a function that only gives it a type", "export default defineConfig({ a: 1 });"],
  ["is made by a function", "export default defineConfig(() => ({ a: 1 }));"],
  ["is returned behind declarations", "export default () => { const b = 1; return { a: 1 }; };"],
  [
    "has a name, among others",
    "const b = { b: 1 }, config = { a: 1 };\nconst c = {};\nexport default config;",
  ],
] as const) {
  test(`an object that ${what} is the configuration`, (t) => {
    const config = configOf(text);
    t.is(config.textOf(rootOf(config)), "{ a: 1 }");
  });
}

for (const [what, text] of [
  ["is exported under a name", "exports.config = { a: 1 };"],
  ["is given to a function that nobody exports", "configure({ a: 1 });"],
  ["is given to a function that may do anything", "export default makeConfig({ a: 1 });"],
  ["is merged with another", "export default defineConfig({ a: 1 }, { b: 2 });"],
  ["is not there", "export default defineConfig();"],
  ["is returned behind what may do anything", "export default () => { run(); return { a: 1 }; };"],
  ["is not returned", "export default () => { return; };"],
  ["is nowhere", "export default () => {};"],
  ["is taken out of another", "const { config } = { config: 1 };\nexport default config;"],
  ["is given later", "let config;\nexport default config;"],
  ["comes from elsewhere", "export default config;"],
  ["is exported under some condition", "if (a) { module.exports = { a: 1 }; }"],
] as const) {
  test(`an object that ${what} is not touched`, (t) => {
    t.is(configOf(text).root(), undefined);
  });
}

for (const [what, call, found] of [
  ["the options", "build({ entryPoints: [1] })", true],
  ["options with a name", "const options = { entryPoints: [1] };\nbuild(options)", true],
  ["the options of a method", "esbuild.context({ entryPoints: [1] })", true],
  ["options within a function", "function f() { if (a) return build({ entryPoints: [1] }); }", true],
  ["only one that has entry points", "build({ entryPoints: [1] }); build({})", true],
  ["two that have entry points", "build({ entryPoints: [1] }); build({ entryPoints: [1] })", false],
  ["options from elsewhere", "build(options)", false],
  ["no options", "build()", false],
  ["options of another function", "other({ entryPoints: [1] })", false],
  ["options that come second", "build(1, { entryPoints: [1] })", false],
] as const) {
  test(`a script of a bundler with ${what} is ${found ? "changed there" : "not understood"}`, (t) => {
    const config = configOf(call, "build.js");
    const options = config.argumentOf(["build", "context"], "entryPoints");
    t.is(options && config.textOf(options), found ? "{ entryPoints: [1] }" : undefined);
  });
}

test("an object is whole where all that it has is there by its name", (t) => {
  for (const [object, isWhole] of [
    ["{ a: 1, 'b': 2, c() {}, d }", true],
    ["{ a: 1, ...b }", false],
    ["{ a: 1, [b]: 2 }", false],
    ["{ ['plugins']: [] }", false],
  ] as const) {
    const config = configOf(`export default ${object};`);
    t.is(config.isWhole(rootOf(config)), isWhole, object);
  }
});

// ---- what is added --------------------------------------------------------------------------------------

for (const [what, before, after] of [
  ["nothing", "export default {};", "export default {\n  b: 2\n};"],
  ["nothing but space", "export default {\n};", "export default {\n  b: 2\n};"],
  ["nothing but a comment", "export default {\n  // None.\n};", "export default {\n  b: 2\n  // None.\n};"],
  [
    "nothing, further in",
    "  const c = {};\nexport default c;",
    "  const c = {\n    b: 2\n  };\nexport default c;",
  ],
  [
    "nothing, among tabs",
    "f({\n\ta,\n});\nexport default {};",
    "f({\n\ta,\n});\nexport default {\n\tb: 2\n};",
  ],
  ["one line", "export default { a: 1 };", "export default { a: 1, b: 2 };"],
  ["one line that ends with a comma", "export default { a: 1, };", "export default { a: 1, b: 2, };"],
  [
    "one line that ends with a comment",
    "export default { a: 1 /* A. */ };",
    "export default { a: 1, /* A. */ b: 2 };",
  ],
  ["lines", "export default {\n    a: 1\n};", "export default {\n    a: 1,\n    b: 2\n};"],
  ["lines that end with commas", "export default {\n\ta: 1,\n};", "export default {\n\ta: 1,\n\tb: 2,\n};"],
  [
    "lines with comments",
    "export default {\n  a: 1 // A.\n};",
    "export default {\n  a: 1, // A.\n  b: 2\n};",
  ],
  [
    "lines with commas and comments",
    "export default {\n  a: 1, // A.\n};",
    "export default {\n  a: 1, // A.\n  b: 2,\n};",
  ],
] as const) {
  test(`a property is added as the others are written: ${what}`, (t) => {
    const config = configOf(before);
    config.addProperties(rootOf(config), { b: "2" });
    t.is(config.toString(), after);
  });
}

test("several properties are added one below the other where the others are, and else side by side", (t) => {
  for (const [before, after] of [
    ["export default {};", 'export default {\n  b: 2,\n  "c-d": 3,\n  $e: 4\n};'],
    ["export default { a: 1 };", 'export default { a: 1, b: 2, "c-d": 3, $e: 4 };'],
    ["export default {\n  a: 1,\n};", 'export default {\n  a: 1,\n  b: 2,\n  "c-d": 3,\n  $e: 4,\n};'],
  ] as const) {
    const config = configOf(before);
    config.addProperties(rootOf(config), { b: "2", "c-d": "3", $e: "4" });
    t.is(config.toString(), after);
  }
});

test("in JSON each name is quoted", (t) => {
  const config = configOf('{ "a": 1 }', "a.json");
  config.addProperties(rootOf(config), { b: "2" });
  t.is(config.toString(), '{ "a": 1, "b": 2 }');
});

for (const [what, before, first, last] of [
  ["nothing", "[]", "[n()]", "[n()]"],
  ["one line", "[a, b]", "[n(), a, b]", "[a, b, n()]"],
  ["one line that ends with a comma", "[a,]", "[n(), a,]", "[a, n(),]"],
  ["lines", "[\n    a,\n    b\n  ]", "[\n    n(),\n    a,\n    b\n  ]", "[\n    a,\n    b,\n    n()\n  ]"],
  [
    "lines with comments",
    "[\n\ta, // A.\n\tb, // B.\n]",
    "[\n\tn(),\n\ta, // A.\n\tb, // B.\n]",
    "[\n\ta, // A.\n\tb, // B.\n\tn(),\n]",
  ],
] as const) {
  test(`an element is added as the others are written, before or behind them: ${what}`, (t) => {
    for (const [place, after] of [
      ["first", first],
      ["last", last],
    ] as const) {
      const config = configOf(`export default { list: ${before} };`);
      const list = config.arrayAt(rootOf(config), "list");
      if (list === undefined) throw new Error("there is no list");
      config.addElement(list, "n()", place);
      t.is(config.toString(), `export default { list: ${after} };`, place);
    }
  });
}

for (const [what, before, after] of [
  ["no quotes", "f();", "import n from 'm';\n\nf();"],
  ["double quotes", 'f("a");', 'import n from "m";\n\nf("a");'],
  [
    "imports that end with nothing, with the quotes of the last",
    "import a from 'a'\nimport b from \"b\"\nf('c');",
    "import a from 'a'\nimport b from \"b\"\nimport n from \"m\"\nf('c');",
  ],
  ["imports that end with `;`", "import a from 'a';\nf();", "import a from 'a';\nimport n from 'm';\nf();"],
  ["a shebang", "#!/usr/bin/env node\nf();", "#!/usr/bin/env node\nimport n from 'm';\n\nf();"],
  ["lines about the file", "// @ts-check\n// B.\nf();", "// @ts-check\n// B.\nimport n from 'm';\n\nf();"],
  [
    "lines about the file, and comments about the code",
    "// @ts-check\n/** A. */\n/* B. */\nf();",
    "// @ts-check\nimport n from 'm';\n\n/** A. */\n/* B. */\nf();",
  ],
] as const) {
  test(`what is taken in is written like the file, behind what speaks of it: ${what}`, (t) => {
    const config = configOf(before);
    config.takeIn("n", "m", "import");
    t.is(config.toString(), after);
  });
}

// ---- line breaks ----------------------------------------------------------------------------------------

test("what is added breaks its lines as the file does", (t) => {
  for (const before of [
    "export default {};",
    "import a from 'a';\nexport default {\n  b: 1, // B.\n  list: [\n    c\n  ]\n};\n",
    "#!/usr/bin/env node\n/* A. */\nexport default { list: [c] };\n",
    "export default {\n  list: [\n    c,\n  ],\n};\n",
  ]) {
    const changed = (text: string): string => {
      const config = configOf(text);
      const root = rootOf(config);
      config.addProperties(root, { d: "{\n  e: 1\n}" });
      const list = config.arrayAt(root, "list");
      if (list !== undefined) config.addElement(list, "f({\n  g: 1\n})", "first");
      config.takeIn("n", "m", "import");
      return config.toString();
    };
    t.is(
      changed(`${before}\r\n`.replaceAll(/\r?\n/g, "\r\n")),
      changed(`${before}\n`).replaceAll("\n", "\r\n"),
    );
  }
});
