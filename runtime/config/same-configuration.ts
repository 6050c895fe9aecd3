/**
 * Whether two configurations are the same: equal texts, numbers, and plain options, and identical clients, stores, loggers, and clocks. Two
 * of these may behave differently, however similar they look.
 */
export function isSameConfiguration(one: object, other: object): boolean {
  try {
    return isSame(one, other);
  } catch {
    return false; // An option that cannot be read is reported when it is checked.
  }
}

function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((element, index) => isSame(element, other[index]));
  }
  if (!isPlain(one) || !isPlain(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
  );
}

/** Whether the value is an object of options. An object with a function has behavior, as a logger does. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Each realm has its own `Object.prototype`.
  const isObject = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isObject && Object.values(value).every((member) => typeof member !== "function");
}
