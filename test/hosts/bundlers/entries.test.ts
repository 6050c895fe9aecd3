import test from "ava";
import { makeProject } from "../project";

const ENTRIES = ["vite", "rollup", "rolldown", "esbuild", "webpack", "rspack", "loader"];

test("each entry point exports the same plugin to import and to require", async (t) => {
  const project = await makeProject({
    "entries.mjs": `import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
for (const entry of ${JSON.stringify(ENTRIES)}) {
  const { default: imported } = await import("lockweave/" + entry);
  console.log(entry, imported === require("lockweave/" + entry), imported.name);
}
`,
  });
  const { stdout, stderr } = await project.run("entries.mjs");
  t.is(stdout, ENTRIES.map((entry) => `${entry} true lockweave\n`).join(""), stderr);
});

test("creating a plugin with unknown options throws an error", async (t) => {
  const project = await makeProject({
    "options.cjs": `for (const entry of ${JSON.stringify(ENTRIES.filter((name) => name !== "loader"))}) {
  for (const options of [{ defaults: { lockTme: 20 } }, { default: {} }]) {
    try {
      require("lockweave/" + entry)(options);
    } catch ({ name, message }) {
      console.log(name, message);
    }
  }
}
`,
  });
  const { stdout, stderr } = await project.run("options.cjs");
  const [unknown = "", misspelled = "", ...others] = stdout.trimEnd().split("\n");
  t.regex(unknown, /^TypeError .*`lockTme`.*`lockTime`/, stderr);
  t.regex(misspelled, /^TypeError lockweave's plugin has no option `default`\. Did you mean `defaults`\?$/);
  t.deepEqual(others, Array.from({ length: 5 }, () => [unknown, misspelled]).flat());
});
