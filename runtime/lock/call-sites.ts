import { readFrom, readOptions } from "../base/options";
import { areInherited } from "../attributes/table";
import { LOCK_OPTIONS, unknownLockOption } from "./settings";

/** The checked options of one call. */
export interface Asked<Made> {
  /** What was made from the options of the call site. */
  readonly made: Made;
  /** Returns the value of an option that may differ from call to call. `options` are those of the call. */
  differing<Options extends object, Name extends keyof Options & string>(
    options: Options,
    name: Name,
  ): Options[Name] | undefined;
}

/**
 * Makes something from the options of each call site. A call site usually passes the same options each time. So they are checked only once,
 * and `make` is called only once.
 *
 * @param make receives the checked options. `others` are the names of the options that are not for the lock
 */
export function oncePerCallSite<Made>(
  make: (options: object, site: string | undefined, others: readonly string[]) => Made,
): (options: object, site: string | undefined, others: readonly string[]) => Asked<Made> {
  const callSites = new Map<string | undefined, CallSiteOptions<Made>>();
  return (options, site, others) => {
    const known = callSites.get(site);
    if (known?.areEqualTo(options) === true) return known;
    const unknownOption = (name: string) => unknownLockOption(name, others);
    const own = readOptions(options, [...others, ...LOCK_OPTIONS], unknownOption);
    const asked = new CallSiteOptions(own, others, make(own, site, others));
    callSites.set(site, asked);
    return asked;
  };
}

/** The checked options of a call site, and what was made from them. */
class CallSiteOptions<Made> implements Asked<Made> {
  readonly made: Made;
  readonly #names: readonly string[];
  /** The value of each option in `#names`, or `DIFFERS`. */
  readonly #values: readonly unknown[];

  constructor(own: object, others: readonly string[], made: Made) {
    this.made = made;
    this.#names = Object.keys(own);
    this.#values = Object.entries(own).map(([name, value]) => (others.includes(name) ? DIFFERS : value));
  }

  /** Whether these options equal the checked ones, and inherit none. A prototype may have changed since the last call. */
  areEqualTo(options: object): boolean {
    try {
      const names = Object.keys(options);
      if (names.length !== this.#names.length) return false;
      for (let index = 0; index < names.length; index += 1) {
        const name = names[index] as keyof typeof options;
        const value = this.#values[index];
        if (name !== this.#names[index] || (value !== DIFFERS && options[name] !== value)) return false;
      }
      const prototype: unknown = Object.getPrototypeOf(options);
      return prototype === null || (prototype === Object.prototype && !areInherited());
    } catch {
      return false; // `readOptions` reports options that cannot be read.
    }
  }

  differing<Options extends object, Name extends keyof Options & string>(
    options: Options,
    name: Name,
  ): Options[Name] | undefined {
    if (!this.#names.includes(name)) return undefined;
    return readFrom(`The option \`${name}\``, () => options[name]);
  }
}

const DIFFERS = Symbol("differs from call to call");
