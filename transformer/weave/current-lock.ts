import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { callsWithin, type FindReExports } from "../read/lockweave-calls";
import type { Plan } from "../read/plan";
import type { LockableFunction } from "../read/syntax";
import type { Insertion } from "../text/edits";

/**
 * Passes the lock of a tagged function to each call of `currentLock()` in it. So the body, and helpers inside it, get their lock at no cost
 * at run time.
 *
 * @param locks the names of the locks
 * @returns the insertions in each function
 */
export function currentLockArguments(
  ts: Parser,
  file: TS.SourceFile,
  plans: readonly Plan[],
  locks: ReadonlyMap<LockableFunction, string>,
  findReExports: FindReExports | undefined,
): ReadonlyMap<LockableFunction, readonly Insertion[]> {
  const insertions = new Map<LockableFunction, Insertion[]>();
  if (plans.length === 0) return insertions;
  // The default of a parameter runs before the lock is open.
  const owners = new Map<TS.Node, Plan | undefined>();
  for (const planned of plans) owners.set(planned.fn, undefined).set(planned.fn.body, planned);
  for (const { call, owner } of callsWithin(ts, file, "currentLock", owners, findReExports)) {
    if (owner === undefined || call.arguments.length > 0) continue;
    const { fn, at } = owner;
    const code = locks.get(fn) ?? "lock";
    const insertion: Insertion = { at: call.end - 1, pieces: [{ code, from: at, exact: false }] };
    const before = insertions.get(fn);
    if (before === undefined) insertions.set(fn, [insertion]);
    else before.push(insertion);
  }
  return insertions;
}
