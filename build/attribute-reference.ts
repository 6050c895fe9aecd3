import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { formatAttribute, REFUSED_PAIRS } from "../runtime/attributes/conflicts";
import { ABOUT_ATTRIBUTES } from "../runtime/attributes/documentation";
import { ATTRIBUTE_NAMES, ATTRIBUTES, type AttributeName } from "../runtime/attributes/tag-attributes";
import { LONGEST_DURATION_HOURS, MS_PER_UNIT } from "../runtime/base/limits";
import { groupedBy } from "../transformer/text/grouped-by";

// Writes the attribute reference into docs/attributes.md. The rest of the page is written by hand.

export const PAGE = join(__dirname, "../docs/attributes.md");
export const COMMAND = "node --require ts-node/register/transpile-only build/attribute-reference.ts";

const SECTION = /^## Attributes\n.*?(?=^## )/ms;

/** Returns the page with the reference that the table of attributes gives. */
export function withReference(page: string): string {
  if (!SECTION.test(page)) throw new Error('docs/attributes.md has no section "Attributes".');
  return page.replace(SECTION, () => reference());
}

function reference(): string {
  const rows = ATTRIBUTE_NAMES.map((name) => {
    const { byDefault = "", meaning = "" } = ABOUT_ATTRIBUTES[name] ?? {};
    return [`\`${name}\``, byDefault, valuesOf(name), meaning];
  });
  const notes = ATTRIBUTE_NAMES.flatMap((name) => {
    const details = ABOUT_ATTRIBUTES[name]?.details;
    return details === undefined ? [] : [`- \`${name}\`: ${details}`];
  });
  const units = inWords(Object.keys(MS_PER_UNIT).map((unit) => `\`${unit}\``));
  const inMs = ATTRIBUTE_NAMES.filter((name) => unitOf(name) === "ms").map((name) => `\`${name}\``);
  return [
    "## Attributes",
    `<!-- Generated from runtime/attributes/ by: ${COMMAND} -->`,
    table(["attribute", "default", "values", "meaning"], rows),
    `A time is a number with a unit: ${units}. Without a unit, it is in seconds, or in milliseconds for ${inWords(inMs)}. \`wait\` needs a unit. It is at most ${LONGEST_DURATION_HOURS} hours. A time or a number may also be [an expression](#values-from-configuration).`,
    "Notes:",
    notes.join("\n"),
    "These attributes cannot be combined. The error says why:",
    [...refusedPairs(), ...OTHER_PAIRS].join("\n"),
    "",
  ].join("\n\n");
}

/** The pairs that have a diagnostic of their own. */
const OTHER_PAIRS = ["- `fencing=true` with `mode=read` or `permits`", "- `mode` with `permits`"];

/** Returns a line for each attribute that others exclude. The errors say why. */
function refusedPairs(): readonly string[] {
  const lines = groupedBy(REFUSED_PAIRS, ({ other }) => formatAttribute(other));
  return [...lines].map(
    ([other, pairs]) =>
      `- \`${other}\` with ${inWords(pairs.map(({ one }) => `\`${formatAttribute(one)}\``))}`,
  );
}

function unitOf(name: AttributeName): string | undefined {
  const row = ATTRIBUTES[name];
  return row.kind === "time" ? row.unit : undefined;
}

/** Returns the values that a tag may give the attribute. */
function valuesOf(name: AttributeName): string {
  const row = ATTRIBUTES[name];
  switch (row.kind) {
    case "text":
      return "text";
    case "values":
      return "paths, expressions";
    case "fields":
      return "paths";
    case "type":
      return "a type";
    case "template":
      return "a template";
    case "expression":
      return "a path, an expression";
    case "path":
      return "a path";
    case "store":
      return "a name";
    case "switch":
      return inWords(["`true`", "`false`", ...("or" in row ? [`\`${row.or}\``] : [])]);
    case "choice": {
      const words = row.values.map((word) => `\`${word}\``);
      return inWords("orClass" in row ? [...words, "an error class"] : words);
    }
    case "count":
      return `${row.from.toLocaleString("en-US")} to ${row.to.toLocaleString("en-US")}`;
    default:
      if ("orForever" in row) return "a time, `0`, or `forever`";
      return row.from === 0 ? "a time" : `a time of at least ${row.from} ms`;
  }
}

/** Returns the words as a list: `a or b`, `a, b, or c`. */
function inWords(words: readonly string[]): string {
  return words.length > 2 ? `${words.slice(0, -1).join(", ")}, or ${words.at(-1)}` : words.join(" or ");
}

/** Returns a table in Markdown, with columns as wide as Prettier makes them. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

if (require.main === module) writeFileSync(PAGE, withReference(readFileSync(PAGE, "utf8")));
