/**
 * Whether two configurations are the same: equal texts, numbers, and plain options, and identical clients, stores, loggers, clocks, and
 * functions. Two of these may behave differently, however similar they look.
 */
export function isSameConfiguration(one: object, other: object): boolean {
  try {
    return hasSameMembers(one as Members, other as Members);
  } catch {
    return false; // An option that cannot be read is reported when it is checked.
  }
}

function isSame(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((element, index) => isSame(element, other[index]));
  }
  return isPlain(one) && isPlain(other) && hasSameMembers(one, other);
}

type Members = Readonly<Record<string, unknown>>;

function hasSameMembers(one: Members, other: Members): boolean {
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
  );
}

/** Whether the value is an object of options. An object with a function has behavior, as a logger does. */
function isPlain(value: unknown): value is Members {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Each realm has its own `Object.prototype`.
  const isObject = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isObject && Object.values(value).every((member) => typeof member !== "function");
}
