import type * as TS from "typescript";
import { problem } from "../../text/problems";
import type { Call, Calls } from "../calls";
import { placeText, spotOf, spotOfCall, stepsText, tagOf, type Finding } from "../finding";
import type { Handles } from "../handles";
import type { Step } from "../reach";
import { bare, nameOf, type Callable } from "../syntax";
import type { TaggedLock } from "../tagged-locks";
import { isDeclaredAs, GUARDS } from "../transaction-libraries";
import { isInPart, type Transaction, type Transactions } from "../transactions";

/** What the rule knows of the program. An editor asks for one file, and knows less. */
export interface Known {
  readonly transactions: Transactions;
  readonly calls: Calls;
  readonly locks: readonly TaggedLock[];
  readonly lockOf: (fn: Callable) => TaggedLock | undefined;
  /** Whether to look into the body of a function. */
  readonly isFollowed: (fn: Callable) => boolean;
}

/** Finds locks that are released inside a transaction, before it commits. */
export function commitsAfterRelease(ts: typeof TS, known: Known): Finding[] {
  return new Search(ts, known).findings();
}

/** A function that runs in a transaction, with the calls that lead to it. */
interface Visited {
  readonly fn: Callable;
  readonly handles: Handles | undefined;
  readonly path: readonly Step[];
}

class Search {
  readonly #ts: typeof TS;
  readonly #known: Known;
  readonly #steps = new Map<Callable, readonly Call[]>();
  readonly #commitsInside = new Map<Callable, boolean>();
  readonly #reported = new Map<TS.Node, Set<TaggedLock>>();

  constructor(ts: typeof TS, known: Known) {
    this.#ts = ts;
    this.#known = known;
  }

  findings(): Finding[] {
    return this.#known.transactions.all.flatMap((transaction) => this.#in(transaction));
  }

