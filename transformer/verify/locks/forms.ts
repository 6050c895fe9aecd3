import type * as TS from "typescript";
import type { Parser } from "../../parser/parser";
import { statementsOf } from "../../read/names";
import { kindOfTexts } from "../../read/template";
import { constantOf, withoutParentheses } from "./canonical";

// How compilers, bundlers, and minifiers write the woven code. Each row has a fixture in test/transformer/verify/forms.test.ts.

/** A form of a part of the woven code. */
interface Form {
  readonly example: string;
  /** The tools that write the part in this form. */
  readonly by: string;
}

interface FormOf<Found> extends Form {
  /** Returns what the node contains, or `undefined` if it does not have this form. */
  readonly read: (ts: Parser, node: TS.Node) => Found | undefined;
}

interface FormOfStatement extends Form {
  readonly fits: (ts: Parser, statement: TS.Statement) => boolean;
}

function readAny<Found>(forms: readonly FormOf<Found>[], ts: Parser, node: TS.Node): Found | undefined {
  for (const { read } of forms) {
    const found = read(ts, node);
    if (found !== undefined) return found;
  }
  return undefined;
}

// ---- the call of a step -----------------------------------------------------------------------------------

/** A bundler may replace `lockweave.acquire` by a name of its own, so every plain name counts, and only its place shows the step. */
const ANY_NAME = Symbol("any name");

/** The length of the short name of an export. The names of all steps are longer. */
const LONGEST_SHORT_NAME = 2;

const CALLEES: readonly FormOf<string | typeof ANY_NAME>[] = [
  {
    example: "acquire(lock)",
    by: "bundlers, which rename imports",
    read: (ts, node) => (ts.isIdentifier(node) ? ANY_NAME : undefined),
  },
  {
    example: "r.Xc(lock)",
    by: "webpack and Rspack, which shorten the names of exports if the runtime is in the bundle",
    read: (ts, node) =>
      ts.isPropertyAccessExpression(node) &&
      ts.isIdentifier(node.expression) &&
      node.name.text.length <= LONGEST_SHORT_NAME
        ? ANY_NAME
        : undefined,
  },
  {
    example: "lockweave.acquire(lock)",
    by: "Lockweave, and compilers",
    read: (ts, node) => (ts.isPropertyAccessExpression(node) ? node.name.text : undefined),
  },
  {
    example: 'lockweave["acquire"](lock)',
    by: "minifiers that keep the names of properties",
    read: (ts, node) => {
      const name = ts.isElementAccessExpression(node) && constantOf(ts, node.argumentExpression)?.value;
      return typeof name === "string" ? name : undefined;
    },
  },
  {
    example: "(0, lockweave.acquire)(lock)",
    by: "compilers to CommonJS",
    read: (ts, node) =>
      ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.CommaToken
        ? calleeOf(ts, node.right)
        : undefined,
  },
];

function calleeOf(ts: Parser, node: TS.Node): string | typeof ANY_NAME | undefined {
  return readAny(CALLEES, ts, withoutParentheses(ts, node as TS.Expression));
}

/** Whether the callee is this step. */
export function namesStep(ts: Parser, node: TS.Expression, name: string): boolean {
  const callee = calleeOf(ts, node);
  return callee === ANY_NAME || callee === name;
}

const AWAITS: readonly FormOf<TS.Expression>[] = [
  {
    example: "await lockweave.acquire(lock)",
    by: "Lockweave, and compilers for es2017 or later",
    read: (ts, node) => (ts.isAwaitExpression(node) ? withoutParentheses(ts, node.expression) : undefined),
  },
  {
    example: "yield lockweave.acquire(lock)",
    by: "compilers for es2015",
    read: yieldedValue,
  },
  {
    example: "yield __await(lockweave.acquire(lock))",
    by: "compilers of async generators for es2017",
    read: (ts, node) => {
      const value = yieldedValue(ts, node);
      const isWrapped = value !== undefined && (ts.isCallExpression(value) || ts.isNewExpression(value));
      const [inner, another] = isWrapped ? (value.arguments ?? []) : [];
      return inner === undefined || another !== undefined ? undefined : withoutParentheses(ts, inner);
    },
  },
  {
    example: "yield new Action(Kind.AWAIT_VALUE, lockweave.acquire(lock))",
    by: "Closure Compiler, for async generators",
    read: (ts, node) => {
      const value = yieldedValue(ts, node);
      const [kind, inner, another] = (value && ts.isNewExpression(value) && value.arguments) || [];
      const isAwait = kind && ts.isPropertyAccessExpression(kind) && kind.name.text === "AWAIT_VALUE";
      return isAwait && inner && another === undefined ? withoutParentheses(ts, inner) : undefined;
    },
  },
];

