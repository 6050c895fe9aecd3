import { LockError, LockOptionError, errorMessage } from "./errors";

/** Whether the value can be an object of named options. An array, a `Map`, a `Date`, or a promise would seem to have no options. */
export function isOptions(value: unknown): value is object {
  try {
    return (
      typeof value === "object" &&
      value !== null &&
      Object.prototype.toString.call(value) === "[object Object]"
    );
  } catch {
    return false; // A revoked proxy.
  }
}

/**
 * Reads the options in an object from a caller. Returns a copy without a prototype, so every later read sees each option as it is at this
 * moment, and nothing that the object inherits.
 *
 * @param names the names of all options
 * @param unknownOption creates the error for any other name
 * @throws {LockOptionError} if the object inherits a known option, or if an option cannot be read
 */
export function readOptions<Options extends object>(
  given: Options,
  names: readonly string[],
  unknownOption: (name: string) => LockOptionError,
): Options {
  const options = Object.create(null) as Record<string, unknown>;
  for (const name of readFrom("The options", () => Object.keys(given))) {
    if (!names.includes(name)) throw unknownOption(name);
    options[name] = readFrom(`The option \`${name}\``, () => given[name as keyof Options]);
  }
  assertOwn(given, options, names);
  return options as Options;
}

/**
 * @param own the options that were read from `given`
 * @throws {LockOptionError} if `given` has an option with one of these names that `own` lacks
 */
export function assertOwn(given: object, own: object, names: readonly string[]): void {
  const lacking = readFrom("The options", () => names.find((name) => !(name in own) && name in given));
  if (lacking !== undefined) throw new LockOptionError(notOwn(lacking));
}

/** Returns the first of these options that the object inherits or that is not enumerable, if there is one. */
export function inheritedAmong(names: readonly string[], given: object): string | undefined {
  return names.find((name) => name in given && !Object.keys(given).includes(name));
}

/** Returns why such an option is refused, and what to do. */
export function notOwn(name: string): string {
  return name in Object.prototype
    ? `Object.prototype has a property \`${name}\`, so every object seems to have this option. Fix: find the code that sets it, and remove that code`
    : `The option \`${name}\` is inherited or not enumerable, so Lockweave does not read it. Fix: set it on the object itself: { ${name}: ... }`;
}

/**
 * Calls `read`, and converts its errors.
 *
 * @throws {LockOptionError} if `read` throws an error of another kind, with that error as its cause
 */
export function readFrom<Value>(what: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof LockError) throw error;
    throw new LockOptionError(`${what} cannot be read: ${errorMessage(error)}`, { cause: error });
  }
}
