import ts from "typescript";
import type { Entries, Entry, Export } from "./entries";
import { declarationText, typeText } from "./print";

/** The entry points that applications call. The guides describe the others, which a compiler or a command loads. */
const DOCUMENTED: ReadonlySet<string> = new Set([
  "lockweave",
  "lockweave/testing",
  "lockweave/opentelemetry",
  "lockweave/store-contract",
]);

const HEADINGS = [
  "Functions",
  "Options and results",
  "Errors",
  "Stores, clients, and clocks of your own",
] as const;
type Heading = (typeof HEADINGS)[number];

/** Returns the API reference as Markdown: each public name with its declaration and its documentation. */
export function apiReference(entries: Entries): string {
  const documented = entries.entries.filter(({ specifiers }) =>
    specifiers.some((name) => DOCUMENTED.has(name)),
  );
  const explained = new Set<ts.Declaration>(
    documented.flatMap((entry) => entry.exports.flatMap(({ declarations }) => declarations)),
  );
  return documented.map((entry) => entrySection(entry, entries, explained)).join("\n");
}

function entrySection(
  { specifiers, exports }: Entry,
  entries: Entries,
  explained: Set<ts.Declaration>,
): string {
  const used = HEADINGS.filter((heading) => exports.some((exported) => headingOf(exported) === heading));
  const sections = used.flatMap((heading) => {
    const group = exports.filter((exported) => headingOf(exported) === heading);
    const texts = group.map((exported) => exportSection(exported, entries, explained));
    return used.length === 1 ? texts : [`### ${heading}\n`].concat(texts);
  });
  const names = specifiers.map(codeSpan).join(", ");
  return [`## Reference: ${names}\n`, ...sections].join("\n");
}

/** The files whose types only those need who replace a part of the runtime. */
const PORTS = /\/(?:stores\/port|stores\/redis\/client|clock)\.d\.ts$/;

function headingOf({ declarations: [first] }: Export): Heading {
  if (first === undefined || ts.isFunctionDeclaration(first)) return "Functions";
  if (PORTS.test(first.getSourceFile().fileName)) return "Stores, clients, and clocks of your own";
  return ts.isClassDeclaration(first) ? "Errors" : "Options and results";
}

function exportSection(
  { name, declarations }: Export,
  entries: Entries,
  explained: Set<ts.Declaration>,
): string {
  const [first] = declarations;
  if (first === undefined) throw new Error(`${name} has no declaration.`);
  const hasMembers = ts.isInterfaceDeclaration(first) || ts.isClassDeclaration(first);
  const others = entries.typesUsedBy(declarations, (declaration) => explained.has(declaration));
  for (const declaration of others) explained.add(declaration);
  const shown = hasMembers ? others : [...declarations, ...others];
  const code = shown.map(declarationText).join("\n");
  const members = hasMembers ? memberItems(first) : [];
  const title = ts.isFunctionDeclaration(first) ? `${name}()` : name;
  return [
    `#### \`${title}\`\n`,
    documentationOf(first),
    code === "" ? "" : `\`\`\`ts\n${code}\n\`\`\`\n`,
    [...tagItems(first), ...members].join("\n"),
    "",
  ]
    .filter((part, index, all) => part !== "" || index === all.length - 1)
    .join("\n");
}

/** Returns an item for each member of an interface or a class. Applications do not call the constructors of errors. */
function memberItems(type: ts.InterfaceDeclaration | ts.ClassDeclaration): string[] {
  if (ts.isClassDeclaration(type)) return type.members.filter(ts.isPropertyDeclaration).map(memberItem);
  const bases = (type.heritageClauses ?? []).flatMap(({ types }) => types.map(typeText));
  const inherited = bases.map((base) => `- All members of ${codeSpan(base)}.`);
  return [...inherited, ...type.members.map(memberItem)];
}

function memberItem(member: ts.TypeElement | ts.PropertyDeclaration): string {
  const isOptional = ts.isTypeElement(member) && member.questionToken !== undefined;
  const isProperty = ts.isPropertySignature(member) || ts.isPropertyDeclaration(member);
  const signature =
    isProperty && member.type !== undefined
      ? `${member.name.getText()}${isOptional ? "?" : ""}: ${typeText(member.type)}`
      : typeText(member).replace(/;$/, "");
  const text = [documentationOf(member), ...throwsOf(member)].join(" ").replaceAll(/\s+/g, " ").trim();
  return `- ${codeSpan(signature)}${text === "" ? "" : `: ${text}`}`;
}

/** Returns an item for each `@param`, `@returns`, and `@throws`. */
function tagItems(node: ts.Node): string[] {
  const parameters = ts
    .getAllJSDocTags(node, ts.isJSDocParameterTag)
    .map((tag) => `- ${codeSpan(tag.name.getText())}: ${sentence(commentOf(tag))}`);
  const returned = ts
    .getAllJSDocTags(node, ts.isJSDocReturnTag)
    .map((tag) => `- ${sentence(`Returns ${commentOf(tag)}`)}`);
  return [...parameters, ...returned, ...throwsOf(node).map((text) => `- ${text}`)];
}

function sentence(text: string): string {
  const ended = text.endsWith(".") ? text : `${text}.`;
  return ended.charAt(0).toUpperCase() + ended.slice(1);
}

function throwsOf(node: ts.Node): string[] {
  return ts.getAllJSDocTags(node, ts.isJSDocThrowsTag).map((tag) => {
    const error = tag.typeExpression === undefined ? "an error" : codeSpan(typeText(tag.typeExpression.type));
    return sentence(`Throws ${error} ${commentOf(tag)}`);
  });
}

function documentationOf(node: ts.Node): string {
  const comments = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
  return comments
    .map((comment) => `${plain(comment.comment)}\n`)
    .join("\n")
    .trimStart();
}

function commentOf({ comment }: ts.JSDocTag): string {
  return plain(comment).replace(/^- /, "").replaceAll(/\s+/g, " ").trim();
}

/** Returns the text of a comment, with code in the place of links. */
function plain(comment: string | ts.NodeArray<ts.JSDocComment> | undefined): string {
  const text = typeof comment === "string" ? comment : (ts.getTextOfJSDocComment(comment) ?? "");
  return text.replaceAll(/\{@link (.*?)\}/g, "`$1`");
}

function codeSpan(code: string): string {
  return code.includes("`") ? `\`\` ${code} \`\`` : `\`${code}\``;
}
