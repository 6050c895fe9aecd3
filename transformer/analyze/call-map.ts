import type { Calls } from "./calls";
import { cyclesIn } from "./cycles";
import type { Callable } from "./syntax";
import type { TaggedLock } from "./tagged-locks";

/** Knows which functions lead to a lock, so that a search skips the others. */
export class CallMap {
  readonly #tagged: ReadonlyMap<Callable, TaggedLock>;
  readonly #leadsToLock: ReadonlySet<Callable>;
  /** The functions in one cycle of calls have the same number. All locks of one family count as one function. */
  readonly #cycles: ReadonlyMap<Callable | string, number>;

  constructor(tagged: ReadonlyMap<Callable, TaggedLock>, calls: Calls) {
    this.#tagged = tagged;
    const callers = new Map<Callable, Callable[]>();
    const callees = new Map<Callable | string, (Callable | string)[]>();
    const found = new Set<Callable>();
    for (const lock of tagged.keys()) {
      for (const fn of reachable([lock], (one) => waitedBy(one, calls), found)) {
        const all = waitedBy(fn, calls);
        for (const callee of all) listed(callers, callee).push(fn);
        listed(callees, this.#nodeOf(fn)).push(...all.map((callee) => this.#nodeOf(callee)));
      }
    }
    this.#leadsToLock = new Set(reachable([...tagged.keys()], (fn) => callers.get(fn) ?? []));
    this.#cycles = cyclesIn(callees);
  }

  /** Whether the function's calls may lead from the lock `from` to a lock that a rule needs. */
  isWorthFollowing(from: TaggedLock, fn: Callable, isDirect: boolean): boolean {
    if (!this.#leadsToLock.has(fn)) return false;
    const isInCycle = this.#cycles.get(from.family) === this.#cycles.get(this.#nodeOf(fn));
    return isDirect || isInCycle || from.endsAfterMs < Infinity;
  }

  #nodeOf(fn: Callable): Callable | string {
    return this.#tagged.get(fn)?.family ?? fn;
  }
}

function waitedBy(fn: Callable, calls: Calls): Callable[] {
  return calls.in(fn).flatMap(({ runs, isWaited }) => (isWaited ? runs : []));
}

/** Returns the nodes that can be reached from the first ones, and were not found before. They include the first ones. */
function* reachable(
  first: readonly Callable[],
  next: (node: Callable) => readonly Callable[],
  found = new Set<Callable>(),
): Iterable<Callable> {
  const queue = first.filter((node) => !found.has(node));
  for (const node of queue) found.add(node);
  for (const node of queue) {
    yield node;
    for (const to of next(node)) {
      if (found.has(to)) continue;
      found.add(to);
      queue.push(to);
    }
  }
}

function listed<Key, Value>(lists: Map<Key, Value[]>, key: Key): Value[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}
