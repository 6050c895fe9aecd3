import type * as TS from "typescript";
import { problem } from "../../text/problems";
import type { Calls } from "../calls";
import { spotOf, tagOf, type Finding } from "../finding";
import { COLLECTS, isListUsed, listCalled } from "../promise-lists";
import { bare, CONTINUES, functionIn, type Callable } from "../syntax";
import type { TaggedLock } from "../tagged-locks";

/** Work that a locked body starts, and that nobody has waited for when the lock is given back. */
export function outlivesLock(ts: typeof TS, locks: readonly TaggedLock[], calls: Calls): Finding[] {
  return locks.flatMap((lock) => {
    const told = new Set<TS.Node>();
    return [...codeOf(ts, lock.fn, calls)].flatMap((node): Finding[] => {
      const started = startedBy(ts, node, lock.fn, calls);
      if (started === undefined || told.has(started.by)) return [];
      told.add(started.by);
      const at = spotOf(started.at);
      const said = problem("outlivesLock", at, started.what, lock.name);
      return [{ file: at.file, problem: said, isCertain: true, proof: [at, tagOf(lock)] }];
    });
  });
}

/**
 * The nodes of the body, and of the callbacks that it waits for and that are written in it. Whoever makes a promise by
 * hand says when it is done: there, work is waited for that nobody awaits.
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
  /** The words that start it. */
  readonly at: TS.Node;
  /** The call: one that hands on what it does not wait for, and is not waited for itself, is told once. */
  readonly by: TS.Node;
  /** What is wrong with it, for people. */
  readonly what: string;
}

function startedBy(ts: typeof TS, node: TS.Node, fn: Callable, calls: Calls): Started | undefined {
  if (ts.isExpressionStatement(node)) return dropped(ts, node.expression, calls);
  if (ts.isVoidExpression(node)) return dropped(ts, node, calls); // `return void work()`, `() => void work()`
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.CommaToken) {
    return dropped(ts, node.left, calls);
  }
  if (ts.isAwaitExpression(node)) return awaitedAsList(ts, bare(ts, node.expression), calls);
  if (ts.isVariableDeclaration(node)) return unread(ts, node, calls);
  if (!ts.isCallExpression(node)) return undefined;
  return handedOver(ts, node, calls) ?? startedLater(ts, node, fn, calls) ?? queued(ts, node, fn, calls);
}

/** `work();`, `void work();`, `items.map(async ...);` */
function dropped(ts: typeof TS, statement: TS.Expression, calls: Calls): Started | undefined {
  const inner = bare(ts, statement);
  const value = ts.isVoidExpression(inner) ? bare(ts, inner.expression) : inner;
  if (ts.isBinaryExpression(value) && !isAssignment(ts, value)) {
    return dropped(ts, value.right, calls);
  }
  if (ts.isConditionalExpression(value)) {
    return dropped(ts, value.whenTrue, calls) ?? dropped(ts, value.whenFalse, calls);
  }
  const start = startIn(ts, value);
  if (start === undefined) return undefined;
  const how = value === inner ? "is not awaited" : "is `void`ed";
  if (calls.isPromise(value)) return { at: start, by: start, what: `\`${wordsOf(ts, start)}\` ${how}` };
  if (start !== value || !isListOfStarted(start, calls)) return undefined;
  return { at: start, by: start, what: `What \`${wordsOf(ts, start)}\` gives is not awaited` };
}

/** `await items.map(work)`, or `await [work()]`: `await` waits for a promise, and not for those in a list. */
function awaitedAsList(ts: typeof TS, value: TS.Expression, calls: Calls): Started | undefined {
  const what = "`await` does not wait for the promises in a list";
  if (ts.isArrayLiteralExpression(value)) {
    const start = startAmong(ts, value.elements, calls);
    return start && { at: start, by: start, what };
  }
  if (!ts.isCallExpression(value) || !isListOfStarted(value, calls)) return undefined;
  return { at: value, by: value, what };
}

/** Of a chain such as `work().then(...).catch(...)`, the call that starts it. What was started elsewhere is no matter here. */
function startIn(ts: typeof TS, value: TS.Expression): TS.CallExpression | undefined {
  if (!ts.isCallExpression(value)) return undefined;
  const called = bare(ts, value.expression);
  if (!ts.isPropertyAccessExpression(called) || !CONTINUES.has(called.name.text)) return value;
  return startIn(ts, bare(ts, called.expression));
}

/** `const done = work();`, `const all = items.map(work);`, or `const all = [work()];`, and nobody looks at it, except with `void`. */
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

/** The first of the expressions that starts a promise. */
function startAmong(
  ts: typeof TS,
  expressions: readonly TS.Expression[],
  calls: Calls,
): TS.CallExpression | undefined {
  const starts = expressions.map((one) => startIn(ts, bare(ts, one)));
  return starts.find((start) => start !== undefined && calls.isPromise(start));
}

