import type * as TS from "typescript";
import type { Calls } from "./calls";
import type { Callable } from "./syntax";
import type { TaggedLock } from "./tagged-locks";

/** One call of a path. */
export interface Step {
  readonly call: TS.CallExpression | TS.NewExpression;
  readonly to: Callable;
  readonly isCallback: boolean;
  /** Whether it is the only function that the call may run. */
  readonly isOnly: boolean;
}

/** That a tagged function, while it holds its lock, waits for another tagged one, or for itself. */
export interface Reached {
  readonly from: TaggedLock;
  readonly to: TaggedLock;
  /** The shortest chain of calls, each waited for. */
  readonly path: readonly Step[];
  /** Whether there is no other tagged function on the way. */
  readonly isDirect: boolean;
}

interface Visited {
  readonly path: readonly Step[];
  readonly isDirect: boolean;
}

/** What each tagged function reaches: of two ways to one lock, a direct one before another, and then the shorter one. */
export function reachedFrom(locks: readonly TaggedLock[], calls: Calls): Reached[] {
  const tagged = new Map<Callable, TaggedLock>(locks.map((lock) => [lock.fn, lock]));
  return locks.flatMap((from) => {
    const reached: Reached[] = [];
    const seen = new Set<Callable>();
    let direct: [Callable, Visited][] = [[from.fn, { path: [], isDirect: true }]];
    let behind: [Callable, Visited][] = [];
    for (let level = direct; level.length > 0;) {
      const next: [Callable, Visited][] = [];
      for (const [fn, { path, isDirect }] of level) {
        for (const { node, runs, isCallback, isWaited } of calls.in(fn)) {
          for (const to of isWaited ? runs : []) {
            // Who hands on to another one of its kind hardly hands on to itself.
            const isOnTheWay = to === from.fn || path.some((step) => step.to === to);
            if (seen.has(to) || (isOnTheWay && runs.length > 1)) continue;
            seen.add(to);
            const further = [...path, { call: node, to, isCallback, isOnly: runs.length === 1 }];
            const lock = tagged.get(to);
            if (lock !== undefined) reached.push({ from, to: lock, path: further, isDirect });
            const isStill = isDirect && lock === undefined;
            (isStill ? next : behind).push([to, { path: further, isDirect: isStill }]);
          }
        }
      }
      direct = next;
      level = direct.length > 0 ? direct : behind;
      if (level === behind) behind = [];
    }
    return reached;
  });
}
