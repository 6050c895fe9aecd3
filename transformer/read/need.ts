import type { Source } from "../parser/parser";
import { problem, type Problem } from "../text/problems";
import { byName, readTogether, spanOf, type Defaults, type Reading, type Value } from "./attributes";
import type { JoinPoint } from "./join-points";
import { readKey, readWholeKey } from "./key";
import { awaits } from "./expression";
import { identifiersOf } from "./names";
import {
  expressionsIn,
  hiddenNameProblems,
  isReader,
  plannedTag,
  readFlag,
  readOption,
  type PlannedTag,
} from "./plan";
import { isAsync } from "./syntax";

/** A `@needsLock`: a lock that the callers of a function must hold. */
export interface NeedPlan extends PlannedTag {
  /** Whether a read lock satisfies the need, too. */
  readonly isReadEnough: boolean;
  readonly warnings: readonly Problem[];
}

/** The attributes that tell which lock it is. All others are about how a lock is acquired. */
export const NEED_ATTRIBUTES: ReadonlySet<string> = new Set([
  "businessFlag",
  "keyName",
  "keyType",
  "keyClass",
  "fieldName",
  "key",
  "store",
  "mode",
]);

/** Returns the plan for a `@needsLock`, or all its problems. */
export function planNeed(source: Source, point: JoinPoint, defaults: Defaults): NeedPlan | Problem[] {
  const { ts, file } = source;
  const { fn, tag } = point;
  const reading: Reading = { ts, file, problems: [], warnings: [] };
  const attributes = byName(tag.attributes, reading);
  for (const [name, attribute] of attributes) {
    if (!NEED_ATTRIBUTES.has(name)) reading.problems.push(problem("notOfNeed", attribute.name, name));
  }
  const flag = readFlag(point, attributes, reading);
  const wholeKey = readWholeKey(fn, attributes, reading);
  const key = wholeKey === undefined ? readKey(fn, attributes, reading) : [];
  const values = new Map<string, Value>();
  const ofProject = defaults.get("store");
  if (ofProject !== undefined) values.set("store", ofProject);
  for (const name of ["store", "mode"]) {
    const attribute = attributes.get(name);
    const value = attribute && readOption(name, attribute.items, reading);
    if (value !== undefined) values.set(name, value);
  }
  readTogether(tag, attributes, values, reading);
  const code = expressionsIn(key, wholeKey, [], []);
  reading.problems.push(...hiddenNameProblems(source, fn, code));
  if (!isAsync(ts, fn) && awaits(source, code)) {
    const at = spanOf(attributes.get("keyName") ?? attributes.get("key")) ?? tag.word;
    reading.problems.push(problem("awaitInNeed", at));
  }
  if (reading.problems.length > 0) return reading.problems;
  const names = identifiersOf(source, code);
  return {
    ...plannedTag(point, flag, key, wholeKey, names, values),
    isReadEnough: isReader(values),
    warnings: reading.warnings,
  };
}
