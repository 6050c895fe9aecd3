import type * as TS from "typescript";
import { problem } from "../../text/problems";
import type { Callers } from "../callers";
import { spotOfCall, stepsText, type Finding } from "../finding";
import type { Instances } from "../instances";
import type { Step } from "../reach";
import { nameOf, type Callable } from "../syntax";
import type { TaggedLock, TaggedNeed } from "../tagged-locks";

/** What the rule knows of the program. */
export interface KnownTags {
  readonly callers: Callers;
  readonly instances: Instances;
  readonly locksOf: (fn: Callable) => readonly TaggedLock[];
  readonly needsOf: (fn: Callable) => readonly TaggedNeed[];
}

/** A function that leads to the one with the need, with the calls between them. */
interface Visited {
  readonly fn: Callable;
  /** The class of `this` in the function, as far as the path shows it. */
  readonly self: TS.ClassLikeDeclaration | undefined;
  readonly path: readonly Step[];
}

/**
 * Finds calls of functions with `@needsLock` on paths that certainly do not hold the lock. A path begins at a function that the whole program
 * calls nowhere, and that nothing else can call with a lock. If anything about a path is unknown, nothing is reported.
 */
export function needNotMet(ts: typeof TS, needs: readonly TaggedNeed[], known: KnownTags): Finding[] {
  const reported = new Set<TS.Node>();
  return needs.flatMap((need) => {
    const findings: Finding[] = [];
    for (const { fn, path } of pathsWithoutLock(need, known)) {
      const last = path.at(-1);
      const start = nameOf(ts, fn);
      if (last === undefined || start === undefined || reported.has(last.call)) continue;
      reported.add(last.call);
      const spots = path.map((step) => spotOfCall(ts, step));
      const at = spotOfCall(ts, last);
      const text = `\`${start}\` ${stepsText(ts, path)}`;
      findings.push({
        file: at.file,
        problem: problem("needNotMet", at, need.name, need.flag, text, start),
        isCertain: false,
        proof: [...spots, { file: need.file, ...need.at }],
      });
    }
    return findings;
  });
}

/** Yields the paths to the function that begin where nobody can hold the lock, the shortest first. */
function* pathsWithoutLock(
  need: TaggedNeed,
  { callers, instances, locksOf, needsOf }: KnownTags,
): Iterable<Visited> {
  const isMet = (fn: Callable): boolean =>
    locksOf(fn).some((lock) => mayMeet(lock, need)) ||
    needsOf(fn).some((own) => own.family === need.family && (need.isReadEnough || !own.isReadEnough));
  const seen = new Map<Callable, Set<Visited["self"]>>([[need.fn, new Set([undefined])]]);
  const pending: Visited[] = [{ fn: need.fn, self: undefined, path: [] }];
  for (const { fn, self, path } of pending) {
    if (callers.isWrapped(fn)) continue;
    const all = callers.of(fn);
    if (all.length === 0 && path.length > 0 && callers.isStart(fn)) yield { fn, self, path };
    for (const { by, step, through } of all) {
      if ([by, ...through].some(isMet)) continue;
      const before = instances.before(by, step, self);
      const known = seen.get(by) ?? new Set();
      if (before === "impossible" || known.has(undefined) || known.has(before)) continue;
      seen.set(by, known.add(before));
      pending.push({ fn: by, self: before, path: [step, ...path] });
    }
  }
}

/** Whether the lock may be the one that is needed. The values of its key are unknown. */
function mayMeet({ family, isReader, plan }: TaggedLock, need: TaggedNeed): boolean {
  if (family !== need.family) return false;
  return plan.sharing === undefined || (isReader && need.isReadEnough);
}
