import type * as TS from "typescript";
import { problem } from "../../text/problems";
import type { Calls } from "../calls";
import { spotOf, tagOf, type Finding } from "../finding";
import { COLLECTS, isListUsed, listCalled } from "../promise-lists";
import { bare, CONTINUES, functionIn, type Callable } from "../syntax";
import type { TaggedLock } from "../tagged-locks";

/** Finds work that a locked body starts, and that nothing has waited for when the lock is released. */
export function outlivesLock(ts: typeof TS, locks: readonly TaggedLock[], calls: Calls): Finding[] {
  return locks.flatMap((lock) => {
    const reported = new Set<TS.Node>();
    return [...codeOf(ts, lock.fn, calls)].flatMap((node): Finding[] => {
      const started = startedBy(ts, node, lock.fn, calls);
      if (started === undefined || reported.has(started.by)) return [];
      reported.add(started.by);
      const at = spotOf(started.at);
      const found = problem("outlivesLock", at, started.what, lock.name);
      return [{ file: at.file, problem: found, isCertain: true, proof: [at, tagOf(lock)] }];
    });
  });
}

/**
 * Returns the nodes of the body, and of the callbacks inside it that it waits for. The callback of `new Promise` does not count. It
 * resolves the promise itself, so the body may wait for work there that has no `await`.
 */
function* codeOf(ts: typeof TS, fn: Callable, calls: Calls, seen = new Set<Callable>()): Iterable<TS.Node> {
  if (seen.has(fn)) return;
  seen.add(fn);
  yield* calls.nodesIn(fn);
  for (const { node, runs, isCallback, isWaited } of calls.in(fn)) {
    if (!isCallback || !isWaited || node.kind === ts.SyntaxKind.NewExpression) continue;
    for (const callback of runs) if (isInside(callback, fn)) yield* codeOf(ts, callback, calls, seen);
  }
}

interface Started {
  /** The expression that starts it. */
  readonly at: TS.Node;
  /** The call that is reported. If it does not wait for its callback, and nothing waits for the call itself, it is reported once. */
  readonly by: TS.Node;
  /** The problem, as the message describes it. */
  readonly what: string;
}

function startedBy(ts: typeof TS, node: TS.Node, fn: Callable, calls: Calls): Started | undefined {
  if (ts.isExpressionStatement(node)) return dropped(ts, node.expression, calls);
  if (ts.isVoidExpression(node)) return dropped(ts, node, calls); // `return void work()`, `() => void work()`
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.CommaToken) {
    return dropped(ts, node.left, calls);
  }
  if (ts.isAwaitExpression(node)) return awaitedAsList(ts, bare(ts, node.expression), calls);
  if (ts.isVariableDeclaration(node)) return unread(ts, node, calls) ?? unreadProperty(ts, node, calls);
  if (!ts.isCallExpression(node)) return undefined;
  return passedCallback(ts, node, calls) ?? startedLater(ts, node, fn, calls) ?? queued(ts, node, fn, calls);
}

/** Finds work that is started and dropped: `work();`, `void work();`, `items.map(async ...);`. */
function dropped(ts: typeof TS, statement: TS.Expression, calls: Calls): Started | undefined {
  const inner = bare(ts, statement);
  const value = ts.isVoidExpression(inner) ? bare(ts, inner.expression) : inner;
  if (ts.isBinaryExpression(value)) {
    return isAssignment(ts, value) ? unreadTarget(ts, value, calls) : dropped(ts, value.right, calls);
  }
  if (ts.isConditionalExpression(value)) {
    return dropped(ts, value.whenTrue, calls) ?? dropped(ts, value.whenFalse, calls);
  }
  const start = startIn(ts, value);
  if (start === undefined) return undefined;
  const how = value === inner ? "is not awaited" : "is `void`ed";
  if (calls.isPromise(value)) return { at: start, by: start, what: `\`${calleeText(ts, start)}\` ${how}` };
  if (start !== value || !isListOfStarted(start, calls)) return undefined;
  return { at: start, by: start, what: `The result of \`${calleeText(ts, start)}\` is not awaited` };
}

/** Finds `await items.map(work)` and `await [work()]`. `await` waits for a promise, and not for the promises in a list. */
function awaitedAsList(ts: typeof TS, value: TS.Expression, calls: Calls): Started | undefined {
  const what = "`await` does not wait for the promises in a list";
  if (ts.isArrayLiteralExpression(value)) {
    const start = startAmong(ts, value.elements, calls);
    return start && { at: start, by: start, what };
  }
  if (!ts.isCallExpression(value) || !isListOfStarted(value, calls)) return undefined;
  return { at: value, by: value, what };
}

