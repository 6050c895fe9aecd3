import test from "ava";
import { makeProject } from "../project";

const ENTRIES = ["vite", "rollup", "rolldown", "esbuild", "webpack", "rspack", "loader"];

test("each entry can be imported and required, and is the plugin itself", async (t) => {
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

test("options that are none are an error where the plugin is made", async (t) => {
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
  const [unknown = "", misspelt = "", ...others] = stdout.trimEnd().split("\n");
  t.regex(unknown, /^TypeError .*`lockTme`.*`lockTime`/, stderr);
  t.regex(misspelt, /^TypeError lockweave's plugin has no option `default`\. Did you mean `defaults`\?$/);
  t.deepEqual(others, Array.from({ length: 5 }, () => [unknown, misspelt]).flat());
});
