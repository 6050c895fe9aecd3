import test from "ava";
import { inOrder, storeWarnings, tagsOf } from "../../transformer/cli/rows/tags";
import { sourcesUnder, uncheckedProject } from "../../transformer/cli/unconfigured";
import { parser } from "../../transformer/parser/parser";
import type { Project } from "../../transformer/verify/project";
import { makeProject, type Files } from "../hosts/project";

// The reports of the commands about tags, without a compiler.

async function projectOf(files: Files): Promise<Project> {
  const { dir } = await makeProject(files);
  return uncheckedProject(parser(), `${dir}/tsconfig.json`, sourcesUnder(dir));
}

test("rows are sorted by file, line, and column, and rows without a place come first", (t) => {
  const rows = [
    {},
    { file: "a.ts", line: 1, column: 2 },
    { file: "a.ts", line: 1, column: 10 },
    { file: "a.ts", line: 2, column: 1 },
    { file: "a.ts", line: 10, column: 1 },
    { file: "b.ts", line: 1, column: 1 },
  ];
  t.deepEqual(inOrder(rows.toReversed()), rows);
  t.deepEqual(inOrder(rows), rows);
});

test("list shows each key of a tag with each=true, and otherwise one key with all parts", async (t) => {
  const tag = (flag: string, more: string): string =>
    `/** @redisLock businessFlag=${flag} keyName=from,to${more} */\nexport async function ${flag}(from: string, to: string) {}\n`;
  const project = await projectOf({ "src/a.ts": tag("all", " each=true") + tag("one", "") });
  t.deepEqual(
    tagsOf([project]).tags.map(({ key }) => key),
    ["LOCK_all_{from} LOCK_all_{to}", "LOCK_one_{from},{to}"],
  );
});

const LEDGER = `/** @redisLock businessFlag=late store=ledger */
export const late = async () => "late";
`;
const CONFIGURED = `import { configure } from "lockweave";
configure({ redis: "redis://localhost", stores: { payments: "redis://localhost" } });
`;

test("an unknown store gets one warning if the sources configure the stores once or twice", async (t) => {
  for (const files of [
    { "src/configured.ts": CONFIGURED },
    { "src/configured.ts": CONFIGURED, "src/again.ts": CONFIGURED },
  ]) {
    const [warning, ...others] = storeWarnings([await projectOf({ ...files, "src/late.ts": LEDGER })]);
    t.regex(warning?.message ?? "", /^There is no store `ledger`\. .* `default`, `payments`, so /);
    t.deepEqual(others, []);
  }
});

test("an unknown store gets no warning if no configuration exists or one cannot be read", async (t) => {
  t.deepEqual(storeWarnings([await projectOf({ "src/late.ts": LEDGER })]), []);
  const unknown = CONFIGURED.replace("{ payments", "{ ...others(), payments");
  const files = { "src/late.ts": LEDGER, "src/configured.ts": CONFIGURED, "src/again.ts": unknown };
  t.deepEqual(storeWarnings([await projectOf(files)]), []);
});
