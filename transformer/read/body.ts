import type * as TS from "typescript";
import type { Parser, Source } from "../parser/parser";
import { isJavaScript, importedModule, moduleSyntax } from "./module-syntax";
import type { JoinPoint } from "./join-points";
import { identifiersIn, declaredInBlock, namesIn, varsIn, parameterNames } from "./names";
import { isAsync, type LockableFunction } from "./syntax";
import { runsCodeAfterReturn, mayReturnPromise, returnsValue } from "./returns";
import type { Span } from "../text/span";

// Whether the body of a function has to become a function of its own, and what it does with the names of its parameters.

/** A body that becomes a function inside the woven function. */
export interface ExtractedBody {
  readonly isAsync: boolean;
  /** The return type, as the file writes it. */
  readonly type: TS.TypeNode | undefined;
  /** Whether the body returns no value. The woven function then has no `return` for it. */
  readonly isVoid: boolean;
  /** The parameters to which the body assigns. */
  readonly assigned: readonly string[];
  /** Whether the body is JavaScript that uses `arguments`. The compiler then infers that the function takes any number of arguments. */
  readonly isVariadic: boolean;
  /** A parameter that a `var` of the body would hide. */
  readonly hidden: string | undefined;
}

/**
 * Returns the extracted body, or `undefined` if the body stays in the woven function. The body of a generator always stays. Any other body
 * is extracted if:
 * - the lock is reentrant, because the body then needs an async context of its own;
 * - code runs after it returns a promise, because the woven code must await the promise outside of that code;
 * - the function is not `async`, because the compiler must check that the body returns a promise, which only the woven code awaits;
 * - it declares a name twice, which a function allows and a block does not;
 * - it hoists a name that the tag uses;
 * - its declared type is or may be `Awaited`, because an added `await` makes `Awaited<T>` of the type parameter `T`.
 */
export function extractedBodyOf(
  source: Source,
  point: JoinPoint,
  reentrant: boolean,
  names: ReadonlySet<string>,
): ExtractedBody | undefined {
  const { ts, file } = source;
  const { fn, promised, type } = point;
  if (fn.asteriskToken !== undefined) return undefined;
  const isOwnAsync = isAsync(ts, fn);
  const isExtracted =
    reentrant ||
    !isOwnAsync ||
    runsCodeAfterReturn(ts, fn) ||
    declaredTwice(ts, fn) !== undefined ||
    hoistsOneOf(ts, fn, names) ||
    (type !== undefined &&
      mayReturnPromise(ts, fn) &&
      mayContainAwaited(source, type, typeParametersOf(ts, point)));
  if (!isExtracted) return undefined;
  return {
    isAsync: isOwnAsync,
    type: type ?? (isOwnAsync ? undefined : promised?.type),
    isVoid: isVoid(ts, point),
    assigned: assignedParameters(source, fn),
    isVariadic: isJavaScript(file) && usesArguments(ts, fn),
    hidden: redeclaredParameter(ts, fn),
  };
}

/**
 * Whether the type contains `Awaited`: directly, through a type of this file, or possibly through an imported type that gets a type
 * parameter.
 */
function mayContainAwaited({ ts, file }: Source, type: TS.TypeNode, parameters: readonly string[]): boolean {
  const names = identifiersIn(ts, type);
  const isGeneric = parameters.some((name) => names.has(name));
  const named = file.statements.filter(
    (statement) => ts.isTypeAliasDeclaration(statement) || ts.isInterfaceDeclaration(statement),
  );
  const imports = isGeneric ? file.statements.filter((one) => importedModule(ts, one) !== undefined) : [];
  const imported = new Set<string>();
  for (const statement of imports) for (const name of identifiersIn(ts, statement)) imported.add(name);
  for (const name of names) {
    if (name === "Awaited" || imported.has(name)) return true;
    const declared = named.filter((one) => one.name.text === name);
    // The iteration of a set includes the names that are added meanwhile.
    for (const one of declared) for (const inner of identifiersIn(ts, one)) names.add(inner);
  }
  return false;
}

