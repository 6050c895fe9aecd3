import type * as TS from "typescript";
import type { Parser } from "../../parser/parser";

/** Returns the structure of the code as text. It is the same for code that differs only in how it is written. */
export function canonical(
  ts: Parser,
  node: TS.Node | undefined,
  { withNames = true }: { readonly withNames?: boolean } = {},
): string {
  const textOf = (child: TS.Node): string => {
    const inner = withoutParentheses(ts, child);
    if (ts.isStringLiteral(inner) && isMemberName(ts, inner)) return inner.text; // `{ "site": ... }`
    const constant = constantOf(ts, inner);
    if (constant !== undefined) return JSON.stringify(constant.value);
    if (ts.isIdentifier(inner)) return withNames || isMemberName(ts, inner) ? inner.text : "_";
    if (ts.isObjectLiteralExpression(inner)) return `{${inner.properties.map(textOf).join()}}`;
    const children: string[] = [];
    ts.forEachChild(inner, (grandchild) => void children.push(textOf(grandchild)));
    const { text = "", operator = "" } = inner as { readonly text?: string; readonly operator?: unknown };
    return `${inner.kind}${JSON.stringify(text)}${String(operator)}(${children.join()})`;
  };
  return node === undefined ? "" : textOf(node);
}

/** Returns the value of a literal, however it is written. The value of `undefined` is `null`. */
export function constantOf(
  ts: Parser,
  node: TS.Node,
): { value: string | number | boolean | null } | undefined {
  const inner = withoutParentheses(ts, node);
  if (ts.isStringLiteralLike(inner)) return { value: inner.text };
  if (ts.isNumericLiteral(inner)) return { value: Number(inner.text) };
  if (ts.isVoidExpression(inner) && constantOf(ts, inner.expression)) return { value: null };
  if (ts.isIdentifier(inner) && inner.text === "undefined") return { value: null };
  if (inner.kind === ts.SyntaxKind.TrueKeyword) return { value: true };
  if (inner.kind === ts.SyntaxKind.FalseKeyword) return { value: false };
  if (ts.isPrefixUnaryExpression(inner) && inner.operator === ts.SyntaxKind.ExclamationToken) {
    const negated = withoutParentheses(ts, inner.operand); // `!0`, `![]`, `!![]`
    const isEmptyArray = ts.isArrayLiteralExpression(negated) && negated.elements.length === 0;
    const constant = isEmptyArray ? { value: true } : constantOf(ts, negated);
    return constant && { value: !constant.value };
  }
  if (!ts.isBinaryExpression(inner) || inner.operatorToken.kind !== ts.SyntaxKind.PlusToken) return undefined;
  const [left, right] = [inner.left, inner.right].map((part) => constantOf(ts, part)?.value); // `"pay" + "Order"`
  return typeof left === "string" && typeof right === "string" ? { value: left + right } : undefined;
}

export function withoutParentheses<N extends TS.Node>(ts: Parser, node: N): N | TS.Expression {
  let inner: N | TS.Expression = node;
  while (ts.isParenthesizedExpression(inner)) inner = inner.expression;
  return inner;
}

function isMemberName(ts: Parser, name: TS.Node): boolean {
  const { parent } = name;
  return (ts.isPropertyAccessExpression(parent) || ts.isPropertyAssignment(parent)) && parent.name === name;
}

// ---- what no minifier changes ---------------------------------------------------------------------------

/**
 * For each name in a function: the parameter that it refers to (`0`), a part of that parameter (`0.order`), or `this`. It is `undefined` for a
 * variable that the compiler added.
 */
export type Bindings = ReadonlyMap<string, string | undefined>;

const THIS = "this";

