import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import test from "ava";

const root = resolve(__dirname, "..");
const page = (file: string): string => readFileSync(join(root, file), "utf8");

const matrix = page("test/matrix/hosts.md");

type Cells = readonly string[];

function rowsIn(text: string): Cells[] {
  const lines = text.split("\n").filter((line) => line.startsWith("| "));
  return lines.map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const [, , ...rows] = rowsIn(matrix);
const hosts = new Map(rows.map(([host = "", ...cells]) => [host, cells]));

interface Listed {
  readonly file: string;
  readonly title: string;
}

/** The listed tests by their numbers. */
const listed = new Map(
  [...matrix.matchAll(/^(\d+)\. \[[^\]]*\]\(\.\.\/(.*?)\): (`+)(.*?)\3$/gm)].map(
    ([, number = "", file = "", , title = ""]): [string, Listed] => [number, { file: `test/${file}`, title }],
  ),
);

test("each cell of the host matrix names a test that exists, or says that it is not tested", (t) => {
  t.true(hosts.size > 15);
  const named = new Set<string>();
  for (const [host, cells] of hosts) {
    t.is(cells.length, 6, host);
    for (const [column, cell] of cells.entries()) {
      t.regex(cell, /^(?:[✔◆] \d+(?:, [\w' ]+)?|as .+|not tested)$/, host);
      const [, other] = /^as (.+)$/.exec(cell) ?? [];
      if (other !== undefined) t.regex(hosts.get(other)?.[column] ?? "", /^[✔◆]/, `${host}: ${other}`);
      const [, number] = /(\d+)/.exec(cell) ?? [];
      if (number !== undefined) named.add(number);
    }
  }
  t.deepEqual([...named].toSorted(), [...listed.keys()].toSorted());
  for (const { file, title } of listed.values()) {
    const titles = [
      ...page(file).matchAll(/(?:test|way|inSuite|inMatrix|outsideMatrix)\S*?\(\s*(["`])(.*?)(?<!\\)\1,/gs),
    ];
    t.true(
      titles.some(([, , found]) => found === title),
      `${file}: ${title}`,
    );
  }
});

test("the matrix marks tests that run only in `npm run test:matrix`", (t) => {
  for (const [host, cells] of hosts) {
    for (const cell of cells) {
      const [, mark = "", number = ""] = /^([✔◆]) (\d+)/.exec(cell) ?? [];
      const { file, title } = listed.get(number) ?? { file: "", title: "" };
      if (mark === "") continue;
      const text = page(file);
      const before = text.slice(0, text.indexOf(title)).trimEnd();
      const isByVersion = /OTHER_NODES\) \{\s*test\S*\(\s*.$/.test(before);
      const isSkipped = /(?:inMatrix(?:Serially)?|\(isMatrix \? test\S* : test\.skip\))\(\s*.$/.test(before);
      const isHeavy = new RegExp(`^const HEAVY[^]*name: "${host}"[^]*^\\];`, "m").test(
        page("test/hosts/bundlers/bundlers.ts"),
      );
      t.is(mark, isByVersion || isSkipped || isHeavy ? "◆" : "✔", `${host}: ${title}`);
    }
  }
});

test("each host in docs/compilers.md has a row in the matrix", (t) => {
  const headings = [...page("docs/compilers.md").matchAll(/^## (.*)$/gm)].map(([, heading = ""]) => heading);
  const others = new Set([
    "Frameworks on Vite",
    "A patched TypeScript",
    "Where it cannot run",
    "Development servers",
    "Editors",
    "Linters and formatters",
  ]);
  const names = [...hosts.keys()];
  for (const heading of headings.filter((one) => !others.has(one))) {
    t.true(
      names.some((name) => name.startsWith(heading)),
      heading,
    );
  }
});

test("the table at the top of docs/compilers.md has exactly the hosts of the matrix", (t) => {
  const [table = ""] = page("docs/compilers.md").split("\n## ");
  const [, , ...inShort] = rowsIn(table);
  const named = inShort.flatMap(([names = ""]) => names.replaceAll(/`| \(.*?\)/g, "").split(", "));
  t.deepEqual(named.toSorted(), [...hosts.keys()].toSorted());
});
