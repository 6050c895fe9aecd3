import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { importedModule } from "./module-syntax";
import { declaredInBlock, declaredInFunction } from "./names";

// Finds the names and expressions that refer to our functions, or to modules that export them.

/** The functions of Lockweave to whose calls the weave adds arguments. */
export type OwnFunction = "configure" | "currentLock" | "forRoot" | "forRootAsync" | "testLocks";

/** The meaning of a name or an expression: one of our functions, or a module that exports them. */
export type Meaning = OwnFunction | Module;

/** All exports of a module, or a promise of them. */
export interface Module {
  readonly is: "module" | "promise";
  /** Returns the exports that are ours. A function, because modules may import each other. */
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

/** The methods of `LockModule` for NestJS. The class has a meaning as if it were a module with these exports. */
const LOCK_MODULE: Module = { is: "module", exported: () => exportsNamed("forRoot", "forRootAsync") };
const NEST: OwnExports = new Map<string, Meaning>([
  ["LockModule", LOCK_MODULE],
  ["default", { is: "module", exported: () => NEST }],
]);

/** The exports of our own modules. */
const OUR_MODULES: ReadonlyMap<string, OwnExports> = new Map([
  ["lockweave", RUNTIME],
  ["lockweave/runtime", RUNTIME],
  ["lockweave/testing", exportsNamed("testLocks")],
  ["lockweave/nest", NEST],
]);

/** Returns our functions that a module exports, by the specifier of the module. */
type ExportsOf = FindReExports;

/** Returns a function that finds our functions in our own modules, and in modules that re-export them. */
export function exportsOfOurs(findReExports: FindReExports | undefined): ExportsOf {
  return (specifier) => OUR_MODULES.get(specifier) ?? findReExports?.(specifier);
}

/** The names in scope. `null` means that a name is not ours, whatever it means in outer scopes. */
export class Names {
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

/** Returns the names in scope inside the node. */
export function namesInside(
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
export function callbackOf(
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

export function meaningOf(
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
export function moduleOf(specifier: string | undefined, exportsOf: ExportsOf): Module | undefined {
  if (specifier === undefined || exportsOf(specifier) === undefined) return undefined;
  return { is: "module", exported: () => exportsOf(specifier) };
}

function memberOf(meaning: Meaning | null | undefined, name: string): Meaning | undefined {
  return typeof meaning === "object" && meaning?.is === "module" ? meaning.exported()?.get(name) : undefined;
}

function awaitedOf(meaning: Meaning | undefined): Module | undefined {
  return typeof meaning === "object" && meaning.is === "promise" ? { ...meaning, is: "module" } : undefined;
}
