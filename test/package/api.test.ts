import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "ava";
import { generatedDocs } from "../../build/api/generated";

const root = join(__dirname, "../..");
const generated = generatedDocs();

test("the API report and the API reference match the built types", async (t) => {
  for (const [file, text] of await generated)
    t.is(readFileSync(join(root, file), "utf8"), text, `${file} is out of date. Run: npm run docs`);
});

test("every name in the API reference is documented", async (t) => {
  const reference = (await generated).get("docs/api.md") ?? "";
  const [, ...sections] = reference.split(/^#### /m);
  t.true(sections.length > 40);
  t.deepEqual(
    sections.filter((section) => !/^.*\n\n[A-Z]/.test(section)),
    [],
  );
  const [, list = ""] = reference.split("\n### Stores, clients, and clocks of your own\n");
  const [listed = ""] = list.split("\n## ");
  t.true(listed.split(", ").length > 25);
});
