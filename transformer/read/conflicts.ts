import { formatAttribute, refusedAmong } from "../../runtime/attributes/conflicts";
import { ATTRIBUTES, type AttributeName } from "../../runtime/attributes/tag-attributes";
import { MS_PER_UNIT, type DurationUnit } from "../../runtime/base/limits";
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
  const isGiven = (name: AttributeName): boolean =>
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

/** Whether the attribute has another value than its default. */
function hasEffect(name: AttributeName, value: string | undefined): boolean {
  const row = ATTRIBUTES[name];
  if (value === undefined || !("default" in row)) return value !== undefined;
  return row.kind === "time" ? msOf(value) !== row.default : value !== String(row.default);
}

/** Returns the milliseconds of a duration such as `20s`, or NaN for any other text. */
function msOf(duration: string): number {
  const [, amount, unit] = /^([\d.]+)(\D+)$/.exec(duration) ?? [];
  return Number(amount) * MS_PER_UNIT[unit as DurationUnit];
}
