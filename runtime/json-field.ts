import { LockKeyError } from "./errors";
import type { KeyValue } from "./key";
import { shown } from "./shown";

/**
 * The field of a value after serialisation, for `keyType=JSON`: what `JSON.stringify` makes of the value
 * (`toJSON` is honoured, a `Map` counts as an object), or of text that is JSON already.
 *
 * @param path field names and indices, such as `user.id` or `lines[0].sku`
 * @throws {LockKeyError} when the text is not JSON or there is no such field
 */
export function jsonField(value: unknown, path: string): KeyValue {
  if (typeof path !== "string") {
    throw new LockKeyError(
      `Expected the path of jsonField() to be text such as "user.id", got ${shown(path)}`,
    );
  }
  let field = serialised(value);
  for (const name of path.split(/\.|\[(?=\d+\])|\]\.?/).filter((step) => step !== "")) {
    if (typeof field !== "object" || field === null || !Object.hasOwn(field, name)) {
      throw new LockKeyError(`Expected the JSON of ${shown(value, 1)} to have a field \`${path}\``);
    }
    field = (field as Record<string, unknown>)[name];
  }
  return field as KeyValue;
}

function serialised(value: unknown): unknown {
  try {
    const text = typeof value === "string" ? value : JSON.stringify(value, mapAsObject);
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  } catch (error) {
    throw new LockKeyError(`Expected JSON, got ${shown(value, 1)}`, { cause: error });
  }
}

function mapAsObject(_name: string, value: unknown): unknown {
  return value instanceof Map ? Object.fromEntries(value) : value;
}
