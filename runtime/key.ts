import { LockKeyError } from "./errors";
import { MOST_KEYS } from "./limits";
import { shown } from "./shown";

/** What can be a part of a lock key: a value whose text is its identity. */
export type KeyValue = string | number | bigint | boolean;

/**
 * The name of a lock: `LOCK_<businessFlag>_<part>,<part>...`, or `LOCK_<businessFlag>` without parts.
 *
 * Different flags and parts never make the same key: `_` ends the flag and `,` ends a part, so these two
 * characters, and the `%` that escapes them, are written `%5F`, `%2C` and `%25` where they would be
 * misread. A number and its text (`7` and `"7"`) are the same part.
 *
 * @throws {LockKeyError} when a part is no identity: `undefined`, `null`, `""`, `NaN`, an object, an integer
 *   beyond 2 ** 53, ...
 */
export function lockKey(businessFlag: string, ...parts: readonly KeyValue[]): string {
  if (typeof businessFlag !== "string" || businessFlag === "") {
    throw new LockKeyError(`Expected \`businessFlag\` to be a non-empty string, got ${shown(businessFlag)}`);
  }
  const flag = escape(
    wellFormed(businessFlag, () => "businessFlag"),
    "_",
  );
  if (parts.length === 0) return `LOCK_${flag}`;
  const texts = parts.map((part, index) => escape(textOf(part, index, businessFlag), ","));
  return ["LOCK_", flag, "_", texts.join(",")].join(""); // A concatenated string would keep its pieces.
}

/**
 * The name of a lock for each part by itself, and for each element of one that is an array.
 *
 * @throws {LockKeyError} when there is none, when there are more than 256, and when one is no identity: see {@link lockKey}
 */
export function lockKeys(
  businessFlag: string,
  parts: readonly (KeyValue | readonly KeyValue[])[],
): readonly string[] {
  const keys = parts.flat().map((part) => lockKey(businessFlag, part));
  return countedKeys(keys, () => ` of ${shown(businessFlag)}`);
}

/** The keys of one lock, if they are as many as it may have. */
export function countedKeys(keys: readonly string[], of = (): string => ""): readonly string[] {
  const { size } = new Set(keys);
  if (size > 0 && size <= MOST_KEYS) return keys;
  throw new LockKeyError(`Expected from 1 to ${MOST_KEYS} keys${of()} to be locked together, got ${size}`);
}

function textOf(part: unknown, index: number, businessFlag: string): string {
  switch (typeof part) {
    case "string":
      if (part === "") break;
      return wellFormed(part, () => nameOf(index, businessFlag));
    case "number":
      // Beyond the safe integers two identities have one number: 2 ** 53 and 2 ** 53 + 1.
      if (!Number.isFinite(part) || (Number.isInteger(part) && !Number.isSafeInteger(part))) break;
      return String(part);
    case "bigint":
    case "boolean":
      return String(part);
    default:
  }
  throw new LockKeyError(
    `Expected ${nameOf(index, businessFlag)} to be a non-empty string, a finite number in the safe range, a bigint or a boolean, got ${shown(part)}`,
  );
}

function nameOf(index: number, businessFlag: string): string {
  return `key part ${index + 1} of "${businessFlag}"`;
}

/** A lone surrogate has no UTF-8 of its own: two of them would meet in one key on the wire. */
export function wellFormed(text: string, name: () => string): string {
  if (text.isWellFormed()) return text;
  throw new LockKeyError(`Expected ${name()} to be well-formed Unicode, got ${shown(text)}`);
}

function escape(text: string, separator: "_" | ","): string {
  if (!text.includes(separator) && !text.includes("%")) return text;
  return text.replaceAll("%", "%25").replaceAll(separator, separator === "_" ? "%5F" : "%2C");
}
