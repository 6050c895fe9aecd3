import { readFileSync } from "node:fs";

// TypeScript's library is one file, in which thousands of declarations share one scope. This rewrites it as an ES module whose declarations
// have no side effects, so that a bundler can drop the unused declarations, which is nearly all of them.

/** The specifier from which the module imports the messages. See {@link messagesModule}. */
export const MESSAGES = "typescript-messages";

const BEGIN = "\n// src/compiler/corePublic.ts\n";
const END = "\n// Annotate the CommonJS export names for ESM import in node:";

/**
 * Returns TypeScript's library as an ES module.
 *
 * @throws if the library does not have the expected structure
 */
export function typescriptModule(library: string): string {
  const text = readFileSync(library, "utf8");
  const exported = exportsIn(text);
  const [, inside] = split(text, BEGIN);
  const [declarations] = split(inside, END);
  const module = [
    withoutMessages,
    withoutSystem,
    withoutTypesOfTheChecker,
    asPureNamespaces,
    asPureCalls,
  ].reduce((before, change) => changed(before, change), declarations);
  const names = exported
    .filter(({ local }) => declares(module, local))
    .map(({ local, name }) => (local === name ? name : `${local} as ${name}`));
  return `import * as Diagnostics from "${MESSAGES}";\n${module}\nexport { ${names.join(", ")} };\n`;
}

/** Returns a module with one export for each message, so that only the parser's messages remain in the bundle. */
export function messagesModule(library: string): string {
  const [, table] = split(readFileSync(library, "utf8"), TABLE_BEGIN);
  const [entries] = split(table, TABLE_END);
  const messages = entries
    .split(/,\n {2}(?=\w+: diag\()/)
    .map((entry) => `export const ${entry.trim().replace(": ", " = /* @__PURE__ */ ")};`)
    .join("\n");
  return `const diag = (code, category, key, message, reportsUnnecessary, elidedInCompatabilityPyramid, reportsDeprecated) =>
  ({ code, category, key, message, reportsUnnecessary, elidedInCompatabilityPyramid, reportsDeprecated });
${messages}`;
}

const TABLE_BEGIN = "\nvar Diagnostics = {\n";
const TABLE_END = "\n};\n";

function exportsIn(text: string): { readonly name: string; readonly local: string }[] {
  const [, list] = split(text, "\n__export(typescript_exports, {\n");
  const [entries] = split(list, "\n});\n");
  return [...entries.matchAll(/^ {2}(\w+): \(\) => (\w+),?$/gm)].map(([, name = "", local = ""]) => ({
    name,
    local,
  }));
}

function declares(module: string, name: string): boolean {
  return new RegExp(`^(?:var|class|(?:async )?function\\*?) ${name}\\b`, "m").test(module);
}

function withoutMessages(text: string): string {
  const [before, table] = split(text, TABLE_BEGIN);
  const [, after] = split(table, TABLE_END);
  return `${before}\n${after}`;
}

/**
 * Removes the code that accesses the file system. Also removes top-level `if` statements and static assignments to classes, which only set
 * up tools.
 */
function withoutSystem(text: string): string {
  return text
    .replace(/^var sys = \(\(\) => \{\n.*?^\}\)\(\);\n/ms, "var sys;\n")
    .replaceAll(/^if \([^\n]*\{\n.*?^\}\n/gms, "")
    .replaceAll(/^_\w+\.\w+ = (?:[^\n]*;|\{\n.*?^\};)$/gms, "");
}

/** Keeps the language service's node classes, which know their text. Removes the symbol and type classes, which only the checker needs. */
function withoutTypesOfTheChecker(text: string): string {
  return text.replaceAll(
    /^ {4}get(?:Symbol|Type|Signature|SourceMapSource)Constructor: \(\) => \w+Object,?\n/gm,
    "",
  );
}

/** Rewrites `var X; ((X2) => { ... })(X || (X = {}));` as a pure call. */
function asPureNamespaces(text: string): string {
  return text.replaceAll(
    /^var (\w+);\n\(\((\w+)\) => \{\n(.*?)^\}\)\(\1 \|\| \(\1 = \{\}\)\);$/gms,
    "var $1 = /* @__PURE__ */ (($2) => {\n$3return $2;\n})({});",
  );
}

function asPureCalls(text: string): string {
  return text
    .replaceAll(/^(?=(?:__export|registerRefactor|registerCodeFix)\()/gm, "/* @__PURE__ */ ")
    .replaceAll(/^(var \w+ = )(?=(?:new )?[\w.$]+\()/gm, "$1/* @__PURE__ */ ");
}

function changed(text: string, change: (text: string) => string): string {
  const after = change(text);
  if (after === text)
    throw new Error(`TypeScript's library is written otherwise: ${change.name} finds nothing.`);
  return after;
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  if (at === -1)
    throw new Error(`TypeScript's library is written otherwise: it has no ${JSON.stringify(mark)}.`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}
