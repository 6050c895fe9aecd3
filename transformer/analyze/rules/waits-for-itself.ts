import type * as TS from "typescript";
import { problem } from "../../text/problems";
import { pathText, spotOfCall, tagOf, type Finding } from "../finding";
import type { Reached, Step } from "../reach";
import { bare } from "../syntax";
import type { TaggedLock } from "../tagged-locks";

/** Returns the functions that wait for their own lock, or for another one of its family, while they hold it. */
export function waitingForItself(reached: readonly Reached[]): Reached[] {
  return reached.filter(
    ({ from, to }) =>
      from.family === to.family && to.budgetMs > 0 && !(from.mayBeEnteredAgain && to.mayBeEnteredAgain),
  );
}

export function waitsForItself(ts: typeof TS, reached: readonly Reached[]): Finding[] {
  const reported = new Set<Step["call"]>();
  return waitingForItself(reached).flatMap(({ from, to, path }): Finding[] => {
    const [first] = path;
    const last = path.at(-1);
    if (first === undefined || last === undefined || reported.has(last.call)) return [];
    reported.add(last.call);
    const isSame = isSameKey(ts, from, to, path);
    const at = spotOfCall(ts, first);
    const name = isSame ? "waitsForItself" : "mayWaitForItself";
    const words = [from.name, from.flag, pathText(ts, from, path), fixOf(from, to, isSame)];
    return [
      {
        file: at.file,
        problem: problem(name, at, ...words),
        isCertain: isSame && from.isAlwaysAlone && to.isAlwaysAlone && path.every(({ isOnly }) => isOnly),
        proof: [tagOf(from), ...path.map((step) => spotOfCall(ts, step)), tagOf(to)],
      },
    ];
  });
}

/** Returns the fix, without a capital letter at its start. */
function fixOf(from: TaggedLock, to: TaggedLock, isSame: boolean): string {
  if (from.isReader !== to.isReader)
    return "hold one lock with `mode=write` around both. A reader cannot acquire its own lock for writing, and a writer cannot acquire it for reading.";
  const where = from.fn === to.fn ? "at its tag" : "at both tags";
  const enter = `write \`reentrant=true\` ${where}, so that the inner call acquires the lock again`;
  return isSame ? `${enter}.` : `${enter}. To lock several keys, lock them at once with \`each=true\`.`;
}

/** Whether both keys are certainly the same: the same expressions, of values that the calls pass on unchanged. */
function isSameKey(ts: typeof TS, from: TaggedLock, to: TaggedLock, path: readonly Step[]): boolean {
  const held = valuesIn(from);
  if (held.length === 0) return true;
  let known = new Map(rootsOf(ts, from).map((name) => [name, name]));
  for (const { call, to: callee, isCallback } of path) {
    if (isCallback) continue; // A callback sees the variables around it.
    const next = new Map<string, string>();
    callee.parameters.forEach(({ name }, index) => {
      const argument = call.arguments?.[index];
      const text = argument && nameInHolder(ts, argument, known);
      if (ts.isIdentifier(name) && text !== undefined) next.set(name.text, text);
    });
    const called = bare(ts, call.expression);
    if (ts.isPropertyAccessExpression(called)) {
      const receiver = nameInHolder(ts, called.expression, known);
      if (receiver !== undefined) next.set("this", receiver);
    }
    known = next;
  }
  const wanted = valuesIn(to).map((value) => renamed(value, known));
  return wanted.every((part, index) => part !== undefined && part === held[index]);
}

/** Returns the expressions in the key. Keys of one family differ only in their values. */
function valuesIn({ plan }: TaggedLock): readonly string[] {
  return plan.wholeKey?.values ?? plan.key.map(({ shown }) => shown);
}

function rootsOf(ts: typeof TS, { fn }: TaggedLock): string[] {
  return ["this", ...fn.parameters.flatMap(({ name }) => (ts.isIdentifier(name) ? [name.text] : []))];
}

/** Returns the holder's name for an argument: a parameter, or a path from one. */
function nameInHolder(
  ts: typeof TS,
  argument: TS.Expression,
  known: ReadonlyMap<string, string>,
): string | undefined {
  const value = bare(ts, argument);
  if (value.kind === ts.SyntaxKind.ThisKeyword) return known.get("this");
  if (ts.isIdentifier(value)) return known.get(value.text);
  if (!ts.isPropertyAccessExpression(value)) return undefined;
  const root = nameInHolder(ts, value.expression, known);
  return root === undefined ? undefined : `${root}.${value.name.text}`;
}

/** Returns the holder's name for a path of the callee, or `undefined` for any other expression. */
function renamed(path: string, known: ReadonlyMap<string, string>): string | undefined {
  const [, root = "", rest = ""] =
    /^([\p{ID_Continue}$]+)((?:[?.#[\]]|[\p{ID_Continue}$])*)$/u.exec(path) ?? [];
  const text = known.get(root);
  return text === undefined ? undefined : text + rest;
}
