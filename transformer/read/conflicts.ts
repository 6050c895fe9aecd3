import { MS_PER_UNIT, type DurationUnit } from "../../runtime/limits";
import { refusedAmong, wordsOf } from "../../runtime/conflicts";
import { problem } from "../text/problems";
import { literalOf, OPTION_READERS, type Value } from "./options";
import { spanOf, type Reading } from "./reading";
import type { Attribute, Tag } from "./tag";

/** What is wrong with attributes of which each alone is right. At those that the tag has itself. */
export function readTogether(
  tag: Tag,
  attributes: ReadonlyMap<string, Attribute>,
  values: ReadonlyMap<string, Value>,
  { problems }: Reading,
): void {
  /** In the words of the option: `20s`, `false`. */
  const said = (name: string): string | undefined => literalOf(values.get(name))?.replaceAll('"', "");
  const isGiven = (name: string): boolean =>
    name in OPTION_READERS ? isMoreThanNone(said(name)) : attributes.has(name);
  const pairs = refusedAmong(({ name, value }) =>
    value === undefined ? isGiven(name) : said(name) === value,
  );
  for (const { one, other, because } of pairs) {
    const at = spanOf(attributes.get(one.name)) ?? spanOf(attributes.get(other.name)) ?? tag.word;
    problems.push(problem("refusedPair", at, wordsOf(one), wordsOf(other), because));
  }
  const [most, least, lockTime] = [said("holdAtMost"), said("lockAtLeast"), said("lockTime")];
  // Without a lock time of its own, that of `configure({ defaults })` counts, at run time.
  if (most !== undefined && lockTime !== undefined && msOf(most) < msOf(lockTime)) {
    const at = spanOf(attributes.get("holdAtMost")) ?? spanOf(attributes.get("lockTime")) ?? tag.word;
    problems.push(problem("shorterThanLockTime", at, "holdAtMost", lockTime));
  }
  if (least === undefined || lockTime === undefined || msOf(least) <= msOf(lockTime)) return;
  const at = spanOf(attributes.get("lockAtLeast")) ?? spanOf(attributes.get("lockTime")) ?? tag.word;
  problems.push(problem("longerThanLockTime", at, "lockAtLeast", lockTime));
}

function isMoreThanNone(value: string | undefined): boolean {
  return value !== undefined && msOf(value) !== 0;
}

/** Of a duration with its unit, as options have it. */
function msOf(duration: string): number {
  const [, amount, unit] = /^([\d.]+)(\D+)$/.exec(duration) ?? [];
  return Number(amount) * MS_PER_UNIT[unit as DurationUnit];
}
