import { milliseconds } from "../base/duration";
import { LockOptionError } from "../base/errors";
import { formatValue } from "../base/format-value";
import type { OptionRow } from "./table";

/**
 * Returns the value of an option, and a time as its milliseconds.
 *
 * @throws {LockOptionError} if the value is not one that the row of the table allows
 */
export function checked(name: string, row: OptionRow, value: unknown): unknown {
  switch (row.kind) {
    case "switch":
      return boolean(name, value);
    case "choice":
      return oneOf(name, value, row.values);
    case "count":
      return wholeNumber(name, value, row);
    case "time":
      return milliseconds(name, value, row.from);
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

function boolean(name: string, value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new LockOptionError(`Expected \`${name}\` to be true or false, got ${formatValue(value)}`);
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
