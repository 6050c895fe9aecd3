import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { importedModule } from "./imports";
import { declaredBy, declaredInBlock, declaredInFunction, namesIn } from "./scopes";

/** The functions of Lockweave to whose calls the weave adds arguments. */
export type OwnFunction = "configure" | "currentLock" | "testLocks";

/** The meaning of a name or an expression: one of our functions, or a module that exports them. */
type Meaning = OwnFunction | Module;

/** All exports of a module, or a promise of them. */
interface Module {
  readonly is: "module" | "promise";
  /** Returns those exports that are ours. Called late, because modules may import each other. */
  readonly exported: () => OwnExports | undefined;
}

/** Our functions among the exports of a module, by name. */
export type OwnExports = ReadonlyMap<string, Meaning>;

/**
 * Returns our functions that a module re-exports. The module is given by its specifier in the file. Returns `undefined` for any other
 * module.
 */
export type FindReExports = (specifier: string) => OwnExports | undefined;

function exportsNamed(...names: readonly OwnFunction[]): OwnExports {
  const exported: OwnExports = new Map<string, Meaning>([
    ...names.map((name) => [name, name] as const),
    ["default", { is: "module", exported: () => exported }],
  ]);
  return exported;
}

const RUNTIME = exportsNamed("configure", "currentLock");

/** The exports of our own modules. */
const OUR_MODULES: ReadonlyMap<string, OwnExports> = new Map([
  ["lockweave", RUNTIME],
  ["lockweave/runtime", RUNTIME],
  ["lockweave/testing", exportsNamed("testLocks")],
]);

/** Whether the text may call our `configure()`. This cheap test never misses such a call. Most files need no more than this test. */
export function mayConfigure(text: string): boolean {
  return text.includes("configure") && mayImportOurs(text);
}

/**
 * Whether the text may have a call that gets the handshake. This cheap test never misses such a call. Most files need no more than this
 * test.
 */
export function mayShakeHands(text: string): boolean {
  return /configure|testLocks/.test(text) && mayImportOurs(text);
}

