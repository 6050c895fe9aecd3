import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { generatedDocs } from "./api/generated";

// npm run docs: writes the generated pages.

async function main(): Promise<void> {
  for (const [file, text] of await generatedDocs()) writeFileSync(join(__dirname, "..", file), text);
}

void main();