/** Returns the call that starts a chain such as `work().then(...).catch(...)`. Work that was started elsewhere does not matter here. */
function startIn(ts: typeof TS, value: TS.Expression): TS.CallExpression | undefined {
  if (!ts.isCallExpression(value)) return undefined;
  const called = bare(ts, value.expression);
  if (!ts.isPropertyAccessExpression(called) || !CONTINUES.has(called.name.text)) return value;
  return startIn(ts, bare(ts, called.expression));
}

/**
 * Finds `const done = work();`, `const all = items.map(work);`, and `const all = [work()];`, if nothing uses the variable, except with
 * `void`.
 */
function unread(
  ts: typeof TS,
  { name, initializer, parent }: TS.VariableDeclaration,
  calls: Calls,
): Started | undefined {
  if (initializer === undefined || !ts.isIdentifier(name)) return undefined;
  const isUsing = /^(?:await\s+)?using\b/.test(parent.getText());
  const value = bare(ts, initializer);
  const start = ts.isArrayLiteralExpression(value)
    ? startAmong(ts, value.elements, calls)
    : startIn(ts, value);
  if (isUsing || start === undefined || isNamedElsewhere(ts, name, calls)) return undefined;
  const isStarted =
    ts.isArrayLiteralExpression(value) || calls.isPromise(value) || isListOfStarted(start, calls);
  return isStarted ? { at: start, by: start, what: `Nobody awaits \`${name.text}\`` } : undefined;
}

/** Finds `const job = { done: work() };`, if nothing reads `job.done`. Any use of `job` other than `job.other` counts as reading it. */
function unreadProperty(
  ts: typeof TS,
  { name, initializer }: TS.VariableDeclaration,
  calls: Calls,
): Started | undefined {
  const object = initializer && bare(ts, initializer);
  if (object === undefined || !ts.isObjectLiteralExpression(object) || !ts.isIdentifier(name))
    return undefined;
  for (const property of object.properties) {
    if (!ts.isPropertyAssignment(property) || !ts.isIdentifier(property.name)) continue;
    const start = startIn(ts, bare(ts, property.initializer));
    if (start === undefined || !calls.isPromise(property.initializer)) continue;
    const own = property.name.text;
    const isRead = calls.names
      .besides(name)
      .some((one) => one !== name && calls.variableOf(one)?.name === name && !readsOther(ts, one, own));
    if (!isRead) return { at: start, by: start, what: `Nobody awaits \`${name.text}.${own}\`` };
  }
  return undefined;
}

/** Whether a use of an object reads another property than this one, and does not call it. */
function readsOther(ts: typeof TS, { parent }: TS.Identifier, property: string): boolean {
  return (
    ts.isPropertyAccessExpression(parent) &&
    parent.name.text !== property &&
    !(ts.isCallExpression(parent.parent) && parent.parent.expression === parent)
  );
}

/** Finds `done = work();` and `this.#done = work();`, if no code reads the variable or the private field. */
function unreadTarget(
  ts: typeof TS,
  { left, right, operatorToken }: TS.BinaryExpression,
  calls: Calls,
): Started | undefined {
  const start = startIn(ts, bare(ts, right));
  if (start === undefined || operatorToken.kind !== ts.SyntaxKind.EqualsToken || !calls.isPromise(right))
    return undefined;
  const target = bare(ts, left);
  const isUnread = ts.isIdentifier(target)
    ? isUnreadVariable(ts, target, calls)
    : ts.isPropertyAccessExpression(target) &&
      calls.isPrivate(target.name) &&
      isUnreadMember(ts, calls.names.ofMember(target.name));
  return isUnread ? { at: start, by: start, what: `Nobody awaits \`${target.getText()}\`` } : undefined;
}

/** Whether no code reads the member with these names in its file. The result is cached for all writes to the member. */
function isUnreadMember(ts: typeof TS, names: readonly TS.MemberName[]): boolean {
  const isUnread = unreadMembers.get(names) ?? names.every((one) => isDeclaredOrWritten(ts, one));
  unreadMembers.set(names, isUnread);
  return isUnread;
}

/** By the names of the member, which {@link Calls.names} returns as one array. */
const unreadMembers = new WeakMap<readonly TS.MemberName[], boolean>();

