import { inspect } from "node:util";
import { LockKeyError } from "../base/errors";
import type { KeyValue } from "../base/key";
import { formatValue } from "../base/format-value";

/** The most field names that an error lists. */
const MAX_NAMES = 20;

/**
 * Returns a field of a value after serialization, for `keyType=JSON`. The value is what `JSON.stringify` makes of it (`toJSON` applies, and
 * a `Map` counts as an object), or what JSON text contains.
 *
 * @param path field names and indices, such as `user.id` or `lines[0].sku`
 * @param site the function that asks, for messages
 * @throws {LockKeyError} if the text is not JSON, or if there is no such field. It names fields, but no values
 */
export function jsonField(value: unknown, path: string, site?: string): KeyValue {
  if (typeof path !== "string") {
    throw new LockKeyError(
      `Expected the path of jsonField() to be text such as "user.id", got ${formatValue(path)}`,
    );
  }
  const json = site === undefined ? "JSON" : `JSON in ${site}`;
  let field = typeof value === "string" ? parse(value, json) : serialize(value, json);
  const names = path.split(/\.|\[(?=\d+\])|\]\.?/).filter((step) => step !== "");
  for (const [depth, name] of names.entries()) {
    if (typeof field !== "object" || field === null || !Object.hasOwn(field, name)) {
      const parent = depth === 0 ? "it" : `\`${names.slice(0, depth).join(".")}\``;
      throw new LockKeyError(
        `Expected the ${json} to have a field \`${path}\`, but ${parent} ${describe(field)}`,
      );
    }
    field = (field as Record<string, unknown>)[name];
  }
  return field as KeyValue;
}

/** Describes JSON without its values, which may be secret. */
function describe(json: unknown): string {
  if (json === undefined) return "is a value that JSON cannot express";
  if (json === null) return "is null";
  if (typeof json !== "object") return `is a ${typeof json}`;
  if (Array.isArray(json)) return `is an array of ${json.length}`;
  const names = Object.keys(json);
  if (names.length === 0) return "has no fields";
  const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : "";
  const first = names.slice(0, MAX_NAMES).map((name) => inspect(name, { maxStringLength: 50 }));
  return `has the fields ${first.join(", ")}${more}`;
}

/** Parses JSON. The parser's error quotes the text, so it is neither in the message nor its cause. */
function parse(text: string, json: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new LockKeyError(`Expected ${json}, got other text of ${text.length} characters`);
  }
}

function serialize(value: unknown, json: string): unknown {
  try {
    const text = JSON.stringify(value, mapAsObject) as string | undefined;
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  } catch (error) {
    throw new LockKeyError(
      `Expected ${json}, got a value that cannot be written as JSON: ${formatValue(value)}`,
      {
        cause: error,
      },
    );
  }
}

function mapAsObject(_name: string, value: unknown): unknown {
  return value instanceof Map ? Object.fromEntries(value) : value;
}