/** Returns the bindings of the function's parameters, and of the variables that are declared before its actual body. */
export function bindingsOf(
  ts: Parser,
  owner: TS.SignatureDeclaration,
  declared: readonly TS.VariableDeclaration[],
): Bindings {
  const bindings = new Map<string, string | undefined>();
  const bind = (name: TS.BindingName, path: string | undefined): void => {
    if (ts.isIdentifier(name)) {
      bindings.set(name.text, path);
      return;
    }
    name.elements.forEach((element, index) => {
      if (ts.isOmittedExpression(element)) return;
      const { propertyName, dotDotDotToken } = element;
      const key = ts.isArrayBindingPattern(name) ? undefined : (propertyName ?? element.name);
      const label = key === undefined ? String(index) : labelOf(ts, key);
      bind(element.name, path && `${path}.${dotDotDotToken ? "..." : ""}${label}`);
    });
  };
  for (const name of copiesOfThis(ts, owner)) bindings.set(name, THIS);
  for (const fn of [functionAround(ts, owner), owner]) {
    fn?.parameters.forEach(({ name }, index) => bind(name, String(index)));
  }
  for (const { name, initializer } of declared) bind(name, initializer && pathOf(ts, initializer, bindings));
  return bindings;
}

/**
 * Returns what the value refers to, if it is a parameter or a part of one. For old targets, compilers destructure parameters in the body:
 * `var { order } = _a`, or `var _b = _a.limit, limit = _b === void 0 ? 5 : _b`.
 */
function pathOf(ts: Parser, value: TS.Expression, bindings: Bindings): string | undefined {
  const inner = withoutParentheses(ts, value);
  if (ts.isIdentifier(inner)) return bindings.get(inner.text);
  if (ts.isConditionalExpression(inner) && ts.isBinaryExpression(inner.condition)) {
    const { left, operatorToken, right } = inner.condition;
    const isDefault =
      operatorToken.kind === ts.SyntaxKind.EqualsEqualsEqualsToken && constantOf(ts, right)?.value === null;
    const path = pathOf(ts, inner.whenFalse, bindings);
    return isDefault && pathOf(ts, left, bindings) === path ? path : undefined;
  }
  if (!ts.isPropertyAccessExpression(inner) && !ts.isElementAccessExpression(inner)) return undefined;
  const path = pathOf(ts, inner.expression, bindings);
  const member = ts.isPropertyAccessExpression(inner)
    ? inner.name.text
    : constantOf(ts, inner.argumentExpression)?.value;
  return path === undefined || path === THIS || member === undefined ? undefined : `${path}.${member}`;
}

/** Returns the variables of the functions around this one that are copies of `this`, which compilers add for old targets: `var _this = this`. */
function copiesOfThis(ts: Parser, owner: TS.SignatureDeclaration): string[] {
  const names: string[] = [];
  for (let node: TS.Node = owner.parent; !ts.isSourceFile(node); node = node.parent) {
    if (!ts.isFunctionLike(node) || !("body" in node) || node.body === undefined) continue;
    for (const { name, initializer } of variablesOf(ts, node.body)) {
      if (ts.isIdentifier(name) && initializer?.kind === ts.SyntaxKind.ThisKeyword) names.push(name.text);
    }
  }
  return names;
}

function variablesOf(ts: Parser, body: TS.Node): readonly TS.VariableDeclaration[] {
  if (!ts.isBlock(body)) return [];
  return body.statements
    .filter(ts.isVariableStatement)
    .flatMap(({ declarationList }) => declarationList.declarations);
}

function labelOf(ts: Parser, key: TS.Node): string {
  return ts.isIdentifier(key) || ts.isStringLiteral(key) ? key.text : "?";
}

/**
 * Returns the function outside of the generator that old targets make of an async body. The parameters are those of the outer function. The
 * generator is an argument of a call, or part of its callee if a minifier inlined a helper: `(fn = function* () {}, () => {})()`.
 */
