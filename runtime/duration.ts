import { LockOptionError } from "./errors";
import { shown } from "./shown";

/** A length of time with its unit: `"500ms"`, `"20s"`, `"2m"`, `"1h"`. */
export type Duration = `${number}${"ms" | "s" | "m" | "h"}`;

const MS_PER_UNIT = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const LONGEST_MS = 24 * MS_PER_UNIT.h;

const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/;

/**
 * The milliseconds of a duration, a whole number: Redis takes no other.
 *
 * @throws {LockOptionError} when `value` is no duration, or lies outside `shortestMs` to 24 hours.
 */
export function milliseconds(name: string, value: unknown, shortestMs = 0): number {
  const expected = `Expected \`${name}\` to be a duration such as "30s" or "500ms"`;
  const match = typeof value === "string" ? PATTERN.exec(value) : null;
  if (match === null) throw new LockOptionError(`${expected}, got ${shown(value)}`);
  const [, amount, unit] = match;
  const ms = Math.round(Number(amount) * MS_PER_UNIT[unit as keyof typeof MS_PER_UNIT]);
  if (ms < shortestMs)
    throw new LockOptionError(`${expected} of at least ${shortestMs} ms, got ${shown(value)}`);
  if (ms > LONGEST_MS) throw new LockOptionError(`${expected} of at most 24 hours, got ${shown(value)}`);
  return ms;
}
