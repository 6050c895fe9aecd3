import type * as TS from "typescript";
import { LOCK_ATTRIBUTES } from "../../runtime/attributes/table";
import { MS_PER_UNIT, type DurationUnit } from "../../runtime/base/limits";
import type { Plan } from "../read/plan";
import { siteOptions } from "../read/site-options";
import type { LockableFunction } from "../read/syntax";
import type { Span } from "../text/span";

/** A source file of the program, and the plans of its tags. */
export interface TaggedSource {
  readonly source: TS.SourceFile;
  /** The plans for nodes of `source`. */
  readonly plans: readonly Plan[];
}

/** The lock of a tagged function, with what its waiters need to know. Times are in milliseconds. */
export interface TaggedLock {
  readonly fn: LockableFunction;
  readonly file: TS.SourceFile;
  /** `OrderService.pay` */
  readonly name: string;
  /** The tag. */
  readonly at: Span;
  readonly plan: Plan;
  /** The name of the lock in messages: its flag, or its whole key. */
  readonly flag: string;
  readonly store: string;
  /** The store, the flag, and the number of the key's parts, or the kind of the whole key. Only locks of one family can be the same. */
  readonly family: string;
  readonly isReader: boolean;
  /** Whether every call acquires the lock, and holds it alone. */
  readonly isAlwaysAlone: boolean;
  readonly mayBeEnteredAgain: boolean;
  /** The wait budget. */
  readonly budgetMs: number;
  /** The time after which the lock ends, even if the body still runs. */
  readonly endsAfterMs: number;
  /** The attribute that determines when the lock ends, for messages. */
  readonly endsBy: string;
}

/** Returns the locks in the order of the files' names, which does not depend on the imports. */
export function taggedLocks(files: readonly TaggedSource[]): TaggedLock[] {
  const inOrder = files.toSorted((a, b) => (a.source.fileName < b.source.fileName ? -1 : 1));
  return inOrder.flatMap(({ source, plans }) => plans.map((plan) => lockOf(source, plan)));
}

function lockOf(file: TS.SourceFile, plan: Plan): TaggedLock {
  const options = siteOptions(plan);
  const flag = plan.wholeKey?.shown ?? String(options["businessFlag"]);
  const store = plan.store ?? LOCK_ATTRIBUTES.store.default;
  const parts = options["each"] === true ? 1 : plan.key.length;
  const isReader = options["mode"] === "read";
  const lockTime = milliseconds(options["lockTime"]) ?? LOCK_ATTRIBUTES.lockTime.default;
  const holdAtMost = milliseconds(options["holdAtMost"]);
  const isRenewed = options["watchdog"] !== false;
  const waitMs = milliseconds(options["waitTime"]) ?? LOCK_ATTRIBUTES.waitTime.default;
  const ends =
    holdAtMost === undefined
      ? ([isRenewed ? Infinity : lockTime, "lockTime"] as const)
      : ([holdAtMost, "holdAtMost"] as const);
  return {
    fn: plan.fn,
    file,
    name: plan.site,
    at: plan.at,
    plan,
    flag,
    store,
    family: JSON.stringify([store, plan.wholeKey?.kind ?? [flag, parts]]),
    isReader,
    isAlwaysAlone: plan.when === undefined && plan.sharing === undefined,
    mayBeEnteredAgain: isReader || options["reentrant"] === true,
    budgetMs: waitMs * Number(options["retryTimes"] ?? LOCK_ATTRIBUTES.retryTimes.default),
    endsAfterMs: ends[0],
    endsBy: ends[1],
  };
}

function milliseconds(duration: unknown): number | undefined {
  const [, amount, unit] = /^([\d.]+)(\D+)$/.exec(typeof duration === "string" ? duration : "") ?? [];
  return unit === undefined ? undefined : Number(amount) * MS_PER_UNIT[unit as DurationUnit];
}
