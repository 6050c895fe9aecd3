import type * as TS from "typescript";
import { isAsync } from "../../read/promised";
import { problem } from "../../text/problems";
import type { Calls } from "../calls";
import { spotOf, tagOf, type Finding } from "../finding";
import type { Member } from "../implementations";
import { nameOf, type Callable } from "../syntax";
import type { TaggedLock } from "../tagged-locks";

/** Finds functions without a lock that are called where a locked one is expected: overrides, and other implementations. */
export function tagNotReached(ts: typeof TS, locks: readonly TaggedLock[], calls: Calls): Finding[] {
  const tagged = new Map<Callable, TaggedLock>(locks.map((lock) => [lock.fn, lock]));
  const reported = new Set<Callable>();
  return locks.flatMap((lock) => {
    const { fn } = lock;
    if (!ts.isMethodDeclaration(fn)) return [];
    const overriding = calls
      .implementationsOf(fn)
      .map((other) => ({ other, name: "untaggedOverride" as const, words: [lock.name] }));
    const beside = calls.implementedBy(fn).flatMap((member) =>
      calls.implementationsOf(member).map((other) => ({
        other,
        name: "untaggedSibling" as const,
        words: [memberName(member), lock.name],
      })),
    );
    return [...overriding, ...beside].flatMap(({ other, name, words }): Finding[] => {
      if (!mayWait(ts, other, calls)) return []; // A synchronous function cannot wait for a lock.
      if (tagged.has(other) || reported.has(other) || delegates(ts, other, tagged, calls)) return [];
      reported.add(other);
      const at = spotOf(other.name ?? other);
      const found = problem(name, at, nameOf(ts, other) ?? "a function", ...words);
      return [{ file: at.file, problem: found, isCertain: false, proof: [at, tagOf(lock)] }];
    });
  });
}

/** Whether the function waits for a locked one, like a decorator of another implementation, or an override that calls `super`. */
function delegates(
  ts: typeof TS,
  fn: Callable,
  tagged: ReadonlyMap<Callable, TaggedLock>,
  calls: Calls,
): boolean {
  if (callsItsOwnName(ts, fn)) return true;
  const seen = new Set([fn]);
  for (const one of seen) {
    for (const { runs, isWaited } of calls.in(one)) {
      if (!isWaited) continue;
      if (runs.some((callee) => tagged.has(callee))) return true;
      for (const callee of runs) seen.add(callee);
    }
  }
  return false;
}

/** Whether the function calls a member of its own name, as in `return run(() => this.inner.reserve())`. */
function callsItsOwnName(ts: typeof TS, fn: Callable): boolean {
  const name = fn.name?.getText();
  let isFound = false;
  const visit = (node: TS.Node): void => {
    isFound ||=
      ts.isCallExpression(node) &&
      ts.isPropertyAccessExpression(node.expression) &&
      node.expression.name.text === name;
    ts.forEachChild(node, visit);
  };
  visit(fn.body);
  return isFound;
}

function mayWait(ts: typeof TS, fn: Callable, calls: Calls): boolean {
  return isAsync(ts, fn) || calls.returnsPromise(fn);
}

function memberName({ name, parent }: Member): string {
  const type = (parent as { readonly name?: TS.Node }).name;
  return type === undefined ? name.getText() : `${type.getText()}.${name.getText()}`;
}