function yieldedValue(ts: Parser, node: TS.Node): TS.Expression | undefined {
  if (!ts.isYieldExpression(node) || node.asteriskToken || node.expression === undefined) return undefined;
  return withoutParentheses(ts, node.expression);
}

/** Returns what is awaited. Several forms may fit. */
export function awaitedValues(ts: Parser, node: TS.Expression): TS.Expression[] {
  const waiting = withoutParentheses(ts, node);
  return AWAITS.flatMap(({ read }) => read(ts, waiting) ?? []);
}

// ---- the call that opens the lock -------------------------------------------------------------------------

interface Opened {
  readonly lock: string;
  readonly statement: TS.Statement;
  /** What the same statement evaluates first. */
  readonly first?: TS.Expression;
}

const OPENINGS: readonly FormOf<Opened>[] = [
  {
    example: "const lock = lockweave.open(...);",
    by: "Lockweave, and compilers",
    read: (ts, call) => {
      const declared = declaredBy(ts, call);
      return declared !== undefined && ts.isVariableStatement(declared.statement) ? declared : undefined;
    },
  },
  {
    example: "for (var lock = lockweave.open(...); !(await lockweave.acquire(lock)); )",
    by: "minifiers",
    read: (ts, call) => {
      const declared = declaredBy(ts, call);
      if (declared === undefined || !ts.isForStatement(declared.statement)) return undefined;
      const isVar = (declared.list.flags & ts.NodeFlags.BlockScoped) === 0; // Otherwise, the other steps do not see it.
      return isVar ? declared : undefined;
    },
  },
  {
    example: "lock = lockweave.open(...);",
    by: "compilers for old targets, which declare the variable separately",
    read: (ts, { parent }) => {
      if (!ts.isBinaryExpression(parent) || !ts.isExpressionStatement(parent.parent)) return undefined;
      return assignedBy(ts, parent, parent.parent);
    },
  },
  {
    example: "for (lock = lockweave.open(...); !(await lockweave.acquire(lock)); )",
    by: "Closure Compiler, which uses an unused parameter again",
    read: (ts, { parent }) => {
      if (!ts.isBinaryExpression(parent) || !ts.isForStatement(parent.parent)) return undefined;
      return parent.parent.initializer === parent ? assignedBy(ts, parent, parent.parent) : undefined;
    },
  },
  {
    example: "lockweave.needs(...), lock = lockweave.open(...);",
    by: "minifiers, for old targets",
    read: (ts, { parent: assigned }) => {
      const merged = assigned.parent;
      if (!ts.isBinaryExpression(assigned) || !ts.isIdentifier(assigned.left)) return undefined;
      if (assigned.operatorToken.kind !== ts.SyntaxKind.EqualsToken || !ts.isBinaryExpression(merged))
        return undefined;
      const isComma = merged.operatorToken.kind === ts.SyntaxKind.CommaToken;
      if (!isComma || merged.right !== assigned || !ts.isExpressionStatement(merged.parent)) return undefined;
      return { lock: assigned.left.text, statement: merged.parent, first: merged.left };
    },
  },
];

/** Returns the variable that gets the lock, and the statement that sets it. */
export function openedIn(ts: Parser, call: TS.Expression): Opened | undefined {
  return readAny(OPENINGS, ts, call);
}

function assignedBy(ts: Parser, assigned: TS.BinaryExpression, statement: TS.Statement): Opened | undefined {
  const { left, operatorToken } = assigned;
  const isAssigned = operatorToken.kind === ts.SyntaxKind.EqualsToken && ts.isIdentifier(left);
  return isAssigned ? { lock: left.text, statement } : undefined;
}

function declaredBy(
  ts: Parser,
  { parent }: TS.Node,
): (Opened & { readonly list: TS.VariableDeclarationList }) | undefined {
  if (!ts.isVariableDeclaration(parent) || !ts.isIdentifier(parent.name)) return undefined;
  const list = parent.parent;
  if (!ts.isVariableDeclarationList(list)) return undefined;
  const isLast = list.declarations.slice(list.declarations.indexOf(parent) + 1).every(isEmptyDeclaration);
  const isPrepared = list.declarations.every((other) => other === parent || !waits(ts, other));
  const statement = list.parent;
  if (!isLast || !isPrepared) return undefined;
  if (!ts.isVariableStatement(statement) && !ts.isForStatement(statement)) return undefined;
  return { lock: parent.name.text, statement, list };
}

