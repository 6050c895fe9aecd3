import { milliseconds } from "../base/duration";
import { LockOptionError } from "../base/errors";
import { formatValue } from "../base/format-value";
import type { OptionRow, Switch } from "./table";

/**
 * Returns the value of an option. A time is in milliseconds.
 *
 * @throws {LockOptionError} if the value is not one that the row of the table allows
 */
export function checked(name: string, row: OptionRow, value: unknown): unknown {
  switch (row.kind) {
    case "switch":
      return boolean(name, value, row);
    case "choice":
      return oneOf(name, value, row.values);
    case "count":
      return wholeNumber(name, value, row);
    case "time":
      return row.orForever === true ? waitBudget(name, value) : milliseconds(name, value, row.from);
    default:
      return storeName(name, value, row.pattern);
  }
}

/** @throws {LockOptionError} if the value is not a whole number in the range */
export function wholeNumber(
  name: string,
  value: unknown,
  { from = 0, to }: { readonly from?: number; readonly to: number },
): number {
  const isInRange = (number: number): boolean => number >= from && number <= to;
  if (typeof value === "number" && Number.isInteger(value) && isInRange(value)) return value;
  throw new LockOptionError(
    `Expected \`${name}\` to be a whole number from ${from} to ${to}, got ${formatValue(value)}`,
  );
}

/** Returns the milliseconds of a wait budget. It may be 0 or `"forever"`, too. */
function waitBudget(name: string, value: unknown): number {
  if (value === 0) return 0;
  return value === "forever" ? Infinity : milliseconds(name, value, 0, ', 0, or "forever"');
}

function boolean(name: string, value: unknown, { or }: Switch): boolean | string {
  if (typeof value === "boolean") return value;
  if (or !== undefined && value === or) return or;
  const expected = or === undefined ? "true or false" : `true, false, or "${or}"`;
  throw new LockOptionError(`Expected \`${name}\` to be ${expected}, got ${formatValue(value)}`);
}

function oneOf(name: string, value: unknown, values: readonly string[]): string {
  const found = values.find((each) => each === value);
  if (found !== undefined) return found;
  const expected = values.map((each) => `"${each}"`).join(" or ");
  throw new LockOptionError(`Expected \`${name}\` to be ${expected}, got ${formatValue(value)}`);
}

function storeName(name: string, value: unknown, pattern: RegExp): string {
  if (typeof value === "string" && pattern.test(value)) return value;
  throw new LockOptionError(
    `Expected \`${name}\` to be the name of a store (letters, digits, "-", and "_"), got ${formatValue(value)}`,
  );
}