/** Returns the names of the type parameters of the function and of its class. */
function typeParametersOf(ts: Parser, { fn, holder }: JoinPoint): readonly string[] {
  const ofClass = ts.isClassLike(holder) ? holder.typeParameters : undefined;
  return [...(fn.typeParameters ?? []), ...(ofClass ?? [])].map(({ name }) => name.text);
}

/**
 * Whether the compiler infers `Promise<void>` for the function, even if its body never ends. For such an arrow function, it infers
 * `Promise<never>`, which no overriding method can match.
 */
function isVoid(ts: Parser, { fn, holder, type }: JoinPoint): boolean {
  const isDeclared = ts.isFunctionDeclaration(fn) || (ts.isMethodDeclaration(fn) && ts.isClassLike(holder));
  return isDeclared && type === undefined && !returnsValue(ts, fn.body);
}

// ---- the names that the body declares and assigns --------------------------------------------------------

/** Returns a parameter that the body declares again with `var`. */
function redeclaredParameter(ts: Parser, fn: LockableFunction): string | undefined {
  const parameters = parameterNames(ts, fn);
  return varNames(ts, fn).find(({ text }) => parameters.includes(text))?.text;
}

/**
 * Returns a name of the body that the compiler reports as a duplicate of a parameter. In the woven code, where the body is in a block of
 * its own, the compiler would accept it.
 */
export function duplicateOfParameter(
  { ts, file }: Source,
  fn: LockableFunction,
): (Span & { readonly text: string }) | undefined {
  const parameters = parameterNames(ts, fn);
  // In JavaScript, a function may replace the parameter of the same name.
  const names = declaredAtTop(ts, fn).filter(
    ({ isFunction, name }) => !(isFunction && isJavaScript(file)) && parameters.includes(name.text),
  );
  const [duplicate] = names.map(({ name }) => name);
  return duplicate && { start: duplicate.getStart(file), end: duplicate.end, text: duplicate.text };
}

/** Returns a name that the body declares twice. A function allows that, at least in JavaScript, and a block does not. */
export function declaredTwice(ts: Parser, fn: LockableFunction): TS.Identifier | undefined {
  const vars = new Set(varNames(ts, fn).map(({ text }) => text));
  const functions = new Set<string>();
  return declaredAtTop(ts, fn).find(({ name: { text }, isFunction }) => {
    const isAgain = vars.has(text) || (isFunction && functions.has(text));
    if (isFunction) functions.add(text);
    return isAgain;
  })?.name;
}

/**
 * Whether the body declares one of the names for the whole function, and so hides it from the woven code around the body. A `var` does
 * that, and so does any function in a block of sloppy code. That includes the output of esbuild, which ignores `strict` in tsconfig.json.
 */
function hoistsOneOf(ts: Parser, fn: LockableFunction, names: ReadonlySet<string>): boolean {
  const hoisted = [...varNames(ts, fn), ...functionsIn(ts, fn.body)];
  return oneOf(hoisted, ts, fn, names) !== undefined;
}

/**
 * Returns a name that the body declares, and that hides one of these names from the woven code in the same function.
 *
 * @param names the names that the tag uses
 */
export function hiddenName(
  source: Source,
  fn: LockableFunction,
  names: ReadonlySet<string>,
): TS.Identifier | undefined {
  const { ts } = source;
  const isSloppy = moduleSyntax(source) !== "esm";
  const hoisted = [...varNames(ts, fn), ...(isSloppy ? functionsIn(ts, fn.body) : [])];
  // Only the body of a generator is in a block of its own.
  const others = fn.asteriskToken === undefined ? declaredAtTop(ts, fn).map(({ name }) => name) : [];
  return oneOf([...hoisted, ...others], ts, fn, names);
}