function isEmptyDeclaration({ initializer }: TS.VariableDeclaration): boolean {
  return initializer === undefined;
}

const TEMPLATES: readonly FormOf<WovenTemplate>[] = [
  {
    example: "lockweave.wholeKey`mutex:${orderNo}`",
    by: "Lockweave, and compilers for es2015 or later",
    read: (ts, node) => {
      if (!ts.isTaggedTemplateExpression(node) || !namesStep(ts, node.tag, "wholeKey")) return undefined;
      const { template } = node;
      if (ts.isNoSubstitutionTemplateLiteral(template)) return { kind: template.text, values: [] };
      const { head, templateSpans: spans } = template;
      const texts = [head.text, ...spans.map(({ literal }) => literal.text)];
      return { kind: kindOfTexts(texts), values: spans.map((span) => span.expression) };
    },
  },
  {
    example: 'lockweave.wholeKey(_a || (_a = __makeTemplateObject(["mutex:", ""], ["mutex:", ""])), orderNo)',
    by: "compilers for old targets",
    read: (ts, node) => {
      if (!ts.isCallExpression(node) || !namesStep(ts, node.expression, "wholeKey")) return undefined;
      const [object, ...values] = node.arguments;
      const texts = object && textsIn(ts, object);
      return texts?.length === values.length + 1 ? { kind: kindOfTexts(texts), values } : undefined;
    },
  },
];

export interface WovenTemplate {
  readonly kind: string;
  readonly values: readonly TS.Expression[];
}

/** Reads the template of a whole key. */
export function templateOf(ts: Parser, expression: TS.Expression): WovenTemplate | undefined {
  return readAny(TEMPLATES, ts, withoutParentheses(ts, expression));
}

/** Returns the texts in `_a || (_a = __makeTemplateObject(["mutex:", ""], ["mutex:", ""]))`. */
function textsIn(ts: Parser, node: TS.Node): string[] | undefined {
  if (!ts.isArrayLiteralExpression(node)) return ts.forEachChild(node, (child) => textsIn(ts, child));
  const texts = node.elements.map((element) => constantOf(ts, element)?.value);
  return texts.every((text) => typeof text === "string") ? texts : undefined;
}

// ---- code before the lock ---------------------------------------------------------------------------------

/** The statements that may precede the call that opens the lock. */
const PREPARATIONS: readonly FormOfStatement[] = [
  {
    example: '"use strict";',
    by: "authors, as a directive",
    fits: (ts, statement) => ts.isExpressionStatement(statement) && ts.isStringLiteral(statement.expression),
  },
  {
    example: "var { id } = _a;",
    by: "compilers, for parameters and variables of their own",
    fits: (ts, statement) =>
      ts.isVariableStatement(statement) && !isUsing(ts, statement) && !waits(ts, statement),
  },
  {
    example: "if (limit === void 0) { limit = 5; }",
    by: "compilers for old targets, for the default of a parameter",
    fits: (ts, statement) => isDefault(ts, statement) && !waits(ts, statement),
  },
  {
    example: "limit = limit === void 0 ? 5 : limit;",
    by: "Closure Compiler, for the default of a parameter",
    fits: (ts, statement) => isDefaultOrItself(ts, statement) && !waits(ts, statement),
  },
];

/** Whether the statement may precede the call that opens the lock. */
export function isPreparation(ts: Parser, statement: TS.Statement): boolean {
  return PREPARATIONS.some(({ fits }) => fits(ts, statement));
}

/** Whether the statement only declares variables without values, as a minifier does for a function that it moved into the body. */
export function declaresOnly(ts: Parser, statement: TS.Statement): boolean {
  if (!ts.isVariableStatement(statement) || isUsing(ts, statement)) return false;
  return statement.declarationList.declarations.every(isEmptyDeclaration);
}

/** Whether something happens to the variables at the end of their block. */
function isUsing(ts: Parser, { declarationList }: TS.VariableStatement): boolean {
  return (declarationList.flags & ts.NodeFlags.Using) !== 0;
}