function isUnreadVariable(ts: typeof TS, target: TS.Identifier, calls: Calls): boolean {
  const name = calls.variableOf(target)?.name;
  if (name === undefined || !ts.isIdentifier(name)) return false;
  const isUnread = unreadVariables.get(name) ?? isOnlyWritten(ts, name, calls);
  unreadVariables.set(name, isUnread);
  return isUnread;
}

/** By the name in the declaration. */
const unreadVariables = new WeakMap<TS.Identifier, boolean>();

function isOnlyWritten(ts: typeof TS, name: TS.Identifier, calls: Calls): boolean {
  const uses = calls.names.besides(name).filter((one) => calls.variableOf(one)?.name === name);
  // A variable of another file, or of the module that exports it, may be read elsewhere.
  const isLocal = ts.findAncestor(name, (node) => ts.isFunctionLike(node)) !== undefined;
  return isLocal && uses.every((one) => one === name || isDeclaredOrWritten(ts, one));
}

/** Whether the name is that of a declared field, or is only assigned to. */
function isDeclaredOrWritten(ts: typeof TS, name: TS.MemberName): boolean {
  if (ts.isPropertyDeclaration(name.parent)) return name.parent.name === name;
  const access: TS.Node =
    ts.isPropertyAccessExpression(name.parent) && name.parent.name === name ? name.parent : name;
  const { parent } = access;
  if (ts.isVoidExpression(parent)) return true;
  return (
    ts.isBinaryExpression(parent) &&
    parent.left === access &&
    parent.operatorToken.kind === ts.SyntaxKind.EqualsToken &&
    ts.isExpressionStatement(parent.parent)
  );
}

/** Returns the call in the first of the expressions that starts a promise. */
function startAmong(
  ts: typeof TS,
  expressions: readonly TS.Expression[],
  calls: Calls,
): TS.CallExpression | undefined {
  const starts = expressions.map((one) => startIn(ts, bare(ts, one)));
  return starts.find((start) => start !== undefined && calls.isPromise(start));
}

/**
 * Whether the call starts the promises in the list that it returns: `items.map(work)`. Promises that were in an array before were started
 * elsewhere.
 */
function isListOfStarted(call: TS.CallExpression, calls: Calls): boolean {
  const isMade = call.arguments.some((argument) => calls.returnsPromiseWhenCalled(argument));
  const type = isMade ? calls.elementOf(call) : undefined;
  return type !== undefined && calls.isPromiseType(type);
}

/** Finds an `async` callback whose callee does not wait for it, and a timer that writes. */
function passedCallback(ts: typeof TS, node: TS.CallExpression, calls: Calls): Started | undefined {
  const to = calleeText(ts, node);
  for (const argument of node.arguments) {
    // Node declares the callback of `nextTick` as any `Function`. The array methods take a promise for `true`.
    const isIgnored = to === "nextTick" || (PREDICATES.has(to) && calls.isOfLanguage(node));
    if (calls.returnsPromiseWhenCalled(argument) && (calls.dropsResult(argument) || isIgnored)) {
      return { at: argument, by: node, what: `\`${to}\` does not wait for its callback` };
    }
    const callback = functionIn(ts, argument);
    if (callback !== undefined && TIMERS.has(to) && writes(ts, callback) && !isCleared(ts, node)) {
      return { at: argument, by: node, what: `\`${to}\` writes after the release` };
    }
  }
  return undefined;
}

/** Finds `setTimeout(() => { void work(); })`, where the callback of a timer starts work that nothing waits for. */
function startedLater(
  ts: typeof TS,
  node: TS.CallExpression,
  fn: Callable,
  calls: Calls,
): Started | undefined {
  const timer = calleeText(ts, node);
  if (!TIMERS.has(timer) || isCleared(ts, node)) return undefined;
  for (const argument of node.arguments) {
    const callback = functionIn(ts, argument);
    if (callback === undefined || usesOutsideFunction(ts, callback, fn, calls)) continue;
    for (const inner of calls.nodesIn(callback)) {
      const started = startedBy(ts, inner, fn, calls);
      if (started !== undefined) return { ...started, by: node, what: `${started.what} in \`${timer}\`` };
    }
  }
  return undefined;
}

/** Whether a callback uses a function that the body got from elsewhere. The body may wait for a call of that function. */
function usesOutsideFunction(ts: typeof TS, callback: Callable, fn: Callable, calls: Calls): boolean {
  const visit = (node: TS.Node): boolean => {
    if (!ts.isIdentifier(node)) return ts.forEachChild(node, (child) => visit(child) || undefined) ?? false;
    const variable = calls.variableOf(node);
    if (variable === undefined || !isInside(variable, fn) || isInside(variable, callback)) return false;
    const isConst = (ts.getCombinedNodeFlags(variable) & ts.NodeFlags.Const) !== 0;
    const { initializer } = variable;
    const isOurs = isConst && initializer !== undefined && functionIn(ts, initializer) !== undefined;
    return !isOurs && calls.isFunction(node) && !calls.returnsPromiseWhenCalled(node);
  };
  return visit(callback.body);
}

