import type * as TS from "typescript";
import { problem } from "../../text/problems";
import type { Calls } from "../calls";
import { spotOf, tagOf, type Finding } from "../finding";
import { bare, CONTINUES, functionIn, type Callable } from "../syntax";
import type { TaggedLock } from "../tagged-locks";

/** Work that a locked body starts, and that nobody has waited for when the lock is given back. */
export function outlivesLock(ts: typeof TS, locks: readonly TaggedLock[], calls: Calls): Finding[] {
  return locks.flatMap((lock) => {
    const told = new Set<TS.Node>();
    return [...codeOf(ts, lock.fn, calls)].flatMap((node): Finding[] => {
      const started = startedBy(ts, node, calls);
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

function startedBy(ts: typeof TS, node: TS.Node, calls: Calls): Started | undefined {
  if (ts.isExpressionStatement(node)) return dropped(ts, node.expression, calls);
  if (ts.isVariableDeclaration(node)) return unread(ts, node, calls);
  if (ts.isCallExpression(node)) return handedOver(ts, node, calls) ?? queued(ts, node, calls);
  return undefined;
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
  // Promises that come out of an array have been started elsewhere.
  const isMade = start.arguments.some((argument) => calls.givesPromise(argument));
  const type = isMade ? calls.elementOf(value) : undefined;
  if (type === undefined || !calls.isPromiseType(type)) return undefined;
  return { at: start, by: start, what: `What \`${wordsOf(ts, start)}\` gives is not awaited` };
}

/** Of a chain such as `work().then(...).catch(...)`, the call that starts it. What was started elsewhere is no matter here. */
function startIn(ts: typeof TS, value: TS.Expression): TS.CallExpression | undefined {
  if (!ts.isCallExpression(value)) return undefined;
  const called = bare(ts, value.expression);
  if (!ts.isPropertyAccessExpression(called) || !CONTINUES.has(called.name.text)) return value;
  return startIn(ts, bare(ts, called.expression));
}

/** `const done = work();`, and nobody looks at `done`. */
function unread(
  ts: typeof TS,
  { name, initializer, parent }: TS.VariableDeclaration,
  calls: Calls,
): Started | undefined {
  if (initializer === undefined || !ts.isIdentifier(name)) return undefined;
  const isUsing = /^(?:await\s+)?using\b/.test(parent.getText());
  const start = startIn(ts, bare(ts, initializer));
  if (isUsing || start === undefined || !calls.isPromise(initializer)) return undefined;
  return isNamedElsewhere(ts, name)
    ? undefined
    : { at: start, by: start, what: `Nobody awaits \`${name.text}\`` };
}

/** An `async` callback for one who does not wait for it, or a timer that writes. */
function handedOver(ts: typeof TS, node: TS.CallExpression, calls: Calls): Started | undefined {
  for (const argument of node.arguments) {
    const to = wordsOf(ts, node);
    if (calls.givesPromise(argument) && calls.dropsResult(argument)) {
      return { at: argument, by: node, what: `\`${to}\` does not wait for what it is given` };
    }
    const callback = functionIn(ts, argument);
    if (callback !== undefined && TIMERS.has(to) && writes(ts, callback) && !isCleared(ts, node)) {
      return { at: argument, by: node, what: `\`${to}\` writes later` };
    }
  }
  return undefined;
}

/** `this.running.push(work())`, and nobody in the file awaits `this.running`. */
function queued(ts: typeof TS, node: TS.CallExpression, calls: Calls): Started | undefined {
  const called = bare(ts, node.expression);
  if (!ts.isPropertyAccessExpression(called) || !COLLECTS.has(called.name.text)) return undefined;
  const { expression: queue } = called;
  if (!ts.isPropertyAccessExpression(queue) || isAwaited(ts, queue)) return undefined;
  const start = node.arguments.map((one) => startIn(ts, bare(ts, one))).find((one) => one !== undefined);
  if (start === undefined || !calls.isPromise(start)) return undefined;
  return { at: start, by: start, what: `Nobody awaits what is put into \`${queue.getText()}\`` };
}

const COLLECTS: ReadonlySet<string> = new Set(["add", "push", "set", "unshift"]);

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

/** Whether somebody keeps what would stop it. */
function isCleared(ts: typeof TS, timer: TS.CallExpression): boolean {
  return !ts.isExpressionStatement(timer.parent);
}

function isNamedElsewhere(ts: typeof TS, name: TS.Identifier): boolean {
  let isFound = false;
  const visit = (node: TS.Node): void => {
    isFound ||= ts.isIdentifier(node) && node !== name && node.text === name.text;
    ts.forEachChild(node, visit);
  };
  visit(name.getSourceFile());
  return isFound;
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
