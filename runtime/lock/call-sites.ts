import { readFrom, readOptions } from "../options";
import { areInherited, LOCK_OPTIONS, unknownLockOption } from "./settings";

/** What one place in the code asks for. */
export interface Asked<Made> {
  readonly made: Made;
  /** Returns an option that differs from call to call, of the options that were asked with. */
  differing<Options extends object, Name extends keyof Options & string>(
    options: Options,
    name: Name,
  ): Options[Name] | undefined;
}

/**
 * Makes something of the options of each call site. A call site asks for the same each time: so its options are checked once,
 * and made into something once.
 *
 * @param make given the checked options; `others` are the names of those that are not for the lock
 */
export function oncePerCallSite<Made>(
  make: (options: object, site: string | undefined, others: readonly string[]) => Made,
): (options: object, site: string | undefined, others: readonly string[]) => Asked<Made> {
  const callSites = new Map<string | undefined, CallSiteOptions<Made>>();
  return (options, site, others) => {
    const known = callSites.get(site);
    if (known?.areThose(options) === true) return known;
    const unknownOption = (name: string) => unknownLockOption(name, others);
    const own = readOptions(options, [...others, ...LOCK_OPTIONS], unknownOption);
    const asked = new CallSiteOptions(own, others, make(own, site, others));
    callSites.set(site, asked);
    return asked;
  };
}

/** Options that were checked, and what was made of them. */
class CallSiteOptions<Made> implements Asked<Made> {
  readonly made: Made;
  readonly #names: readonly string[];
  /** The values of these names, or `DIFFERS`. */
  readonly #values: readonly unknown[];

  constructor(own: object, others: readonly string[], made: Made) {
    this.made = made;
    this.#names = Object.keys(own);
    this.#values = Object.entries(own).map(([name, value]) => (others.includes(name) ? DIFFERS : value));
  }

  /** Whether these are the same options again, and inherit none. A prototype may have changed since the last call. */
  areThose(options: object): boolean {
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
      return false; // `readOptions` reports what cannot be read.
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
