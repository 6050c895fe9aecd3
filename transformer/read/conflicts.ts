import { MS_PER_UNIT, type DurationUnit } from "../../runtime/limits";
import { refusedAmong, formatAttribute } from "../../runtime/conflicts";
import { problem } from "../text/problems";
import { literalOf, OPTION_READERS, type Value } from "./options";
import { spanOf, type Reading } from "./reading";
import type { Attribute, Tag } from "./tag";

/**
 * Reports attributes that are valid alone, and not together. Each problem points at an attribute of the tag, or at the tag if the project's
 * defaults cause it.
 */
export function readTogether(
  tag: Tag,
  attributes: ReadonlyMap<string, Attribute>,
  values: ReadonlyMap<string, Value>,
  { problems }: Reading,
): void {
  /** Returns a value as the tag writes it: `20s`, `false`. */
  const textOf = (name: string): string | undefined => literalOf(values.get(name))?.replaceAll('"', "");
  const isGiven = (name: string): boolean =>
    name in OPTION_READERS ? hasEffect(name, textOf(name)) : attributes.has(name);
  const pairs = refusedAmong(({ name, value }) =>
    value === undefined ? isGiven(name) : textOf(name) === value,
  );
  for (const { one, other, because } of pairs) {
    const at = spanOf(attributes.get(one.name)) ?? spanOf(attributes.get(other.name)) ?? tag.word;
    problems.push(problem("refusedPair", at, formatAttribute(one), formatAttribute(other), because));
  }
  const [holdAtMost, lockAtLeast, lockTime] = [
    textOf("holdAtMost"),
    textOf("lockAtLeast"),
    textOf("lockTime"),
  ];
  // A tag without a lock time uses the one of `configure({ defaults })`, which is known only at run time.
  if (holdAtMost !== undefined && lockTime !== undefined && msOf(holdAtMost) < msOf(lockTime)) {
    const at = spanOf(attributes.get("holdAtMost")) ?? spanOf(attributes.get("lockTime")) ?? tag.word;
    problems.push(problem("shorterThanLockTime", at, "holdAtMost", lockTime));
  }
  if (lockAtLeast === undefined || lockTime === undefined || msOf(lockAtLeast) <= msOf(lockTime)) return;
  const at = spanOf(attributes.get("lockAtLeast")) ?? spanOf(attributes.get("lockTime")) ?? tag.word;
  problems.push(problem("longerThanLockTime", at, "lockAtLeast", lockTime));
}

/** A count with which an attribute does what it does by default. */
const DEFAULT_COUNTS: Readonly<Record<string, string>> = { replicas: "0", permits: "1" };

/** Whether the attribute has another value than its default. A duration of 0 is the default of `lockAtLeast`. */
function hasEffect(name: string, value: string | undefined): boolean {
  return value !== undefined && value !== DEFAULT_COUNTS[name] && msOf(value) !== 0;
}

/** Returns the milliseconds of a duration such as `20s`, or NaN for any other text. */
function msOf(duration: string): number {
  const [, amount, unit] = /^([\d.]+)(\D+)$/.exec(duration) ?? [];
  return Number(amount) * MS_PER_UNIT[unit as DurationUnit];
}