function varNames(ts: Parser, { body }: LockableFunction): TS.Identifier[] {
  return varsIn(ts, body).flatMap(({ name }) => namesIn(ts, name));
}

/** Returns a declared name that is one of the names, and no parameter. */
function oneOf(
  declared: readonly TS.Identifier[],
  ts: Parser,
  fn: LockableFunction,
  names: ReadonlySet<string>,
): TS.Identifier | undefined {
  const parameters = parameterNames(ts, fn);
  return declared.find(({ text }) => names.has(text) && !parameters.includes(text));
}

function functionsIn(ts: Parser, node: TS.Node): TS.Identifier[] {
  const names: TS.Identifier[] = [];
  ts.forEachChild(node, (child) => {
    if (ts.isFunctionDeclaration(child) && child.name !== undefined) names.push(child.name);
    if (!ts.isFunctionLike(child)) names.push(...functionsIn(ts, child));
  });
  return names;
}

/** Whether the body uses the function's own `arguments`. The search is the same as the compiler's in JavaScript. */
function usesArguments(ts: Parser, fn: LockableFunction): boolean {
  const isUsed = (node: TS.Node): boolean => {
    if (ts.isIdentifier(node)) return node.text === "arguments";
    if (ts.isFunctionLike(node)) return false;
    if (ts.isPropertyAccessExpression(node)) return isUsed(node.expression);
    if (ts.isPropertyAssignment(node)) return isUsed(node.initializer);
    return ts.forEachChild(node, (child) => isUsed(child) || undefined) ?? false;
  };
  return !ts.isArrowFunction(fn) && isUsed(fn.body);
}

/** Returns what the body declares at its top level, except its `var`s. */
function declaredAtTop(
  ts: Parser,
  { body }: LockableFunction,
): { readonly name: TS.Identifier; readonly isFunction: boolean }[] {
  if (!ts.isBlock(body)) return [];
  return body.statements.flatMap((statement) => {
    if (ts.isVariableStatement(statement)) {
      const { flags, declarations } = statement.declarationList;
      const isBlockScoped = (flags & ts.NodeFlags.BlockScoped) !== 0;
      const names = isBlockScoped ? declarations.flatMap(({ name }) => namesIn(ts, name)) : [];
      return names.map((name) => ({ name, isFunction: false }));
    }
    const isFunction = ts.isFunctionDeclaration(statement) && statement.body !== undefined;
    const isDeclared = isFunction || ts.isClassDeclaration(statement) || ts.isEnumDeclaration(statement);
    return isDeclared && statement.name !== undefined ? [{ name: statement.name, isFunction }] : [];
  });
}

/**
 * Returns the parameters to which the body assigns. An extracted body gets them as parameters of its own, because a type that an assignment
 * narrows stays narrow in nested functions only if the parameter belongs to the function that assigns.
 */
function assignedParameters(source: Source, fn: LockableFunction): string[] {
  const { ts } = source;
  const parameters = new Set(parameterNames(ts, fn));
  const assigned = assignedIn(ts, fn.body, parameters);
  const isSloppy = moduleSyntax(source) !== "esm";
  // In sloppy code, a function in a block also sets the variable of its name, except a parameter of the same function.
  const functions = isSloppy ? functionsIn(ts, fn.body).map(({ text }) => text) : [];
  // A function in a parameter's default may use the outer parameter. In sloppy code, `arguments` may, too. ES modules are never sloppy.
  const captured = new Set(fn.parameters.flatMap((parameter) => [...closuresIn(ts, parameter)]));
  if (isSloppy && identifiersIn(ts, fn.body).has("arguments")) return [];
  const all = new Set([...assigned, ...functions.filter((name) => parameters.has(name))]);
  return [...all].filter((name) => !captured.has(name));
}

