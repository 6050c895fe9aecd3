import { LockKeyError } from "./errors";
import { MOST_KEYS, RESERVED_NAMESPACE } from "./limits";
import { formatValue } from "./format-value";

/** A part of a lock key: a value whose text identifies it. */
export type KeyValue = string | number | bigint | boolean;

/**
 * Returns the key of a lock: `LOCK_<businessFlag>_<part>,<part>...`, or `LOCK_<businessFlag>` without parts.
 * Different flags and parts never make the same key. In a flag, `_` becomes `%5F`. In a part, `,` becomes `%2C`. In both, `%` becomes `%25`.
 * A number and its text (`7` and `"7"`) are the same part.
 *
 * @throws {LockKeyError} if a part identifies nothing: `undefined`, `null`, `""`, `NaN`, an object, or an integer beyond `2 ** 53`
 */
export function lockKey(businessFlag: string, ...parts: readonly KeyValue[]): string {
  let key = nameOfFlag(businessFlag);
  for (let index = 0; index < parts.length; index += 1) {
    const text = textOf(parts[index], nameOfPart, businessFlag, index);
    key += (index === 0 ? "_" : ",") + escape(text, ",");
  }
  return key;
}

function nameOfPart(flag: string, index: number): string {
  return `key part ${index + 1} of "${flag}"`;
}

/** The last flag and its escaped name. A call site has the same flag each time. */
let last = { flag: "", name: "" };

function nameOfFlag(flag: string): string {
  if (flag === last.flag && flag !== "") return last.name;
  if (typeof flag !== "string" || flag === "") {
    throw new LockKeyError(`Expected \`businessFlag\` to be a non-empty string, got ${formatValue(flag)}`);
  }
  const escaped = escape(wellFormed(flag, sameName, "businessFlag"), "_");
  last = { flag, name: `LOCK_${escaped}` };
  return last.name;
}

/**
 * Returns the key of a lock for each part, and for each element of a part that is an array.
 *
 * @throws {LockKeyError} if there are no parts or more than 256, or if one identifies nothing: see {@link lockKey}
 */
export function lockKeys(
  businessFlag: string,
  parts: readonly (KeyValue | readonly KeyValue[])[],
): readonly string[] {
  // `Array.from` also visits the holes of an array, which identify nothing.
  const keys = parts.flatMap((part) =>
    isArray(part) ? Array.from(part, (one) => lockKey(businessFlag, one)) : [lockKey(businessFlag, part)],
  );
  return countedKeys(keys, () => ` of ${formatValue(businessFlag)}`);
}

function isArray(part: KeyValue | readonly KeyValue[]): part is readonly KeyValue[] {
  return Array.isArray(part);
}

/**
 * Returns the keys of one lock.
 *
 * @throws {LockKeyError} if there are none, or too many
 */
export function countedKeys(keys: readonly string[], of = (): string => ""): readonly string[] {
  const { size } = new Set(keys);
  if (size > 0 && size <= MOST_KEYS) return keys;
  throw new LockKeyError(`Expected 1 to ${MOST_KEYS} keys${of()} to lock together, got ${size}`);
}

/**
 * Returns the template's text as the whole key, without a prefix: wholeKey`mutex:${orderNo}`. Use it for locks that other programs share.
 * The values are as for {@link lockKey}.
 *
 * Different values in one template never make the same key. There is text between any two values, and a value may not contain the text
 * after it.
 *
 * @throws {LockKeyError} if a value identifies nothing, or makes the key ambiguous
 */
export function wholeKey(template: TemplateStringsArray, ...values: readonly KeyValue[]): string {
  if (!isTemplate(template)) {
    throw new LockKeyError(
      `Expected wholeKey to tag a template, as in wholeKey\`mutex:\${orderNo}\`, got ${formatValue(template)}`,
    );
  }
  if (template.includes(undefined as never)) {
    throw new LockKeyError(
      `Expected a template without invalid escapes such as \\u and \\x, got wholeKey\`${template.raw.join("${}")}\`. Fix: write a backslash as \\\\`,
    );
  }
  const shape = template.join("${}");
  const pieces: string[] = [];
  values.forEach((value, index) => {
    const text = textOf(value, nameOfValue, shape, index);
    const following = template[index + 1] ?? "";
    const isLast = index === values.length - 1;
    if (!isLast && following === "") {
      throw new LockKeyError(
        `Expected text between values ${index + 1} and ${index + 2} of the key "${shape}". Without it, "1" and "23" make the same key as "12" and "3"`,
      );
    }
    // `text + following`, because a value that ends with the first half of `following` also makes `following` begin earlier.
    if (!isLast && (text + following).indexOf(following) < text.length) {
      throw new LockKeyError(
        `Expected ${nameOfValue(shape, index)} not to contain the text ${formatValue(following)} that follows it, got ${formatValue(value)}`,
      );
    }
    pieces.push(template[index] ?? "", text);
  });
  return [...pieces, template[values.length] ?? ""].join("");
}

function isTemplate(template: unknown): boolean {
  try {
    return Array.isArray((template as Partial<TemplateStringsArray> | undefined)?.raw);
  } catch {
    return false; // A revoked proxy.
  }
}

function nameOfValue(shape: string, index: number): string {
  return `value ${index + 1} of the key "${shape}"`;
}

/**
 * Returns the key if it may be the key of a lock.
 *
 * @throws {LockKeyError} if it may not
 */
export function checkedKey(key: unknown): string {
  if (typeof key !== "string" || key === "") {
    throw new LockKeyError(`Expected the lock key to be a non-empty string, got ${formatValue(key)}`);
  }
  if (key.startsWith(RESERVED_NAMESPACE)) {
    throw new LockKeyError(
      `Expected a lock key that does not begin with "${RESERVED_NAMESPACE}", which is reserved for Lockweave's queues, got ${formatValue(key)}`,
    );
  }
  return wellFormed(key, sameName, "the lock key");
}

/** Returns what messages call a value. A function, so that the text is built only for an error. */
type NameOf = (of: string, index: number) => string;

function sameName(name: string): string {
  return name;
}

function textOf(part: unknown, nameOf: NameOf, of: string, index: number): string {
  switch (typeof part) {
    case "string":
      if (part === "") break;
      return wellFormed(part, nameOf, of, index);
    case "number":
      // Beyond the safe integers, two identities have the same number: 2 ** 53 and 2 ** 53 + 1.
      if (!Number.isFinite(part) || (Number.isInteger(part) && !Number.isSafeInteger(part))) break;
      return String(part);
    case "bigint":
    case "boolean":
      return String(part);
    default:
  }
  throw new LockKeyError(
    `Expected ${nameOf(of, index)} to be a non-empty string, a finite number in the safe range, a bigint, or a boolean, got ${formatValue(part)}`,
  );
}

/** Rejects lone surrogates. They have no UTF-8 form of their own, so two different keys would be the same in Redis. */
function wellFormed(text: string, nameOf: NameOf, of: string, index = 0): string {
  if (text.isWellFormed()) return text;
  throw new LockKeyError(`Expected ${nameOf(of, index)} to be well-formed Unicode, got ${formatValue(text)}`);
}

function escape(text: string, separator: "_" | ","): string {
  if (!text.includes(separator) && !text.includes("%")) return text;
  return text.replaceAll("%", "%25").replaceAll(separator, separator === "_" ? "%5F" : "%2C");
}
