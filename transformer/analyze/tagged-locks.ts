import type * as TS from "typescript";
import { LOCK_ATTRIBUTES } from "../../runtime/attributes/table";
import { MS_PER_UNIT, type DurationUnit } from "../../runtime/base/limits";
import type { NeedPlan } from "../read/need";
import type { Plan, PlannedTag } from "../read/plan";
import { siteOptions } from "../read/site-options";
import type { LockableFunction } from "../read/syntax";
import type { Span } from "../text/span";

/** A source file of the program, and the plans of its tags. */
export interface TaggedSource {
  readonly source: TS.SourceFile;
  /** The plans for nodes of `source`. */
  readonly plans: readonly Plan[];
  readonly needs?: readonly NeedPlan[];
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
  /** Whether the lock is released when the body ends. Otherwise, it expires later. */
  readonly isReleased: boolean;
  /** The wait budget. If it is known only at the call, 0, because no rule may report a wait that may not happen. */
  readonly budgetMs: number;
  /** The time after which the lock ends, even if the body still runs. `Infinity`, too, if it is known only at the call. */
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
  const isUnknown = (...names: readonly string[]): boolean =>
    plan.expressions.some(({ name }) => names.includes(name));
  const lockTime = isUnknown("lockTime")
    ? Infinity
    : (milliseconds(options["lockTime"]) ?? LOCK_ATTRIBUTES.lockTime.default);
  const holdAtMost = isUnknown("holdAtMost") ? Infinity : milliseconds(options["holdAtMost"]);
  const isRenewed = options["watchdog"] !== false;
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
    family: familyOf(plan, parts),
    isReader,
    isAlwaysAlone: plan.when === undefined && plan.sharing === undefined,
    mayBeEnteredAgain: isReader || options["reentrant"] === true,
    isReleased: (options["autoUnlock"] ?? true) === true,
    budgetMs: isUnknown("wait", "retryTimes", "waitTime") ? 0 : budgetOf(options),
    endsAfterMs: ends[0],
    endsBy: ends[1],
  };
}

/** @param parts the number of the key's parts */
function familyOf({ store, wholeKey, options }: PlannedTag, parts: number): string {
  const { businessFlag } = siteOptions({ options });
  return JSON.stringify([
    store ?? LOCK_ATTRIBUTES.store.default,
    wholeKey?.kind ?? [String(businessFlag), parts],
  ]);
}

/** A lock that the callers of a function must hold. */
export interface TaggedNeed {
  readonly fn: LockableFunction;
  readonly file: TS.SourceFile;
  /** `Ledger.post` */
  readonly name: string;
  /** The tag. */
  readonly at: Span;
  /** The name of the lock in messages. */
  readonly flag: string;
  /** See {@link TaggedLock.family}. */
  readonly family: string;
  readonly isReadEnough: boolean;
}

/** Returns the needs in the order of {@link taggedLocks}. */
export function taggedNeeds(files: readonly TaggedSource[]): TaggedNeed[] {
  const inOrder = files.toSorted((a, b) => (a.source.fileName < b.source.fileName ? -1 : 1));
  return inOrder.flatMap(({ source, needs = [] }) =>
    needs.map((need) => ({
      fn: need.fn,
      file: source,
      name: need.site,
      at: need.at,
      flag: need.wholeKey?.shown ?? String(siteOptions(need)["businessFlag"]),
      family: familyOf(need, need.key.length),
      isReadEnough: need.isReadEnough,
    })),
  );
}

function budgetOf({ wait, waitTime, retryTimes }: Readonly<Record<string, unknown>>): number {
  if (wait !== undefined) return wait === "forever" ? Infinity : (milliseconds(wait) ?? 0);
  const waitMs = milliseconds(waitTime) ?? LOCK_ATTRIBUTES.waitTime.default;
  return waitMs * Number(retryTimes ?? LOCK_ATTRIBUTES.retryTimes.default);
}

function milliseconds(duration: unknown): number | undefined {
  const [, amount, unit] = /^([\d.]+)(\D+)$/.exec(typeof duration === "string" ? duration : "") ?? [];
  return unit === undefined ? undefined : Number(amount) * MS_PER_UNIT[unit as DurationUnit];
}
