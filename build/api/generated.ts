import { readFileSync } from "node:fs";
import { join } from "node:path";
import { format, resolveConfig } from "prettier";
import { Entries } from "./entries";
import { apiReference } from "./reference";
import { apiReport } from "./report";

const REPOSITORY = join(__dirname, "../..");

/** The line behind which a page is generated. */
const MARK = "<!-- `npm run docs` generates everything below from the types. -->\n";

/** Returns the text that each generated file should have, by its path in the repository. Reads the types in `dist/`. */
export async function generatedDocs(): Promise<ReadonlyMap<string, string>> {
  const entries = new Entries();
  const texts = new Map([
    ["docs/api.md", belowMark("docs/api.md", apiReference(entries))],
    ["test/package/api-report.md", apiReport(entries)],
  ]);
  const formatted = [...texts].map(async ([file, text]) => [file, await formattedAs(file, text)] as const);
  return new Map(await Promise.all(formatted));
}

function belowMark(file: string, generated: string): string {
  const [written, rest] = readFileSync(join(REPOSITORY, file), "utf8").split(MARK);
  if (rest === undefined) throw new Error(`${file} does not have the line ${MARK.trim()}`);
  return `${written}${MARK}\n${generated}`;
}

async function formattedAs(file: string, text: string): Promise<string> {
  const filepath = join(REPOSITORY, file);
  return await format(text, { ...(await resolveConfig(filepath)), filepath });
}
