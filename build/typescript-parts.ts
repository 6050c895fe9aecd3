import { readFileSync } from "node:fs";

// TypeScript's library is one file, in which thousands of declarations share one scope. As an ES module whose
// declarations have no side effects, a bundler can leave out what nobody asks for, which is nearly all of it.

/** The name under which the module takes in the messages: see {@link messagesModule}. */
export const MESSAGES = "typescript-messages";

const BEGIN = "\n// src/compiler/corePublic.ts\n";
const END = "\n// Annotate the CommonJS export names for ESM import in node:";

/** @throws when the library is written in another way than expected */
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

/** Each message as an export of its own, so that only those of the parser are left. */
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

/** No files are read. What else stands in an `if`, or is given to a class, outside of functions sets up a tool. */
function withoutSystem(text: string): string {
  return text
    .replace(/^var sys = \(\(\) => \{\n.*?^\}\)\(\);\n/ms, "var sys;\n")
    .replaceAll(/^if \([^\n]*\{\n.*?^\}\n/gms, "")
    .replaceAll(/^_\w+\.\w+ = (?:[^\n]*;|\{\n.*?^\};)$/gms, "");
}

/** The nodes are those of the language service: they know their text. Symbols and types are the checker's. */
function withoutTypesOfTheChecker(text: string): string {
  return text.replaceAll(
    /^ {4}get(?:Symbol|Type|Signature|SourceMapSource)Constructor: \(\) => \w+Object,?\n/gm,
    "",
  );
}

/** `var X; ((X2) => { ... })(X || (X = {}));` */
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
