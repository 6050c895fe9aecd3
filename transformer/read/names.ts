import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";

/** Matches an identifier. It is the source of a regular expression. */
export const IDENTIFIER = String.raw`[\p{ID_Start}$_][\p{ID_Continue}$]*`;

/** Matches the name of a class, an interface, or a type alias, possibly in a namespace. */
export const TYPE_NAME = new RegExp(String.raw`^${IDENTIFIER}(?:\.${IDENTIFIER})*$`, "u");

/** Names that are in use. */
interface UsedNames {
  has(name: string): boolean;
}

/** Returns the name, or the name with a number if it is in use. */
export function freshName(name: string, ...used: readonly UsedNames[]): string {
  let fresh = name;
  for (let count = 1; used.some((names) => names.has(fresh)); count += 1) fresh = `${name}_${count}`;
  return fresh;
}

/** Returns the names that the node binds or refers to. The names of members do not count. */
export function identifiersIn(ts: Parser, node: TS.Node): Set<string> {
  const names = new Set<string>();
  const visit = (child: TS.Node, parent: TS.Node): void => {
    if (ts.isIdentifier(child) && !isMemberName(ts, child, parent)) names.add(child.text);
    ts.forEachChild(child, (grandchild) => visit(grandchild, child));
  };
  ts.forEachChild(node, (child) => visit(child, node));
  return names;
}

/** Returns the names that an expression in the file binds or refers to, by its text. */
export function identifiersOf({ ts, file: { languageVariant } }: Source, code: string): Set<string> {
  const name = languageVariant === ts.LanguageVariant.JSX ? "key.tsx" : "key.ts";
  return identifiersIn(ts, ts.createSourceFile(name, `[${code}]`, ts.ScriptTarget.Latest));
}

/** Returns the names that an expression in the file refers to, except those that its own functions bind. */
export function freeNamesOf(source: Source, code: string): Set<string> {
  const { ts } = source;
  const names = identifiersOf(source, code);
  const unbind = (node: TS.Node): void => {
    if (ts.isParameter(node)) for (const { text } of namesIn(ts, node.name)) names.delete(text);
    ts.forEachChild(node, unbind);
  };
  unbind(ts.createSourceFile("key.ts", `[${code}]`, ts.ScriptTarget.Latest));
  return names;
}

/** Tells whether `identifiersIn` contains a name. Walks the node only if the file's text may contain that name. */
export function usedNamesIn({ ts, file: { text } }: Source, node: TS.Node): UsedNames {
  let names: Set<string> | undefined;
  return {
    has(name) {
      const isInText = text.includes("\\u") || new RegExp(`\\b${name}\\b`).test(text); // A name may contain escapes.
      return isInText && (names ??= identifiersIn(ts, node)).has(name);
    },
  };
}

function isMemberName(ts: Parser, name: TS.Identifier, parent: TS.Node): boolean {
  const hasMemberName =
    ts.isPropertyAccessExpression(parent) ||
    ts.isPropertyAssignment(parent) ||
    ts.isPropertyDeclaration(parent) ||
    ts.isPropertySignature(parent) ||
    ts.isMethodDeclaration(parent) ||
    ts.isMethodSignature(parent);
  return hasMemberName && parent.name === name;
}

/** A name that a node declares for the code inside it. */
interface Declared {
  readonly name: TS.BindingName;
  /** The initial value of a variable. */
  readonly value?: TS.Expression | undefined;
  readonly isConst: boolean;
}

/** Returns what the node declares as a scope of its own: a block, a `case`, a `catch`, or the head of a loop. */
export function declaredInBlock(ts: Parser, node: TS.Node): Declared[] {
  if (ts.isCatchClause(node)) {
    const { variableDeclaration } = node;
    return variableDeclaration ? [{ name: variableDeclaration.name, isConst: false }] : [];
  }
  if (ts.isForStatement(node) || ts.isForInStatement(node) || ts.isForOfStatement(node)) {
    const { initializer } = node;
    const isDeclared = initializer !== undefined && ts.isVariableDeclarationList(initializer);
    return isDeclared ? initializer.declarations.map(({ name }) => ({ name, isConst: false })) : [];
  }
  return statementsOf(ts, node).flatMap((statement) => declaredBy(ts, statement));
}

/** Returns what a function declares in addition to its block: its own name, its parameters, and each `var` in its body. */
export function declaredInFunction(ts: Parser, fn: TS.SignatureDeclaration): Declared[] {
  const own = ts.isFunctionExpression(fn) && fn.name !== undefined ? [{ name: fn.name, isConst: false }] : [];
  const parameters = fn.parameters.map(({ name }) => ({ name, isConst: false }));
  const { body } = fn as { readonly body?: TS.ConciseBody };
  return [...own, ...parameters, ...(body === undefined ? [] : varsIn(ts, body))];
}

/** Returns the `var`s that are hoisted to the function around the node. */
export function varsIn(ts: Parser, node: TS.Node): Declared[] {
  const vars: Declared[] = [];
  const visit = (child: TS.Node): void => {
    if (ts.isFunctionLike(child) || ts.isClassStaticBlockDeclaration(child)) return;
    if (ts.isVariableDeclarationList(child) && (child.flags & ts.NodeFlags.BlockScoped) === 0) {
      vars.push(...child.declarations.map(({ name }) => ({ name, isConst: false })));
    }
    ts.forEachChild(child, visit);
  };
  visit(node);
  return vars;
}

export function statementsOf(ts: Parser, node: TS.Node): readonly TS.Statement[] {
  if (ts.isBlock(node) || ts.isModuleBlock(node) || ts.isSourceFile(node)) return node.statements;
  return ts.isCaseBlock(node) ? node.clauses.flatMap(({ statements }) => [...statements]) : [];
}

/** Returns the identifiers of a binding: one, or those of a pattern. */
export function namesIn(ts: Parser, name: TS.BindingName): TS.Identifier[] {
  if (ts.isIdentifier(name)) return [name];
  return name.elements.flatMap((element) =>
    ts.isOmittedExpression(element) ? [] : namesIn(ts, element.name),
  );
}

/** Returns the names that the statement declares in its block. */
export function declaredBy(ts: Parser, statement: TS.Statement): Declared[] {
  if (isAmbient(ts, statement)) return [];
  const isNamed =
    ts.isFunctionDeclaration(statement) ||
    ts.isClassDeclaration(statement) ||
    ts.isEnumDeclaration(statement) ||
    ts.isImportEqualsDeclaration(statement);
  if (isNamed) return statement.name === undefined ? [] : [{ name: statement.name, isConst: false }];
  if (!ts.isVariableStatement(statement)) return [];
  const { flags, declarations } = statement.declarationList;
  const kind: TS.NodeFlags = flags & ts.NodeFlags.BlockScoped;
  const isConst = kind === ts.NodeFlags.Const;
  return declarations.map(({ name, initializer }) => ({ name, value: initializer, isConst }));
}

/** Whether the statement describes something that is declared elsewhere: `declare const require: ...`. */
function isAmbient(ts: Parser, statement: TS.Statement): boolean {
  const { modifiers } = statement as { readonly modifiers?: readonly TS.ModifierLike[] };
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword) ?? false;
}

/** Returns the names of the function's parameters. */
export function parameterNames(ts: Parser, fn: Pick<TS.SignatureDeclaration, "parameters">): string[] {
  const names = fn.parameters.flatMap(({ name }) => namesIn(ts, name));
  return names.map(({ text }) => text).filter((text) => text !== "this");
}
