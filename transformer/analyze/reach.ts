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

/** A tagged function that waits for another tagged one, or for itself, while it holds its lock. */
export interface Reached {
  readonly from: TaggedLock;
  readonly to: TaggedLock;
  /** The shortest chain of calls. Each caller waits for its call. */
  readonly path: readonly Step[];
  /** Whether no other tagged function is on the path. */
  readonly isDirect: boolean;
}

interface Visited {
  readonly path: readonly Step[];
  readonly isDirect: boolean;
}

/** Returns what each tagged function reaches. Direct paths to a lock come first, and then the shortest one. */
export function reachedFrom(locks: readonly TaggedLock[], calls: Calls): Reached[] {
  const tagged = new Map<Callable, TaggedLock>(locks.map((lock) => [lock.fn, lock]));
  return locks.flatMap((from) => {
    const reached: Reached[] = [];
    const seen = new Set<Callable>();
    let direct: [Callable, Visited][] = [[from.fn, { path: [], isDirect: true }]];
    let indirect: [Callable, Visited][] = [];
    for (let level = direct; level.length > 0;) {
      const next: [Callable, Visited][] = [];
      for (const [fn, { path, isDirect }] of level) {
        for (const { node, runs, isCallback, isWaited } of calls.in(fn)) {
          for (const to of isWaited ? runs : []) {
            // A function that delegates to one of several implementations is unlikely to call itself.
            const isOnTheWay = to === from.fn || path.some((step) => step.to === to);
            if (seen.has(to) || (isOnTheWay && runs.length > 1)) continue;
            seen.add(to);
            const further = [...path, { call: node, to, isCallback, isOnly: runs.length === 1 }];
            const lock = tagged.get(to);
            if (lock !== undefined) reached.push({ from, to: lock, path: further, isDirect });
            const isStillDirect = isDirect && lock === undefined;
            (isStillDirect ? next : indirect).push([to, { path: further, isDirect: isStillDirect }]);
          }
        }
      }
      direct = next;
      level = direct.length > 0 ? direct : indirect;
      if (level === indirect) indirect = [];
    }
    return reached;
  });
}
