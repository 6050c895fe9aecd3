import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { statementsOf } from "../read/scopes";
import { kindOfTexts } from "../read/template";
import { bindingsOf, canonical, constantOf, essenceOf, withoutParentheses, type Essence } from "./canonical";

/** The woven code around the body of a function, as found in compiled code. */
export interface Lock {
  readonly site: string;
  /** The file that contains it. */
  readonly file: string;
  /** The entries of the site's object, sorted by name. */
  readonly options: ReadonlyMap<string, unknown>;
  /** The exact text of the function's place, of the call that opens the lock, and of the steps around the body. */
  readonly exact: string;
  /** The part that no minifier changes: the options, and what happens on failure. */
  readonly loose: string;
  /** The part that no minifier changes of each part of the key, and of the condition, if there is one. */
  readonly key: readonly Essence[];
  /** The body without the names in it. It distinguishes copies of one function from two functions. */
  readonly body: string;
  /** The number of returns that do not wait for their value, which may be a promise. */
  readonly unawaited: number;
  /** The number of returns that wait for nothing, whatever their value. For example, a compiler may make a call of `{ ...a }`. */
  readonly immediate: number;
}

/** The locks in the code, and the sites whose lock is opened without the required steps around a body. */
export interface Locks {
  readonly locks: readonly Lock[];
  readonly broken: readonly string[];
}