/** Whether the statement sets a default: `if (limit === void 0) { limit = 5; }`. */
function isDefault(ts: Parser, statement: TS.Statement): boolean {
  if (!ts.isIfStatement(statement) || statement.elseStatement !== undefined) return false;
  const { expression: condition, thenStatement } = statement;
  const only = onlyStatement(ts, thenStatement);
  if (only === undefined || !ts.isExpressionStatement(only)) return false;
  const { expression: assigned } = only;
  if (!ts.isBinaryExpression(assigned)) return false;
  const isAssignment = assigned.operatorToken.kind === ts.SyntaxKind.EqualsToken;
  return isAssignment && isMissing(ts, condition, assigned.left);
}

/** Whether the statement sets a default: `limit = limit === void 0 ? 5 : limit`. */
function isDefaultOrItself(ts: Parser, statement: TS.Statement): boolean {
  if (!ts.isExpressionStatement(statement) || !ts.isBinaryExpression(statement.expression)) return false;
  const { left, operatorToken, right } = statement.expression;
  if (operatorToken.kind !== ts.SyntaxKind.EqualsToken) return false;
  if (!ts.isConditionalExpression(right) || !isMissing(ts, right.condition, left)) return false;
  return ts.isIdentifier(left) && isNamed(ts, right.whenFalse, left.text);
}

/** Whether the condition is `limit === void 0` for this name. */
function isMissing(ts: Parser, condition: TS.Expression, name: TS.Expression): boolean {
  return (
    ts.isBinaryExpression(condition) &&
    condition.operatorToken.kind === ts.SyntaxKind.EqualsEqualsEqualsToken &&
    ts.isIdentifier(condition.left) &&
    isNamed(ts, name, condition.left.text) &&
    constantOf(ts, condition.right)?.value === null
  );
}

/** Whether the code waits, other than in functions inside of it. */
export function waits(ts: Parser, node: TS.Node): boolean {
  if (ts.isFunctionLike(node)) return false;
  if (ts.isAwaitExpression(node) || ts.isYieldExpression(node)) return true;
  return ts.forEachChild(node, (child) => waits(ts, child) || undefined) ?? false;
}

// ---- code before the body ---------------------------------------------------------------------------------

/** The statements that run nothing, and so may precede the first step inside the lock. */
const INERT: readonly FormOfStatement[] = [
  {
    example: "function inner() { work(); }",
    by: "terser and swc, which move functions up",
    fits: (ts, statement) => ts.isFunctionDeclaration(statement),
  },
  {
    example: "let inner2 = function () { work(); }, inner = inner2, other;",
    by: "esbuild, and compilers for `using`: `const env = { stack: [], error: void 0 };`",
    fits: (ts, statement) =>
      ts.isVariableStatement(statement) &&
      statement.declarationList.declarations.every(
        ({ name, initializer }) =>
          ts.isIdentifier(name) && (initializer === undefined || isInertValue(ts, initializer)),
      ),
  },
  {
    example: "void arguments;",
    by: "Lockweave, for an extracted body",
    fits: (ts, statement) => ts.isExpressionStatement(statement) && keepsArguments(ts, statement.expression),
  },
];

const KEPT_NAMES: readonly FormOfStatement[] = [
  {
    example: '__name(inner, "inner");',
    by: "esbuild with `keepNames`",
    fits: (ts, statement) => ts.isExpressionStatement(statement) && keepsName(ts, statement.expression),
  },
];

/** Whether the expression is `void arguments`, with any name. A minifier may omit `void`. */
export function keepsArguments(ts: Parser, node: TS.Expression): boolean {
  return ts.isIdentifier(ts.isVoidExpression(node) ? node.expression : node);
}

/** Whether the statement runs nothing. */
export function isInert(ts: Parser, statement: TS.Statement): boolean {
  return INERT.some(({ fits }) => fits(ts, statement));
}

/** Whether the statement runs nothing of the body. */
export function precedesBody(ts: Parser, statement: TS.Statement): boolean {
  return [...INERT, ...KEPT_NAMES].some(({ fits }) => fits(ts, statement));
}

