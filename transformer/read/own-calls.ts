import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { importedModule } from "./imports";
import { declaredInBlock, declaredInFunction, namesIn } from "./scopes";

/** Our functions that the weave hands something. */
export type OwnFunction = "configure" | "currentLock";

/** What a name or an expression stands for: one of our functions, all of them, or a promise of all. */
type Meaning = OwnFunction | "runtime" | "promise";

/** By the names that a module exports: which of ours they are. */
export type OwnExports = ReadonlyMap<string, Meaning>;

/** The exports of a module that hands on ours, by its specifier in the file; `undefined` of any other. */
export type HandedOn = (specifier: string) => OwnExports | undefined;

const OURS: ReadonlySet<string> = new Set(["lockweave", "lockweave/runtime"]);

const OWN_EXPORTS: OwnExports = new Map<string, Meaning>([
  ["configure", "configure"],
  ["currentLock", "currentLock"],
  ["default", "runtime"],
]);

/** Cheap, and never misses a call of a module of ours: most files have none. */
export function mayConfigure(text: string): boolean {
  return text.includes("configure") && mayImportOurs(text);
}

/** Cheap. */
export function mayImportOurs(text: string): boolean {
  return /["'`]lockweave(?:\/runtime)?["'`]/.test(text);
}

/** The calls of one of our functions in `node`, by whatever name the file has it there. */
export function callsOf(
  ts: Parser,
  file: TS.SourceFile,
  functionName: OwnFunction,
  node: TS.Node,
  {
    handedOn,
    isElsewhere = () => false,
  }: {
    readonly handedOn?: HandedOn | undefined;
    readonly isElsewhere?: (node: TS.Node) => boolean;
  } = {},
): TS.CallExpression[] {
  const calls: TS.CallExpression[] = [];
  if (handedOn === undefined && !file.text.includes(functionName)) return calls;
  const exportsOf = (specifier: string): OwnExports | undefined =>
    OURS.has(specifier) ? OWN_EXPORTS : handedOn?.(specifier);
  const visit = (child: TS.Node, outer: Names, isInside: boolean, given?: Meaning): void => {
    const isIn = isInside || child === node;
    if (isIn && isElsewhere(child)) return;
    const names = namesInside(ts, child, outer, exportsOf, given);
    if (
      isIn &&
      ts.isCallExpression(child) &&
      meaningOf(ts, child.expression, names, exportsOf) === functionName
    ) {
      calls.push(child);
    }
    const callback = callbackOf(ts, child, names, exportsOf);
    ts.forEachChild(child, (grandchild) =>
      visit(grandchild, names, isIn, grandchild === callback ? "runtime" : undefined),
    );
  };
  visit(file, new Map(), false);
  return calls;
}

/** What the file itself hands on of ours. */
export function ownExportsOf(ts: Parser, file: TS.SourceFile, handedOn: HandedOn): OwnExports {
  const exportsOf = (specifier: string): OwnExports | undefined =>
    OURS.has(specifier) ? OWN_EXPORTS : handedOn(specifier);
  const names = namesInside(ts, file, new Map(), exportsOf);
  const exported = new Map<string, Meaning>();
  const add = (name: string, meaning: Meaning | undefined): void => {
    if (meaning !== undefined) exported.set(name, meaning);
  };
  for (const statement of file.statements) {
    if (ts.isExportDeclaration(statement)) {
      const module = importedModule(ts, statement);
      const from = module === undefined ? names : exportsOf(module);
      const { exportClause } = statement;
      if (exportClause === undefined) {
        for (const [name, meaning] of from ?? []) if (name !== "default") add(name, meaning ?? undefined);
      } else if (ts.isNamespaceExport(exportClause)) {
        if (from !== undefined) add(exportClause.name.text, "runtime");
      } else {
        for (const { name, propertyName = name } of exportClause.elements) {
          add(name.text, from?.get(propertyName.text) ?? undefined);
        }
      }
    }
    if (ts.isExportAssignment(statement)) {
      add("default", meaningOf(ts, statement.expression, names, exportsOf));
    }
    if (
      ts.isVariableStatement(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
    ) {
      for (const { name: bound } of statement.declarationList.declarations) {
        for (const { text } of namesIn(ts, bound)) add(text, names.get(text) ?? undefined);
      }
    }
  }
  return exported;
}

// ---- names and what they stand for ----------------------------------------------------------------------

/** `null`: something else, of whatever is around. */
type Names = ReadonlyMap<string, Meaning | null>;
type ExportsOf = (specifier: string) => OwnExports | undefined;

/** The names in scope inside the node. */
function namesInside(ts: Parser, node: TS.Node, outer: Names, exportsOf: ExportsOf, given?: Meaning): Names {
  const declared = ts.isFunctionLike(node) ? declaredInFunction(ts, node) : declaredInBlock(ts, node);
  const imports = ts.isSourceFile(node) ? node.statements : [];
  const own = ts.isClassExpression(node) && node.name !== undefined ? node.name.text : undefined;
  if (declared.length + imports.length === 0 && own === undefined) return outer;
  const names = new Map(outer);
  if (own !== undefined) names.set(own, null);
  for (const { name } of declared) bind(ts, name, null, names);
  for (const statement of imports) bindImport(ts, statement, names, exportsOf);
  for (const { name, value } of declared) {
    if (value !== undefined) bind(ts, name, meaningOf(ts, value, names, exportsOf) ?? null, names);
  }
  const [parameter] = ts.isFunctionLike(node) ? node.parameters : [];
  if (given !== undefined && parameter !== undefined) bind(ts, parameter.name, given, names);
  return names;
}

function bindImport(
  ts: Parser,
  statement: TS.Statement,
  names: Map<string, Meaning | null>,
  exportsOf: ExportsOf,
): void {
  const exported = exportsOf(importedModule(ts, statement) ?? "");
  if (exported === undefined) return;
  if (ts.isImportEqualsDeclaration(statement)) names.set(statement.name.text, "runtime");
  if (!ts.isImportDeclaration(statement)) return;
  const { name, namedBindings } = statement.importClause ?? {};
  if (name !== undefined) names.set(name.text, exported.get("default") ?? null);
  if (namedBindings === undefined) return;
  if (ts.isNamespaceImport(namedBindings)) names.set(namedBindings.name.text, "runtime");
  else {
    for (const { name: local, propertyName = local } of namedBindings.elements) {
      names.set(local.text, exported.get(propertyName.text) ?? null);
    }
  }
}

/** The callback in `import("lockweave").then((locks) => ...)`, whose parameter is the runtime. */
function callbackOf(
  ts: Parser,
  node: TS.Node,
  names: Names,
  exportsOf: ExportsOf,
): TS.Expression | undefined {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return undefined;
  const { name, expression } = node.expression;
  const isThen = name.text === "then" && meaningOf(ts, expression, names, exportsOf) === "promise";
  return isThen ? node.arguments[0] : undefined;
}

function bind(
  ts: Parser,
  name: TS.BindingName,
  meaning: Meaning | null,
  names: Map<string, Meaning | null>,
): void {
  if (ts.isIdentifier(name)) {
    names.set(name.text, meaning);
    return;
  }
  for (const element of name.elements) {
    if (ts.isOmittedExpression(element)) continue;
    const { propertyName = element.name } = element;
    const key = ts.isIdentifier(propertyName) || ts.isStringLiteral(propertyName) ? propertyName.text : "";
    const isMember = meaning === "runtime" && ts.isObjectBindingPattern(name);
    bind(ts, element.name, isMember ? (OWN_EXPORTS.get(key) ?? null) : null, names);
  }
}

function meaningOf(
  ts: Parser,
  expression: TS.Expression,
  names: Names,
  exportsOf: ExportsOf,
): Meaning | undefined {
  const of = (inner: TS.Expression): Meaning | undefined => meaningOf(ts, inner, names, exportsOf);
  if (ts.isIdentifier(expression)) return names.get(expression.text) ?? undefined;
  if (
    ts.isParenthesizedExpression(expression) ||
    ts.isAsExpression(expression) ||
    ts.isSatisfiesExpression(expression) ||
    ts.isNonNullExpression(expression)
  ) {
    return of(expression.expression);
  }
  if (ts.isPropertyAccessExpression(expression)) {
    return of(expression.expression) === "runtime" ? OWN_EXPORTS.get(expression.name.text) : undefined;
  }
  if (ts.isElementAccessExpression(expression)) {
    const { argumentExpression: key } = expression;
    return of(expression.expression) === "runtime" && ts.isStringLiteralLike(key)
      ? OWN_EXPORTS.get(key.text)
      : undefined;
  }
  if (ts.isAwaitExpression(expression)) {
    return of(expression.expression) === "promise" ? "runtime" : undefined;
  }
  if (ts.isBinaryExpression(expression) && expression.operatorToken.kind === ts.SyntaxKind.CommaToken) {
    return of(expression.right);
  }
  return ts.isCallExpression(expression) ? resultOf(ts, expression, names, exportsOf) : undefined;
}

function resultOf(
  ts: Parser,
  { expression: callee, arguments: [first] }: TS.CallExpression,
  names: Names,
  exportsOf: ExportsOf,
): Meaning | undefined {
  const module = first !== undefined && ts.isStringLiteralLike(first) ? exportsOf(first.text) : undefined;
  if (callee.kind === ts.SyntaxKind.ImportKeyword) return module && "promise";
  if (ts.isIdentifier(callee) && callee.text === "require" && !names.has("require"))
    return module && "runtime";
  return undefined;
}
