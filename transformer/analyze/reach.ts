import type * as TS from "typescript";
import type { Calls } from "./calls";
import { CallMap } from "./call-map";
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
  readonly fn: Callable;
  readonly isDirect: boolean;
  /** The last step of the path to this function, and the function before it. */
  readonly step?: Step;
  readonly before?: Visited;
}

/**
 * Returns the locks that each tagged function reaches, as far as a rule needs them. These are the first lock on each path and the function's own
 * lock. If its own lock may end early, they are all locks. A direct path to a lock counts before an indirect one, and then the shortest.
 */
export function reachedFrom(locks: readonly TaggedLock[], calls: Calls): Reached[] {
  const tagged = new Map<Callable, TaggedLock>(locks.map((lock) => [lock.fn, lock]));
  const map = new CallMap(tagged, calls);
  return locks.flatMap((from) => {
    const reached: Reached[] = [];
    const seen = new Set<Callable>();
    let direct: Visited[] = [{ fn: from.fn, isDirect: true }];
    let indirect: Visited[] = [];
    for (let level = direct; level.length > 0;) {
      const next: Visited[] = [];
      for (const before of level) {
        for (const { node, runs, isCallback, isWaited } of calls.in(before.fn)) {
          for (const to of isWaited ? runs : []) {
            // A function that delegates to one of several implementations is unlikely to call itself.
            if (seen.has(to) || (to === from.fn && runs.length > 1)) continue;
            seen.add(to);
            const lock = tagged.get(to);
            const isDirect = before.isDirect && lock === undefined;
            const isFollowed = map.isWorthFollowing(from, to, isDirect);
            if (lock === undefined && !isFollowed) continue;
            const step = { call: node, to, isCallback, isOnly: runs.length === 1 };
            const visited = { fn: to, isDirect, step, before };
            if (lock !== undefined)
              reached.push({ from, to: lock, path: pathTo(visited), isDirect: before.isDirect });
            if (isFollowed) (isDirect ? next : indirect).push(visited);
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

function pathTo(last: Visited): Step[] {
  const path: Step[] = [];
  for (let at: Visited | undefined = last; at?.step !== undefined; at = at.before) path.push(at.step);
  return path.toReversed();
}
