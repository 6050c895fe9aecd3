import test from "ava";
import { ConfigText } from "../../transformer/cli/init/config-text";
import { parser } from "../../transformer/parser/parser";

// `lockweave init` reads configuration files and keeps their layout.

function configOf(text: string, file = "a.config.ts"): ConfigText {
  return new ConfigText(parser(), file, text);
}

/** @throws if there is no object that init can change */
function rootOf(config: ConfigText): NonNullable<ReturnType<ConfigText["root"]>> {
  const root = config.root();
  if (root === undefined) throw new Error(`no configuration object in ${config.toString()}`);
  return root;
}

// ---- which object is the configuration ------------------------------------------------------------------

for (const [what, text] of [
  ["is exported", "export default { a: 1 };"],
  ["is exported in CommonJS, after other statements", "run();\nmodule.exports = { a: 1 };"],
  ["stands in parentheses", "module.exports = ({ a: 1 });"],
  ["satisfies a type", "export default { a: 1 } satisfies Config;"],
  ["has a type assertion", "export default { a: 1 } as Config;"],
  ["is passed to a function that only gives it a type", "export default defineConfig({ a: 1 });"],
  ["is made by a function", "export default defineConfig(() => ({ a: 1 }));"],
  ["is returned after declarations", "export default () => { const b = 1; return { a: 1 }; };"],
  [
    "is one of several variables",
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
  ["is passed to a call that is not exported", "configure({ a: 1 });"],
  ["is passed to an unknown function", "export default makeConfig({ a: 1 });"],
  ["is merged with another object", "export default defineConfig({ a: 1 }, { b: 2 });"],
  ["is missing in the call", "export default defineConfig();"],
  ["is returned after a call", "export default () => { run(); return { a: 1 }; };"],
  ["is missing in the return statement", "export default () => { return; };"],
  ["is missing in the function", "export default () => {};"],
  ["is destructured from another object", "const { config } = { config: 1 };\nexport default config;"],
  ["is assigned later", "let config;\nexport default config;"],
  ["is not declared in the file", "export default config;"],
  ["is exported conditionally", "if (a) { module.exports = { a: 1 }; }"],
] as const) {
  test(`no object is the configuration if it ${what}`, (t) => {
    t.is(configOf(text).root(), undefined);
  });
}

for (const [what, call, found] of [
  ["options", "build({ entryPoints: [1] })", true],
  ["options in a variable", "const options = { entryPoints: [1] };\nbuild(options)", true],
  ["options of a method call", "esbuild.context({ entryPoints: [1] })", true],
  ["options within a function", "function f() { if (a) return build({ entryPoints: [1] }); }", true],
  ["one call that has entry points and one that has none", "build({ entryPoints: [1] }); build({})", true],
  ["two calls that have entry points", "build({ entryPoints: [1] }); build({ entryPoints: [1] })", false],
  ["options from elsewhere", "build(options)", false],
  ["no options", "build()", false],
  ["options of another function", "other({ entryPoints: [1] })", false],
  ["options as the second argument", "build(1, { entryPoints: [1] })", false],
] as const) {
  test(`a bundler script with ${what} ${found ? "has options that init can change" : "has no options that init can change"}`, (t) => {
    const config = configOf(call, "build.js");
    const options = config.argumentOf(["build", "context"], "entryPoints");
    t.is(options && config.textOf(options), found ? "{ entryPoints: [1] }" : undefined);
  });
}

test("an object counts as fully known only without spreads and computed names", (t) => {
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
  ["an empty object", "export default {};", "export default {\n  b: 2\n};"],
  ["an object with only white space", "export default {\n};", "export default {\n  b: 2\n};"],
  [
    "an object with only a comment",
    "export default {\n  // None.\n};",
    "export default {\n  b: 2\n  // None.\n};",
  ],
  [
    "an indented empty object",
    "  const c = {};\nexport default c;",
    "  const c = {\n    b: 2\n  };\nexport default c;",
  ],
  [
    "an empty object in a file with tabs",
    "f({\n\ta,\n});\nexport default {};",
    "f({\n\ta,\n});\nexport default {\n\tb: 2\n};",
  ],
  ["properties on one line", "export default { a: 1 };", "export default { a: 1, b: 2 };"],
  [
    "properties on one line with a trailing comma",
    "export default { a: 1, };",
    "export default { a: 1, b: 2, };",
  ],
  [
    "properties on one line with a trailing comment",
    "export default { a: 1 /* A. */ };",
    "export default { a: 1, /* A. */ b: 2 };",
  ],
  ["properties on lines", "export default {\n    a: 1\n};", "export default {\n    a: 1,\n    b: 2\n};"],
  [
    "properties on lines with trailing commas",
    "export default {\n\ta: 1,\n};",
    "export default {\n\ta: 1,\n\tb: 2,\n};",
  ],
  [
    "properties on lines with comments",
    "export default {\n  a: 1 // A.\n};",
    "export default {\n  a: 1, // A.\n  b: 2\n};",
  ],
  [
    "properties on lines with trailing commas and comments",
    "export default {\n  a: 1, // A.\n};",
    "export default {\n  a: 1, // A.\n  b: 2,\n};",
  ],
] as const) {
  test(`a new property follows the layout of ${what}`, (t) => {
    const config = configOf(before);
    config.addProperties(rootOf(config), { b: "2" });
    t.is(config.toString(), after);
  });
}

test("several new properties are on one line or on lines of their own, like the existing ones", (t) => {
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

test("a new property in JSON has a quoted name", (t) => {
  const config = configOf('{ "a": 1 }', "a.json");
  config.addProperties(rootOf(config), { b: "2" });
  t.is(config.toString(), '{ "a": 1, "b": 2 }');
});

for (const [what, before, first, last] of [
  ["an empty list", "[]", "[n()]", "[n()]"],
  ["a list on one line", "[a, b]", "[n(), a, b]", "[a, b, n()]"],
  ["a list on one line with a trailing comma", "[a,]", "[n(), a,]", "[a, n(),]"],
  [
    "a list on lines",
    "[\n    a,\n    b\n  ]",
    "[\n    n(),\n    a,\n    b\n  ]",
    "[\n    a,\n    b,\n    n()\n  ]",
  ],
  [
    "a list on lines with comments",
    "[\n\ta, // A.\n\tb, // B.\n]",
    "[\n\tn(),\n\ta, // A.\n\tb, // B.\n]",
    "[\n\ta, // A.\n\tb, // B.\n\tn(),\n]",
  ],
] as const) {
  test(`a new first or last element follows the layout of ${what}`, (t) => {
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
  ["an empty array", "export default [];", "export default [n];"],
  ["an array in CommonJS", "module.exports = [\n  a,\n];", "module.exports = [\n  a,\n  n,\n];"],
  ["an array with a type", "export default [a] satisfies List;", "export default [a, n] satisfies List;"],
  [
    "an array in a variable",
    "const list = [a];\nexport default list;",
    "const list = [a, n];\nexport default list;",
  ],
  ["an array in a call", "export default defineConfig([a]);", "export default defineConfig([a, n]);"],
  ["the arguments of a call", "export default defineConfig(a, b);", "export default defineConfig(a, b, n);"],
  [
    "arguments on lines, with a trailing comma",
    "export default tseslint.config(\n  ...a,\n  { b: 1 }, // B.\n);",
    "export default tseslint.config(\n  ...a,\n  { b: 1 }, // B.\n  n,\n);",
  ],
] as const) {
  test(`a list that is ${what} gets a new item`, (t) => {
    const config = configOf(before);
    t.true(config.appendToRootList("n"));
    t.is(config.toString(), after);
  });
}

for (const [what, text] of [
  ["is made by an unknown function", "export default withNuxt({ a: 1 });"],
  ["is awaited", "export default await defineConfig([a]);"],
  ["is missing in the call", "export default defineConfig();"],
  ["is assigned later", "let list;\nexport default list;"],
  ["is an object", "export default { a: 1 };"],
  ["is not exported", "const list = [a];"],
] as const) {
  test(`a list that ${what} is left unchanged`, (t) => {
    const config = configOf(text);
    t.false(config.appendToRootList("n"));
    t.is(config.toString(), text);
  });
}

for (const [what, before, after] of [
  ["no quotes", "f();", "import n from 'm';\n\nf();"],
  ["double quotes", 'f("a");', 'import n from "m";\n\nf("a");'],
  [
    "imports without semicolons, with the quotes of the last one",
    "import a from 'a'\nimport b from \"b\"\nf('c');",
    "import a from 'a'\nimport b from \"b\"\nimport n from \"m\"\nf('c');",
  ],
  ["imports with semicolons", "import a from 'a';\nf();", "import a from 'a';\nimport n from 'm';\nf();"],
  ["a shebang", "#!/usr/bin/env node\nf();", "#!/usr/bin/env node\nimport n from 'm';\n\nf();"],
  ["comments about the file", "// @ts-check\n// B.\nf();", "// @ts-check\n// B.\nimport n from 'm';\n\nf();"],
  [
    "comments about the file, and comments about the code",
    "// @ts-check\n/** A. */\n/* B. */\nf();",
    "// @ts-check\nimport n from 'm';\n\n/** A. */\n/* B. */\nf();",
  ],
] as const) {
  test(`a new import follows the style of the file, below the comments about it: ${what}`, (t) => {
    const config = configOf(before);
    config.addImport("n", "m", "import");
    t.is(config.toString(), after);
  });
}

// ---- line breaks ----------------------------------------------------------------------------------------

test("new text has the line breaks of the file", (t) => {
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
      config.addImport("n", "m", "import");
      return config.toString();
    };
    t.is(
      changed(`${before}\r\n`.replaceAll(/\r?\n/g, "\r\n")),
      changed(`${before}\n`).replaceAll("\n", "\r\n"),
    );
  }
});
