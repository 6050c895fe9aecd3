import type * as TS from "typescript";
import { notAllowed } from "./allowed";
import { Calls, type Unfollowed } from "./calls";
import type { Finding } from "./finding";
import { reachedFrom } from "./reach";
import { keysNeverMeet, similarFlags } from "./rules/keys-never-meet";
import { lockOrder } from "./rules/lock-order";
import { outlastsLock } from "./rules/outlasts-lock";
import { outlivesLock } from "./rules/outlives-lock";
import { tagNotReached } from "./rules/tag-not-reached";
import { waitsForItself } from "./rules/waits-for-itself";
import type { Callable } from "./syntax";
import { taggedLocks, type TaggedSource } from "./tagged-locks";

export interface Analysis {
  readonly findings: readonly Finding[];
  /** The calls in the analyzed code for which it is unknown what they run. */
  readonly unfollowed: readonly Unfollowed[];
}

/**
 * Reports what the tagged functions of a program do to each other. Only code that they reach is analyzed.
 *
 * @param files the files of the program that have tags
 */
export function analyze(ts: typeof TS, program: TS.Program, files: readonly TaggedSource[]): Analysis {
  const locks = taggedLocks(files);
  const holders = new Set<Callable>(locks.map(({ fn }) => fn));
  const calls = new Calls(ts, program, holders);
  const reached = reachedFrom(locks, calls);
  const { unfollowed } = calls;
  const onTheWay = [...unfollowed]; // The rules below may add calls that are not on the way.
  const findings = [
    ...lockOrder(ts, reached),
    ...waitsForItself(ts, reached),
    ...outlivesLock(ts, locks, calls),
    ...outlastsLock(ts, reached),
    ...keysNeverMeet(ts, locks, program.getTypeChecker()),
    ...similarFlags(locks),
    ...tagNotReached(ts, locks, calls),
  ];
  return { findings: notAllowed(findings), unfollowed: onTheWay };
}

/** Returns the findings for one file that need no bodies of other files. An editor asks for them after each keystroke. */
export function analyzeFile(
  ts: typeof TS,
  program: TS.Program,
  { source, plans }: TaggedSource,
): readonly Finding[] {
  const locks = taggedLocks([{ source, plans }]);
  const calls = new Calls(ts, program, new Set(locks.map(({ fn }) => fn)));
  return notAllowed(outlivesLock(ts, locks, calls));
}