/** `items.map(work)`. Promises that come out of an array have been started elsewhere. */
function isListOfStarted(call: TS.CallExpression, calls: Calls): boolean {
  const isMade = call.arguments.some((argument) => calls.givesPromise(argument));
  const type = isMade ? calls.elementOf(call) : undefined;
  return type !== undefined && calls.isPromiseType(type);
}

/** An `async` callback for one who does not wait for it, or a timer that writes. */
function handedOver(ts: typeof TS, node: TS.CallExpression, calls: Calls): Started | undefined {
  const to = wordsOf(ts, node);
  for (const argument of node.arguments) {
    // Node declares the callback of `nextTick` as any `Function`. To the others, a promise is as good as `true`.
    const isIgnored = to === "nextTick" || (PREDICATES.has(to) && calls.isOfLanguage(node));
    if (calls.givesPromise(argument) && (calls.dropsResult(argument) || isIgnored)) {
      return { at: argument, by: node, what: `\`${to}\` does not wait for its callback` };
    }
    const callback = functionIn(ts, argument);
    if (callback !== undefined && TIMERS.has(to) && writes(ts, callback) && !isCleared(ts, node)) {
      return { at: argument, by: node, what: `\`${to}\` writes after the release` };
    }
  }
  return undefined;
}

/** `setTimeout(() => { void work(); })`: the callback of a timer starts what nobody waits for. */
function startedLater(
  ts: typeof TS,
  node: TS.CallExpression,
  fn: Callable,
  calls: Calls,
): Started | undefined {
  const timer = wordsOf(ts, node);
  if (!TIMERS.has(timer) || isCleared(ts, node)) return undefined;
  for (const argument of node.arguments) {
    const callback = functionIn(ts, argument);
    if (callback === undefined || signals(ts, callback, fn, calls)) continue;
    for (const inner of calls.nodesIn(callback)) {
      const started = startedBy(ts, inner, fn, calls);
      if (started !== undefined) return { ...started, by: node, what: `${started.what} in \`${timer}\`` };
    }
  }
  return undefined;
}

/** Whether a callback names a function that the body got from elsewhere: a call of it may be what the body waits for. */
function signals(ts: typeof TS, callback: Callable, fn: Callable, calls: Calls): boolean {
  const visit = (node: TS.Node): boolean => {
    if (!ts.isIdentifier(node)) return ts.forEachChild(node, (child) => visit(child) || undefined) ?? false;
    const variable = calls.variableOf(node);
    if (variable === undefined || !isInside(variable, fn) || isInside(variable, callback)) return false;
    const isConst = (ts.getCombinedNodeFlags(variable) & ts.NodeFlags.Const) !== 0;
    const { initializer } = variable;
    const isOurs = isConst && initializer !== undefined && functionIn(ts, initializer) !== undefined;
    return !isOurs && calls.isFunction(node) && !calls.givesPromise(node);
  };
  return visit(callback.body);
}

/** `running.push(work())`, and the body does nothing else with `running`. Of a field, nobody in the file awaits it. */
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
  const words = queue.getText();
  let isFound = false;
  const visit = (node: TS.Node): void => {
    const isHandedOut = ts.isAwaitExpression(node) || ts.isReturnStatement(node);
    isFound ||= isHandedOut && node.getText().includes(words);
    ts.forEachChild(node, visit);
  };
  visit(queue.getSourceFile());
  return isFound;
}

/** Methods of arrays that ask a callback for `true` or `false`. */
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

/** Whether it sets a field of something that is not its own. */
function writes(ts: typeof TS, callback: Callable): boolean {
  let isFound = false;
  const visit = (node: TS.Node): void => {
    isFound ||= ts.isBinaryExpression(node) && isAssignment(ts, node) && !ts.isIdentifier(node.left);
    ts.forEachChild(node, visit);
  };
  visit(callback.body);
  return isFound;
}

/** Whether somebody keeps what would stop it. `unref()` stops nothing. */
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
  const visit = (node: TS.Node): boolean => {
    if (!ts.isIdentifier(node)) return ts.forEachChild(node, (child) => visit(child) || undefined) ?? false;
    if (node === name || node.text !== name.text || ts.isVoidExpression(node.parent)) return false;
    return ts.isShorthandPropertyAssignment(node.parent) || calls.variableOf(node)?.name === name;
  };
  return visit(name.getSourceFile());
}

function isAssignment(ts: typeof TS, { operatorToken: { kind } }: TS.BinaryExpression): boolean {
  return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
}

function wordsOf(ts: typeof TS, { expression }: TS.CallExpression): string {
  const called = bare(ts, expression);
  if (ts.isPropertyAccessExpression(called)) return called.name.text;
  const [line = "", another] = called.getText().split("\n");
  return another === undefined ? line : `${line} ...`;
}

function isInside(inner: TS.Node, outer: TS.Node): boolean {
  return inner.getSourceFile() === outer.getSourceFile() && outer.pos <= inner.pos && inner.end <= outer.end;
}