/**
 * Returns those assigned parameters that a function in the body uses and does not assign. If the body is in the woven `try`, the narrowed
 * type reaches into that function only if the parameter is declared in the same block as the assignment.
 */
export function narrowedParameters(source: Source, fn: LockableFunction): string[] {
  const { ts } = source;
  const assigned = assignedParameters(source, fn);
  if (assigned.length === 0) return [];
  const captured = closuresIn(ts, fn.body);
  const others = new Set([...assignedInClosures(ts, fn.body, new Set(assigned)), ...declaredIn(ts, fn.body)]);
  return assigned.filter((name) => captured.has(name) && !others.has(name));
}

/** Returns the names that the body declares: by `var` anywhere, or at its top level. */
function declaredIn(ts: Parser, body: TS.ConciseBody): string[] {
  const declared = [...varsIn(ts, body), ...declaredInBlock(ts, body)];
  return declared.flatMap(({ name }) => namesIn(ts, name)).map(({ text }) => text);
}

/**
 * Returns the names to which the code assigns.
 *
 * @param isSkipped the parts that do not count
 */
export function assignedIn(
  ts: Parser,
  inside: TS.Node,
  names: ReadonlySet<string>,
  isSkipped: (node: TS.Node) => boolean = () => false,
): Set<string> {
  const assigned = new Set<string>();
  const visitTarget = (node: TS.Node): void => {
    if (ts.isIdentifier(node)) {
      if (names.has(node.text)) assigned.add(node.text);
    } else if (ts.isPropertyAssignment(node)) {
      visitTarget(node.initializer);
    } else if (ts.isShorthandPropertyAssignment(node)) {
      visitTarget(node.name);
    } else if (ts.isBinaryExpression(node)) {
      visitTarget(node.left); // The right side is the default: `[first = 1] = list`.
    } else if (!ts.isPropertyAccessExpression(node) && !ts.isElementAccessExpression(node)) {
      ts.forEachChild(node, visitTarget);
    }
  };
  const visit = (node: TS.Node): void => {
    if (isSkipped(node)) return;
    if (ts.isBinaryExpression(node) && isAssignment(ts, node.operatorToken.kind)) visitTarget(node.left);
    if (ts.isPrefixUnaryExpression(node) || ts.isPostfixUnaryExpression(node)) {
      const { PlusPlusToken, MinusMinusToken } = ts.SyntaxKind;
      if (node.operator === PlusPlusToken || node.operator === MinusMinusToken) visitTarget(node.operand);
    }
    if (ts.isForOfStatement(node) || ts.isForInStatement(node)) {
      if (!ts.isVariableDeclarationList(node.initializer)) visitTarget(node.initializer);
    }
    ts.forEachChild(node, visit);
  };
  visit(inside);
  return assigned;
}

function assignedInClosures(ts: Parser, node: TS.Node, names: ReadonlySet<string>): Set<string> {
  if (ts.isFunctionLike(node)) return assignedIn(ts, node, names);
  const assigned = new Set<string>();
  ts.forEachChild(node, (child) => {
    for (const name of assignedInClosures(ts, child, names)) assigned.add(name);
  });
  return assigned;
}

function isAssignment(ts: Parser, kind: TS.SyntaxKind): boolean {
  return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
}

/** Returns the names that functions inside the node use, except their own parameters. */
function closuresIn(ts: Parser, node: TS.Node): Set<string> {
  if (ts.isFunctionLike(node)) {
    const { body, parameters } = node as Partial<LockableFunction>;
    if (body === undefined) return new Set(); // In a function type, the names of parameters refer to nothing.
    const own = new Set(parameters?.flatMap(({ name }) => namesIn(ts, name).map(({ text }) => text)));
    return new Set([...identifiersIn(ts, node)].filter((name) => !own.has(name)));
  }
  const names = new Set<string>();
  ts.forEachChild(node, (child) => {
    for (const name of closuresIn(ts, child)) names.add(name);
  });
  return names;
}
