import test from "ava";
import { planFor } from "../../transformer/cli/init/init";
import { notesOnTools } from "../../transformer/cli/init/other-tools";
import { Project } from "../../transformer/cli/init/project";
import { makeProject, type Files } from "../hosts/project";

// `lockweave init` tells the linters of a project about the tags.

interface Planned {
  readonly changes: Files;
  /** The notes about tools that `init` does not set up. */
  readonly notes: string;
}

async function planned(files: Files, devDependencies: object = {}): Promise<Planned> {
  const manifest = { type: "module", scripts: { build: "tspc" }, devDependencies };
  const { dir } = await makeProject({ "package.json": JSON.stringify(manifest), ...files });
  const project = new Project(dir);
  const { draft } = planFor(project);
  return { changes: Object.fromEntries(draft.changes), notes: notesOnTools(project, draft).join("\n") };
}

for (const [file, before, after] of [
  [
    "eslint.config.mjs",
    `import jsdoc from "eslint-plugin-jsdoc";

export default [jsdoc.configs["flat/recommended"]];
`,
    `import jsdoc from "eslint-plugin-jsdoc";
import lockweave from "lockweave/eslint";

export default [jsdoc.configs["flat/recommended"], lockweave.configs.recommended];
`,
  ],
  [
    "eslint.config.ts",
    `import { defineConfig } from 'eslint/config'
import tseslint from 'typescript-eslint'

export default defineConfig(
  tseslint.configs.recommended,
  { rules: {} }, // Ours.
)
`,
    `import { defineConfig } from 'eslint/config'
import tseslint from 'typescript-eslint'
import lockweave from 'lockweave/eslint'

export default defineConfig(
  tseslint.configs.recommended,
  { rules: {} }, // Ours.
  lockweave.configs.recommended,
)
`,
  ],
  [
    "eslint.config.cjs",
    `const js = require("@eslint/js");
module.exports = [
  js.configs.recommended,
];
`,
    `const lockweave = require("lockweave/eslint");

const js = require("@eslint/js");
module.exports = [
  js.configs.recommended,
  lockweave.configs.recommended,
];
`,
  ],
] as const) {
  test(`init adds the recommended configuration to ${file}, once`, async (t) => {
    const { changes, notes } = await planned({ [file]: before }, { "eslint-plugin-jsdoc": "65" });
    t.deepEqual([changes[file], notes], [after, ""]);
    t.is((await planned({ [file]: after })).changes[file], undefined);
  });
}

test("init leaves a configuration that it does not understand, and says what to add", async (t) => {
  for (const text of [
    "export default antfu({});\n",
    'import lockweave from "./lockweave.js";\nexport default [lockweave];\n',
    "export default [\n",
  ]) {
    const { changes, notes } = await planned({ "eslint.config.js": text });
    t.is(changes["eslint.config.js"], undefined, text);
    t.regex(
      notes,
      /Fix: add `lockweave\.configs\.recommended` from "lockweave\/eslint" to eslint\.config\.js\./,
    );
  }
});

test("init says how to define the tags for eslint-plugin-jsdoc without a flat configuration", async (t) => {
  const { notes } = await planned({}, { "eslint-plugin-jsdoc": "50" });
  t.regex(notes, /add `redisLock` and `needsLock` to `definedTags` of `jsdoc\/check-tag-names`/);
});

test("init says how to define the tags for TSDoc and TypeDoc, unless tsdoc.json defines them", async (t) => {
  const tools = { "eslint-plugin-tsdoc": "0.5", typedoc: "0.28" };
  const { notes } = await planned({}, tools);
  t.regex(notes, /^eslint-plugin-tsdoc .*`lockweave\/tsdoc\.json`.*\nTypeDoc .*`lockweave\/tsdoc\.json`/);
  t.is((await planned({ "tsdoc.json": '{ "extends": ["lockweave/tsdoc.json"] }' }, tools)).notes, "");
});
