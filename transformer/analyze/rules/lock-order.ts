import type * as TS from "typescript";
import { groupedBy } from "../../text/grouped-by";
import { problem } from "../../text/problems";
import { cyclesIn } from "../cycles";
import { pathText, spotOfCall, tagOf, type Finding } from "../finding";
import type { Reached } from "../reach";
import { waitingForItself } from "./waits-for-itself";

/**
 * Finds locks that are acquired in different orders. They are cycles in a graph whose edges lead from a lock that is held to a lock that is
 * waited for.
 *
 * A deadlock needs such a cycle: E. G. Coffman, M. J. Elphick, A. Shoshani, "System Deadlocks", ACM Computing Surveys 3 (2), 1971.
 */
export function lockOrder(ts: typeof TS, reached: readonly Reached[]): Finding[] {
  const edges = onceEach(
    reached.filter(({ from, to, isDirect }) => isDirect && to.budgetMs > 0 && from.family !== to.family),
  );
  const holding = groupedBy(edgesInCycles(edges), ({ from }) => from.family);
  const findings: Finding[] = [];
  const reported = new Set<Reached>();
  const waitForThemselves = new Set(waitingForItself(reached).map(({ from }) => from));
  for (const edge of edges) {
    if (reported.has(edge)) continue;
    const cycle = shortestCycle(edge, holding);
    // Another rule reports a chain of calls that comes back to its first lock.
    if (cycle === undefined || (isOneChain(cycle) && cycle.some(({ from }) => waitForThemselves.has(from))))
      continue;
    for (const one of cycle) reported.add(one);
    findings.push(findingOf(ts, cycle));
  }
  return findings;
}

/** Keeps one of several edges with the same locks and modes. */
function onceEach(edges: readonly Reached[]): Reached[] {
  const found = new Map<string, Reached>();
  for (const edge of edges) {
    const { from, to } = edge;
    const key = JSON.stringify([from.family, from.isReader, to.family, to.isReader]);
    if (!found.has(key)) found.set(key, edge);
  }
  return [...found.values()];
}

/** Keeps the edges that may be part of a cycle. */
function edgesInCycles(edges: readonly Reached[]): readonly Reached[] {
  const next = new Map<string, string[]>();
  for (const [family, group] of groupedBy(edges, ({ from }) => from.family))
    next.set(
      family,
      group.map(({ to }) => to.family),
    );
  const cycles = cyclesIn(next);
  return edges.filter(({ from, to }) => cycles.get(from.family) === cycles.get(to.family));
}

/** @param holding the edges in cycles, by the lock that is held */
function shortestCycle(
  first: Reached,
  holding: ReadonlyMap<string, readonly Reached[]>,
): Reached[] | undefined {
  const seen = new Set<Reached>([first]);
  for (let level: Reached[][] = [[first]]; level.length > 0;) {
    const next: Reached[][] = [];
    for (const path of level) {
      const last = path.at(-1);
      if (last === undefined) continue;
      if (path.length > 1 && waitsFor(last, first)) return path;
      for (const edge of holding.get(last.to.family) ?? []) {
        if (seen.has(edge) || !waitsFor(last, edge)) continue;
        seen.add(edge);
        next.push([...path, edge]);
      }
    }
    level = next;
  }
  return undefined;
}

/** Whether the first edge waits for the lock that the second one holds. Readers do not exclude each other. */
function waitsFor({ to }: Reached, { from }: Reached): boolean {
  return to.family === from.family && !(to.isReader && from.isReader);
}

/** Whether the cycle is one chain of calls that returns to its first lock. */
function isOneChain(cycle: readonly Reached[]): boolean {
  return cycle.some(({ from }, start) => {
    const chain = [...cycle.slice(start), ...cycle.slice(0, start)];
    const isChained = chain.every(({ to }, index) => {
      const next = chain[index + 1];
      return next === undefined || next.from.fn === to.fn;
    });
    return isChained && !(from.mayBeEnteredAgain && chain.at(-1)?.to.mayBeEnteredAgain === true);
  });
}

function findingOf(ts: typeof TS, cycle: readonly Reached[]): Finding {
  const flags = cycle.map(({ from }) => `\`${from.flag}\``);
  const list =
    cycle.length === 2 ? flags.join(" and ") : `${flags.slice(0, -1).join(", ")}, and ${flags.at(-1) ?? ""}`;
  const paths = cycle.map(
    ({ from, to, path }) =>
      `${pathText(ts, from, path)}, so \`${to.flag}\` is acquired inside \`${from.flag}\``,
  );
  const [first] = cycle;
  const [step] = first?.path ?? [];
  if (first === undefined || step === undefined) throw new Error("Expected a cycle to have calls.");
  const at = spotOfCall(ts, step);
  return {
    file: at.file,
    problem: problem("lockOrder", at, list, paths.join("; ")),
    isCertain: cycle.every(
      ({ from, to, path }) => from.isAlwaysAlone && to.isAlwaysAlone && path.every(({ isOnly }) => isOnly),
    ),
    proof: cycle.flatMap(({ from, path }) => [tagOf(from), ...path.map((one) => spotOfCall(ts, one))]),
  };
}
