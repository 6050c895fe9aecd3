import type * as TS from "typescript";
import type { Parser } from "../parser/parser";

/** A name that a node declares for the code inside it. */
export interface Declared {
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
