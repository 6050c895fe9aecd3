import { LockMisconfiguredError } from "../base/errors";

/** The tagged functions that use each store, by its name. */
const required = new Map<string, Set<string>>();

/** Records the stores that a woven module uses. The module reports them when it is loaded. */
export function noteNeed(store: string, sites: readonly string[]): void {
  const known = required.get(store) ?? new Set();
  for (const site of sites) known.add(site);
  required.set(store, known);
}

/** @throws {LockMisconfiguredError} if a tag of a loaded module names a store that is not in the list */
export function assertAllNeeded(stores: readonly string[]): void {
  const missing = missingOf(stores);
  if (missing !== undefined) throw missing;
}

/** Returns an error if a tag of a loaded module names a store that is not in the list. */
export function missingOf(stores: readonly string[]): LockMisconfiguredError | undefined {
  const missing = [...required].filter(([store]) => !stores.includes(store));
  return missing.length > 0 ? noStore(missing, stores) : undefined;
}

/** The number of sites that a message names. It only counts the others. */
const MAX_SITES = 5;

/**
 * Returns the error about stores that are not configured.
 *
 * @param missing the names of the stores, and the functions that use each
 * @param stores the names of the stores that `configure()` got
 */
export function noStore(
  missing: readonly (readonly [store: string, sites: Iterable<string>])[],
  stores: readonly string[],
): LockMisconfiguredError {
  const each = missing
    .map(([store, sites]) => `no store \`${store}\`${requiredBy([...sites])}`)
    .join(", and ");
  const configured = stores.map((name) => `\`${name}\``).join(", ");
  const fix = missing.map(([store]) => `${property(store)}: "redis://..."`).join(", ");
  return new LockMisconfiguredError(
    `There is ${each}: configure() has only ${configured}. Fix: call configure({ ..., stores: { ${fix} } })`,
  );
}

function requiredBy(sites: readonly string[]): string {
  if (sites.length === 0) return "";
  const named = sites.slice(0, MAX_SITES).join(", ");
  const more = sites.length > MAX_SITES ? ` and ${sites.length - MAX_SITES} more` : "";
  return `, which ${named}${more} ${sites.length === 1 ? "uses" : "use"}`;
}

function property(name: string): string {
  return name.includes("-") ? JSON.stringify(name) : name;
}
