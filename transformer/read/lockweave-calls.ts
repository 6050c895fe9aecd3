import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";
import {
  callbackOf,
  exportsOfOurs,
  meaningOf,
  moduleOf,
  Names,
  namesInside,
  type FindReExports,
  type Meaning,
  type Module,
  type OwnExports,
  type OwnFunction,
} from "./meanings";
import { importedModule } from "./module-syntax";
import { declaredBy, namesIn } from "./names";
import { mayNeedHandshake } from "./spelling";

/** Returns the calls of one of our functions, whatever name the file has for it. */
export function callsOf(
  source: Source,
  functionName: OwnFunction,
  findReExports: FindReExports | undefined,
): TS.CallExpression[] {
  return callsWithin(source, functionName, new Map(), findReExports).map(({ call }) => call);
}

/**
 * Returns the calls of one of our functions, each with its owner: the entry in `owners` of the innermost node around the call that has
 * one.
 */
export function callsWithin<Owner>(
  source: Source,
  functionName: OwnFunction,
  owners: ReadonlyMap<TS.Node, Owner>,
  findReExports: FindReExports | undefined,
): { readonly call: TS.CallExpression; readonly owner: Owner | undefined }[] {
  const { ts, file } = source;
  const calls: { call: TS.CallExpression; owner: Owner | undefined }[] = [];
  if (findReExports === undefined && !file.text.includes(functionName)) return calls;
  walk<Owner | undefined>(source, findReExports, undefined, (node, meaning, around) => {
    const owner = owners.has(node) ? owners.get(node) : around;
    if (ts.isCallExpression(node) && meaning(node.expression) === functionName) {
      calls.push({ call: node, owner });
    }
    return owner;
  });
  return calls;
}

/** One of our functions that is passed as a value. Its calls cannot be seen from here. */
export interface OwnValue {
  readonly value: TS.Expression;
  readonly of: OwnFunction;
}

/** Returns the functions with a handshake that the file passes as values. */
export function passedAsValues(source: Source, findReExports: FindReExports | undefined): OwnValue[] {
  const { ts, file } = source;
  const values: OwnValue[] = [];
  if (findReExports === undefined && !mayNeedHandshake(file.text)) return values;
  walk(source, findReExports, undefined, (node, meaning) => {
    for (const value of valuesPassedBy(ts, node)) {
      const of = meaning(value);
      if (typeof of === "string" && of !== "currentLock") values.push({ value, of });
    }
    return undefined;
  });
  return values;
}

/** Returns our functions that the file exports itself. */
export function ownExportsOf({ ts, file }: Source, findReExports: FindReExports): OwnExports {
  const exportsOf = exportsOfOurs(findReExports);
  const names = namesInside(ts, file, new Names(), exportsOf);
  const exported = new Map<string, Meaning>();
  const add = (name: string, meaning: Meaning | null | undefined): void => {
    if (meaning) exported.set(name, meaning);
    else exported.delete(name); // An export of the file itself hides the same name from `export *`.
  };
  for (const statement of file.statements) {
    if (!ts.isExportDeclaration(statement) || statement.exportClause !== undefined) continue;
    for (const [name, meaning] of exportsOf(importedModule(ts, statement) ?? "") ?? []) {
      if (name !== "default") add(name, meaning);
    }
  }
  for (const statement of file.statements) {
    if (ts.isExportDeclaration(statement)) {
      const module = importedModule(ts, statement);
      const from: Pick<Names, "get"> | undefined = module === undefined ? names : exportsOf(module);
      const { exportClause } = statement;
      if (exportClause === undefined) continue;
      if (ts.isNamespaceExport(exportClause)) {
        add(exportClause.name.text, moduleOf(module, exportsOf));
      } else {
        for (const { name, propertyName = name } of exportClause.elements) {
          add(name.text, from?.get(propertyName.text));
        }
      }
    } else if (ts.isExportAssignment(statement)) {
      add("default", meaningOf(ts, statement.expression, names, exportsOf));
    } else if (isExported(ts, statement)) {
      for (const { name } of declaredBy(ts, statement)) {
        for (const { text } of namesIn(ts, name)) add(text, names.get(text));
      }
    }
  }
  return exported;
}

function isExported(ts: Parser, statement: TS.Statement): boolean {
  const { modifiers } = statement as { readonly modifiers?: readonly TS.ModifierLike[] };
  return modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

/**
 * Visits every node of the file once.
 *
 * @param visitor receives the node, a function that returns the meaning of an expression there, and the result for the parent node
 */
function walk<Result>(
  { ts, file }: Source,
  findReExports: FindReExports | undefined,
  initial: Result,
  visitor: (
    node: TS.Node,
    meaning: (expression: TS.Expression) => Meaning | undefined,
    outerResult: Result,
  ) => Result,
): void {
  const exportsOf = exportsOfOurs(findReExports);
  const visit = (node: TS.Node, outer: Names, outerResult: Result, receivedModule?: Module): void => {
    const names = namesInside(ts, node, outer, exportsOf, receivedModule);
    const result = visitor(node, (expression) => meaningOf(ts, expression, names, exportsOf), outerResult);
    const { callback, module } = callbackOf(ts, node, names, exportsOf) ?? {};
    ts.forEachChild(node, (child) => visit(child, names, result, child === callback ? module : undefined));
  };
  visit(file, new Names(), initial);
}

/**
 * Returns the expressions that the node passes on: as an argument, in an object, or by an assignment. The code that gets them may call them
 * by another name.
 */
function valuesPassedBy(ts: Parser, node: TS.Node): readonly TS.Expression[] {
  if (ts.isCallExpression(node) || ts.isNewExpression(node)) return node.arguments ?? [];
  if (ts.isArrayLiteralExpression(node)) return node.elements;
  if (ts.isShorthandPropertyAssignment(node)) return [node.name];
  if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse];
  if (ts.isArrowFunction(node)) return ts.isBlock(node.body) ? [] : [node.body];
  if (ts.isPropertyAccessExpression(node)) return CALLERS.has(node.name.text) ? [node.expression] : [];
  if (ts.isBinaryExpression(node)) {
    const { left, right, operatorToken } = node;
    const { kind } = operatorToken;
    if (kind === ts.SyntaxKind.BarBarToken || kind === ts.SyntaxKind.QuestionQuestionToken)
      return [left, right];
    const isRight =
      kind === ts.SyntaxKind.AmpersandAmpersandToken ||
      (kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment);
    return isRight ? [right] : [];
  }
  const value =
    ts.isReturnStatement(node) || ts.isYieldExpression(node)
      ? node.expression
      : ts.isPropertyAssignment(node) ||
          ts.isPropertyDeclaration(node) ||
          ts.isParameter(node) ||
          ts.isBindingElement(node)
        ? node.initializer
        : undefined;
  return value === undefined ? [] : [value];
}

/** The methods of a function that call it or bind it. */
const CALLERS: ReadonlySet<string> = new Set(["apply", "bind", "call"]);
