/**
 * A time in which a process believed that it held a lock. The belief began before `from` was read and ended after `to` was read, so the
 * real belief is at least as long. All times are in milliseconds on the monotonic clock, which all processes share.
 */
export interface Belief {
  readonly id: string;
  readonly key: string;
  readonly from: number;
  readonly to: number;
  /** How many may hold the key at once: 1 for a writer. */
  readonly room: number;
  readonly fencingToken?: number | undefined;
}

export interface Violation {
  readonly kind: "overlap" | "token" | "unproven";
  readonly at: number;
  readonly message: string;
  readonly key: string;
}

/** Returns every moment at which more processes believed in a lock than may hold it, and every fencing token that did not rise. */
export function violationsAmong(beliefs: readonly Belief[]): Violation[] {
  const ofKeys = new Map<string, Belief[]>();
  for (const belief of beliefs) {
    const ofKey = ofKeys.get(belief.key) ?? [];
    ofKey.push(belief);
    ofKeys.set(belief.key, ofKey);
  }
  return [...ofKeys.values()].flatMap(sweep);
}

interface Edge {
  readonly at: number;
  readonly belief: Belief;
  readonly isStart: boolean;
}

/** Walks through the starts and ends of the beliefs in one key, in the order of time. */
function sweep(beliefs: readonly Belief[]): Violation[] {
  const edges = beliefs
    .filter(({ from, to }) => from < to)
    .flatMap((belief): Edge[] => [
      { at: belief.from, belief, isStart: true },
      { at: belief.to, belief, isStart: false },
    ])
    // One belief may end in the very moment in which the next one starts.
    .toSorted((one, other) => one.at - other.at || Number(one.isStart) - Number(other.isStart));
  const violations: Violation[] = [];
  const holders = new Set<Belief>();
  let last: Belief | undefined;
  for (const { at, belief, isStart } of edges) {
    if (!isStart) {
      holders.delete(belief);
      // Callers that share a lock may enter in an order other than that of their tokens.
      if (belief.room === 1 && isLater(belief, last)) last = belief;
      continue;
    }
    holders.add(belief);
    const room = Math.min(...[...holders].map((holder) => holder.room));
    if (holders.size > room) violations.push(overlap(at, belief, [...holders], room));
    if (belief.room === 1 && last !== undefined && !isLater(belief, last) && hasToken(belief)) {
      const { key } = belief;
      const message = `${key}: ${nameOf(belief)} has token ${belief.fencingToken}, and before it ${nameOf(last)} had ${last.fencingToken}`;
      violations.push({ kind: "token", at, message, key });
    }
  }
  return violations;
}

function hasToken({ fencingToken }: Belief): boolean {
  return fencingToken !== undefined;
}

function isLater(belief: Belief, than: Belief | undefined): boolean {
  return (belief.fencingToken ?? -Infinity) > (than?.fencingToken ?? -Infinity);
}

function overlap(at: number, belief: Belief, holders: readonly Belief[], room: number): Violation {
  const others = holders.filter((holder) => holder !== belief).map(nameOf);
  const { key } = belief;
  const message = `${key}: ${nameOf(belief)} believes that it holds the lock, and so do ${others.join(", ")}. The lock has room for ${room}`;
  return { kind: "overlap", at, message, key };
}

function nameOf({ id, from, to }: Belief): string {
  return `${id} (${from.toFixed(1)} to ${to.toFixed(1)})`;
}
