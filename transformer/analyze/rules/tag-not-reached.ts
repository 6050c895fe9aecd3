import type * as TS from "typescript";
import { isAsync } from "../../read/syntax";
import { problem } from "../../text/problems";
import type { Calls } from "../calls";
import { spotOf, tagOf, type Finding } from "../finding";
import type { Member } from "../implementations";
import { nameOf, type Callable } from "../syntax";
import type { TaggedLock } from "../tagged-locks";

/** Finds functions without a lock that are called where a locked one is expected: overrides, and other implementations. */
export function tagNotReached(ts: typeof TS, locks: readonly TaggedLock[], calls: Calls): Finding[] {
  const tagged = new Map<Callable, TaggedLock>(locks.map((lock) => [lock.fn, lock]));
  const delegating = new Delegating(ts, tagged, calls);
  const reported = new Set<Callable>();
  const seen = new Set<Member>(); // The functions of a member are reported once, for the first lock.
  return locks.flatMap((lock) => {
    const { fn } = lock;
    if (!ts.isMethodDeclaration(fn)) return [];
    const overriding = calls
      .implementationsOf(fn)
      .map((other) => ({ other, name: "untaggedOverride" as const, words: [lock.name] }));
    const members = calls.implementedBy(fn).filter((member) => !seen.has(member));
    for (const member of members) seen.add(member);
    const beside = members.flatMap((member) =>
      calls.implementationsOf(member).map((other) => ({
        other,
        name: "untaggedSibling" as const,
        words: [memberName(member), lock.name],
      })),
    );
    return [...overriding, ...beside].flatMap(({ other, name, words }): Finding[] => {
      if (!mayWait(ts, other, calls)) return []; // A synchronous function cannot wait for a lock.
      if (tagged.has(other) || reported.has(other)) return [];
      // Another implementation may have a lock of another kind. An override replaces the lock of its base.
      if (delegating.has(other, name === "untaggedOverride" ? lock : undefined)) return [];
      reported.add(other);
      const at = spotOf(other.name ?? other);
      const found = problem(name, at, nameOf(ts, other) ?? "a function", ...words);
      return [{ file: at.file, problem: found, isCertain: false, proof: [at, tagOf(lock)] }];
    });
  });
}

/** The functions that wait for a locked one, like a decorator of another implementation, or an override that calls `super`. */
class Delegating {
  readonly #ts: typeof TS;
  readonly #tagged: ReadonlyMap<Callable, TaggedLock>;
  readonly #calls: Calls;
  /** Functions that reach no lock, by the family of the lock that was wanted. A later search skips them. */
  readonly #others = new Map<string | undefined, Set<Callable>>();

  constructor(ts: typeof TS, tagged: ReadonlyMap<Callable, TaggedLock>, calls: Calls) {
    this.#ts = ts;
    this.#tagged = tagged;
    this.#calls = calls;
  }

  /** @param like the lock that counts, with any key. Without it, every lock counts */
  has(fn: Callable, like: TaggedLock | undefined): boolean {
    return callsItsOwnName(this.#ts, fn) || this.#waitsForLock(fn, like);
  }

  #waitsForLock(fn: Callable, like: TaggedLock | undefined): boolean {
    const others = this.#others.get(like?.family) ?? new Set();
    this.#others.set(like?.family, others);
    const seen = new Set([fn]);
    for (const one of seen) {
      for (const { runs, isWaited } of this.#calls.in(one)) {
        if (!isWaited) continue;
        if (runs.some((callee) => this.#isWanted(callee, like))) return true;
        for (const callee of runs) if (!others.has(callee)) seen.add(callee);
      }
    }
    for (const one of seen) others.add(one);
    return false;
  }

  #isWanted(fn: Callable, like: TaggedLock | undefined): boolean {
    const lock = this.#tagged.get(fn);
    return (
      lock !== undefined && (like === undefined || (lock.flag === like.flag && lock.store === like.store))
    );
  }
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