  #in(transaction: Transaction): Finding[] {
    const { flow } = this.#known.transactions;
    const findings: Finding[] = [];
    const seen = new Set<Callable>();
    const pending: Visited[] = [{ ...transaction, path: [] }];
    for (const { fn, handles, path } of pending) {
      const lock = path.length === 0 && transaction.part !== undefined ? undefined : this.#known.lockOf(fn);
      if (lock !== undefined && this.#isReleasedBefore(transaction, lock, handles)) {
        findings.push(...this.#report(transaction, lock, path));
        continue; // If this lock is acquired first, those inside it are, too.
      }
      if (path.length > 0 && !this.#known.isFollowed(fn)) continue;
      const inside = handles && flow.within(fn, handles);
      for (const { node, runs, isCallback, isWaited } of this.#stepsIn(fn)) {
        if (!isWaited || (path.length === 0 && !isInPart(this.#ts, transaction, node))) continue;
        for (const to of runs) {
          if (seen.has(to) || this.#known.transactions.isApart(to)) continue;
          const passed = inside && flow.passedTo(to, node, isCallback, inside);
          if (passed !== undefined && !flow.isIn(to, passed)) continue;
          seen.add(to);
          const step = { call: node, to, isCallback, isOnly: runs.length === 1 };
          pending.push({ fn: to, handles: passed, path: [...path, step] });
        }
      }
    }
    return findings;
  }

  /** Returns the calls in the function, and the callbacks that it runs in a transaction. */
  #stepsIn(fn: Callable): readonly Call[] {
    const known = this.#steps.get(fn);
    if (known !== undefined) return known;
    const { calls, transactions } = this.#known;
    const steps = [...calls.in(fn)];
    for (const node of calls.nodesIn(fn)) {
      const runs = transactions.callbacksOf(node);
      if (runs.length > 0 && this.#ts.isCallExpression(node))
        steps.push({ node, runs, isCallback: true, isWaited: calls.isWaited(node) });
    }
    this.#steps.set(fn, steps);
    return steps;
  }

  #isReleasedBefore(transaction: Transaction, lock: TaggedLock, handles: Handles | undefined): boolean {
    const { flow } = this.#known.transactions;
    // Readers write nothing. Holders of a permit expect others beside them.
    if (lock.plan.sharing !== undefined || !lock.isReleased) return false;
    if (handles !== undefined && !flow.isIn(lock.fn, handles)) return false;
    return !this.#isHeldAround(transaction, lock) && !this.#commitsInsideLock(lock.fn);
  }

  /** Whether a function with the same reentrant lock starts the transaction, or calls what starts it. */
  #isHeldAround({ at }: Transaction, lock: TaggedLock): boolean {
    if (!lock.mayBeEnteredAgain) return false;
    const around = this.#known.locks.filter(
      (one) => one !== lock && one.family === lock.family && one.mayBeEnteredAgain,
    );
    const called = new Set<Callable>(around.map(({ fn }) => fn));
    for (const fn of called) {
      if (this.#ts.findAncestor(at, (node) => node === fn) !== undefined) return true;
      if (!this.#known.isFollowed(fn)) continue;
      for (const { runs, isWaited } of this.#stepsIn(fn)) if (isWaited) for (const to of runs) called.add(to);
    }
    return false;
  }

  /** Whether the locked body guards its lock, or does its work in a transaction of its own, which commits before the release. */
  #commitsInsideLock(locked: Callable): boolean {
    const known = this.#commitsInside.get(locked) ?? this.#findsCommit(locked);
    this.#commitsInside.set(locked, known);
    return known;
  }

  #findsCommit(locked: Callable): boolean {
    const { transactions } = this.#known;
    const seen = new Set([locked]);
    for (const fn of seen) {
      if (fn !== locked && transactions.isApart(fn)) return true;
      if (this.#hasGuard(fn.body)) return true;
      for (const { runs, isWaited } of this.#stepsIn(fn)) if (isWaited) for (const to of runs) seen.add(to);
    }
    return false;
  }

  /** Whether the code calls `guard()`, also in a callback that a library runs. */
  #hasGuard(node: TS.Node): boolean {
    if (this.#isGuard(node)) return true;
    return this.#ts.forEachChild(node, (child) => this.#hasGuard(child) || undefined) ?? false;
  }

  #isGuard(node: TS.Node): boolean {
    const ts = this.#ts;
    if (!ts.isCallExpression(node)) return false;
    const called = bare(ts, node.expression);
    const name = ts.isPropertyAccessExpression(called) ? called.name : called;
    if (!ts.isIdentifier(name) || name.text !== "guard") return false;
    const [declaration] = this.#known.calls.symbolOf(called)?.declarations ?? [];
    return declaration !== undefined && GUARDS.some((one) => isDeclaredAs(ts, declaration, one));
  }

  #report(transaction: Transaction, lock: TaggedLock, path: readonly Step[]): Finding[] {
    const ts = this.#ts;
    const { at, fn } = transaction;
    const [first] = path;
    const spot = first === undefined ? tagOf(lock) : spotOfCall(ts, first);
    const place = first?.call ?? at;
    const reported = this.#reported.get(place) ?? new Set();
    this.#reported.set(place, reported);
    if (reported.has(lock)) return [];
    reported.add(lock);
    const start = ts.isCallExpression(at) ? spotOfCall(ts, { call: at }) : spotOf(at);
    const text = ts.isCallExpression(at) ? at.expression.getText() : at.getText();
    const [line = ""] = text.split("\n");
    const title = `the transaction of \`${line}\` (${placeText(start)})`;
    const name = nameOf(ts, fn);
    const caller =
      ts.isDecorator(at) || transaction.part !== undefined ? `\`${name ?? "a function"}\`` : "its callback";
    const proof = path.length === 0 ? "" : `: ${caller} ${stepsText(ts, path)}`;
    return [
      {
        file: spot.file,
        problem: problem("commitsAfterRelease", spot, lock.name, lock.flag, title, proof),
        isCertain: false,
        proof: [start, ...path.map((step) => spotOfCall(ts, step)), tagOf(lock)],
      },
    ];
  }
}
