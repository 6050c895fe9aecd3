import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import test from "ava";

const root = resolve(__dirname, "..");
const page = readFileSync(join(root, "docs/promises.md"), "utf8");
const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| ") && !/^\| (?:promise|-)/.test(line))
  .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "").trim()));

const tests = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".test.ts"))
  .map((file) => readFileSync(join(root, "test", file), "utf8"))
  .join("\n");

test("each promise names functions that exist, where it says", (t) => {
  t.true(rows.length > 10);
  for (const [promise = "", keptBy = ""] of rows) {
    const places = [...keptBy.matchAll(/((?:`#?\w+`(?:, | and )?)+) in \[[\w.-]+\]\(\.\.\/([\w./-]+)\)/g)];
    t.true(places.length > 0, promise);
    for (const [, names = "", file = ""] of places) {
      const source = readFileSync(join(root, file), "utf8");
      for (const [, name = ""] of names.matchAll(/`(#?\w+)`/g)) {
        t.regex(
          source,
          new RegExp(
            `^(?:  |export |  private |  async |  static |function |async )*${name}(?:<.*>)?\\(`,
            "m",
          ),
          `${name} in ${file}`,
        );
      }
    }
  }
});

test("each promise names tests that exist", (t) => {
  for (const [promise = "", , shownBy = ""] of rows) {
    const titles = [...shownBy.matchAll(/"([^"]+)"/g)].map(([, title = ""]) => title);
    t.true(titles.length > 0, promise);
    for (const title of titles) t.true(tests.includes(title), `${promise}: ${title}`);
  }
});
