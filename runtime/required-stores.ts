import { LockMisconfiguredError } from "./errors";

/** By the names of stores: the tagged functions that ask for it. */
const needed = new Map<string, Set<string>>();

/** Takes note of what woven modules say of themselves when they are loaded. */
export function noteNeed(store: string, sites: readonly string[]): void {
  const known = needed.get(store) ?? new Set();
  for (const site of sites) known.add(site);
  needed.set(store, known);
}

/** @throws {LockMisconfiguredError} when a tag of a module that was loaded asks for another store */
export function assertAllNeeded(stores: readonly string[]): void {
  const missing = missingOf(stores);
  if (missing !== undefined) throw missing;
}

/** Returns what is wrong if a tag of a module that was loaded asks for another store. */
export function missingOf(stores: readonly string[]): LockMisconfiguredError | undefined {
  const missing = [...needed].filter(([store]) => !stores.includes(store));
  return missing.length > 0 ? noStore(missing, stores) : undefined;
}

/** Sites that a message names; of the others it has the number. */
const MOST_SITES = 5;

/**
 * @param missing the names of stores, and who asks for each
 * @param stores what `configure()` is given
 */
export function noStore(
  missing: readonly (readonly [store: string, sites: Iterable<string>])[],
  stores: readonly string[],
): LockMisconfiguredError {
  const each = missing.map(([store, sites]) => `no store \`${store}\`${askedBy([...sites])}`).join(", and ");
  const there = stores.map((name) => `\`${name}\``).join(", ");
  const cure = missing.map(([store]) => `${property(store)}: "redis://..."`).join(", ");
  return new LockMisconfiguredError(
    `There is ${each}: configure() is given ${there}. Add it: configure({ ..., stores: { ${cure} } }).`,
  );
}

function askedBy(sites: readonly string[]): string {
  if (sites.length === 0) return "";
  const named = sites.slice(0, MOST_SITES).join(", ");
  const more = sites.length > MOST_SITES ? ` and ${sites.length - MOST_SITES} more` : "";
  return `, which ${named}${more} ${sites.length === 1 ? "asks" : "ask"} for`;
}

function property(name: string): string {
  return name.includes("-") ? JSON.stringify(name) : name;
}