export function functionAround(
  ts: Parser,
  owner: TS.SignatureDeclaration,
): TS.SignatureDeclaration | undefined {
  const { asteriskToken } = owner as Partial<TS.FunctionExpression>;
  if (asteriskToken === undefined) return undefined;
  let node: TS.Node = owner.parent;
  while (
    ts.isParenthesizedExpression(node) ||
    ts.isBinaryExpression(node) ||
    ts.isPropertyAccessExpression(node)
  ) {
    node = node.parent;
  }
  if (!ts.isCallExpression(node)) return undefined;
  for (; !ts.isSourceFile(node); node = node.parent) if (ts.isFunctionLike(node)) return node;
  return undefined;
}

/** The parts of an expression, or of a body, that no minifier changes. */
export interface Essence {
  /** The parameters and members that it reads, in the order in which it first reads them. */
  readonly reads: string;
  /**
   * Its literals, joined, because a minifier may merge several into one. A {@link HOLE} stands for each name from outside of the function,
   * because a minifier may put a literal there.
   */
  readonly literals: string;
}

const HOLE = "\0";

export function isSameEssence(expected: Essence, found: Essence | undefined): boolean {
  if (found?.reads !== expected.reads) return false;
  let at = 0;
  const pieces = expected.literals.split(HOLE);
  return pieces.every((piece, index) => {
    const isLast = index === pieces.length - 1;
    const start = isLast ? found.literals.length - piece.length : found.literals.indexOf(piece, at);
    const isThere = start >= at && found.literals.startsWith(piece, start) && (index > 0 || start === 0);
    at = start + piece.length;
    return isThere;
  });
}

/** @param isSkipped the parts that do not count */
export function essenceOf(
  ts: Parser,
  code: TS.Node,
  bindings: Bindings,
  isSkipped: (node: TS.Node) => boolean = () => false,
): Essence {
  const reads = new Set<string>();
  let literals = "";
  const visit = (node: TS.Node): void => {
    if (isSkipped(node)) return;
    const constant = constantOf(ts, node);
    if (constant !== undefined) {
      if (constant.value !== null) literals += String(constant.value); // `?.` may have become `void 0`.
    } else if (ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      literals += node.text;
    } else if (node.kind === ts.SyntaxKind.ThisKeyword) {
      reads.add(THIS);
    } else if (ts.isCallExpression(node) && isForeign(ts, node.expression, bindings)) {
      node.arguments.forEach(visit); // A call remains a call, whatever its name: `lockweave.jsonField(body, "id")`.
    } else if (isForeign(ts, node, bindings)) {
      literals += HOLE;
    } else if (ts.isIdentifier(node)) {
      const binding = bindings.get(node.text);
      if (binding !== undefined) reads.add(binding === THIS ? THIS : `parameter ${binding}`);
    } else if (ts.isPropertyAccessExpression(node)) {
      visit(node.expression);
      if (ts.isIdentifier(node.name)) reads.add(`.${node.name.text}`);
      else literals += HOLE; // Compilers rewrite `#name` for old targets.
    } else if (ts.isPropertyAssignment(node) && !ts.isComputedPropertyName(node.name)) {
      visit(node.initializer); // `{ id }` may have become `{ id: e }`.
    } else if (
      ts.isElementAccessExpression(node) &&
      typeof constantOf(ts, node.argumentExpression)?.value === "string"
    ) {
      visit(node.expression);
      reads.add(`.${String(constantOf(ts, node.argumentExpression)?.value)}`);
    } else {
      ts.forEachChild(node, visit);
    }
  };
  visit(code);
  return { reads: [...reads].join(" "), literals };
}

/** Whether the node is a name from outside of the function, or a member of one: `Status.Open`. A bundler may rename it. */
function isForeign(ts: Parser, node: TS.Node, bindings: Bindings): boolean {
  const inner = withoutParentheses(ts, node);
  if (ts.isPropertyAccessExpression(inner) || ts.isElementAccessExpression(inner)) {
    return isForeign(ts, inner.expression, bindings);
  }
  return ts.isIdentifier(inner) && !bindings.has(inner.text);
}
