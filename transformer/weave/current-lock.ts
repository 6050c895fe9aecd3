import type * as TS from "typescript";
import type { Parser } from "../parser/parser";
import { callsOf, type HandedOn } from "../read/own-calls";
import type { Plan } from "../read/plan";
import type { Insertion } from "../text/edits";

/**
 * Gives the calls of `currentLock()` in a tagged function its lock as their argument. So the body can ask
 * for its lock, from helpers inside it too, at no cost at run time.
 */
export function currentLockArguments(
  ts: Parser,
  file: TS.SourceFile,
  { fn, at }: Plan,
  plans: readonly Plan[],
  lock: string,
  handedOn: HandedOn | undefined,
): Insertion[] {
  const tagged = new Set<TS.Node>(plans.map((planned) => planned.fn)); // Their calls mean their own locks.
  return callsOf(ts, file, "currentLock", fn.body, {
    handedOn,
    isElsewhere: (node) => tagged.has(node),
  })
    .filter((call) => call.arguments.length === 0)
    .map((call) => ({ at: call.end - 1, pieces: [{ code: lock, from: at, exact: false }] }));
}