/**
 * Finds `running.push(work())`, if the body does nothing else with `running`, or if `running` is a field that no code in the file awaits.
 */
function queued(ts: typeof TS, node: TS.CallExpression, fn: Callable, calls: Calls): Started | undefined {
  const called = bare(ts, node.expression);
  if (!ts.isPropertyAccessExpression(called) || !COLLECTS.has(called.name.text)) return undefined;
  const start = startAmong(ts, node.arguments, calls);
  if (start === undefined || !calls.isOfLanguage(node)) return undefined;
  const queue = bare(ts, called.expression);
  const list = ts.isIdentifier(queue) ? listCalled(ts, queue, calls) : undefined;
  const isForgotten =
    list === undefined
      ? ts.isPropertyAccessExpression(queue) && !isAwaited(ts, queue)
      : !isListUsed(ts, list, fn, calls);
  if (!isForgotten) return undefined;
  return { at: start, by: start, what: `No code awaits the promises in \`${queue.getText()}\`` };
}

function isAwaited(ts: typeof TS, queue: TS.Expression): boolean {
  const file = queue.getSourceFile();
  const text = awaitedTexts.get(file) ?? awaitedIn(ts, file);
  awaitedTexts.set(file, text);
  return text.includes(queue.getText());
}

const awaitedTexts = new WeakMap<TS.SourceFile, string>();

/** Returns the text of all expressions in the file that are awaited or returned. */
function awaitedIn(ts: typeof TS, file: TS.SourceFile): string {
  const texts: string[] = [];
  const visit = (node: TS.Node): void => {
    if (ts.isAwaitExpression(node) || ts.isReturnStatement(node)) texts.push(node.getText(file));
    else ts.forEachChild(node, visit);
  };
  visit(file);
  return texts.join("\0");
}

/** The methods of arrays whose callback returns `true` or `false`. */
const PREDICATES: ReadonlySet<string> = new Set([
  "every",
  "filter",
  "find",
  "findIndex",
  "findLast",
  "findLastIndex",
  "some",
]);

const TIMERS: ReadonlySet<string> = new Set([
  "nextTick",
  "queueMicrotask",
  "setImmediate",
  "setInterval",
  "setTimeout",
]);

/** Whether the callback assigns to anything other than a plain variable, such as a field. */
function writes(ts: typeof TS, callback: Callable): boolean {
  let isFound = false;
  const visit = (node: TS.Node): void => {
    isFound ||= ts.isBinaryExpression(node) && isAssignment(ts, node) && !ts.isIdentifier(node.left);
    ts.forEachChild(node, visit);
  };
  visit(callback.body);
  return isFound;
}

/** Whether the code keeps the handle that can stop the timer. `unref()` stops nothing. */
function isCleared(ts: typeof TS, timer: TS.CallExpression): boolean {
  let outer: TS.Expression = timer;
  while (
    ts.isPropertyAccessExpression(outer.parent) &&
    /^(?:un)?ref$/.test(outer.parent.name.text) &&
    ts.isCallExpression(outer.parent.parent)
  ) {
    outer = outer.parent.parent;
  }
  if (ts.isVoidExpression(outer.parent)) outer = outer.parent;
  return !ts.isExpressionStatement(outer.parent);
}

function isNamedElsewhere(ts: typeof TS, name: TS.Identifier, calls: Calls): boolean {
  return calls.names
    .besides(name)
    .some((one) => one !== name && !ts.isVoidExpression(one.parent) && calls.variableOf(one)?.name === name);
}

function isAssignment(ts: typeof TS, { operatorToken: { kind } }: TS.BinaryExpression): boolean {
  return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
}

function calleeText(ts: typeof TS, { expression }: TS.CallExpression): string {
  const called = bare(ts, expression);
  if (ts.isPropertyAccessExpression(called)) return called.name.text;
  const [line = "", another] = called.getText().split("\n");
  return another === undefined ? line : `${line} ...`;
}

function isInside(inner: TS.Node, outer: TS.Node): boolean {
  return inner.getSourceFile() === outer.getSourceFile() && outer.pos <= inner.pos && inner.end <= outer.end;
}
