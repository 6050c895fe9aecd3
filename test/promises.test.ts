import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import test from "ava";

const root = resolve(__dirname, "..");
const page = (file: string): string => readFileSync(join(root, file), "utf8");
const guarantees = page("test/guarantees.md")
  .split("\n## ")
  .slice(1)
  .map((section) => {
    const [name = "", ...lines] = section.split("\n");
    const items = lines.filter((line) => line.startsWith("- "));
    return { name, items };
  });

const tests = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".test.ts"))
  .map((file) => readFileSync(join(root, "test", file), "utf8"))
  .join("\n");

/** Returns the bold text at the start of each item of a list. */
function boldIn(text: string): readonly string[] {
  return [...text.matchAll(/^- \*\*(.*?)\.?\*\*/gm)].map(([, bold = ""]) => bold);
}

test("test/guarantees.md covers each guarantee that docs/guarantees.md begins with", (t) => {
  const [beginning = ""] = page("docs/guarantees.md").split("\n## ");
  const named = boldIn(beginning);
  t.true(named.length > 5);
  const sections = new Set(guarantees.map(({ name }) => name));
  for (const name of named) t.true(sections.has(name), name);
});

test("test/guarantees.md covers each promise in docs/postgres.md", (t) => {
  const [, promised = ""] = page("docs/postgres.md").split("\n## What is promised\n");
  const [beginning = ""] = promised.split("\n## ");
  const names = boldIn(beginning);
  t.true(names.length > 3);
  const sections = new Set(guarantees.map(({ name }) => name));
  for (const name of names) {
    const inSentence = name.charAt(0).toLowerCase() + name.slice(1);
    t.true(sections.has(`In PostgreSQL, ${inSentence}`), name);
  }
});

test("test/guarantees.md covers each assumption of the proof, with a model that does without it", (t) => {
  const [, assumed = ""] = page("docs/guarantees.md").split("\n## What the proof assumes\n");
  const names = [...assumed.matchAll(/^\| \*\*(.*?):\*\*/gm)].map(([, name = ""]) => name);
  t.true(names.length > 5);
  for (const name of names) {
    const section = guarantees.find(
      (one) => one.name === `Assumption: ${name.charAt(0).toLowerCase()}${name.slice(1)}`,
    );
    t.true(
      section?.items.some((item) => item.endsWith(".pml`")),
      name,
    );
  }
});

test("each guarantee in test/guarantees.md names functions that exist in the files that it names", (t) => {
  t.true(guarantees.length > 10);
  for (const { name: guarantee, items } of guarantees) {
    const places = items.flatMap((item) => [
      ...item.matchAll(/^- ((?:`#?\w+`(?:, | and )?)+) in `([\w./-]+)`$/g),
    ]);
    t.true(places.length > 0, guarantee);
    t.is(places.length, items.filter((item) => !item.startsWith('- "')).length, guarantee);
    for (const [, names = "", file = ""] of places) {
      const source = page(file);
      for (const [, name = ""] of names.matchAll(/`(#?\w+)`/g)) {
        if (file.endsWith(".pml")) {
          t.true(source.includes(`RULE ${name}:`), `${name} in ${file}`);
          continue;
        }
        t.regex(
          source,
          new RegExp(
            `^(?:  |export |  private |  async |  static |function |async |"|CREATE FUNCTION lockweave[.])*${name}(?:<.*>)?\\(`,
            "m",
          ),
          `${name} in ${file}`,
        );
      }
    }
  }
});

test("each guarantee in test/guarantees.md names tests that exist", (t) => {
  for (const { name, items } of guarantees) {
    const titles = items.flatMap((item) =>
      [...item.matchAll(/^- "([^"]+)"$/g)].map(([, title = ""]) => title),
    );
    t.true(titles.length > 0, name);
    for (const title of titles) t.true(tests.includes(title), `${name}: ${title}`);
  }
});
