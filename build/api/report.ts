import ts from "typescript";
import type { Entries, Entry } from "./entries";
import { declarationText } from "./print";

/** Returns the public API as Markdown: the declarations of each entry point, without comments. A review of its diff is a review of the API. */
export function apiReport(entries: Entries): string {
  const all = new Set(entries.entries.flatMap(declarationsOf));
  return `# The public API

\`npm run docs\` generates this file from the types in \`dist/\`. A change here is a change of what users can import.

${entries.entries.map((entry) => section(entry, entries, all)).join("\n")}`;
}

function section(entry: Entry, entries: Entries, all: ReadonlySet<ts.Declaration>): string {
  const exported = declarationsOf(entry);
  const others = entries.typesUsedBy(exported.filter(isShownWhole), (declaration) => all.has(declaration));
  const code = [
    exported.length === 0 ? "// Nothing. The module is loaded for its effect." : "",
    ...entry.exports
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ declarations }) => listOf(declarations)),
    others.length === 0 ? "" : `// Used above, but not exported:\n\n${listOf(others)}`,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
  return `## ${entry.specifiers.join(", ")}\n\n\`\`\`ts\n${code}\n\`\`\`\n`;
}

function declarationsOf({ exports }: Entry): ts.Declaration[] {
  return exports.flatMap(({ declarations }) => [...declarations]);
}

/** A class is shown with its members, but not with the types that they use. Most of them belong to the implementation. */
function isShownWhole(declaration: ts.Declaration): boolean {
  return !ts.isClassDeclaration(declaration);
}

function listOf(declarations: readonly ts.Declaration[]): string {
  return declarations.map(declarationText).join("\n\n");
}