/** Finds the locks in compiled JavaScript from any tool, minified or not. Comments and strings do not count. */
export function locksIn(ts: Parser, fileName: string, text: string): Locks {
  const locks: Lock[] = [];
  const broken: string[] = [];
  if (!/\bsite\b/.test(text)) return { locks, broken };
  const file = ts.createSourceFile(
    fileName,
    text,
    { languageVersion: ts.ScriptTarget.Latest, jsDocParsingMode: ts.JSDocParsingMode.ParseNone },
    true,
  );
  const visit = (node: TS.Node): void => {
    const args = ts.isCallExpression(node) ? siteOf(ts, node) : undefined;
    const site = args?.options.get("site");
    if (ts.isCallExpression(node) && args !== undefined && typeof site === "string") {
      const { options, key } = args;
      const steps = stepsAround(ts, node);
      const beginsAsExpected =
        options.get("reentrant") === true || options.get("mode") === "read" ? beginsReentrant : beginsHeld;
      const isInside = steps !== undefined && beginsAsExpected(ts, steps);
      if (isInside) locks.push(lockOf(ts, file, key, site, options, steps));
      else broken.push(site);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { locks, broken };
}

/** The arguments of `open`. */
interface OpenArguments {
  /** The entries of the site's object. A whole key is there without its values. */
  readonly options: ReadonlyMap<string, unknown>;
  /** The expressions of the values in the key. */
  readonly key: readonly TS.Expression[];
}

function siteOf(ts: Parser, { arguments: [object, ...parts] }: TS.CallExpression): OpenArguments | undefined {
  if (object === undefined || !ts.isObjectLiteralExpression(object)) return undefined;
  const entries = new Map<string, unknown>();
  let key: readonly TS.Expression[] = parts;
  for (const property of object.properties) {
    if (!ts.isPropertyAssignment(property)) return undefined;
    const { name, initializer } = property;
    if (!ts.isIdentifier(name) && !ts.isStringLiteral(name)) return undefined;
    const template = name.text === "key" ? templateOf(ts, initializer) : undefined;
    const constant = template === undefined ? constantOf(ts, initializer) : { value: template.kind };
    if (constant === undefined) return undefined;
    entries.set(name.text, constant.value);
    if (template !== undefined) key = template.values;
  }
  const namespace = entries.get("businessFlag") ?? entries.get("key");
  if (typeof entries.get("site") !== "string" || typeof namespace !== "string") return undefined;
  return { options: new Map([...entries].toSorted(([a], [b]) => (a < b ? -1 : 1))), key };
}

interface WovenTemplate {
  readonly kind: string;
  readonly values: readonly TS.Expression[];
}

/** Reads ``lockweave.wholeKey`mutex:${orderNo}` ``. For old targets, compilers make a call of it, with the texts as the first argument. */
function templateOf(ts: Parser, expression: TS.Expression): WovenTemplate | undefined {
  const node = withoutParentheses(ts, expression);
  if (ts.isTaggedTemplateExpression(node) && namesStep(ts, node.tag, "wholeKey")) {
    const { template } = node;
    if (ts.isNoSubstitutionTemplateLiteral(template)) return { kind: template.text, values: [] };
    const { head, templateSpans: spans } = template;
    const texts = [head.text, ...spans.map(({ literal }) => literal.text)];
    return { kind: kindOfTexts(texts), values: spans.map((span) => span.expression) };
  }
  if (!ts.isCallExpression(node) || !namesStep(ts, node.expression, "wholeKey")) return undefined;
  const [object, ...values] = node.arguments;
  const texts = object && textsIn(ts, object);
  return texts?.length === values.length + 1 ? { kind: kindOfTexts(texts), values } : undefined;
}

/** Returns the texts in `_a || (_a = __makeTemplateObject(["mutex:", ""], ["mutex:", ""]))`. */
function textsIn(ts: Parser, node: TS.Node): string[] | undefined {
  if (!ts.isArrayLiteralExpression(node)) return ts.forEachChild(node, (child) => textsIn(ts, child));
  const texts = node.elements.map((element) => constantOf(ts, element)?.value);
  return texts.every((text) => typeof text === "string") ? texts : undefined;
}

// ---- the steps around a body ----------------------------------------------------------------------------

/**
 *     ...                                          code of the compiler's own: directives, `var _a;`
 *     const lock = lockweave.open(...);            opening, or with a condition `when(...) ? open(...) : unlocked()`
 *     while (!(await lockweave.acquire(lock)))     loop
 *       await lockweave.retryCheck(lock);
 *     try { lockweave.assertHeld(lock); BODY }     or runReentrant, if the body is reentrant
 *     catch (error) { throw lockweave.fail(lock, error); }
 *     finally { await lockweave.release(lock); }
 */
interface Steps {
  readonly owner: TS.SignatureDeclaration;
  readonly lock: string;
  readonly before: readonly TS.Statement[];
  readonly opening: TS.Statement;
  /** The condition of the lock. */
  readonly when: TS.Expression | undefined;
  readonly loop: TS.WhileStatement | TS.ForStatement;
  readonly retry: Retry;
  readonly tried: TS.TryStatement;
}

/** Returns the steps around the call, or `undefined` if they are not all that the function does. */
function stepsAround(ts: Parser, call: TS.CallExpression): Steps | undefined {
  const conditional = conditionalOf(ts, call);
  const opened = openedIn(ts, conditional?.whole ?? call);
  if (opened === undefined || !namesStep(ts, call.expression, "open")) return undefined;
  const { lock, statement } = opened;
  const block = statement.parent;
  if (!ts.isBlock(block) || !ts.isFunctionLike(block.parent)) return undefined;
  const index = block.statements.indexOf(statement);
  const isInFor = ts.isForStatement(statement);
  const [loop, tried, ...following] = block.statements.slice(isInFor ? index : index + 1);
  const before = block.statements.slice(0, index);
  if (following.length > 0 || !before.every((other) => isPreparation(ts, other))) return undefined;
  if (loop === undefined || tried === undefined || !ts.isTryStatement(tried)) return undefined;
  if (!ts.isWhileStatement(loop) && !ts.isForStatement(loop)) return undefined;
  const retry = acquires(ts, loop, lock, isInFor) ? retryIn(ts, loop.statement, lock) : undefined;
  if (retry === undefined || !endsWithRelease(ts, tried, lock)) return undefined;
  const when = conditional?.when;
  return { owner: block.parent, lock, before, opening: statement, when, loop, retry, tried };
}

/** Returns the whole `lockweave.when(...) ? lockweave.open(...) : lockweave.unlocked()` around the call that opens the lock. */
function conditionalOf(
  ts: Parser,
  call: TS.CallExpression,
): { readonly whole: TS.Expression; readonly when: TS.Expression } | undefined {
  const { parent: whole } = call;
  if (!ts.isConditionalExpression(whole) || whole.whenTrue !== call) return undefined;
  const condition = withoutParentheses(ts, whole.condition);
  const other = withoutParentheses(ts, whole.whenFalse);
  const isConditional =
    ts.isCallExpression(condition) &&
    namesStep(ts, condition.expression, "when") &&
    ts.isCallExpression(other) &&
    namesStep(ts, other.expression, "unlocked");
  const [when] = isConditional ? condition.arguments : [];
  return when && { whole, when };
}

/** Returns the variable that gets the lock, and the statement that sets it. */
function openedIn(ts: Parser, call: TS.Expression): { lock: string; statement: TS.Statement } | undefined {
  const { parent } = call;
  if (ts.isVariableDeclaration(parent) && ts.isIdentifier(parent.name)) {
    const list = parent.parent;
    if (!ts.isVariableDeclarationList(list)) return undefined;
    const isLast = list.declarations.slice(list.declarations.indexOf(parent) + 1).every(isEmptyDeclaration);
    const isPrepared = list.declarations.every((other) => other === parent || !waits(ts, other));
    const statement = list.parent;
    if (!isLast || !isPrepared) return undefined;
    if (!ts.isVariableStatement(statement) && !ts.isForStatement(statement)) return undefined;
    return { lock: parent.name.text, statement };
  }
  // For old targets, compilers declare the variable separately.
  if (!ts.isBinaryExpression(parent) || !ts.isExpressionStatement(parent.parent)) return undefined;
  const { left, operatorToken } = parent;
  const isAssigned = operatorToken.kind === ts.SyntaxKind.EqualsToken && ts.isIdentifier(left);
  return isAssigned ? { lock: left.text, statement: parent.parent } : undefined;
}

function isEmptyDeclaration({ initializer }: TS.VariableDeclaration): boolean {
  return initializer === undefined;
}

/** Whether the statement is a directive, or sets variables that the compiler needs for parameters or for itself. */
function isPreparation(ts: Parser, statement: TS.Statement): boolean {
  if (ts.isExpressionStatement(statement)) return ts.isStringLiteral(statement.expression);
  return (ts.isVariableStatement(statement) || isDefault(ts, statement)) && !waits(ts, statement);
}

/** Whether the statement sets a default: `if (limit === void 0) { limit = 5; }`. */
function isDefault(ts: Parser, statement: TS.Statement): boolean {
  if (!ts.isIfStatement(statement) || statement.elseStatement !== undefined) return false;
  const { expression: condition, thenStatement } = statement;
  const only = onlyStatement(ts, thenStatement);
  if (only === undefined || !ts.isExpressionStatement(only)) return false;
  const { expression: assigned } = only;
  if (!ts.isBinaryExpression(condition) || !ts.isBinaryExpression(assigned)) return false;
  return (
    condition.operatorToken.kind === ts.SyntaxKind.EqualsEqualsEqualsToken &&
    assigned.operatorToken.kind === ts.SyntaxKind.EqualsToken &&
    ts.isIdentifier(condition.left) &&
    isNamed(ts, assigned.left, condition.left.text) &&
    constantOf(ts, condition.right)?.value === null
  );
}

function waits(ts: Parser, node: TS.Node): boolean {
  if (ts.isFunctionLike(node)) return false;
  if (ts.isAwaitExpression(node) || ts.isYieldExpression(node)) return true;
  return ts.forEachChild(node, (child) => waits(ts, child) || undefined) ?? false;
}

function acquires(
  ts: Parser,
  loop: TS.WhileStatement | TS.ForStatement,
  lock: string,
  opensLock: boolean,
): boolean {
  if (ts.isForStatement(loop) && (loop.incrementor || (loop.initializer && !opensLock))) return false;
  const condition = ts.isWhileStatement(loop) ? loop.expression : loop.condition;
  return condition !== undefined && negates(ts, condition, "acquire", lock) !== undefined;
}

interface Retry {
  readonly action: "throw" | "skip";
  readonly failure: TS.Expression | undefined;
}

function retryIn(ts: Parser, statement: TS.Statement, lock: string): Retry | undefined {
  const only = onlyStatement(ts, statement);
  if (only !== undefined && ts.isExpressionStatement(only)) {
    const call = step(ts, only.expression, "retryCheck", lock);
    return call && { action: "throw", failure: call.arguments[1] };
  }
  if (only === undefined || !ts.isIfStatement(only) || only.elseStatement !== undefined) return undefined;
  const leave = onlyStatement(ts, only.thenStatement);
  if (leave === undefined || !ts.isReturnStatement(leave)) return undefined;
  const returned = leave.expression && (awaitedValues(ts, leave.expression).at(-1) ?? leave.expression);
  const isUndefined = returned === undefined || constantOf(ts, returned)?.value === null;
  const isChecked = negates(ts, only.expression, "retryCheck", lock) !== undefined;
  return isUndefined && isChecked ? { action: "skip", failure: undefined } : undefined;
}

/** Whether the `try` ends with `catch (error) { throw fail(lock, error); } finally { await release(lock); }`. */
function endsWithRelease(ts: Parser, { catchClause, finallyBlock }: TS.TryStatement, lock: string): boolean {
  const caught = catchClause?.variableDeclaration?.name;
  const thrown = catchClause && onlyStatement(ts, catchClause.block);
  const last = finallyBlock && onlyStatement(ts, finallyBlock);
  if (caught === undefined || !ts.isIdentifier(caught)) return false;
  if (thrown === undefined || !ts.isThrowStatement(thrown)) return false;
  const failed = withoutParentheses(ts, thrown.expression);
  if (!ts.isCallExpression(failed) || !namesStep(ts, failed.expression, "fail")) return false;
  const [first, second, ...others] = failed.arguments;
  const passesBoth = others.length === 0 && isNamed(ts, first, lock) && isNamed(ts, second, caught.text);
  if (!passesBoth || last === undefined || !ts.isExpressionStatement(last)) return false;
  return step(ts, last.expression, "release", lock) !== undefined;
}

/**
 * Whether the body begins with `assertHeld`. A minifier may merge that step with the first one of the body: `return assertHeld(lock),
 * value`. Bundlers and compilers may put code before it that runs nothing of the body: functions of the body, `let x;`, or the `try` of a
 * `using`.
 */
function beginsHeld(ts: Parser, { tried, lock }: Steps): boolean {
  return beginsWith(ts, tried.tryBlock, lock);
}

function beginsWith(ts: Parser, block: TS.Block, lock: string): boolean {
  const [first, ...others] = block.statements.filter(
    (statement) =>
      !isInert(ts, statement) &&
      !(ts.isExpressionStatement(statement) && keepsName(ts, statement.expression)),
  );
  // Its `catch` does not matter, because nothing follows it.
  if (first !== undefined && ts.isTryStatement(first))
    return others.length === 0 && beginsWith(ts, first.tryBlock, lock);
  const { expression, initializer } = (first ?? {}) as Partial<TS.ExpressionStatement & TS.ForStatement>;
  const earliest = earliestOf(ts, expression ?? initializer);
  if (earliest === undefined || !ts.isCallExpression(earliest)) return false;
  return namesStep(ts, earliest.expression, "assertHeld") && isNamed(ts, earliest.arguments[0], lock);
}

/** Whether the call is esbuild's `__name(inner, "inner")` for a function in the block, whatever the name of that helper is. */
function keepsName(ts: Parser, node: TS.Node): boolean {
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

/** Whether the statement runs nothing: it only declares names, or is the `void arguments` of an extracted body. */
function isInert(ts: Parser, statement: TS.Statement): boolean {
  if (ts.isExpressionStatement(statement) && ts.isVoidExpression(statement.expression))
    return ts.isIdentifier(statement.expression.expression);
  if (ts.isFunctionDeclaration(statement)) return true;
  if (!ts.isVariableStatement(statement)) return false;
  return statement.declarationList.declarations.every(
    ({ name, initializer }) =>
      ts.isIdentifier(name) && (initializer === undefined || isInertValue(ts, initializer)),
  );
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

/** Returns the part of the node that is evaluated first. */
function earliestOf(ts: Parser, node: TS.Node | undefined): TS.Node | undefined {
  if (node === undefined) return undefined;
  if (ts.isParenthesizedExpression(node)) return earliestOf(ts, node.expression);
  if (ts.isBinaryExpression(node)) {
    const first = earliestOf(ts, node.left);
    const isComma = node.operatorToken.kind === ts.SyntaxKind.CommaToken;
    return isComma && first !== undefined && keepsName(ts, first) ? earliestOf(ts, node.right) : first;
  }
  return ts.isConditionalExpression(node) ? earliestOf(ts, node.condition) : node;
}

/** Whether the body runs inside `runReentrant`, after copies of the parameters to which it assigns. */
function beginsReentrant(ts: Parser, { tried, lock }: Steps): boolean {
  const [only, another] = tried.tryBlock.statements.filter((statement) => !isInert(ts, statement));
  if (only === undefined || another !== undefined) return false;
  if (!ts.isReturnStatement(only) && !ts.isExpressionStatement(only)) return false;
  if (only.expression === undefined) return false;
  return step(ts, only.expression, "runReentrant", lock) !== undefined;
}

/** Returns the call of the runtime in `!(await lockweave.acquire(lock))`. */
function negates(ts: Parser, node: TS.Expression, name: string, lock: string): TS.CallExpression | undefined {
  const negated = withoutParentheses(ts, node);
  const isNegation =
    ts.isPrefixUnaryExpression(negated) && negated.operator === ts.SyntaxKind.ExclamationToken;
  return isNegation ? step(ts, negated.operand, name, lock) : undefined;
}

/** Returns the call of the runtime in `await lockweave.acquire(lock)`. */
function step(ts: Parser, node: TS.Expression, name: string, lock: string): TS.CallExpression | undefined {
  return awaitedValues(ts, node).find(
    (value): value is TS.CallExpression =>
      ts.isCallExpression(value) &&
      namesStep(ts, value.expression, name) &&
      isNamed(ts, value.arguments[0], lock),
  );
}

/** Returns what is awaited. For old targets, compilers write `yield value`, and `yield __await(value)` in async generators. */
function awaitedValues(ts: Parser, node: TS.Expression): TS.Expression[] {
  const waiting = withoutParentheses(ts, node);
  const isWaiting =
    ts.isAwaitExpression(waiting) || (ts.isYieldExpression(waiting) && !waiting.asteriskToken);
  if (!isWaiting || waiting.expression === undefined) return [];
  const value = withoutParentheses(ts, waiting.expression);
  if (!ts.isYieldExpression(waiting)) return [value];
  const isWrapped = ts.isCallExpression(value) || ts.isNewExpression(value);
  const [inner, another] = isWrapped ? (value.arguments ?? []) : [];
  return inner === undefined || another !== undefined ? [value] : [value, withoutParentheses(ts, inner)];
}

/**
 * Whether the callee is this step. A bundler may replace `lockweave.acquire` by a name of its own, so every plain name counts, and only its
 * place shows the step.
 */
function namesStep(ts: Parser, node: TS.Expression, name: string): boolean {
  const callee = withoutParentheses(ts, node);
  if (ts.isIdentifier(callee)) return true;
  if (ts.isPropertyAccessExpression(callee)) return callee.name.text === name;
  if (ts.isElementAccessExpression(callee)) {
    return constantOf(ts, callee.argumentExpression)?.value === name;
  }
  // `(0, lockweave.acquire)`
  return (
    ts.isBinaryExpression(callee) &&
    callee.operatorToken.kind === ts.SyntaxKind.CommaToken &&
    namesStep(ts, callee.right, name)
  );
}

function isNamed(ts: Parser, node: TS.Expression | undefined, name: string): boolean {
  const inner = node && withoutParentheses(ts, node);
  return inner !== undefined && ts.isIdentifier(inner) && inner.text === name;
}

function onlyStatement(ts: Parser, statement: TS.Statement): TS.Statement | undefined {
  if (!ts.isBlock(statement)) return statement;
  const [only, another] = statement.statements;
  return another === undefined ? only : undefined;
}

// ---- what is compared -----------------------------------------------------------------------------------

function lockOf(
  ts: Parser,
  file: TS.SourceFile,
  key: readonly TS.Expression[],
  site: string,
  options: ReadonlyMap<string, unknown>,
  steps: Steps,
): Lock {
  const { owner, before, opening, when, loop, retry, tried } = steps;
  const around = [...before, opening, loop, tried.catchClause, tried.finallyBlock];
  const exact = [pathTo(ts, owner), ...around.map((node) => canonical(ts, node))];
  const declared = [...before, opening]
    .filter(ts.isVariableStatement)
    .flatMap(({ declarationList }) => declarationList.declarations);
  const bindings = bindingsOf(ts, owner, declared);
  return {
    site,
    file: file.fileName,
    options,
    exact: exact.join("\n"),
    loose: JSON.stringify([[...options], retry.action, retry.failure !== undefined, when !== undefined]),
    key: [...key, ...(when === undefined ? [] : [when])].map((part) => essenceOf(ts, part, bindings)),
    body: canonical(ts, tried.tryBlock, { withNames: false }),
    unawaited: returnsOf(ts, owner, tried.tryBlock, mayBePromise),
    immediate: returnsOf(ts, owner, tried.tryBlock, isImmediate),
  };
}

/** Returns the place of the function in the file: the nodes around it, from the file inwards. */
function pathTo(ts: Parser, node: TS.Node): string {
  const labels: string[] = [];
  for (let at: TS.Node = node; !ts.isSourceFile(at); at = at.parent) {
    const { name } = at as { readonly name?: TS.Node };
    const label =
      name ?? (ts.isBinaryExpression(at) && node.pos >= at.operatorToken.end ? at.left : undefined);
    labels.push(`${at.kind} ${canonical(ts, label)}`);
  }
  return labels.toReversed().join(" > ");
}

function isAsyncGenerator(ts: Parser, owner: TS.SignatureDeclaration): boolean {
  const { asteriskToken, modifiers } = owner as Partial<TS.FunctionExpression>;
  const isAsync = modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword) ?? false;
  return isAsync && asteriskToken !== undefined;
}

type IsCounted = (ts: Parser, value: TS.Expression) => boolean;

/** Returns the number of returned values in the body that count. An async generator awaits all of them, so none counts. */
function returnsOf(ts: Parser, owner: TS.SignatureDeclaration, body: TS.Block, isCounted: IsCounted): number {
  if (isAsyncGenerator(ts, owner)) return 0;
  const countIn = (node: TS.Node): number => {
    if (ts.isFunctionLike(node)) return 0;
    let count = 0;
    if (ts.isReturnStatement(node) && node.expression !== undefined) {
      count += valuesOf(ts, node.expression).filter((value) => isCounted(ts, value)).length;
    }
    ts.forEachChild(node, (child) => void (count += countIn(child)));
    return count;
  };
  return countIn(body);
}

/** Returns the expressions one of which is the value of this one. */
function valuesOf(ts: Parser, expression: TS.Expression): TS.Expression[] {
  const value = withoutParentheses(ts, expression);
  if (ts.isConditionalExpression(value)) {
    return [value.whenTrue, value.whenFalse].flatMap((each) => valuesOf(ts, each));
  }
  if (ts.isBinaryExpression(value)) {
    const { SyntaxKind: Kind } = ts;
    const { kind } = value.operatorToken;
    if (kind === Kind.CommaToken) return valuesOf(ts, value.right);
    const isLogical = [Kind.AmpersandAmpersandToken, Kind.BarBarToken, Kind.QuestionQuestionToken];
    if (isLogical.includes(kind)) return [value.left, value.right].flatMap((each) => valuesOf(ts, each));
  }
  return [value];
}

function mayBePromise(ts: Parser, value: TS.Expression): boolean {
  const isUnknown =
    ts.isIdentifier(value) ||
    ts.isCallExpression(value) ||
    ts.isNewExpression(value) ||
    ts.isPropertyAccessExpression(value) ||
    ts.isElementAccessExpression(value) ||
    ts.isTaggedTemplateExpression(value);
  return isUnknown && constantOf(ts, value) === undefined;
}

function isImmediate(ts: Parser, value: TS.Expression): boolean {
  return (
    !ts.isAwaitExpression(value) && !ts.isYieldExpression(value) && constantOf(ts, value)?.value !== null
  );
}
