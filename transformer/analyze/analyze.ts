import type * as TS from "typescript";
import type { NeedPlan } from "../read/need";
import { NEED_NAME } from "../read/spelling";
import { groupedBy } from "../text/grouped-by";
import { notAllowed } from "./allowed";
import { Callers } from "./callers";
import { Calls, type Unfollowed } from "./calls";
import type { Finding } from "./finding";
import { Instances } from "./instances";
import { reachedFrom } from "./reach";
import { commitsAfterRelease } from "./rules/commits-after-release";
import { keysNeverMeet, similarFlags } from "./rules/keys-never-meet";
import { lockOrder } from "./rules/lock-order";
import { needNotMet } from "./rules/need-not-met";
import { outlastsLock } from "./rules/outlasts-lock";
import { outlivesLock } from "./rules/outlives-lock";
import { tagNotReached } from "./rules/tag-not-reached";
import { waitsForItself } from "./rules/waits-for-itself";
import type { Callable } from "./syntax";
import {
  taggedLocks,
  taggedNeeds,
  type TaggedLock,
  type TaggedNeed,
  type TaggedSource,
} from "./tagged-locks";
import { isTestFile } from "./test-files";
import type { Starter } from "./transaction-libraries";
import { Transactions } from "./transactions";

export interface Analysis {
  readonly findings: readonly Finding[];
  /** The calls in the analyzed code whose targets are unknown. */
  readonly unfollowed: readonly Unfollowed[];
}

/**
 * Reports how the tagged functions of a program affect each other. Analyzes only code that they reach.
 *
 * @param files the files of the program that have tags
 * @param starters the functions that start transactions in this project, besides those of the known libraries
 */
export function analyze(
  ts: typeof TS,
  program: TS.Program,
  files: readonly TaggedSource[],
  starters: readonly Starter[] = [],
): Analysis {
  const locks = taggedLocks(files);
  const tagged = new Map<Callable, TaggedLock>(locks.map((lock) => [lock.fn, lock]));
  const calls = new Calls(ts, program, new Set(tagged.keys()));
  const reached = reachedFrom(locks, calls);
  const { unfollowed } = calls;
  const fromLocks = [...unfollowed]; // The rules below analyze more code than the locks reach.
  const findings = [
    ...lockOrder(ts, reached),
    ...waitsForItself(ts, reached),
    ...outlivesLock(ts, locks, calls),
    ...outlastsLock(ts, reached),
    ...keysNeverMeet(ts, locks, program.getTypeChecker()),
    ...similarFlags(locks),
    ...tagNotReached(ts, locks, calls),
    ...commitsAfterRelease(ts, {
      transactions: new Transactions(ts, program, ownFiles(program), calls, starters),
      calls,
      locks,
      lockOf: (fn) => tagged.get(fn),
      isFollowed: () => true,
    }),
    ...needsIn(ts, program, files, { calls, locksOf: (fn) => listOf(tagged.get(fn)) }),
  ];
  return { findings: notAllowed(findings), unfollowed: fromLocks };
}

/** Returns the findings for functions whose callers must hold a lock. */
function needsIn(
  ts: typeof TS,
  program: TS.Program,
  files: readonly TaggedSource[],
  { calls, locksOf, calledIn }: KnownLocks,
): Finding[] {
  const all = taggedNeeds(files);
  const needs = all.filter(({ name }) => calledIn?.text.includes(name.split(".").at(-1) ?? name) ?? true);
  if (needs.length === 0) return [];
  const byFunction = groupedBy(all, ({ fn }): Callable => fn);
  const needsOf = (fn: Callable): readonly TaggedNeed[] => byFunction.get(fn) ?? [];
  return needNotMet(ts, needs, {
    callers: new Callers(ts, program, ownFiles(program), calls),
    instances: new Instances(ts, program.getTypeChecker()),
    locksOf,
    needsOf,
  });
}

interface KnownLocks {
  readonly calls: Calls;
  readonly locksOf: (fn: Callable) => readonly TaggedLock[];
  /** Only calls in this file matter. */
  readonly calledIn?: TS.SourceFile;
}

function listOf<T>(one: T | undefined): readonly T[] {
  return one === undefined ? [] : [one];
}

/** Returns the sources in which transactions and callers count. A test may roll back what it does, and holds no locks. */
function ownFiles(program: TS.Program): TS.SourceFile[] {
  const { configFilePath } = program.getCompilerOptions();
  const config = typeof configFilePath === "string" ? configFilePath : undefined;
  return program
    .getSourceFiles()
    .filter(
      (file) =>
        !file.isDeclarationFile &&
        !program.isSourceFileFromExternalLibrary(file) &&
        !isTestFile(file.fileName, config),
    );
}

/** What an editor knows of a file and its project. */
export interface OpenSource extends TaggedSource {
  /** Returns the plans of another file. */
  readonly plansOf: (source: TS.SourceFile) => TaggedSource["plans"];
  /** Returns what the functions of any file need. */
  readonly needsOf: (source: TS.SourceFile) => readonly NeedPlan[];
  readonly starters: readonly Starter[];
}

/**
 * Returns the findings for one file that need no bodies of other files, except for their tags, and for the callers of functions with
 * `@needsLock`. An editor asks for them after each keystroke.
 */
export function analyzeFile(ts: typeof TS, program: TS.Program, open: OpenSource): readonly Finding[] {
  const { source, plans, plansOf, needsOf, starters } = open;
  const locks = taggedLocks([{ source, plans }]);
  const tagged = new Map<Callable, TaggedLock>(locks.map((lock) => [lock.fn, lock]));
  const calls = new Calls(ts, program, new Set(tagged.keys()));
  const read = new Set([source]);
  const lockOf = (fn: Callable): TaggedLock | undefined => {
    const file = fn.getSourceFile();
    if (!read.has(file)) {
      read.add(file);
      for (const lock of taggedLocks([{ source: file, plans: plansOf(file) }])) tagged.set(lock.fn, lock);
    }
    return tagged.get(fn);
  };
  const all = ownFiles(program);
  const own = all.filter((file) => file === source);
  const needed = all
    .filter(({ text }) => text.includes(NEED_NAME))
    .map((file) => ({ source: file, plans: [], needs: needsOf(file) }));
  const transactions = new Transactions(ts, program, own, calls, starters);
  const isFollowed = (fn: Callable): boolean => fn.getSourceFile() === source;
  return notAllowed([
    ...outlivesLock(ts, locks, calls),
    ...commitsAfterRelease(ts, { transactions, calls, locks, lockOf, isFollowed }),
    ...needsIn(ts, program, needed, { calls, locksOf: (fn) => listOf(lockOf(fn)), calledIn: source }),
  ]);
}
