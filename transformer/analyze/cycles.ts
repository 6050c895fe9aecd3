/**
 * Numbers the cycles of a graph. Two nodes have the same number if each can be reached from the other one.
 *
 * The algorithm visits each edge once: R. Tarjan, "Depth-First Search and Linear Graph Algorithms", SIAM Journal on Computing 1 (2), 1972.
 */
export function cyclesIn<Node>(edges: ReadonlyMap<Node, readonly Node[]>): Map<Node, number> {
  const numbers = new Map<Node, number>();
  const visits = new Map<Node, Visit<Node>>();
  const open: Visit<Node>[] = [];
  const visit = (node: Node): Visit<Node> => {
    const one = { node, at: visits.size, lowest: visits.size, next: (edges.get(node) ?? []).values() };
    visits.set(node, one);
    open.push(one);
    return one;
  };
  for (const start of edges.keys()) {
    const path = visits.has(start) ? [] : [visit(start)]; // A loop, because recursion could overflow the stack.
    for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
      const next = last.next.next();
      if (next.done === true) {
        path.pop();
        const before = path.at(-1);
        if (before !== undefined) before.lowest = Math.min(before.lowest, last.lowest);
        if (last.lowest === last.at) close(last);
        continue;
      }
      const known = visits.get(next.value);
      if (known === undefined) path.push(visit(next.value));
      else if (!numbers.has(next.value)) last.lowest = Math.min(last.lowest, known.at);
    }
  }
  return numbers;

  function close(first: Visit<Node>): void {
    for (let last = open.pop(); last !== undefined; last = open.pop()) {
      numbers.set(last.node, first.at);
      if (last === first) return;
    }
  }
}

interface Visit<Node> {
  readonly node: Node;
  readonly at: number;
  lowest: number;
  readonly next: Iterator<Node, unknown>;
}
