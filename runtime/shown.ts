import { inspect } from "node:util";

/** A value for a message, whatever it is: one that throws when it is looked at must not replace the message. */
export function shown(value: unknown, depth = 2): string {
  try {
    return inspect(value, { depth });
  } catch {
    return `a ${typeof value} that throws when it is shown`;
  }
}

/** Whether it can be an object of named options: an array, a `Map`, a `Date` or a promise would be read as empty. */
export function isOptions(value: unknown): value is object {
  return (
    typeof value === "object" && value !== null && Object.prototype.toString.call(value) === "[object Object]"
  );
}
