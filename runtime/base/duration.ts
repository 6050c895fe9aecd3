import { LockOptionError } from "./errors";
import { LONGEST_DURATION_HOURS, MS_PER_UNIT, type DurationUnit } from "./limits";
import { formatValue } from "./format-value";

/** A length of time with its unit: `"500ms"`, `"20s"`, `"2m"`, `"1h"`. */
export type Duration = `${number}${DurationUnit}`;

const LONGEST_MS = LONGEST_DURATION_HOURS * MS_PER_UNIT.h;

const PATTERN = new RegExp(String.raw`^(\d+(?:\.\d+)?)(${Object.keys(MS_PER_UNIT).join("|")})$`);

/**
 * Returns the milliseconds of a duration, as a whole number, because Redis accepts no other.
 *
 * @param orElse for messages: the other values that the caller accepts
 * @throws {LockOptionError} if `value` is not a duration, is shorter than `shortestMs`, or is longer than 24 hours
 */
export function milliseconds(name: string, value: unknown, shortestMs = 0, orElse = ""): number {
  const expected = (range = ""): string =>
    `Expected \`${name}\` to be a duration such as "30s" or "500ms"${range}${orElse}, got ${formatValue(value)}`;
  const match = typeof value === "string" ? PATTERN.exec(value) : null;
  if (match === null) throw new LockOptionError(`${expected()}${fixOf(value)}`);
  const [, amount, unit] = match;
  const ms = Math.round(Number(amount) * MS_PER_UNIT[unit as DurationUnit]);
  if (ms < shortestMs) throw new LockOptionError(expected(` of at least ${shortestMs} ms`));
  if (ms > LONGEST_MS) throw new LockOptionError(expected(` of at most ${LONGEST_DURATION_HOURS} hours`));
  return ms;
}

/** Suggests units for a number without one. */
function fixOf(value: unknown): string {
  const amount = typeof value === "number" ? String(value) : value;
  if (typeof amount !== "string" || !/^\d+(?:\.\d+)?$/.test(amount)) return "";
  return `. Fix: write the unit, "${amount}s" or "${amount}ms"`;
}
