import ts from "typescript";
import type { Entries, Entry, Export } from "./entries";
import { declarationText, typeText } from "./print";

/** The entry points that applications call. The guides describe the others, which a compiler or a command loads. */
const DOCUMENTED: ReadonlySet<string> = new Set([
  "lockweave",
  "lockweave/testing",
  "lockweave/opentelemetry",
  "lockweave/cron",
  "lockweave/nest",
  "lockweave/store-contract",
]);

/** The names whose members another page describes, each with a sentence that says where. */
const DESCRIBED_ELSEWHERE: ReadonlyMap<string, string> = new Map([
  [
    "LockOptions",
    "The options of a lock. They have the names and meanings of [the tag's attributes](attributes.md#attributes).",
  ],
]);

/** Objects that a client library creates. Applications do not call their members. */
const MADE_BY_LIBRARIES: ReadonlySet<string> = new Set([
  "BunRedisClient",
  "NodeRedisClient",
  "RedisClient",
  "RedisSubscriber",
  "ValkeyGlideClient",
]);

/** Types that only make the compiler say why it rejects a client. */
const ONLY_MESSAGES: ReadonlySet<string> = new Set([
  "UnsupportedClient",
  "UnsupportedUpstash",
  "UpstashAdvice",
  "UnsupportedNodeRedis",
  "NodeRedisAdvice",
]);

const HEADINGS = [
  "Functions",
  "Options and results",
  "Errors",
  "Stores, clients, and clocks of your own",
] as const;
type Heading = (typeof HEADINGS)[number];

/** The names under this heading appear without their documentation, because few users need them. */
const LISTED: Heading = "Stores, clients, and clocks of your own";
const ABOUT_LISTED =
  "Your editor shows the documentation of these names. [Stores](stores.md#a-store-of-your-own) says what a store needs.\n";

/** Returns the API reference as Markdown: each public name with its declaration and its documentation. */
export function apiReference(entries: Entries): string {
  const documented = entries.entries.filter(({ specifiers }) =>
    specifiers.some((name) => DOCUMENTED.has(name)),
  );
  const explained = new Set<ts.Declaration>(
    documented.flatMap((entry) => entry.exports.flatMap(({ declarations }) => declarations)),
  );
  const shown = new Set<ts.Declaration>();
  return documented.map((entry) => entrySection(entry, entries, explained, shown)).join("\n");
}

function entrySection(
  { specifiers, exports }: Entry,
  entries: Entries,
  explained: Set<ts.Declaration>,
  shown: Set<ts.Declaration>,
): string {
  const used = HEADINGS.filter((heading) => exports.some((exported) => headingOf(exported) === heading));
  const sections = used.flatMap((heading) => {
    const group = exports.filter((exported) => headingOf(exported) === heading && !isInErrorTable(exported));
    const texts =
      heading === LISTED
        ? [`${ABOUT_LISTED}\n${group.map(listedName).join(", ")}\n`]
        : group.map((exported) => exportSection(exported, entries, explained, shown));
    return used.length === 1 ? texts : [`### ${heading}\n`].concat(texts);
  });
  const names = specifiers.map(codeSpan).join(", ");
  return [`## Reference: ${names}\n`, ...sections].join("\n");
}

/** Whether it is a class of error that the table in docs/api.md describes. It has no members of its own. */
function isInErrorTable({ declarations: [first] }: Export): boolean {
  return first !== undefined && isError(first) && nameOf(first) !== "LockError";
}

/** The files whose types only users who replace a part of the runtime need. */
const PORTS = /\/(?:stores\/port|stores\/(?:redis|postgres)\/client|clock)\.d\.ts$/;

function headingOf({ declarations: [first] }: Export): Heading {
  if (first === undefined || ts.isFunctionDeclaration(first)) return "Functions";
  if (PORTS.test(first.getSourceFile().fileName)) return "Stores, clients, and clocks of your own";
  return isError(first) ? "Errors" : "Options and results";
}

function isError(declaration: ts.Declaration): boolean {
  return ts.isClassDeclaration(declaration) && declaration.name?.text.endsWith("Error") === true;
}

/** Returns the name of a type that the editor documents. */
function listedName({ name, declarations: [first] }: Export): string {
  if (first === undefined || documentationOf(first) === "") throw new Error(`${name} has no documentation.`);
  return codeSpan(name);
}

function exportSection(
  { name, declarations }: Export,
  entries: Entries,
  explained: Set<ts.Declaration>,
  alreadyShown: Set<ts.Declaration>,
): string {
  const [first] = declarations;
  if (first === undefined) throw new Error(`${name} has no declaration.`);
  const title = ts.isFunctionDeclaration(first) ? `${name}()` : name;
  if (alreadyShown.has(first)) return `#### \`${title}\`\n\nSee [above](#${name.toLowerCase()}).\n`;
  alreadyShown.add(first);
  const elsewhere = DESCRIBED_ELSEWHERE.get(name);
  if (elsewhere !== undefined)
    return `#### \`${title}\`\n\n${elsewhere}\n\n\`\`\`ts\n${declarationText(first)}\n\`\`\`\n`;
  const hasMembers = ts.isInterfaceDeclaration(first) || ts.isClassDeclaration(first);
  const used = entries.typesUsedBy(declarations, (declaration) => explained.has(declaration));
  for (const declaration of used) explained.add(declaration);
  if (MADE_BY_LIBRARIES.has(name)) return `#### \`${title}\`\n\n${documentationOf(first)}`;
  const others = used.filter((declaration) => !ONLY_MESSAGES.has(nameOf(declaration)));
  const shown = hasMembers ? others : [...declarations, ...others];
  const code = shown.map(declarationText).join("\n");
  const members = hasMembers ? memberItems(first) : [];
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

function nameOf(declaration: ts.Declaration): string {
  return ts.getNameOfDeclaration(declaration)?.getText() ?? "";
}

/** Returns an item for each member of an interface or a class. Applications do not call the constructors and methods of errors. */
function memberItems(type: ts.InterfaceDeclaration | ts.ClassDeclaration): string[] {
  if (ts.isClassDeclaration(type)) {
    const methods = isError(type) ? [] : type.members.filter(ts.isMethodDeclaration);
    return [...type.members.filter(ts.isPropertyDeclaration), ...methods].map(memberItem);
  }
  const bases = (type.heritageClauses ?? []).flatMap(({ types }) => types.map(typeText));
  const inherited = bases.map((base) => `- All members of ${codeSpan(base)}.`);
  return [...inherited, ...type.members.map(memberItem)];
}

function memberItem(member: ts.TypeElement | ts.PropertyDeclaration | ts.MethodDeclaration): string {
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