/** Whether the text may import one of our modules. This test is cheap, too. */
export function mayImportOurs(text: string): boolean {
  return /["'`]lockweave(?:\/runtime|\/testing)?["'`]/.test(text);
}

/** Returns the calls of one of our functions, whatever name the file has for it. */
export function callsOf(
  ts: Parser,
  file: TS.SourceFile,
  functionName: OwnFunction,
  findReExports: FindReExports | undefined,
): TS.CallExpression[] {
  return callsWithin(ts, file, functionName, new Map(), findReExports).map(({ call }) => call);
}

/** Returns the same calls, each with its owner: the entry in `owners` of the innermost node around the call that has one. */
export function callsWithin<Owner>(
  ts: Parser,
  file: TS.SourceFile,
  functionName: OwnFunction,
  owners: ReadonlyMap<TS.Node, Owner>,
  findReExports: FindReExports | undefined,
): { readonly call: TS.CallExpression; readonly owner: Owner | undefined }[] {
  const calls: { call: TS.CallExpression; owner: Owner | undefined }[] = [];
  if (findReExports === undefined && !file.text.includes(functionName)) return calls;
  walk<Owner | undefined>(ts, file, findReExports, undefined, (node, meaning, around) => {
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
export function passedAsValues(
  ts: Parser,
  file: TS.SourceFile,
  findReExports: FindReExports | undefined,
): OwnValue[] {
  const values: OwnValue[] = [];
  if (findReExports === undefined && !mayShakeHands(file.text)) return values;
  walk(ts, file, findReExports, undefined, (node, meaning) => {
    for (const value of valuesPassedBy(ts, node)) {
      const of = meaning(value);
      if (of === "configure" || of === "testLocks") values.push({ value, of });
    }
    return undefined;
  });
  return values;
}

/** Returns our functions that the file exports itself. */
export function ownExportsOf(ts: Parser, file: TS.SourceFile, findReExports: FindReExports): OwnExports {
  const exportsOf = (specifier: string): OwnExports | undefined =>
    OUR_MODULES.get(specifier) ?? findReExports(specifier);
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

// ---- names and their meanings ---------------------------------------------------------------------------

/** The names in scope. `null` means that a name is not ours, whatever it means in outer scopes. */
class Names {
  readonly own = new Map<string, Meaning | null>();
  readonly #outer: Names | undefined;

  constructor(outer?: Names) {
    this.#outer = outer;
  }

  get(name: string): Meaning | null | undefined {
    return this.#scopeOf(name)?.own.get(name);
  }

  has(name: string): boolean {
    return this.#scopeOf(name) !== undefined;
  }

  set(name: string, meaning: Meaning | null): void {
    this.own.set(name, meaning);
  }

  /** Returns the innermost scope that declares the name. */
  #scopeOf(name: string): Names | undefined {
    if (this.own.has(name)) return this;
    let scope = this.#outer;
    while (scope !== undefined && !scope.own.has(name)) scope = scope.#outer;
    return scope;
  }
}

type ExportsOf = (specifier: string) => OwnExports | undefined;

/**
 * Visits every node of the file once.
 *
 * @param visitor receives the node, a function that returns the meaning of an expression there, and the result for the parent node
 */
function walk<Result>(
  ts: Parser,
  file: TS.SourceFile,
  findReExports: FindReExports | undefined,
  initial: Result,
  visitor: (
    node: TS.Node,
    meaning: (expression: TS.Expression) => Meaning | undefined,
    outerResult: Result,
  ) => Result,
): void {
  const exportsOf = (specifier: string): OwnExports | undefined =>
    OUR_MODULES.get(specifier) ?? findReExports?.(specifier);
  const visit = (node: TS.Node, outer: Names, outerResult: Result, receivedModule?: Module): void => {
    const names = namesInside(ts, node, outer, exportsOf, receivedModule);
    const result = visitor(node, (expression) => meaningOf(ts, expression, names, exportsOf), outerResult);
    const { callback, module } = callbackOf(ts, node, names, exportsOf) ?? {};
    ts.forEachChild(node, (child) => visit(child, names, result, child === callback ? module : undefined));
  };
  visit(file, new Names(), initial);
}

/**
 * Returns the expressions that the node passes to code that has no name of this file for them: as an argument, in an object, or by an
 * assignment.
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

/** Returns the names in scope inside the node. */
function namesInside(
  ts: Parser,
  node: TS.Node,
  outer: Names,
  exportsOf: ExportsOf,
  receivedModule?: Module,
): Names {
  const declared = ts.isFunctionLike(node) ? declaredInFunction(ts, node) : declaredInBlock(ts, node);
  const imports = ts.isSourceFile(node) ? node.statements : [];
  const own = ts.isClassExpression(node) && node.name !== undefined ? node.name.text : undefined;
  if (declared.length + imports.length === 0 && own === undefined) return outer;
  const names = new Names(outer);
  if (own !== undefined) names.set(own, null);
  for (const { name } of declared) bind(ts, name, null, names);
  for (const statement of imports) bindImport(ts, statement, names, exportsOf);
  for (const { name, value } of declared) {
    if (value !== undefined) bind(ts, name, meaningOf(ts, value, names, exportsOf) ?? null, names);
  }
  const [parameter] = ts.isFunctionLike(node) ? node.parameters : [];
  if (receivedModule !== undefined && parameter !== undefined)
    bind(ts, parameter.name, receivedModule, names);
  return names;
}

function bindImport(ts: Parser, statement: TS.Statement, names: Names, exportsOf: ExportsOf): void {
  const module = moduleOf(importedModule(ts, statement), exportsOf);
  const exported = module?.exported();
  if (module === undefined || exported === undefined) return;
  if (ts.isImportEqualsDeclaration(statement)) names.set(statement.name.text, module);
  if (!ts.isImportDeclaration(statement)) return;
  const { name, namedBindings } = statement.importClause ?? {};
  if (name !== undefined) names.set(name.text, exported.get("default") ?? null);
  if (namedBindings === undefined) return;
  if (ts.isNamespaceImport(namedBindings)) names.set(namedBindings.name.text, module);
  else {
    for (const { name: local, propertyName = local } of namedBindings.elements) {
      names.set(local.text, exported.get(propertyName.text) ?? null);
    }
  }
}

/** Returns the callback in `import("lockweave").then((locks) => ...)`, and the module that it receives. */
function callbackOf(
  ts: Parser,
  node: TS.Node,
  names: Names,
  exportsOf: ExportsOf,
): { readonly callback: TS.Expression | undefined; readonly module: Module } | undefined {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return undefined;
  const { name, expression } = node.expression;
  const module = name.text === "then" ? awaitedOf(meaningOf(ts, expression, names, exportsOf)) : undefined;
  return module && { callback: node.arguments[0], module };
}

function bind(ts: Parser, name: TS.BindingName, meaning: Meaning | null, names: Names): void {
  if (ts.isIdentifier(name)) {
    names.set(name.text, meaning);
    return;
  }
  for (const element of name.elements) {
    if (ts.isOmittedExpression(element)) continue;
    const { propertyName = element.name } = element;
    const key = ts.isIdentifier(propertyName) || ts.isStringLiteral(propertyName) ? propertyName.text : "";
    const member = ts.isObjectBindingPattern(name) ? memberOf(meaning, key) : undefined;
    bind(ts, element.name, member ?? null, names);
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
    ts.isTypeAssertionExpression(expression) ||
    ts.isNonNullExpression(expression)
  ) {
    return of(expression.expression);
  }
  if (ts.isPropertyAccessExpression(expression)) {
    return memberOf(of(expression.expression), expression.name.text);
  }
  if (ts.isElementAccessExpression(expression)) {
    const { argumentExpression: key } = expression;
    return ts.isStringLiteralLike(key) ? memberOf(of(expression.expression), key.text) : undefined;
  }
  if (ts.isAwaitExpression(expression)) {
    return awaitedOf(of(expression.expression));
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
  const specifier = first !== undefined && ts.isStringLiteralLike(first) ? first.text : undefined;
  const module = moduleOf(specifier, exportsOf);
  if (callee.kind === ts.SyntaxKind.ImportKeyword) return module && { ...module, is: "promise" };
  const isRequire = ts.isIdentifier(callee) && callee.text === "require" && !names.has("require");
  return isRequire ? module : undefined;
}

/** Returns the module, or `undefined` if it exports nothing of ours. */
function moduleOf(specifier: string | undefined, exportsOf: ExportsOf): Module | undefined {
  if (specifier === undefined || exportsOf(specifier) === undefined) return undefined;
  return { is: "module", exported: () => exportsOf(specifier) };
}

function memberOf(meaning: Meaning | null | undefined, name: string): Meaning | undefined {
  return typeof meaning === "object" && meaning?.is === "module" ? meaning.exported()?.get(name) : undefined;
}

function awaitedOf(meaning: Meaning | undefined): Module | undefined {
  return typeof meaning === "object" && meaning.is === "promise" ? { ...meaning, is: "module" } : undefined;
}