/** Whether the call is esbuild's `__name(inner, "inner")` for a function in the block, whatever the name of that helper is. */
export function keepsName(ts: Parser, node: TS.Node): boolean {
  if (!ts.isCallExpression(node)) return false;
  const { expression: callee } = node;
  const [fn, name, another] = node.arguments;
  if (!ts.isIdentifier(callee) || fn === undefined || !ts.isIdentifier(fn) || another !== undefined)
    return false;
  if (name === undefined || !ts.isStringLiteralLike(name)) return false;
  for (let scope: TS.Node = node.parent; ; scope = scope.parent) {
    const declared = statementsOf(ts, scope)
      .filter(ts.isVariableStatement)
      .flatMap(({ declarationList }) => declarationList.declarations)
      .find((each) => ts.isIdentifier(each.name) && each.name.text === callee.text);
    if (declared !== undefined)
      return declared.initializer !== undefined && isNameKeeper(ts, declared.initializer);
    if (ts.isSourceFile(scope)) return false;
  }
}

/** Whether the helper is `(target, value) => defineProperty(target, "name", { value, configurable: true })`. */
function isNameKeeper(ts: Parser, helper: TS.Expression): boolean {
  if (!ts.isArrowFunction(helper) || ts.isBlock(helper.body)) return false;
  const call = withoutParentheses(ts, helper.body);
  if (!ts.isCallExpression(call)) return false;
  const [, name, descriptor] = call.arguments;
  if (name === undefined || constantOf(ts, name)?.value !== "name") return false;
  if (descriptor === undefined || !ts.isObjectLiteralExpression(descriptor)) return false;
  const entries = descriptor.properties.map((each) => each.name?.getText());
  return entries.join() === "value,configurable";
}

/** Whether the value runs nothing: `function () {}`, the name of one, or what compilers add for `using`: `{ stack: [], error: void 0 }`. */
function isInertValue(ts: Parser, value: TS.Expression): boolean {
  const inner = withoutParentheses(ts, value);
  if (ts.isArrayLiteralExpression(inner)) return inner.elements.length === 0;
  if (ts.isObjectLiteralExpression(inner)) {
    return inner.properties.every(
      (each) =>
        ts.isPropertyAssignment(each) && ts.isIdentifier(each.name) && isInertValue(ts, each.initializer),
    );
  }
  return (
    ts.isFunctionExpression(inner) ||
    ts.isArrowFunction(inner) ||
    ts.isIdentifier(inner) ||
    constantOf(ts, inner) !== undefined
  );
}

/**
 * Whether an argument of a step runs nothing: the class of an error, or the function with the body. For old targets, compilers pass that
 * function through a helper: `asyncToGenerator(function* () {})`.
 */
export function runsNothing(ts: Parser, argument: TS.Expression): boolean {
  const inner = withoutParentheses(ts, argument);
  if (ts.isCallExpression(inner)) {
    const { expression: callee, arguments: values } = inner;
    if (ts.isPropertyAccessExpression(callee) && callee.name.text === "bind")
      return runsNothing(ts, callee.expression);
    const isHelper = ts.isIdentifier(callee) || ts.isPropertyAccessExpression(callee);
    return isHelper && values.length === 1 && values.some((one) => ts.isFunctionLike(one));
  }
  const isMember =
    ts.isPropertyAccessExpression(inner) ||
    (ts.isElementAccessExpression(inner) &&
      typeof constantOf(ts, inner.argumentExpression)?.value === "string");
  if (isMember) {
    const object = withoutParentheses(ts, inner.expression);
    const isModule = // webpack: `errors().Busy`
      ts.isCallExpression(object) && object.arguments.length === 0 && ts.isIdentifier(object.expression);
    return isModule || runsNothing(ts, object);
  }
  if (ts.isBinaryExpression(inner)) {
    const isComma = inner.operatorToken.kind === ts.SyntaxKind.CommaToken; // `(0, errors.Busy)`
    return isComma && runsNothing(ts, inner.left) && runsNothing(ts, inner.right);
  }
  return isInertValue(ts, inner);
}

// ---- what all forms share ---------------------------------------------------------------------------------

export function isNamed(ts: Parser, node: TS.Expression | undefined, name: string): boolean {
  const inner = node && withoutParentheses(ts, node);
  return inner !== undefined && ts.isIdentifier(inner) && inner.text === name;
}

export function onlyStatement(ts: Parser, statement: TS.Statement): TS.Statement | undefined {
  if (!ts.isBlock(statement)) return statement;
  const [only, another] = statement.statements;
  return another === undefined ? only : undefined;
}

/** All forms, for a test that has a fixture for each. */
export const FORMS: readonly Form[] = [
  ...CALLEES,
  ...AWAITS,
  ...OPENINGS,
  ...TEMPLATES,
  ...PREPARATIONS,
  ...INERT,
  ...KEPT_NAMES,
];
