import { inspect } from "node:util";
import { LockKeyError } from "./errors";
import type { KeyValue } from "./key";
import { formatValue } from "./format-value";

/** Of the fields that are there, where the one that is asked for is not. */
const MOST_NAMES = 20;

/**
 * The field of a value after serialisation, for `keyType=JSON`: what `JSON.stringify` makes of the value
 * (`toJSON` is honoured, a `Map` counts as an object), or of text that is JSON already.
 *
 * @param path field names and indices, such as `user.id` or `lines[0].sku`
 * @param site the function that asks, for messages
 * @throws {LockKeyError} when the text is not JSON or there is no such field. It names fields, and no values
 */
export function jsonField(value: unknown, path: string, site?: string): KeyValue {
  if (typeof path !== "string") {
    throw new LockKeyError(
      `Expected the path of jsonField() to be text such as "user.id", got ${formatValue(path)}`,
    );
  }
  const json = site === undefined ? "JSON" : `JSON in ${site}`;
  let field = typeof value === "string" ? parsed(value, json) : serialised(value, json);
  const names = path.split(/\.|\[(?=\d+\])|\]\.?/).filter((step) => step !== "");
  for (const [depth, name] of names.entries()) {
    if (typeof field !== "object" || field === null || !Object.hasOwn(field, name)) {
      const parent = depth === 0 ? "it" : `\`${names.slice(0, depth).join(".")}\``;
      throw new LockKeyError(
        `Expected the ${json} to have a field \`${path}\`, but ${parent} ${described(field)}`,
      );
    }
    field = (field as Record<string, unknown>)[name];
  }
  return field as KeyValue;
}

/** What of JSON can be told to anybody. */
function described(json: unknown): string {
  if (json === undefined) return "is nothing that JSON can express";
  if (json === null) return "is null";
  if (typeof json !== "object") return `is a ${typeof json}`;
  if (Array.isArray(json)) return `is an array of ${json.length}`;
  const names = Object.keys(json);
  if (names.length === 0) return "has no fields";
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : "";
  const first = names.slice(0, MOST_NAMES).map((name) => inspect(name, { maxStringLength: 50 }));
  return `has the fields ${first.join(", ")}${more}`;
}

/** The parser's own words quote the text, so they are neither in the message nor its cause. */
function parsed(text: string, json: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new LockKeyError(`Expected ${json}, got other text of ${text.length} characters`);
  }
}

function serialised(value: unknown, json: string): unknown {
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
