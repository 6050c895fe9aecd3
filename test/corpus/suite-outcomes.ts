import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

/** The format of the report that a test runner writes. */
export type Report = "jest" | "mocha" | "tap";

/** The outcome of each test, by its file and title. */
export type Outcomes = ReadonlyMap<string, string>;

/** Jest and Vitest write the same format. */
interface JestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

interface MochaTest {
  readonly fullTitle: string;
  readonly file?: string;
}

interface MochaReport {
  readonly passes: readonly MochaTest[];
  readonly failures: readonly MochaTest[];
  readonly pending: readonly MochaTest[];
}

type Test = readonly [title: string, outcome: string];

/** Reads a report, and throws if the runner did not write it. */
export function outcomesIn(reportFile: string, format: Report, root: string): Outcomes {
  const text = existsSync(reportFile) ? readFileSync(reportFile, "utf8") : "";
  if (text === "") throw new Error(`The test runner wrote no report to ${reportFile}.`);
  return numbered([...READERS[format](text, root)]);
}

/** Numbers tests with the same title, so that each of them is compared. */
function numbered(tests: readonly Test[]): Outcomes {
  const outcomes = new Map<string, string>();
  for (const [title, outcome] of tests) {
    let key = title;
    for (let number = 2; outcomes.has(key); number += 1) key = `${title} #${number}`;
    outcomes.set(key, outcome);
  }
  return outcomes;
}

const READERS: Readonly<Record<Report, (text: string, root: string) => Iterable<Test>>> = {
  *jest(text, root) {
    const { testResults } = JSON.parse(text) as JestReport;
    for (const { name, status, assertionResults } of testResults.toSorted((a, b) =>
      a.name.localeCompare(b.name),
    )) {
      const file = path.relative(root, name);
      yield [`${file} (the file)`, status];
      for (const test of assertionResults) yield [`${file} > ${test.fullName}`, test.status];
    }
  },
  *mocha(text, root) {
    const { passes, failures, pending } = JSON.parse(text) as MochaReport;
    for (const [tests, outcome] of [
      [passes, "passed"],
      [failures, "failed"],
      [pending, "pending"],
    ] as const)
      for (const { fullTitle, file = "" } of tests)
        yield [`${path.relative(root, file)} > ${fullTitle}`, outcome];
  },
  *tap(text, root) {
    const parents: string[] = [];
    for (const line of text.split("\n")) {
      const subtest = /^( *)# Subtest: (.*)$/.exec(line);
      if (subtest !== null) {
        const [, indent = "", title = ""] = subtest;
        parents.splice(indent.length / 4, Infinity, title.replace(`${root}/`, ""));
      }
      const point = /^( *)(not ok|ok) \d+ - (.*?)(?: # (SKIP|TODO).*)?$/.exec(line);
      if (point === null) continue;
      const [, indent = "", outcome = "", title = "", directive] = point;
      const titles = [...parents.slice(0, indent.length / 4), title.replace(`${root}/`, "")];
      yield [titles.join(" > "), directive === undefined ? outcome : `${outcome} ${directive}`];
    }
  },
};

/** Returns each test whose outcome differs, with both outcomes. */
export function differencesOf(control: Outcomes, woven: Outcomes): ReadonlyMap<string, string> {
  const differences = new Map<string, string>();
  for (const title of new Set([...control.keys(), ...woven.keys()])) {
    const before = control.get(title) ?? "missing";
    const after = woven.get(title) ?? "missing";
    if (before !== after) differences.set(title, `${before} without locks, ${after} with locks`);
  }
  return differences;
}
